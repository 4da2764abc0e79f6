// The page of an explorer: the way so far, the steps that are enabled, and the state.

const colours = new Map(data.nodes);
const FAULT_EVERY = 8; // a random walk takes one fault in so many steps that have an alternative
const WALK = 20;
// The properties that states or steps of this page violate; progress is violated by a whole way.
const inPage = graph ? violatedInPage() : [];

let way = [];
let place = null;
let before = null;
let sought = "";
let shown = 0;

// --- going somewhere -------------------------------------------------------------------------

function inAddress(choices) {
  return "#" + choices.join(".");
}

function fromAddress() {
  const found = /^#(\d+(?:\.\d+)*)?$/.exec(location.hash);
  return found && found[1] ? found[1].split(".").map(Number) : [];
}

// Shows a place; the state before its last step tells what has changed. A later call wins.
async function show(choices) {
  const call = ++shown;
  try {
    const [found, earlier] = await Promise.all([placeOf(choices), choices.length ? placeOf(choices.slice(0, -1)) : null]);
    if (call !== shown) return;
    [way, place, before] = [choices, found, earlier];
    drawAll();
  } catch (error) {
    if (call === shown) drawError(error.message);
  }
}

function go(choices) {
  if (location.hash === inAddress(choices)) show(choices);
  else location.hash = inAddress(choices);
}

function take(choice) {
  if (place && choice < place.state.choices.length) go([...way, choice]);
}

async function walk() {
  const walked = [...way];
  for (let taken = 0; taken < WALK; taken++) {
    const { choices } = (await placeOf(walked)).state;
    const numbered = choices.map((choice, at) => [choice, at]);
    const faults = numbered.filter(([choice]) => choice.step.fault);
    const plain = numbered.filter(([choice]) => !choice.step.fault && !choice.idle);
    const isFault = faults.length && (!plain.length || Math.random() * FAULT_EVERY < 1);
    const from = isFault ? faults : plain;
    if (!from.length) break;
    walked.push(from[Math.floor(Math.random() * from.length)][1]);
  }
  go(walked);
}

function seek() {
  if (!sought) return;
  if (inPage.includes(sought)) go([...way, ...wayTo(sought, place.number)]);
  else go(data.ways[sought]);
}

// --- the way so far --------------------------------------------------------------------------

function describeStep(parent, step) {
  make(parent, "span", { class: "swatch", style: "background:" + colours.get(step.node) });
  make(parent, "b", {}, step.node);
  make(parent, "span", { class: step.fault ? "fault" : "" }, " " + step.text);
  if (!step.operation) return;
  parent.append(": ");
  make(parent, "code", {}, step.operation);
  if (step.answer) {
    parent.append(" → ");
    make(parent, "code", {}, step.answer);
  }
  if (step.reads.length) make(parent, "span", { class: "soft" }, ", then " + counted(step.reads.length, "read"));
}

function drawWay() {
  wayPane.replaceChildren();
  const title = make(wayPane, "h2", {}, counted(way.length, "step"));
  make(title, "small", { class: "soft" }, " from the beginning");
  const list = make(wayPane, "ol");
  const row = (number) => make(make(list, "li"), "a", { href: inAddress(way.slice(0, number)), class: number === way.length ? "on" : "" });
  row(0).textContent = "the beginning";
  place.steps.forEach((step, at) => {
    const link = row(at + 1);
    make(link, "span", { class: "key" }, String(at + 1));
    describeStep(link, step);
  });
  list.lastElementChild.scrollIntoView({ block: "nearest" });
}

// --- the steps that are enabled --------------------------------------------------------------

const KINDS = [
  ["Steps", (choice) => !choice.step.fault && !choice.idle],
  ["Steps for which nothing waits", (choice) => !choice.step.fault && choice.idle],
  ["Faults", (choice) => Boolean(choice.step.fault)],
];

function drawChoices() {
  choicePane.replaceChildren();
  const { choices, disabled } = place.state;
  make(choicePane, "h2", {}, counted(choices.length, "step") + " may come next");
  const distance = inPage.includes(sought) ? distancesTo(sought) : null;
  for (const [title, belongs] of KINDS) {
    const found = choices.map((choice, at) => [choice, at]).filter(([choice]) => belongs(choice));
    if (!found.length) continue;
    make(choicePane, "h3", {}, title);
    const list = make(choicePane, "ol");
    for (const [choice, at] of found) drawChoice(make(list, "li"), choice, at, distance);
  }
  make(choicePane, "h3", {}, "Processes that cannot move");
  const reasons = make(choicePane, "ul");
  for (const sentence of disabled) make(reasons, "li", {}, sentence);
  if (!disabled.length) make(reasons, "li", { class: "soft" }, "none: every process that runs can move");
}

