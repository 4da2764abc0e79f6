// The page: a path and the place on it that is shown. Choosing another step than the path takes
// leads off it; a path that violates a property may be given, and its steps have short addresses.

const FAULT_EVERY = 8; // a random walk takes one fault in so many steps that have an alternative
const WALK = 20;
// The properties that states or steps of this page violate; progress is violated by a whole path.
const inPage = graph ? violatedInPage() : [];

/** @type {number[]} */
let way = []; // the choices along the path that is drawn; the place is after `chosen` of them
let sought = data.opens; // the property that is looked for
let given = data.paths[sought]; // the path to its violation
let calls = 0;
let wanted = ""; // the address of the place that is shown, or will be when its states have come

// --- where it is -----------------------------------------------------------------------------

function isWithin(start, whole) {
  return start.length <= whole.length && sharedLength(start, whole) === start.length;
}

// A step of the given path has its number as address; other places are named by their choices.
function inAddress(choices) {
  if (!data.opens) return "#" + choices.join(".");
  const along = sharedLength(choices, data.paths[data.opens].choices);
  return "#" + ["step-" + along, ...choices.slice(along)].join(".");
}

function fromAddress() {
  const [first, ...more] = location.hash.slice(1).split(".");
  const others = more.map(Number);
  const numbered = /^step-(\d+)$/.exec(first);
  if (data.opens) {
    const { choices, violation } = data.paths[data.opens];
    return [...choices.slice(0, numbered ? Number(numbered[1]) : violation), ...others];
  }
  return first ? [Number(first), ...others] : [];
}

// Whether the path is the given one as far as a step, but for what comes after it.
function isOnGiven(number) {
  return Boolean(given) && isWithin(way.slice(0, number), given.choices);
}

// Whether a step has left the given path of a counterexample.
function isOffGiven(number) {
  return Boolean(data.opens) && number > 0 && !isOnGiven(number);
}

function isInCycle(number) {
  return marks.cycle !== null && number >= marks.cycle[0] && number <= marks.cycle[1];
}

// The properties that a step, or the state after it, violates.
function violatedAt(number) {
  return [...new Set([...states[number].violates, ...(number ? steps[number - 1].violates : [])])];
}

// Whether a step breaks the property that is looked for, or begins to break any if none is.
function breaksAt(number) {
  if (!number) return false;
  if (isOnGiven(number)) return number === given.violation;
  const found = violatedAt(number).filter((name) => !violatedAt(number - 1).includes(name));
  return sought ? found.includes(sought) : found.length > 0;
}

// --- going somewhere -------------------------------------------------------------------------

// Shows a place, with the rest of its path where it is on one. A later call wins.
async function show(choices) {
  const call = ++calls;
  wanted = inAddress(choices);
  const whole = [way, given ? given.choices : []].find((one) => isWithin(choices, one)) || choices;
  try {
    const found = await statesOf(whole);
    if (call !== calls) return;
    setPath(whole, found, choices.length);
  } catch (error) {
    if (call === calls) drawError(error instanceof Error ? error.message : String(error));
  }
}

function setPath(whole, found, number) {
  const isOther = found.length !== states.length || !isWithin(whole, way) || !rows.length;
  way = whole;
  chosen = number;
  const isInFold = chosen > 0 && chosen <= (isOther ? setUpOf(found, stepsOf(found)) : folded);
  if (isInFold) isUnfolded = true;
  if (isOther || isInFold) drawPath(found);
  drawPlace();
}

function go(choices, replaces = false) {
  const address = inAddress(choices);
  if (location.hash !== address) {
    if (replaces) location.replace(address);
    else location.hash = address;
  }
  return show(choices);
}

function choose(number) {
  return go(way.slice(0, number), true);
}

// Takes a step that is enabled after `number` steps of the path.
async function takeAt(number, choice) {
  const taken = states[number].choices[choice];
  if (graph && taken.leadsTo === NOT_HELD) {
    const refusal = statePane.querySelector(".refusal");
    if (refusal) refusal.textContent = beyond();
    return;
  }
  await go([...way.slice(0, number), choice]);
}

function take(choice) {
  if (states.length && choice < states[chosen].choices.length) takeAt(chosen, choice);
}

function undo() {
  if (chosen) go(way.slice(0, chosen - 1));
}

