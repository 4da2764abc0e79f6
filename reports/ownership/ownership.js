// The page of ownership: its panes, zooming, jumping. Rows are drawn as they come into sight.

// --- panes -------------------------------------------------------------------------------------

const axis = make(stage, "div", { class: "pane fixed" });
const partitions = make(stage, "div", { class: "pane", tabindex: 0, role: "region", "aria-label": data.words.place + "s over time" });
const strips = make(stage, "div", { class: "pane small", tabindex: 0, role: "region", "aria-label": "sessions over time" });
const hair = make(stage, "div", { class: "hair", hidden: "" });
const hairTime = make(hair, "span");
const chosen = make(stage, "div", { class: "chosen", hidden: "" });
const panes = [
  { element: partitions, ...placed(partitionLines()), drawLine: drawRow },
  { element: strips, ...placed(stripLines()), drawLine: drawStrip },
];

function fresh(element, height) {
  element.replaceChildren();
  return draw(element, "svg", { width, height });
}

function drawPane(pane) {
  const { element, lines, height } = pane;
  const above = element.scrollTop - 200;
  const below = element.scrollTop + element.clientHeight + 200;
  const scroll = element.scrollTop;
  const svg = fresh(element, height);
  for (const us of numbers()) {
    draw(svg, "line", { x1: x(us), x2: x(us), y1: 0, y2: height, stroke: "var(--grid)" });
  }
  for (const line of lines) {
    if (line.top + line.height < above || line.top > below) continue;
    if (line.title) draw(svg, "text", { x: 20, y: line.top + 19, class: "title" }, line.title);
    else pane.drawLine(svg, line);
    if (marked && line.row && line.at === marked.at) drawMarked(svg, line, marked);
  }
  drawEntries(svg, height);
  element.scrollTop = scroll;
}

function drawMarked(svg, line, { span }) {
  const left = x(span[0]) - 4;
  const wide = Math.max(x(span[1]) - left + 4, 8);
  draw(svg, "rect", { x: left, y: line.top, width: wide, height: line.height, rx: 3, fill: "none", stroke: "var(--ink)", "stroke-width": 2, class: "clear" });
}

function drawAll() {
  LEFT = stage.clientWidth < NARROW ? NARROW_LEFT : WIDE_LEFT;
  width = partitions.clientWidth || stage.clientWidth;
  drawAxis();
  for (const pane of panes) {
    // A pane has to have its height before it can be known what is in sight.
    if (!pane.element.firstChild) fresh(pane.element, pane.height);
  }
  for (const pane of panes) drawPane(pane);
}

for (const pane of panes) {
  let isWaiting = false;
  pane.element.addEventListener("scroll", () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => { isWaiting = false; drawPane(pane); });
  });
}
addEventListener("resize", drawAll);

// --- zooming -------------------------------------------------------------------------------------

// What else is drawn anew when the view has changed.
const afterLook = [];

function look(from, to) {
  const length = Math.min(Math.max(to - from, SHORTEST_VIEW), Math.max(data.end, 1));
  view.from = Math.min(Math.max(from, 0), Math.max(data.end, 1) - length);
  view.to = view.from + length;
  drawAll();
  for (const follow of afterLook) follow();
}

