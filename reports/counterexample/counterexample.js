// The page of a counterexample: the rows, the choice of a step, and the state after it.

const rows = [];

// Programs of a user claim znodes, not partitions.
const PLACE = data.columns.every(([, what]) => what.startsWith("/")) ? "znode" : "partition";

// --- the rows --------------------------------------------------------------------------------

function swatch(parent, node) {
  make(parent, "span", { class: "swatch", style: "background:" + colourOf(node) });
}

// Two lines: the step, and its result.
function writeStep(parent, step) {
  const first = make(parent, "div");
  swatch(first, step.node);
  make(first, "b", {}, nameOf(step.node));
  const isPlain = step.does === "reply" && !step.then;
  make(first, "span", { class: step.fault ? "fault" : "" }, " " + (isPlain ? "" : step.does));
  if (step.operation) first.append((isPlain ? "" : ": ") + step.operation);
  const parts = [];
  if (step.answer) parts.push([step.failed ? "failed" : "soft", "→ " + step.answer]);
  if (step.reads.length) parts.push(["soft", counted(step.reads.length, "more answer")]);
  parts.push(...step.changes.map((change) => ["changed", change]));
  if (!parts.length) return;
  const second = make(parent, "div");
  const ordered = [...parts.filter(([kind]) => kind === "changed"), ...parts.filter(([kind]) => kind !== "changed")];
  ordered.forEach(([kind, text], at) => make(second, "span", { class: kind }, (at ? " · " : "") + text));
}

function drawRows(parent) {
  steps.forEach((step, at) => {
    const number = at + 1;
    const [kind, mark] = number === data.violation ? [" violation", "✗ "] : isInCycle(number) ? [" cycle", "↻ "] : ["", ""];
    const row = make(parent, "a", { class: "row" + kind, href: "#step-" + number, style: `height:${ROW}px` });
    make(row, "span", { class: "number" }, mark + number);
    make(row, "span", { style: `flex:none;width:${width}px` });
    const words = make(row, "div", { class: "words" });
    writeStep(words, step);
    row.title = [...words.children].map((line) => line.textContent).join("\n");
    rows.push(row);
  });
  const end = make(parent, "div", { class: data.cycle ? "end cycle" : "end", style: `height:${TAIL}px;padding-left:${width + 46}px` });
  end.textContent = data.cycle ? "↻ the cycle repeats for ever, from step " + data.cycle[0] : "✗ " + data.says;
}

// Whether a step belongs to the cycle.
function isInCycle(number) {
  return data.cycle !== null && number >= data.cycle[0] && number <= data.cycle[1];
}

// --- the state after a step ------------------------------------------------------------------

function drawState(number) {
  state.replaceChildren();
  if (!number) {
    make(state, "p", {}, data.says + " from the beginning: no step leads there.");
    return;
  }
  const step = steps[number - 1];
  const title = make(state, "h2", {}, "Step " + number);
  make(title, "small", { class: "soft" }, " of " + steps.length);
  if (number === data.violation) make(state, "p", { class: "banner" }, data.says + ": " + data.proof);
  if (isInCycle(number)) make(state, "p", { class: "banner cycle" }, "This step is part of a cycle: the state after step " + data.cycle[1] + " is the state after step " + (data.cycle[0] - 1) + ".");
  drawStepDetails(step);
  make(state, "h3", {}, "Claims and fetches after it");
  drawOwners(step);
  drawRegistry(step.registry, number > 1 ? steps[number - 2].registry : data.first_registry);
  make(state, "h3", {}, "Processes after it");
  const before = snapshots[number - 1];
  data.lanes.forEach((node) => drawSnapshot(node, step.snapshots[node], before[node]));
  const others = data.nodes.map((_, node) => node).filter((node) => !data.lanes.includes(node));
  if (others.length) make(state, "p", { class: "soft" }, "Unchanged since the beginning, without a lane: " + others.map(nameOf).join(", "));
  make(state, "h3", {}, "Processes that could not move instead");
  const list = make(state, "ul");
  for (const reason of step.disabled) make(list, "li", {}, reason);
  if (!step.disabled.length) make(list, "li", { class: "soft" }, "none: every process that runs could move");
}

