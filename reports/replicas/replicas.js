// The page of a counterexample of replicas: a row for each step with the state after it, and the
// state after the chosen step in words.

/** @type {HTMLElement[]} */
const rows = [];
const WIDE = states[0].replicas.length < 3
  ? { step: 300, registry: 150, requests: 140, replica: Math.max(170, LOG_WIDTH + 16) }
  : { step: 225, registry: 140, requests: 128, replica: Math.max(156, LOG_WIDTH + 16) };

// --- the rows --------------------------------------------------------------------------------

/**
 * @param {Element} parent
 * @param {number} wide
 */
function cell(parent, wide, kinds = "") {
  return make(parent, "div", { class: "cell " + kinds, style: `width:${wide}px` });
}

/** @param {Element} parent */
function drawNames(parent) {
  const line = make(parent, "div", { class: "row heads" });
  make(line, "span", { class: "number" });
  cell(line, WIDE.step).textContent = "step";
  cell(line, WIDE.registry).textContent = "ZooKeeper";
  cell(line, WIDE.requests).textContent = "requests in flight";
  states[0].replicas.forEach((_, replica) => { cell(line, WIDE.replica).textContent = "replica " + replica; });
}

/**
 * @param {Element} parent
 * @param {number} number
 */
function drawRow(parent, number) {
  const isViolation = number === data.violation;
  const row = make(parent, "a", { class: isViolation ? "row violation" : "row", href: "#step-" + number });
  make(row, "span", { class: "number" }, (isViolation ? "✗ " : "") + number);
  const step = steps[number - 1];
  const words = cell(row, WIDE.step, "words");
  make(words, "div", { class: step && step.fault ? "fault" : "" }, step ? step.text : "before the first step");
  const { registry } = states[number];
  const held = cell(row, WIDE.registry, isChanged(number, (now) => now.registry) ? "changed" : "");
  make(held, "div", {}, registry.epoch < 0 ? "no epoch yet" : `${leaderOf(registry)}, epoch ${registry.epoch}`);
  make(held, "div", { class: "soft" }, "ISR " + named(registry.isr));
  /** @param {ReplicasState} now */
  const underWay = (now) => now.requests.filter((request) => request.open_to.length);
  const flying = cell(row, WIDE.requests, isChanged(number, underWay) ? "changed" : "");
  for (const request of underWay(states[number])) make(flying, "div", {}, `epoch ${request.epoch} → ${request.open_to.join(", ")}`);
  states[number].replicas.forEach((replica, at) => drawReplica(row, number, replica, at));
  rows.push(row);
}

/**
 * @param {HTMLElement} row
 * @param {number} number
 * @param {Replica} replica
 * @param {number} at
 */
function drawReplica(row, number, replica, at) {
  const kinds = [isChanged(number, (now) => now.replicas[at]) ? "changed" : "", isBroken(number, at) ? "broken" : ""];
  const box = cell(row, WIDE.replica, kinds.join(" "));
  const role = make(box, "div", { class: replica.role === "leads" ? "role leads" : "role" });
  make(role, "span", { class: "swatch", style: "background:" + colourOf(replica.epoch) });
  role.append(roleOf(replica));
  drawLog(box, replica, brokenOffsets(number, at));
}

// --- the state after a step ------------------------------------------------------------------

/** @param {number} number */
function drawState(number) {
  state.replaceChildren();
  const step = steps[number - 1];
  const title = make(state, "h2", {}, "Step " + number);
  make(title, "small", { class: "soft" }, " of " + steps.length);
  if (number === data.violation) make(state, "p", { class: "banner" }, data.says + ": " + data.proof);
  if (step) {
    make(state, "p", { class: step.fault ? "fault" : "" }, step.text);
    if (step.fault) make(state, "p", { class: "fault" }, "a fault: " + step.fault);
  }
  make(state, "h3", {}, "Replicas after it");
  states[number].replicas.forEach((_, at) => drawDetails(number, at));
  make(state, "h3", {}, "ZooKeeper after it");
  const { registry } = states[number];
  make(state, "p", {}, `${registry.epoch < 0 ? "no epoch yet" : leaderOf(registry) + " in epoch " + registry.epoch}, ISR ${named(registry.isr)}`);
  make(state, "h3", {}, "Requests of controllers");
  drawRequests(states[number].requests);
  make(state, "h3", {}, "Faults that may still strike");
  const { faults } = states[number];
  make(state, "p", { class: faults.length ? "" : "soft" }, faults.join("; ") || "none");
}

/**
 * @param {number} number
 * @param {number} at
 */
