// The picture of the page of space and time: lanes, operations, watches, rebalances, marks.

// --- the head: names of lanes --------------------------------------------------------------

function drawHead() {
  head.replaceChildren();
  const svg = draw(head, "svg", { width, height: HEAD });
  for (const lane of lanes) {
    const x = laneX(lane);
    const group = draw(svg, "g", { "data-tip": "" });
    describe(group, () => [lane.name, lane.kind === "server" ? "a ZooKeeper server" : lane.process ? "a session of the process " + lane.process : "a process", "click to see only its items, and again to see all"]);
    if (lane.colour) draw(group, "rect", { x: x - 36, y: 34, width: 72, height: 5, fill: lane.colour });
    const name = draw(group, "text", { x, y: 24, "text-anchor": "middle", class: "title" }, lane.name);
    const most = apart - 8;
    if (name.getComputedTextLength() > most) name.setAttribute("textLength", String(most)), name.setAttribute("lengthAdjust", "spacingAndGlyphs");
    group.addEventListener("click", () => { choose(selection.node === lane.at ? "" : lane.at); });
  }
}

// --- lanes and their states ----------------------------------------------------------------

/** @type {Record<string, Attributes | null>} */
const STATES = {
  "connected": { "stroke-width": 2 },
  "suspended": { "stroke-width": 2, "stroke-dasharray": "3 4" },
  "paused": { "stroke-width": 7, "stroke-opacity": 0.25 },
  "paused, session dead": { "stroke-width": 7, "stroke-opacity": 0.25, stroke: "var(--ink)" },
  "session dead, process runs": { "stroke-width": 5, stroke: "var(--ink)" },
  "no session": { "stroke-width": 2, "stroke-opacity": 0.35 },
  "program over, session lives on": { "stroke-width": 2, "stroke-dasharray": "1 4" },
  "process gone, session lives on": { "stroke-width": 1, "stroke-dasharray": "1 4" },
  "not running": null,
  "up": { "stroke-width": 2, stroke: "var(--gap)" },
  "leading": { "stroke-width": 4, stroke: "var(--strong)" },
  "down": null,
};

// The place of a lane among those shown.
/** @param {{ at: number }} lane */
function laneX(lane) {
  return /** @type {number} */ (xOf(lane.at));
}

function drawLane(svg, lane, above, below) {
  const x = laneX(lane);
  draw(svg, "line", { x1: x, x2: x, y1: 0, y2: height, stroke: "var(--grid)" });
  lane.states.forEach(([from, to, state], at) => {
    const look = STATES[state];
    const isLast = at === lane.states.length - 1;
    const [top, bottom] = [Math.max(yOf(from), above), Math.min(isLast && to >= data.end ? height : yOf(to), below)];
    if (!look || bottom < top) return;
    const line = draw(svg, "line", { x1: x, x2: x, y1: top, y2: bottom, stroke: lane.colour || "var(--gap)", ...look });
    describe(line, () => [lane.name, state, seconds(from) + " to " + seconds(to) + ", " + duration(to - from)]);
  });
}

// --- items ---------------------------------------------------------------------------------

/** @param {Item} item */
function extent(item) {
  const ends = [item.from, item.at, item.to].filter((us) => us !== null).map(yOf);
  return [Math.min(...ends) - 14, Math.max(...ends) + 14];
}

const MOST_LISTED = 8;

function itemLines(item, most) {
  const took = item.to === null ? "" : ", took " + duration(item.to - item.from);
  const lines = item.events.slice(0, most).map((seq) => {
    const [us, node, kind, session, zxid, place, detail] = eventAt[seq];
    const parts = ["#" + seq, seconds(us), node, kind, place];
    if (session) parts.push("session " + session);
    if (zxid) parts.push("zxid 0x" + zxid.toString(16));
    const details = detailLines(detailText(detail));
    return [parts.filter(Boolean).join("  "), ...details].join("\n");
  });
  const more = item.events.length - most;
  if (more > 0) lines.push("and " + counted(more, "event") + " more; click to see all");
  return [item.label + took, ...lines];
}

function detailLines(text) {
  return Object.entries(JSON.parse(text)).map(([name, value]) => "      " + name + ": " + (typeof value === "string" ? value : JSON.stringify(value)));
}

function itemTip(mark, item, at) {
  describe(mark, () => itemLines(item, MOST_LISTED));
  mark.addEventListener("click", () => { pin(itemLines(item, Infinity)); marked = at; drawPane(); });
  return mark;
}

// A line that the pointer can find: a wide invisible one below the thin visible one.
function stroke(group, d, colour, dashes = "", wide = 1.4) {
  draw(group, "path", { d, stroke: "var(--paper)", "stroke-opacity": 0, "stroke-width": 9, fill: "none", "pointer-events": "stroke" });
  draw(group, "path", { d, stroke: colour, "stroke-width": wide, "stroke-dasharray": dashes, fill: "none" });
}

