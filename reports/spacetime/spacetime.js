// The page of space and time: its controls.

// --- a detail that stays ---------------------------------------------------------------------

function pin(lines) {
  pinned.hidden = false;
  pinned.replaceChildren();
  button(pinned, "×", () => { pinned.hidden = true; marked = -1; drawPane(); }, "close");
  make(pinned, "b", {}, lines[0]);
  for (const line of lines.slice(1)) make(pinned, "pre", {}, line);
  tip.hidden = true;
}

// --- jumping ---------------------------------------------------------------------------------

function show(at) {
  marked = at;
  const y = yOf(items[at].from);
  sideways(lanes.findIndex((lane) => lane.at === items[at].node));
  pane.scrollTop = Math.max(y - pane.clientHeight / 3, 0);
  drawPane();
}

function jump(kinds, direction) {
  const starts = shown.filter(({ item }) => kinds(item)).sort((one, other) => one.item.from - other.item.from);
  if (!starts.length) return;
  const now = marked >= 0 ? items[marked].from : direction > 0 ? -1 : Infinity;
  const next = direction > 0
    ? starts.find(({ item, at }) => item.from > now || (item.from === now && at > marked))
    : starts.findLast(({ item, at }) => item.from < now || (item.from === now && at < marked));
  show((next || (direction > 0 ? starts[0] : starts[starts.length - 1])).at);
}

function jumps(noun, kinds) {
  const set = make(controls, "span", { class: "set" });
  const number = items.filter(kinds).length;
  if (!number) {
    make(set, "span", {}, "no " + noun);
    return;
  }
  button(set, "‹", () => jump(kinds, -1), "the " + noun + " before");
  button(set, "next " + noun, () => jump(kinds, 1), counted(number, noun)).id = "next-" + noun.replace(" ", "-");
}

function choose(node) {
  selection.node = node;
  nodes.value = String(node);
  filter();
}

// An address may name an event by its number (#seq=12) or a moment (#us=1500000). What cannot be
// shown is said beside the controls.
function fromHash() {
  const found = /^#(seq|us)=(\d+)$/.exec(location.hash);
  if (!found || !items.length) return false;
  momentUs = null;
  if (found[1] === "us") showMoment(Number(found[2]));
  else showEvent(Number(found[2]));
  return true;
}

function showEvent(seq) {
  const near = itemOf.has(seq) ? seq : eventNumbers[Math.max(firstFrom(eventNumbers, seq) - 1, 0)];
  show(itemOf.get(near));
  const nearest = "the nearest item that is drawn is of #" + near + ", at " + seconds(eventAt[near][0]);
  say(near === seq ? "Shows event #" + seq + "." : "Event #" + seq + " is not drawn: " + nearest + ".");
}

function showMoment(us) {
  momentUs = us;
  pane.scrollTop = Math.max(yOf(us) - pane.clientHeight / 3, 0);
  drawPane();
  const at = firstFrom(moments, us);
  const sides = [moments[at - 1], moments[at]].filter((one) => one !== undefined).map(seconds);
  const isDrawn = moments[at] === us;
  say("Shows " + seconds(us) + (isDrawn ? "." : ", at which no item is drawn; the nearest ones are at " + sides.join(" and ") + "."));
}

function say(text) {
  statusText.textContent = text;
}

// A page opens at the first violation, or else at the first rebalance or fault, with the servers in
// sight: every request goes to one.
function openAtFirst() {
  if (openAtViolation()) return;
  const first = items.find(isRebalance) || items.find(isFault);
  if (first) pane.scrollTop = Math.max(yOf(first.from) - 90, 0);
  sideways(servers);
  if (pane.scrollTop) say("Opened at the first " + (isFault(first) ? "fault" : "rebalance") + "; earlier events are above.");
  drawPane();
}

function openAtViolation() {
  const link = /** @type {HTMLAnchorElement | null} */ (document.querySelector(".run .first-violation"));
  const seq = link ? Number(link.hash.slice("#seq=".length)) : data.breaches[0];
  if (seq === undefined || !items.length) return false;
  showEvent(seq);
  say("Opened at the first violation; earlier events are above. " + statusText.textContent);
  return true;
}

// Put a lane, by its place among those shown, into sight.
function sideways(at) {
  const right = GUTTER + lead + (at + 3) * apart;
  if (at >= 0 && right > pane.clientWidth) pane.scrollLeft = right - pane.clientWidth / 2;
  head.scrollLeft = pane.scrollLeft;
}