function zoom(factor, at = (view.from + view.to) / 2) {
  look(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

/** @type {number | null} */
let pressed = null;
let dragged = false;

function inStage(event) {
  return event.clientX - stage.getBoundingClientRect().left;
}

stage.addEventListener("pointerdown", (event) => {
  pressed = event.button === 0 && inStage(event) > LEFT && inStage(event) < width ? inStage(event) : null;
  dragged = false;
});

stage.addEventListener("pointermove", (event) => {
  const at = inStage(event);
  const isInside = at >= LEFT && at <= width - RIGHT;
  hair.hidden = !isInside;
  hair.style.left = at + "px";
  hairTime.textContent = seconds(Math.round(time(at)));
  if (pressed === null || Math.abs(at - pressed) < 5) return;
  dragged = true;
  chosen.hidden = false;
  chosen.style.left = Math.min(at, pressed) + "px";
  chosen.style.width = Math.abs(at - pressed) + "px";
});

addEventListener("pointerup", (event) => {
  if (pressed !== null && dragged) {
    const ends = [time(pressed), time(inStage(event))];
    look(Math.min(...ends), Math.max(...ends));
  }
  pressed = null;
  chosen.hidden = true;
});

stage.addEventListener("pointerleave", () => { hair.hidden = true; });
stage.addEventListener("dblclick", () => look(0, data.end));
stage.addEventListener("wheel", (event) => {
  const length = view.to - view.from;
  if (event.ctrlKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, time(inStage(event)));
  else if (event.shiftKey || event.deltaX) {
    const share = (event.deltaX || event.deltaY) / 1000;
    look(view.from + length * share, view.to + length * share);
  } else return;
  event.preventDefault();
}, { passive: false });

// --- jumping -------------------------------------------------------------------------------------

function found(name) {
  const all = [];
  data.rows.forEach((row, at) => { for (const span of row[name]) all.push({ at, span }); });
  return all.sort((one, other) => one.span[2] - other.span[2]);
}

function jump(target) {
  const [from, to] = target.span;
  marked = target;
  const length = to - from;
  if (x(to) - x(from) < 12 || from < view.from || to > view.to) look(from - Math.max(length * 4, 500), to + Math.max(length * 4, 500));
  if (!isWanted(data.rows[target.at])) showAllRows();
  const line = panes[0].lines.find((one) => one.at === target.at);
  partitions.scrollTop = line.top - partitions.clientHeight / 2;
  drawAll();
}

function jumps(name, id, noun, mark) {
  const all = found(name);
  const set = make(controls, "span", { class: "set" });
  if (!all.length) {
    make(set, "span", {}, "no " + noun);
    return;
  }
  let now = -1;
  const count = make(null, "span");
  const go = (at) => {
    now = (at + all.length) % all.length;
    count.textContent = now + 1 + " of " + all.length.toLocaleString("en");
    jump(all[now]);
  };
  count.textContent = counted(all.length, mark);
  button(set, "first " + noun, () => go(0)).id = "first-" + id;
  button(set, "‹", () => go(now < 0 ? all.length - 1 : now - 1), "the " + noun + " before").id = "previous-" + id;
  button(set, "›", () => go(now + 1), "the next " + noun).id = "next-" + id;
  button(set, "longest", () => {
    const lengths = all.map(({ span }) => span[1] - span[0]);
    go(lengths.indexOf(Math.max(...lengths)));
  }).id = "longest-" + id;
  set.append(count);
}

const controls = element("controls");
jumps("breaches", "breach", data.words.breach, "red mark");
if (data.words.has_gaps) jumps("gaps", "gap", "gap", "gap");
const zooms = make(controls, "span", { class: "set" });
button(zooms, "+", () => zoom(0.5), "zoom in");
button(zooms, "−", () => zoom(2), "zoom out");
const { closer } = data;
if (closer) button(zooms, "closer look", () => look(...closer), "what is too short to be seen in the whole run");
button(zooms, "whole run", () => { marked = null; look(0, data.end); });
make(controls, "span", { class: "soft" }, "Drag to zoom, double-click for the whole run, click a bar for its moment in space-time.");

// --- the legend ----------------------------------------------------------------------------------

function sample(word, paint) {
  const item = make(legend, "span");
  paint(draw(item, "svg", { width: 26, height: 13 }));
  item.append(word);
}

const legend = element("legend");
const everyBreach = data.rows.flatMap((row) => row.breaches);
const whole = { width: 26, height: 13 };
if (everyBreach.some(isSplit)) sample(data.words.split, (svg) => draw(svg, "rect", { ...whole, fill: "var(--breach)" }));
if (!everyBreach.every(isSplit)) sample(data.words.zombie, (svg) => draw(svg, "rect", { ...whole, fill: "url(#zombie)", stroke: "var(--breach)" }));
if (data.rows.some((row) => row.gaps.length)) sample("gap: served, fetched by no member", (svg) => draw(svg, "rect", { ...whole, fill: "url(#gap)", stroke: "var(--gap)" }));
// A state that never lasts longer than this cannot be seen and needs no explanation.
const isSeen = ([from, to, , , state]) => to - from >= data.end * 0.002 || STATES[state].thinnest;
const seen = new Set(data.strips.flatMap(([, states]) => states.filter(isSeen).map((span) => span[4])));
const TEXTS = { "connected": "connected, in the " + data.words.member + "'s colour", "paused": data.words.paused };
for (const word in STATES) {
  if (seen.has(word)) sample(TEXTS[word] || word, (svg) => paintState(svg, STATES[word]));
}
const striped = data.members.findIndex((one) => one[3]);
if (striped >= 0) sample("striped: the colours are used once more", (svg) => drawStripes(svg, draw(svg, "rect", { x: 0, y: 0, ...whole, fill: data.members[striped][1] }), striped));
if (data.members.length > data.stripes.looks) make(legend, "span", {}, "looks repeat after " + data.stripes.looks + " " + data.words.members + ": go by the names");

// A state is shown in the colours of two members, since each has its own.
function paintState(svg, { share, look: looks, over, line }) {
  const high = 13 * Math.min(share / 0.6, 1);
  const some = data.members.slice(0, 2);
  some.forEach(([, colour], at) => {
    const wide = 25 / some.length;
    const area = { x: 0.5 + at * wide, y: (13 - high) / 2, width: wide, height: high };
    draw(svg, "rect", { ...area, ...looks(colour) });
    if (over) draw(svg, "rect", { ...area, fill: over });
    if (line) draw(svg, "rect", { ...area, y: 6, height: 1.6, fill: "var(--ink)" });
  });
}

const remarks = make(legend, "span", { id: "remarks" });

drawAll();
if (location.hash === "#first-breach" || location.hash === "#first-gap" || location.hash === "#longest-gap") {
  const target = document.getElementById(location.hash.slice(1));
  if (target) target.click();
}