function arrow(group, fromX, fromY, toX, toY, colour) {
  const long = Math.hypot(toX - fromX, toY - fromY) || 1;
  const [dx, dy] = [(toX - fromX) / long, (toY - fromY) / long];
  const point = (back, side) => (toX - dx * back - dy * side).toFixed(1) + "," + (toY - dy * back + dx * side).toFixed(1);
  draw(group, "path", { d: "M" + point(0, 0) + " L" + point(7, 3.2) + " L" + point(7, -3.2) + " Z", fill: colour });
}

function cross(group, x, y, colour) {
  draw(group, "path", { d: `M${x - 4},${y - 4} l8,8 M${x - 4},${y + 4} l8,-8`, stroke: colour, "stroke-width": 2 });
}

// Labels lie above all lines and never overlap one another.
/** @type {SVGGElement} */
let labels;
/** @type {{ left: number, right: number, y: number }[]} */
let taken = [];

function isFree(left, right, y) {
  return !taken.some((other) => left < other.right && other.left < right && Math.abs(other.y - y) < 11);
}

// Write a label at the first free place of some, each [x, y, anchor]. Without a free place it is
// left out: the tip of the item still shows it.
function put(item, at, colour, places) {
  const long = lengthOf(item.label);
  for (const [x, y, anchor] of places) {
    const left = anchor === "start" ? x : anchor === "end" ? x - long : x - long / 2;
    if (!isFree(left, left + long, y)) continue;
    taken.push({ left, right: left + long, y });
    itemTip(draw(labels, "text", { x, y, "text-anchor": anchor, class: "halo item", style: "fill:" + colour }, item.label), item, at);
    return;
  }
}

const SHARES = [0, 0.12, 0.24, 0.36, 0.48, 0.6];

function drawOperation(svg, item, at) {
  const x = xOf(item.node);
  if (x === null) return;
  const colour = COLOURS[item.tone];
  const group = itemTip(draw(svg, "g"), item, at);
  const serverX = item.server < 0 ? null : xOf(item.server);
  const sent = yOf(item.from);
  const received = item.to === null ? sent + 26 : yOf(item.to);
  const side = serverX === null || serverX > x ? 1 : -1;
  const anchor = side > 0 ? "start" : "end";
  if (serverX === null) {
    put(item, at, colour, [[x + side * 7, sent - 3, anchor]]);
    cross(group, x + side * 2, sent + 3, colour);
    return;
  }
  const middle = item.at === null ? (sent + received) / 2 : yOf(item.at);
  const dashes = item.tone === "lost" ? "5 3" : "";
  const place = (share) => [x + side * 7 + (serverX - x) * share, sent + (middle - sent) * share - 3, anchor];
  put(item, at, colour, SHARES.map(place));
  stroke(group, `M${x},${sent} L${serverX},${middle}`, colour, dashes);
  arrow(group, x, sent, serverX, middle, colour);
  if (item.to === null) {
    cross(group, serverX - side * 12, middle - 2, colour);
    return;
  }
  stroke(group, `M${serverX},${middle} L${x},${received}`, colour, dashes);
  if (item.tone === "lost") cross(group, x, received, colour);
  else arrow(group, serverX, middle, x, received, colour);
}

function drawFiring(svg, item, at) {
  const [x, serverX] = [xOf(item.node), xOf(item.server)];
  if (x === null || serverX === null) return;
  const group = itemTip(draw(svg, "g"), item, at);
  const colour = item.tone === "lost" ? COLOURS.lost : COLOURS.firing;
  const [fired, arrived] = [yOf(item.from), item.to === null ? yOf(item.from) + 16 : yOf(item.to)];
  const end = item.to === null ? (x + serverX) / 2 : x;
  stroke(group, `M${serverX},${fired} L${end},${arrived}`, colour, "2 3", 1.6);
  if (item.to === null) cross(group, end, arrived, colour);
  else arrow(group, serverX, fired, x, arrived, colour);
  firingLabel(item, at, colour, serverX, fired, end, arrived);
}

// The label of a firing is on its line near the server or, without room there, nearer the process.
function firingLabel(item, at, colour, fromX, fromY, toX, toY) {
  const near = (lengthOf(item.label) / 2 + 14) / Math.max(Math.abs(toX - fromX), 1);
  const place = (share) => [fromX + (toX - fromX) * share, fromY + (toY - fromY) * share - 4, "middle"];
  put(item, at, colour, SHARES.map((share) => Math.min(near, 0.6) + share / 2).filter((share) => share < 0.9).map(place));
}

function drawRebalance(svg, item, at) {
  const x = xOf(item.node);
  if (x === null) return;
  const [top, bottom] = [yOf(item.from), yOf(item.to ?? item.from)];
  const fill = item.tone === "ok" ? "var(--accent)" : "var(--failed)";
  const band = draw(svg, "rect", { x: x - 6, y: top, width: 12, height: Math.max(bottom - top, 4), rx: 3, fill, "fill-opacity": 0.3 });
  itemTip(band, item, at);
}

// Marks of one lane and one moment share a line of text, on the side away from the servers.
function drawMarks(some) {
  const groups = markGroups(some);
  const urgent = (together) => (together.some(({ item }) => item.tone === "error") ? 0 : 1);
  for (const together of groups.sort((one, other) => urgent(one) - urgent(other))) drawTogether(together);
}