async function walk() {
  const walked = way.slice(0, chosen);
  for (let taken = 0; taken < WALK; taken++) {
    const { choices } = (await statesOf(walked))[walked.length];
    const numbered = choices.map((choice, at) => ({ choice, at })).filter(({ choice }) => !graph || choice.leadsTo !== NOT_HELD);
    const faults = numbered.filter(({ choice }) => choice.step.fault);
    const plain = numbered.filter(({ choice }) => !choice.step.fault && !choice.idle);
    const isFault = faults.length && (!plain.length || Math.random() * FAULT_EVERY < 1);
    const from = isFault ? faults : plain;
    if (!from.length) break;
    walked.push(from[Math.floor(Math.random() * from.length)].at);
  }
  await go(walked);
}

// The violation that the search found, by the rest of its path where this is a place on it. From
// elsewhere it is the nearest one, in a page with all states.
function seek() {
  if (!sought || !states.length) return;
  const isNear = isWhole && inPage.includes(sought) && !isOnGiven(chosen);
  const near = isNear ? wayTo(sought, states[chosen].number) : null;
  if (near) go([...way.slice(0, chosen), ...near]);
  else if (given) go(given.choices.slice(0, given.violation));
}

function lookFor(name) {
  sought = name;
  given = data.paths[name];
  if (!states.length) return;
  drawPath(states);
  drawPlace();
}

// --- drawing ---------------------------------------------------------------------------------

// Shows the steps of set-up one by one, or as one row; the chosen step is never in the fold.
function fold(isFolded) {
  isUnfolded = !isFolded;
  const setUp = setUpOf(states, steps);
  drawPath(states);
  if (isFolded && chosen && chosen <= setUp) choose(setUp + 1);
  else drawPlace();
}

// A click beside the words chooses the row that it is in.
function chooseRow(row) {
  if (folded && row === 1) fold(false);
  else choose(Math.min(folded && row ? row + folded - 1 : row, steps.length));
}

function stepsOf(found) {
  return way.map((choice, at) => found[at].choices[choice]);
}

// Draws the path anew: its steps are those that the states take.
function drawPath(found) {
  states = found;
  steps = stepsOf(found);
  const isGiven = Boolean(given) && isWithin(given.choices, way);
  folded = foldsOf();
  layOut(sought, isGiven ? given.cycle : null);
  names.replaceChildren();
  drawNames(names);
  body.replaceChildren();
  drawRows(body, (number) => inAddress(way.slice(0, number)));
  drawEnd(isGiven);
  drawPicture(draw(body, "svg", { width, height }));
  body.style.minWidth = width + 320 + "px";
}

function drawEnd(isGiven) {
  const end = make(body, "div", { class: marks.cycle ? "end cycle" : "end", style: `height:${TAIL}px;padding-left:${width + NUMBER}px` });
  if (marks.cycle) end.textContent = "↻ the cycle repeats for ever, from step " + marks.cycle[0];
  else if (isGiven && given.violation === steps.length) end.textContent = "✗ " + given.says;
}

function drawPlace() {
  rows.forEach((row, number) => row.classList.toggle("on", number === chosen));
  statusText.textContent = chosen ? `step ${chosen} of ${steps.length}` : "before the first step";
  if (isOffGiven(chosen)) statusText.textContent += ", off the counterexample";
  undoButton.disabled = !chosen;
  jump.disabled = !sought;
  faults.hidden = !steps.some(isFault);
  foldButton.hidden = setUpOf(states, steps) < FEWEST_FOLDED;
  foldButton.textContent = folded ? "Show set-up" : "Fold set-up";
  if (cycle) cycle.hidden = !marks.cycle;
  drawState(statePane);
  const row = rows[chosen];
  const [top, bottom] = [row.offsetTop, row.offsetTop + ROW + (chosen === steps.length ? TAIL : ROW)];
  const clear = path.clientHeight - HEAD;
  if (top - ROW < path.scrollTop) path.scrollTop = top - ROW;
  else if (bottom > path.scrollTop + clear) path.scrollTop = bottom - clear;
  statePane.scrollTop = 0;
  tip.hidden = true;
}

function isFault({ step }) {
  return Boolean(step.fault);
}

function drawError(message) {
  statePane.replaceChildren();
  make(statePane, "p", { class: "banner violated" }, message);
  button(statePane, "Go to the beginning", () => go([]));
}