function drawChoice(parent, choice, at, distance) {
  const made = button(parent, "", () => take(at));
  if (at < 9) make(made, "span", { class: "key", title: "the key that takes this step" }, String(at + 1));
  describeStep(made, choice.step);
  for (const name of choice.violates) make(made, "div", { class: "breaks" }, "✗ violates " + name);
  if (!distance || choice.violates.includes(sought)) return;
  const steps = distance[choice.leadsTo];
  make(made, "div", { class: steps < 0 ? "soft" : "near" }, steps < 0 ? sought + " cannot be violated after it" : counted(steps, "step") + " from a violation of " + sought);
}

// --- the state -------------------------------------------------------------------------------

function drawState() {
  statePane.replaceChildren();
  const { processes, znodes, violates, rest } = place.state;
  make(statePane, "h2", {}, "The state");
  const broken = [...new Set([...violates, ...brokenByLast()])];
  for (const name of broken) make(statePane, "p", { class: "banner violated" }, "✗ " + name + " is violated");
  if (rest && !broken.length) make(statePane, "p", { class: "banner rest" }, "nothing has to come any more");
  for (const name in processes) drawProcess(name, processes[name], before && before.state.processes[name]);
  make(statePane, "h3", {}, "Znodes");
  drawZnodes(znodes);
}

// What the last step itself violates: the state after it may be right again.
function brokenByLast() {
  return before ? before.state.choices[way.at(-1)].violates : [];
}

function drawProcess(name, now, earlier) {
  const box = make(statePane, "div", { class: "snapshot", style: "border-left-color:" + colours.get(name) });
  make(box, "span", { class: "node" }, name);
  const list = make(box, "dl");
  const line = (word, key, text) => {
    const isChanged = earlier && JSON.stringify(earlier[key]) !== JSON.stringify(now[key]);
    make(list, "dt", {}, word);
    make(list, "dd", isChanged ? { class: "changed" } : {}, text || "–");
  };
  line("phase", "phase", now.phase);
  if (now.phase !== "running") return;
  line("session", "session", now.session);
  line("waits for", "waits", now.waits);
  line("pending", "pending", now.pending.join("\n"));
  line("fetches", "fetches", now.fetches.join(", "));
}

function drawZnodes(znodes) {
  const table = make(statePane, "table");
  const earlier = before ? new Map(before.state.znodes.map((znode) => [znode[0], JSON.stringify(znode)])) : null;
  for (const znode of znodes) {
    const [path, text, owner, isStale] = znode;
    const isChanged = earlier && earlier.get(path) !== JSON.stringify(znode);
    const line = make(table, "tr", { class: (isChanged ? "changed " : "") + (isStale ? "stale" : "") });
    make(make(line, "td"), "code", {}, path);
    make(make(line, "td"), "code", {}, text);
    make(line, "td", { class: "owner" }, owner && (isStale ? "an earlier session of " : "") + owner);
  }
  const now = new Set(znodes.map(([path]) => path));
  for (const path of earlier ? earlier.keys() : []) {
    if (now.has(path)) continue;
    const line = make(table, "tr", { class: "changed" });
    make(make(line, "td"), "code", {}, path);
    make(line, "td", { colspan: "2" }, "deleted by the last step");
  }
}

function drawError(message) {
  statePane.replaceChildren();
  make(statePane, "p", { class: "banner violated" }, message);
  button(statePane, "Go to the beginning", () => go([]));
}

// --- the page --------------------------------------------------------------------------------

function drawAll() {
  drawWay();
  drawChoices();
  drawState();
  undo.disabled = !way.length;
  jump.disabled = !sought;
}

stage.classList.add("explorer");
const wayPane = make(stage, "section", { id: "way", "aria-label": "the way so far" });
const choicePane = make(stage, "section", { "aria-label": "steps that may come next" });
const statePane = make(stage, "section", { class: "state", tabindex: 0, "aria-label": "the state" });

const controls = document.getElementById("controls");
const undo = button(controls, "Undo", () => go(way.slice(0, -1)), "the key u");
button(controls, "Beginning", () => go([]), "the key b");
button(controls, "Random walk", walk, "20 steps by chance; the key r");
const properties = [...new Set([...inPage, ...Object.keys(data.ways)])];
const choice = make(make(controls, "label", {}, "property "), "select", { "aria-label": "property" });
make(choice, "option", { value: "" }, properties.length ? "choose a violated property" : "no property is violated");
for (const name of properties) make(choice, "option", { value: name }, name);
choice.addEventListener("change", () => { sought = choice.value; drawAll(); });
const jump = button(controls, "Go to its violation", seek, "the key v");

const KEYS = { u: () => way.length && go(way.slice(0, -1)), b: () => go([]), r: walk, v: seek };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target === choice) return;
  if (KEYS[event.key]) KEYS[event.key]();
  else if (/^[1-9]$/.test(event.key)) take(Number(event.key) - 1);
  else return;
  event.preventDefault();
});
addEventListener("hashchange", () => show(fromAddress()));
show(fromAddress());