// --- the page --------------------------------------------------------------------------------

const head = make(stage, "div", { class: "pane fixed head" });
const pane = make(stage, "div", { class: "pane wide", tabindex: 0, role: "region", "aria-label": "requests over time" });
const canvas = draw(pane, "svg");
const pinned = make(stage, "div", { class: "pinned", hidden: "" });
const controls = element("controls");

function isRebalance(item) {
  return item.kind === "rebalance";
}

function isFault(item) {
  return item.kind === "across" && eventAt[item.events[0]][2] === "fault";
}

if (items.some(isRebalance)) jumps("rebalance", isRebalance);
jumps("fault", isFault);
jumps("lost operation", (item) => item.kind === "operation" && item.tone === "lost");

const nodes = make(make(controls, "label", { class: "set" }, "node "), "select", { id: "nodes" });
make(nodes, "option", { value: "" }, "all");
data.lanes.forEach((lane, at) => make(nodes, "option", { value: at }, lane.name));
nodes.addEventListener("change", () => choose(nodes.value === "" ? "" : Number(nodes.value)));

const search = make(make(controls, "label", { class: "set" }, "text "), "input", { type: "search", id: "text", placeholder: "path, error, word, …" });
search.addEventListener("input", () => { selection.text = search.value.trim().toLowerCase(); filter(); });

const statusText = make(controls, "span", { class: "soft", role: "status" });

const chips = make(make(controls, "div", { class: "set top" }, "show "), "span", { class: "set chips" });
const numbers = new Map();
for (const item of items) numbers.set(item.for, (numbers.get(item.for) || 0) + 1);
for (const purpose of [...numbers.keys()].sort()) {
  const chip = button(chips, purpose || "(no purpose)", () => {
    if (!selection.purposes.delete(purpose)) selection.purposes.add(purpose);
    chip.classList.toggle("on");
    filter();
  }, counted(numbers.get(purpose), "item"));
}

const legend = element("legend");

function sample(text, paint) {
  const item = make(legend, "span");
  paint(draw(item, "svg", { width: 34, height: 13 }));
  item.append(text);
}

function line(colour, dashes, ends) {
  return (svg) => {
    stroke(svg, "M1,4 L30,9", colour, dashes);
    if (ends === "cross") cross(svg, 28, 8, colour);
    else arrow(svg, 1, 4, 31, 9, colour);
  };
}

const has = (kind, tone) => items.some((item) => item.kind === kind && (!tone || item.tone === tone));
if (has("operation", "ok")) sample("operation with its reply", line(COLOURS.ok, "", "arrow"));
if (has("operation", "error")) sample("reply with an error", line(COLOURS.error, "", "arrow"));
if (has("operation", "lost")) sample("lost: unknown whether it was executed", line(COLOURS.lost, "5 3", "cross"));
if (has("firing")) sample("notification of a watch; those within " + duration(data.together) + " as one", line(COLOURS.firing, "2 3", "arrow"));
if (items.some(isRebalance)) sample("rebalance", (svg) => draw(svg, "rect", { x: 10, y: 0, width: 12, height: 13, rx: 3, fill: "var(--accent)", "fill-opacity": 0.3 }));
if (has("rebalance", "error")) sample("rebalance that failed", (svg) => draw(svg, "rect", { x: 10, y: 0, width: 12, height: 13, rx: 3, fill: "var(--failed)", "fill-opacity": 0.3 }));
for (const state of new Set(data.lanes.flatMap((lane) => lane.states.map((span) => span[2])))) {
  if (STATES[state]) sample(state, (svg) => paintState(svg, state));
}

// A state that takes the colour of its lane is shown in the colours of two lanes.
function paintState(svg, state) {
  const found = data.lanes.filter((lane) => lane.states.some((span) => span[2] === state));
  const colours = [...new Set(found.map((lane) => lane.colour || "var(--gap)"))].slice(0, 2);
  const wide = 30 / colours.length;
  colours.forEach((stroke, at) => draw(svg, "line", { x1: 2 + at * wide, x2: 2 + (at + 1) * wide, y1: 6.5, y2: 6.5, stroke, ...STATES[state] }));
}

let isWaiting = false;
pane.addEventListener("scroll", () => {
  head.scrollLeft = pane.scrollLeft;
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => { isWaiting = false; drawScrolled(); });
});
addEventListener("resize", lay);
addEventListener("hashchange", fromHash);

filter();
if (!fromHash()) openAtFirst();