function drawTogether(together) {
  const { item } = together[0];
  const x = xOf(item.node);
  if (x === null) return;
  const y = yOf(item.from);
  const side = sideOf(item.node);
  const isServer = data.lanes[item.node].kind === "server";
  const colourOf = (mark) => (mark.item.tone === "error" ? COLOURS.lost : isServer ? COLOURS.soft : COLOURS.ink);
  for (const one of together) {
    if (one.item.kind !== "mark") continue;
    itemTip(draw(labels, "circle", { cx: x, cy: y, r: 3.6, fill: "var(--paper)", stroke: colourOf(one), "stroke-width": 1.8 }), one.item, one.at);
  }
  const written = fitting(together);
  const long = lengthOf(labelOf(written));
  const left = side > 0 ? x + 11 : x - 11 - long;
  const base = [y + 4, y + 14, y - 6].find((one) => isFree(left, left + long, one));
  if (base === undefined) return;
  taken.push({ left, right: left + long, y: base });
  const row = draw(labels, "text", { x: x + side * 11, y: base, "text-anchor": side > 0 ? "start" : "end", class: "halo item" });
  written.forEach((one, at) => {
    itemTip(draw(row, "tspan", { style: "fill:" + colourOf(one) }, (at ? ", " : "") + one.item.label), one.item, one.at);
  });
}

// As many marks as there is room for; the last one stands for those left out.
function fitting(together) {
  let number = together.length;
  while (number > 1 && lengthOf(labelOf(together.slice(0, number))) > LONGEST_LABEL) number--;
  const more = together.slice(number);
  if (!more.length) return together;
  const events = more.flatMap(({ item }) => item.events);
  return [...together.slice(0, number), { ...more[0], item: { ...more[0].item, label: "and " + more.length + " more", events } }];
}

function drawAcross(svg, item, at) {
  const y = yOf(item.from);
  const isFault = eventAt[item.events[0]][2].startsWith("fault");
  const group = itemTip(draw(svg, "g"), item, at);
  const colour = isFault ? "var(--fault)" : COLOURS.soft;
  stroke(group, `M${GUTTER - 6},${y} L${width},${y}`, colour, isFault ? "6 3" : "1.5 3", 1.2);
  const left = view().left + GUTTER;
  const text = draw(labels, "text", { x: left, y: y - 7, class: "title halo", style: "fill:" + colour }, item.label);
  taken.push({ left, right: left + 1.25 * lengthOf(item.label), y: y - 7 });
  itemTip(text, item, at);
}

// --- the pane ------------------------------------------------------------------------------

// More than is in sight is drawn, so that most steps of scrolling draw the axis alone.
const BEYOND = 300;
let drawn = { above: 0, below: -1, left: 0 };
/** @type {SVGGElement} */
let axis;

function drawPane() {
  const { top, bottom, left } = view();
  const [above, below] = [top - BEYOND, bottom + BEYOND];
  const place = [pane.scrollLeft, pane.scrollTop];
  drawn = { above, below, left };
  canvas.replaceChildren();
  canvas.setAttribute("width", String(width));
  canvas.setAttribute("height", String(height));
  const inSight = itemsBetween(above, below);
  labels = draw(canvas, "g");
  taken = [];
  const of = (kind) => inSight.filter(({ item }) => item.kind === kind);
  if (marked >= 0) drawMarked(items[marked]);
  drawFolds(canvas, momentAfter(above), momentAfter(below));
  if (momentUs !== null) drawMoment(momentUs);
  for (const { item, at } of of("across")) drawAcross(canvas, item, at);
  for (const lane of lanes) drawLane(canvas, lane, above, below);
  for (const { item, at } of of("rebalance")) drawRebalance(canvas, item, at);
  drawMarks(inSight);
  for (const { item, at } of of("operation")) drawOperation(canvas, item, at);
  for (const { item, at } of of("firing")) drawFiring(canvas, item, at);
  canvas.append(labels); // last, so that the labels lie on top
  axis = draw(canvas, "g");
  drawTime();
  [pane.scrollLeft, pane.scrollTop] = place;
}

function drawScrolled() {
  const { top, bottom, left } = view();
  if (top >= drawn.above && bottom <= drawn.below && left === drawn.left) drawTime();
  else drawPane();
}

function drawMarked(item) {
  const [top, bottom] = extent(item);
  draw(canvas, "rect", { x: 0, y: top, width, height: bottom - top, fill: "var(--chosen)", "fill-opacity": 0.6 });
}

// A moment that an address names, where no item begins.
/** @param {Microseconds} us */
function drawMoment(us) {
  const y = yOf(us);
  draw(canvas, "line", { x1: 0, x2: width, y1: y, y2: y, stroke: "var(--link)", "stroke-width": 2 });
  draw(labels, "text", { x: view().left + GUTTER, y: y + 14, class: "title halo", style: "fill:var(--link)" }, seconds(us));
}
