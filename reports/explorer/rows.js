// The rows of a path: before the first step, then one for each step, with the picture beside them.

const FEWEST_FOLDED = 4; // fewer set-up steps are not worth a fold

let isUnfolded = false;
/** @type {HTMLElement[]} */
let rows = [];

function swatch(parent, node) {
  make(parent, "span", { class: "swatch", style: "background:" + colourOf(node) });
}

// Two lines: the step, and its result.
function writeStep(parent, at) {
  const { step, violates } = steps[at];
  const first = make(parent, "div");
  swatch(first, step.node);
  make(first, "b", {}, step.node);
  const isPlain = step.does === "reply" && !step.then;
  make(first, "span", { class: step.fault ? "fault" : "" }, " " + (isPlain ? "" : step.does));
  if (step.operation) first.append((isPlain ? "" : ": ") + step.operation);
  const parts = changesOf(states[at], states[at + 1]).map((change) => ["changed", change]);
  const begun = violates.filter((name) => !states[at].violates.includes(name));
  parts.push(...begun.map((name) => ["breaks", "violates " + name]));
  if (step.answer) parts.push([step.failed ? "failed" : "soft", "→ " + step.answer]);
  if (step.reads.length) parts.push(["soft", counted(step.reads.length, "more answer")]);
  if (!parts.length) return;
  const second = make(parent, "div");
  parts.forEach(([kind, text], number) => make(second, "span", { class: kind }, (number ? " · " : "") + text));
}

function drawRows(parent, addressOf) {
  rows = [];
  drawRow(parent, 0, "", "", addressOf(0)).textContent = "before the first step";
  if (folded) drawFold(parent);
  steps.forEach((_, at) => {
    if (at < folded) return;
    const number = at + 1;
    const [kind, mark] = breaksAt(number) ? [" violation", "✗ "] : isInCycle(number) ? [" cycle", "↻ "] : isOffGiven(number) ? [" off", "≠ "] : ["", ""];
    writeStep(drawRow(parent, number, kind, mark, addressOf(number)), at);
  });
  rows.forEach((row) => { row.title = [...row.lastElementChild?.childNodes ?? []].map((line) => line.textContent).join("\n"); });
}

function drawRow(parent, number, kind, mark, address) {
  const row = make(parent, "a", { class: "row" + kind, href: address, style: `height:${ROW}px` });
  make(row, "span", { class: "number" }, mark + (number || ""));
  make(row, "span", { style: `flex:none;width:${width}px` });
  rows[number] = row;
  return make(row, "div", { class: "words" });
}

// One row for the steps that set up; a click shows them.
function drawFold(parent) {
  const row = make(parent, "button", { type: "button", class: "row fold", style: `height:${ROW}px`, "aria-expanded": "false" });
  make(row, "span", { class: "number" }, "1–" + folded);
  make(row, "span", { style: `flex:none;width:${width}px` });
  const words = make(row, "div", { class: "words" });
  make(words, "div", {}, "▸ " + counted(folded, "step") + " of set-up");
  const by = [...Map.groupBy(steps.slice(0, folded), ({ step }) => step.node)].map(([node, taken]) => node + " " + taken.length);
  make(words, "div", { class: "soft" }, "before anything is claimed or fetched, or fails: " + by.join(", "));
  row.addEventListener("click", () => fold(false));
}

// How many steps are in the fold.
function foldsOf() {
  const found = isUnfolded ? 0 : setUpOf(states, steps);
  return found < FEWEST_FOLDED ? 0 : found;
}