function drawDetails(number, at) {
  const replica = states[number].replicas[at];
  const box = make(state, "div", { class: isBroken(number, at) ? "snapshot broken" : "snapshot", style: "border-left-color:" + colourOf(replica.epoch) });
  make(box, "span", { class: "node" }, "replica " + at);
  drawLog(box, replica, brokenOffsets(number, at));
  const list = make(box, "dl");
  /**
   * @param {string} word
   * @param {(replica: Replica) => unknown} part
   * @param {string} text
   */
  const line = (word, part, text) => {
    make(list, "dt", {}, word);
    make(list, "dd", isChanged(number, (now) => part(now.replicas[at])) ? { class: "changed" } : {}, text);
  };
  line("role", (one) => [one.role, one.follows], replica.role === "follows" ? "follows " + replica.follows : replica.role);
  line("epoch", (one) => one.epoch, replica.epoch === null ? "none known" : String(replica.epoch));
  line("log", (one) => one.log, replica.log.map(([record, epoch]) => `record ${record} (epoch ${epoch})`).join(", ") || "empty");
  line("log end", (one) => one.log.length, String(replica.log.length));
  line("committed", (one) => one.high_watermark, "high watermark " + replica.high_watermark);
  if (replica.role === "leads") line("presumed ISR", (one) => one.isr, named(replica.isr));
  if (replica.awaits_reply) line("waits for", (one) => one.awaits_reply, "the reply to a write of the ISR");
}

/** @param {ControllerRequest[]} requests */
function drawRequests(requests) {
  if (!requests.length) {
    make(state, "p", { class: "soft" }, "none was sent");
    return;
  }
  const table = make(state, "table");
  const head = make(table, "tr");
  for (const word of ["epoch", "says", "may be taken by"]) make(head, "th", {}, word);
  for (const request of requests) {
    const line = make(table, "tr", { class: request.open_to.length ? "" : "soft" });
    const takers = request.open_to.map((replica) => "replica " + replica).join(", ");
    for (const text of [request.epoch, `${leaderOf(request)}, ISR ${named(request.isr)}`, takers || "no replica"]) make(line, "td", {}, String(text));
  }
}

// --- choosing --------------------------------------------------------------------------------

/** @param {Step} step */
function isFault(step) {
  return Boolean(step.fault);
}

/** @param {number} number */
function choose(number) {
  show(number);
  location.replace("#step-" + chosen);
}

function fromHash() {
  const found = /^#step-(\d+)$/.exec(location.hash);
  const number = found ? Number(found[1]) : data.violation;
  if (number !== chosen || !number) show(number);
}

/** @param {number} number */
function show(number) {
  if (rows[chosen]) rows[chosen].classList.remove("on");
  chosen = Math.min(Math.max(number, 0), steps.length);
  statusText.textContent = "step " + chosen + " of " + steps.length;
  rows[chosen].classList.add("on");
  drawState(chosen);
  rows[chosen].scrollIntoView({ block: "nearest" });
  state.scrollTop = 0;
  tip.hidden = true;
}

// --- the page --------------------------------------------------------------------------------

stage.classList.add("replicas");
const path = make(stage, "div", { class: "path", tabindex: "0" });
drawNames(make(path, "div", { class: "names" }));
const body = make(path, "div", { class: "rows" });
states.forEach((_, number) => drawRow(body, number));
const state = make(stage, "aside", { class: "state", tabindex: 0, "aria-label": "the state", "aria-live": "polite" });

const controls = element("controls");
const statusText = stepButtons(controls);
if (steps.some(isFault)) button(controls, "next fault", () => nextFault(1)).id = "next-fault";
button(controls, "the violation", () => choose(data.violation), "the step that violates the property");
make(controls, "span", { class: "soft" }, "arrow keys choose a step; its address can be shared");

const legend = element("legend");

/**
 * @param {string} text
 * @param {(svg: SVGElement) => void} paint
 */
function sample(text, paint) {
  const item = make(legend, "span");
  paint(draw(item, "svg", { width: 24, height: 16 }));
  item.append(text);
}

const epochs = [...new Set(states.flatMap((one) => one.replicas.flatMap((replica) => replica.log.map(([, epoch]) => epoch))))].sort();
for (const epoch of epochs) sample("record of epoch " + epoch, (svg) => draw(svg, "rect", { x: 2, y: 1, width: 20, height: 14, rx: 2, fill: colourOf(epoch) }));
sample("high watermark", (svg) => draw(svg, "line", { x1: 12, x2: 12, y1: 0, y2: 16, stroke: "var(--ink)", "stroke-width": 3 }));
sample("committed, and missing in the ISR", (svg) => draw(svg, "rect", { x: 3, y: 2, width: 18, height: 12, rx: 2, fill: "none", stroke: "var(--breach)", "stroke-width": 2.5 }));
const marked = make(legend, "span", {}, "changed by the step");
marked.className = "changed";

addEventListener("hashchange", fromHash);
linkSteps(steps.length);
fromHash();