function drawStepDetails(step) {
  const sentence = make(state, "p");
  swatch(sentence, step.node);
  make(sentence, "b", {}, nameOf(step.node));
  sentence.append(" " + step.text);
  if (step.fault) make(sentence, "span", { class: "fault" }, " (a fault: " + step.fault.replaceAll("_", " ") + ")");
  if (step.operation) drawAnswer(step.operation, step.answer, step.full);
  if (!step.reads.length) return;
  const more = make(state, "details");
  make(more, "summary", {}, counted(step.reads.length, "more answer") + " in the same step");
  for (const [operation, answer, , full] of step.reads) drawAnswer(operation, answer, full, more);
}

function drawAnswer(operation, answer, full, parent = state) {
  const line = make(parent, "p");
  make(line, "code", {}, operation);
  if (!answer) return;
  line.append(" → ");
  make(line, "code", {}, answer);
  const isLonger = full.startsWith("{") || (full.startsWith("[") && operation.startsWith("multi"));
  if (isLonger && !full.includes('"error"')) make(make(parent, "p", { class: "soft" }), "code", {}, full);
}

function fetchersOf(step, column) {
  const [, what, nodes] = data.columns[column];
  return nodes.filter((node) => step.snapshots[node][4].includes(what));
}

// A claim is shown for its owner's group alone; one of an unknown owner only where no other group
// has the partition.
function claimOf(step, column) {
  const [group, what] = data.columns[column];
  const owner = step.owners[what];
  const groups = new Set(data.columns.filter((other) => other[1] === what).map((other) => other[0]));
  return owner && (groups.size < 2 || owner.startsWith(group + "/")) ? owner : "";
}

function isWrong(step, fetchers, owner) {
  const alive = fetchers.filter((node) => step.snapshots[node][1].startsWith("alive"));
  const isUncovered = data.violates === "full cover" && step === steps[data.violation - 1] && fetchers.length !== 1;
  return isUncovered || alive.length > 1 || alive.some((node) => nameOf(node) !== owner);
}

function drawOwners(step) {
  if (!data.columns.length) {
    make(state, "p", { class: "soft" }, "no process fetches or claims anything in this counterexample");
    return;
  }
  const table = make(state, "table");
  const head = make(table, "tr");
  for (const word of [PLACE, "claim", "fetched by"]) make(head, "th", {}, word);
  data.columns.forEach(([, what], column) => {
    const [fetchers, owner] = [fetchersOf(step, column), claimOf(step, column)];
    const line = make(table, "tr", { class: isWrong(step, fetchers, owner) ? "wrong" : "" });
    make(line, "td", {}, what);
    make(line, "td", {}, owner || "–");
    const cell = make(line, "td", {}, fetchers.length ? null : "–");
    fetchers.forEach((node, at) => {
      if (at) cell.append(" and ");
      swatch(cell, node);
      cell.append(nameOf(node) + (step.snapshots[node][1].startsWith("alive") ? "" : " (session dead)"));
    });
  });
}

function drawRegistry(now, before) {
  const names = Object.keys(now);
  if (!names.length) return;
  make(state, "h3", {}, "The registry after it");
  const table = make(state, "table");
  for (const name of names) {
    const line = make(table, "tr");
    make(line, "td", {}, name);
    make(make(line, "td", now[name] === before[name] ? {} : { class: "changed" }), "code", {}, now[name]);
  }
}

function drawSnapshot(node, now, before) {
  const box = make(state, "div", { class: "snapshot", style: "border-left-color:" + colourOf(node) });
  make(box, "span", { class: "node" }, nameOf(node));
  const list = make(box, "dl");
  const line = (word, at, text) => {
    const isChanged = before && JSON.stringify(before[at]) !== JSON.stringify(now[at]);
    make(list, "dt", {}, word);
    make(list, "dd", isChanged ? { class: "changed" } : {}, text || "–");
  };
  line("phase", 0, now[0]);
  if (now[0] !== "running") return;
  line("session", 1, now[1]);
  line("waits for", 2, now[2]);
  line("pending", 3, now[3].join("\n"));
  line("fetches", 4, now[4].join(", "));
}