// --- the page --------------------------------------------------------------------------------

stage.classList.add("explorer");
const path = make(stage, "div", { class: "path", tabindex: "0", role: "region", "aria-label": "the path" });
const names = make(path, "div", { class: "names" });
const body = make(path, "div", { class: "rows" });
body.addEventListener("click", (event) => {
  if (event.target instanceof Element && !event.target.closest("a, button")) chooseRow(Math.floor((event.clientY - body.getBoundingClientRect().top) / ROW));
});
const statePane = make(stage, "aside", { class: "state", tabindex: 0, "aria-label": "the state", "aria-live": "polite" });

const controls = element("controls");
const statusText = stepButtons(controls);
const faults = make(controls, "span", { class: "set" });
button(faults, "‹", () => nextFault(-1), "the fault before");
button(faults, "next fault", () => nextFault(1)).id = "next-fault";
const foldButton = button(controls, "Fold set-up", () => fold(!folded), "the steps before anything is claimed or fetched, or fails");
const undoButton = button(controls, "Undo", undo, "the key u");
button(controls, "Beginning", () => go([]), "the key b");
if (!isAlone) button(controls, "Random walk", walk, "up to 20 steps by chance; the key r");
const properties = [...new Set([...inPage, ...Object.keys(data.paths)])];
const choice = make(make(controls, "label", {}, "property "), "select", { "aria-label": "property" });
make(choice, "option", { value: "" }, properties.length ? "choose a violated property" : "no property is violated");
for (const name of properties) make(choice, "option", { value: name }, name);
choice.value = sought;
choice.addEventListener("change", () => lookFor(choice.value));
const jump = button(controls, "Go to its violation", seek, "the key v");
const { cycle: around } = data.opens ? given : { cycle: null };
const cycle = around ? button(controls, "the cycle", () => go(given.choices.slice(0, around[0])), "the first step of the cycle") : null;
if (cycle) cycle.id = "cycle";
make(controls, "span", { class: "soft" }, "arrow keys choose a step, digits take one that may come next; the address can be shared");

const legend = element("legend");

function sample(text, paint) {
  const item = make(legend, "span");
  paint(draw(item, "svg", { width: 34, height: 14 }));
  item.append(text);
}

const bar = (x, wide, look) => (svg) => draw(svg, "rect", { x, y: 1, width: wide, height: 12, ...look });
sample("claimed", bar(14, CLAIM - 1, { fill: COLOURS.ok }));
sample("claimed by an earlier session", bar(14, CLAIM - 1, claimLook(COLOURS.ok, true)));
sample("fetched", bar(12, TRACK - 2, { fill: COLOURS.ok, rx: 2 }));
sample("fetched, session dead", bar(12, TRACK - 2, { fill: COLOURS.ok, "fill-opacity": 0.35, rx: 2, stroke: COLOURS.zombie, "stroke-dasharray": "3 2" }));
sample("fetched by two", bar(8, 18, { fill: "none", rx: 3, stroke: COLOURS.fault, "stroke-width": 2 }));
sample("request and reply", (svg) => arrow(svg, 1, 4, 32, 10, COLOURS.ok));
sample("reply with an error", (svg) => arrow(svg, 1, 4, 32, 10, COLOURS.error));
sample("a notification, until it is received", (svg) => arrow(svg, 1, 4, 32, 10, COLOURS.firing, "2 3"));
if (cycle) sample("the cycle", (svg) => drawBack(svg, 28, 3, 11));
sample("fault", (svg) => draw(svg, "circle", { cx: 17, cy: 7, r: 6, fill: COLOURS.fault }));

const COMMANDS = { u: undo, b: () => go([]), r: () => isAlone || walk(), v: seek };

addEventListener("keydown", (event) => {
  if (!isCommand(event)) return;
  if (COMMANDS[event.key]) COMMANDS[event.key]();
  else if (/^[1-9]$/.test(event.key)) take(Number(event.key) - 1);
  else return;
  event.preventDefault();
});
addEventListener("hashchange", () => {
  if (location.hash !== wanted) show(fromAddress());
});
document.body.classList.toggle("violated", properties.length > 0);
if (data.opens) linkSteps(given.choices.length);
show(fromAddress());