// --- choosing --------------------------------------------------------------------------------

function show(number) {
  if (rows[chosen - 1]) rows[chosen - 1].classList.remove("on");
  chosen = Math.min(Math.max(number, Math.min(1, steps.length)), steps.length);
  status.textContent = steps.length ? "step " + chosen + " of " + steps.length : "no steps";
  drawState(chosen);
  const row = rows[chosen - 1];
  if (!row) return;
  row.classList.add("on");
  const [top, bottom] = [row.offsetTop, row.offsetTop + ROW + (chosen === steps.length ? TAIL : ROW)];
  const clear = path.clientHeight - HEAD;
  if (top - ROW < path.scrollTop) path.scrollTop = top - ROW;
  else if (bottom > path.scrollTop + clear) path.scrollTop = bottom - clear;
  state.scrollTop = 0;
  tip.hidden = true;
}

// --- the page --------------------------------------------------------------------------------

stage.classList.add("counterexample");
const path = make(stage, "div", { class: "path", tabindex: "0" });
drawNames(make(path, "div", { class: "names" }));
const body = make(path, "div", { class: "rows" });
drawRows(body);
const picture = draw(body, "svg", { width, height });
drawColumns(picture);
drawLanes(picture);
drawNotifications(picture);
drawSteps(picture);
drawLoop(picture);
body.style.minWidth = width + 320 + "px";
body.addEventListener("click", (event) => {
  if (!event.target.closest("a")) choose(Math.ceil((event.clientY - body.getBoundingClientRect().top) / ROW));
});
const state = make(stage, "aside", { class: "state", tabindex: 0, "aria-label": "the state", "aria-live": "polite" });

const controls = document.getElementById("controls");
const moves = make(controls, "span", { class: "set" });
button(moves, "‹", () => choose(chosen - 1), "the step before (arrow up)").id = "before";
const status = make(moves, "span");
button(moves, "›", () => choose(chosen + 1), "the next step (arrow down)").id = "after";
if (steps.some((step) => step.fault)) {
  const faults = make(controls, "span", { class: "set" });
  button(faults, "‹", () => nextFault(-1), "the fault before");
  button(faults, "next fault", () => nextFault(1)).id = "next-fault";
}
button(controls, "the violation", () => choose(data.violation), "the step that violates the property");
if (data.cycle) button(controls, "the cycle", () => choose(data.cycle[0]), "the first step of the cycle").id = "cycle";
make(controls, "span", { class: "soft" }, "arrow keys choose a step; its address can be shared");

const legend = document.getElementById("legend");

function sample(text, paint) {
  const item = make(legend, "span");
  paint(draw(item, "svg", { width: 34, height: 14 }));
  item.append(text);
}

const bar = (x, wide, look) => (svg) => draw(svg, "rect", { x, y: 1, width: wide, height: 12, ...look });
sample("claimed", bar(14, CLAIM - 1, { fill: COLOURS.ok }));
sample("fetched", bar(12, TRACK - 2, { fill: COLOURS.ok, rx: 2 }));
if (data.fetched.some((bar) => bar[4] === "dead")) sample("fetched, session dead", bar(12, TRACK - 2, { fill: COLOURS.ok, "fill-opacity": 0.35, rx: 2, stroke: COLOURS.zombie, "stroke-dasharray": "3 2" }));
if (data.shared.length) sample("fetched by two", bar(8, 18, { fill: "none", rx: 3, stroke: COLOURS.fault, "stroke-width": 2 }));
sample("request and reply", (svg) => arrow(svg, 1, 4, 32, 10, COLOURS.ok));
sample("reply with an error", (svg) => arrow(svg, 1, 4, 32, 10, COLOURS.error));
if (data.notifications.length) sample("a notification, until it is received", (svg) => arrow(svg, 1, 4, 32, 10, COLOURS.firing, "2 3"));
if (data.cycle) sample("the cycle", (svg) => drawBack(svg, 28, 3, 11));
if (steps.some((step) => step.fault)) sample("fault", (svg) => draw(svg, "circle", { cx: 17, cy: 7, r: 6, fill: COLOURS.fault }));

fromHash();
