// The picture of a path: columns for what was claimed and fetched, and a lane for each process,
// with ZooKeeper in the middle. A row is a step; the state after a step begins in the middle of its
// row. Steps that only set things up may be folded into one row.

const ROW = 36;
const TAIL = 40;
const HEAD = 92;
const APART = 96;
const CLAIM = 5;
const TRACK = 11;
const NUMBER = 46;
const COLOURS = { ok: "var(--ok)", error: "var(--error)", fault: "var(--breach)", firing: "var(--watch)", other: "var(--gap)", zombie: "var(--ink)", cycle: "var(--warn)" };

const colours = new Map(data.nodes);

// The path that is drawn: its states, its steps, its marks and where each of them is.
/** @type {State[]} */
let states = [];
/** @type {Choice[]} */
let steps = [];
/** @type {Marks} */
let marks = { columns: [], claimed: [], lanes: [], cycle: null, shared: [], notifications: [] };
let folded = 0; // so many steps at the beginning share one row
/** @type {number[]} */
let columnAt = [];
/** @type {number[]} */
let tracksOf = [];
/** @type {Map<string, number>} */
let laneAt = new Map();
let zooKeeper = 0;
let width = 0;
let height = 0;

// The number of the row of a step; before the first step is a row of its own.
function rowOf(number) {
  if (!folded || !number) return number;
  return number <= folded ? 1 : number - folded + 1;
}

function yOf(number) {
  return number === null ? height - 6 : number < 1 ? 0 : (rowOf(number) + 0.5) * ROW;
}

function colourOf(node) {
  return colours.get(node) || COLOURS.other;
}

function during(begins, ends) {
  const from = begins < 1 ? "from the beginning" : "from step " + begins;
  return from + (ends === null ? " on" : " until step " + ends);
}

// --- positions -------------------------------------------------------------------------------

// Columns of partitions, then lanes; half of the lanes are on either side of ZooKeeper.
function layOut(property, cycle) {
  const fetched = fetchedOn(states);
  const claimed = claimedOn(states);
  const columns = columnsOf(fetched, claimed);
  for (const column of columns) {
    column.bars = fetched.filter((bar) => bar.what === column.what && groupOf(bar.node) === column.group);
    tracksFor(column.bars).forEach((track, at) => { column.bars[at].track = track; });
  }
  const lanes = lanesOf(states, steps);
  marks = { columns, claimed, lanes, cycle, shared: sharedOn(states, property), notifications: notificationsOn(states, steps) };
  tracksOf = columns.map(({ bars }) => 1 + Math.max(0, ...bars.map((bar) => bar.track)));
  let edge = 6;
  columnAt = tracksOf.map((tracks) => {
    const x = edge;
    edge += CLAIM + 2 + tracks * TRACK + (columns.length > 8 ? 8 : 16);
    return x;
  });
  const places = [...lanes];
  places.splice(Math.ceil(places.length / 2), 0, "");
  laneAt = new Map(places.map((node, at) => [node, edge + 24 + (at + 0.5) * APART]));
  zooKeeper = edge + 24 + (places.indexOf("") + 0.5) * APART;
  width = edge + 48 + places.length * APART + (cycle ? 34 : 0);
  height = (rowOf(steps.length) + 1) * ROW + TAIL;
}

function trackAt(column, track) {
  return columnAt[column] + CLAIM + 2 + track * TRACK;
}

// All of the picture, without its rows of words.
function drawPicture(svg) {
  drawColumns(svg);
  drawLanes(svg);
  drawNotifications(svg);
  drawSteps(svg);
  drawLoop(svg);
}

// --- the names on top ------------------------------------------------------------------------

function drawNames(parent) {
  const svg = draw(parent, "svg", { width: width + NUMBER, height: HEAD });
  const group = draw(svg, "g", { transform: `translate(${NUMBER},0)` });
  marks.columns.forEach(({ group: of, what }, column) => {
    const x = columnAt[column] + (CLAIM + 2 + tracksOf[column] * TRACK) / 2;
    const name = draw(group, "text", { x: 0, y: 0, class: "up", transform: `translate(${x + 4},${HEAD - 12}) rotate(-55)` }, short(what, 14));
    describe(name, () => [what, of ? "fetched and claimed in the group " + of : "claimed"]);
  });
  for (const [node, x] of laneAt) {
    const name = node || "ZooKeeper";
    const text = draw(group, "text", { x, y: HEAD - 16, "text-anchor": "middle", class: "title" }, short(name, 15));
    if (name.length > 15) describe(text, () => [name]);
    draw(group, "rect", { x: x - 34, y: HEAD - 8, width: 68, height: 5, fill: node ? colourOf(node) : "var(--strong)" });
  }
}

function short(text, most) {
  return text.length <= most ? text : "…" + text.slice(1 - most);
}

// --- claims and fetches ----------------------------------------------------------------------

function drawColumns(svg) {
  marks.columns.forEach((column, at) => {
    draw(svg, "line", { x1: columnAt[at] + 2, x2: columnAt[at] + 2, y1: 0, y2: height, stroke: "var(--grid)", "stroke-width": 2 });
    for (const bar of column.bars) drawFetched(svg, at, bar);
  });
  for (const claim of marks.claimed) for (const column of columnsOfClaim(claim, marks.columns)) drawClaim(svg, column, claim);
  for (const { node, what, begins, ends } of marks.shared) {
    const column = marks.columns.findIndex((one) => one.group === node && one.what === what);
    const wide = tracksOf[column] * TRACK + 3;
    draw(svg, "rect", { x: columnAt[column] + CLAIM, y: yOf(begins) - 3, width: wide, height: yOf(ends) - yOf(begins) + 6, rx: 3, fill: "none", stroke: COLOURS.fault, "stroke-width": 2 });
  }
}

// A claim of an earlier session of its owner is hollow.
function claimLook(colour, isEarlier) {
  return isEarlier ? { fill: "none", stroke: colour, "stroke-width": 1.4, "stroke-dasharray": "3 2" } : { fill: colour };
}

function drawClaim(svg, column, { node, what, begins, ends, state }) {
  const bar = draw(svg, "rect", { x: columnAt[column], y: yOf(begins), width: CLAIM - 1, height: yOf(ends) - yOf(begins), ...claimLook(colourOf(node), state === "earlier") });
  describe(bar, () => [what, claimWords([node, state === "earlier"]) + " claims it " + during(begins, ends)]);
}

function drawFetched(svg, column, { node, what, begins, ends, state, track }) {
  const look = { x: trackAt(column, track), y: yOf(begins), width: TRACK - 2, height: yOf(ends) - yOf(begins), rx: 2, fill: colourOf(node) };
  if (state === "dead") Object.assign(look, { "fill-opacity": 0.35, stroke: COLOURS.zombie, "stroke-dasharray": "3 2" });
  const lines = [what, node + " fetches it " + during(begins, ends)];
  if (state === "dead") lines.push("its session is dead");
  describe(draw(svg, "rect", look), () => lines);
}

// --- lanes -----------------------------------------------------------------------------------

function lookOf({ phase, session }, colour) {
  if (phase !== "running") return { stroke: "var(--faint)", "stroke-width": 1, "stroke-dasharray": "1 5" };
  if (session === "alive") return { stroke: colour, "stroke-width": 2.5 };
  if (session.startsWith("alive")) return { stroke: colour, "stroke-width": 2.5, "stroke-dasharray": "4 4" };
  if (session.startsWith("dead,")) return { stroke: COLOURS.zombie, "stroke-width": 4 };
  return { stroke: colour, "stroke-width": 2.5, "stroke-opacity": 0.35 };
}

function drawLanes(svg) {
  draw(svg, "line", { x1: zooKeeper, x2: zooKeeper, y1: 0, y2: yOf(null), stroke: "var(--strong)", "stroke-width": 4 });
  for (const node of marks.lanes) {
    let begins = 0;
    states.forEach(({ processes }, at) => {
      const [now, next] = [processes[node], states[at + 1] && states[at + 1].processes[node]];
      if (next && next.phase === now.phase && next.session === now.session) return;
      drawLane(svg, node, now, begins, next ? at + 1 : null);
      begins = at + 1;
    });
  }
}

function drawLane(svg, node, { phase, session }, from, to) {
  const [x, top, bottom] = [laneAt.get(node), yOf(from), yOf(to)];
  if (top === bottom) return; // it is within the folded row
  const line = draw(svg, "line", { x1: x, x2: x, y1: top, y2: bottom, ...lookOf({ phase, session }, colourOf(node)) });
  describe(line, () => [node, phase + (phase === "running" ? ", session " + session : ""), during(from, to)]);
}

// --- steps -----------------------------------------------------------------------------------

function arrow(svg, fromX, fromY, toX, toY, colour, dashes = "") {
  draw(svg, "path", { d: `M${fromX},${fromY} L${toX},${toY}`, stroke: colour, "stroke-width": 1.5, "stroke-dasharray": dashes, fill: "none" });
  const long = Math.hypot(toX - fromX, toY - fromY) || 1;
  const [dx, dy] = [(toX - fromX) / long, (toY - fromY) / long];
  const point = (back, side) => (toX - dx * back - dy * side).toFixed(1) + "," + (toY - dy * back + dx * side).toFixed(1);
  draw(svg, "path", { d: "M" + point(0, 0) + " L" + point(8, 3.4) + " L" + point(8, -3.4) + " Z", fill: colour });
}

function cross(svg, x, y, colour, long = 4.5) {
  draw(svg, "path", { d: `M${x - long},${y - long} l${2 * long},${2 * long} M${x - long},${y + long} l${2 * long},${-2 * long}`, stroke: colour, "stroke-width": 2.2 });
}

function drawSteps(svg) {
  steps.forEach(({ step }, at) => {
    if (at < folded) return;
    const [x, y] = [laneAt.get(step.node), yOf(at + 1)];
    if (step.reads.length && step.then) drawRequest(svg, x, y - 3, COLOURS.ok);
    drawStep(svg, step, step.then || step.does, x, y, at);
  });
}

function drawRequest(svg, x, y, colour) {
  arrow(svg, x, y - 7, zooKeeper, y - 1, colour);
  arrow(svg, zooKeeper, y + 1, x, y + 7, colour);
}

// The end of a line that covers a share of the way between two places.
function partWay(from, to, share) {
  return from + (to - from) * share;
}

function drawStep(svg, step, does, x, y, at) {
  const red = COLOURS.fault;
  if (does === "reply") return drawRequest(svg, x, y, step.failed ? COLOURS.error : COLOURS.ok);
  if (does === "notification" || does === "empty poll") return draw(svg, "circle", { cx: x, cy: y, r: 4, fill: "var(--paper)", stroke: COLOURS.firing, "stroke-width": 2 });
  if (does === "lost request" || does === "delayed request") {
    const end = partWay(x, zooKeeper, 0.7);
    arrow(svg, x, y - 6, end, y, red, "4 3");
    if (does === "lost request") return cross(svg, end, y, red);
    return draw(svg, "circle", { cx: end, cy: y, r: 4, fill: "var(--paper)", stroke: red, "stroke-width": 2 });
  }
  if (does === "lost reply") {
    arrow(svg, x, y - 7, zooKeeper, y - 1, red);
    arrow(svg, zooKeeper, y + 1, partWay(zooKeeper, x, 0.7), y + 6, red, "4 3");
    return cross(svg, partWay(zooKeeper, x, 0.7), y + 6, red);
  }
  if (does === "late request") return drawLate(svg, step, x, y, at);
  if (["session expired", "old session expired", "close session"].includes(does)) {
    draw(svg, "path", { d: `M${x},${y} L${zooKeeper},${y}`, stroke: step.fault ? red : COLOURS.other, "stroke-width": 1.5, "stroke-dasharray": "2 3" });
    draw(svg, "rect", { x: zooKeeper - 6, y: y - 6, width: 12, height: 12, rx: 2, fill: "var(--paper)", stroke: step.fault ? red : "var(--strong)", "stroke-width": 2 });
  }
  if (does === "crash") return cross(svg, x, y, red, 7);
  return draw(svg, "circle", { cx: x, cy: y, r: step.fault ? 6 : 4, fill: step.fault ? red : "var(--paper)", stroke: step.fault ? red : "var(--strong)", "stroke-width": 2 });
}

// A delayed request is executed: a line from the place where its connection broke.
function drawLate(svg, step, x, y, at) {
  const left = steps.slice(0, at).findLastIndex(({ step: earlier }) => earlier.node === step.node && (earlier.then || earlier.does) === "delayed request");
  const from = partWay(x, zooKeeper, 0.7);
  arrow(svg, from, left < 0 ? y - 8 : yOf(left + 1) + 4, zooKeeper, y, COLOURS.fault, "4 3");
}

// --- the cycle -------------------------------------------------------------------------------

// A line from below the last step of the cycle back to above its first.
function drawLoop(svg) {
  if (!marks.cycle) return;
  const [first, last] = marks.cycle;
  const line = drawBack(svg, width - 14, rowOf(first) * ROW + 8, (rowOf(last) + 1) * ROW - 8);
  describe(line, () => ["cycle", "the state after step " + last + " is the state after step " + (first - 1)]);
}

function drawBack(svg, x, top, bottom) {
  const bend = Math.min(6, (bottom - top) / 2);
  const d = `M${x - 18},${bottom} H${x - bend} Q${x},${bottom} ${x},${bottom - bend} V${top + bend} Q${x},${top} ${x - bend},${top} H${x - 12}`;
  const group = draw(svg, "g");
  draw(group, "path", { d, stroke: COLOURS.cycle, "stroke-width": 2, fill: "none" });
  arrow(group, x - 10, top, x - 20, top, COLOURS.cycle);
  return group;
}

// --- notifications ---------------------------------------------------------------------------

// A notification runs beside the lane of its receiver until it is received. Simultaneous ones
// take parallel tracks, of which the first free one is used again.
function drawNotifications(svg) {
  const tracksOfNode = new Map();
  for (const { node, what, begins, ends, state } of marks.notifications) {
    if (!laneAt.has(node) || (ends !== null && ends <= folded)) continue;
    const tracks = tracksOfNode.get(node) || tracksOfNode.set(node, []).get(node);
    const free = tracks.findIndex((end) => end !== null && end <= begins);
    const at = free < 0 ? tracks.length : free;
    tracks[at] = ends;
    drawNotification(svg, node, what, begins, ends, state, Math.min(at, 6));
  }
}

function drawNotification(svg, node, what, begins, ends, outcome, at) {
  const x = /** @type {number} */ (laneAt.get(node));
  const side = x < zooKeeper ? 1 : -1;
  const beside = x + side * (11 + 5 * at);
  const [sent, received] = [yOf(begins) + 3, yOf(ends) - (ends === null ? 8 : 3)];
  const turn = Math.min(sent + ROW * 0.6, received - 2);
  const colour = outcome === "lost" ? COLOURS.fault : COLOURS.firing;
  const d = `M${zooKeeper},${sent} L${beside},${turn} L${beside},${received - 6}`;
  const group = draw(svg, "g");
  draw(group, "path", { d, stroke: "var(--paper)", "stroke-opacity": 0, "stroke-width": 8, fill: "none" });
  draw(group, "path", { d, stroke: colour, "stroke-width": 1.6, "stroke-dasharray": "2 3", fill: "none" });
  if (outcome === "received") arrow(group, beside, received - 6, x + side * 2, received, colour);
  else if (outcome === "lost") cross(group, beside, received - 3, colour);
  else draw(group, "circle", { cx: beside, cy: received - 3, r: 3.5, fill: "var(--paper)", stroke: colour, "stroke-width": 1.8 });
  const sentAt = begins < 1 ? "sent before the first step" : "sent in step " + begins;
  const end = { received: "received in step " + ends, lost: "lost in step " + ends }[outcome] || "still on its way at the end";
  describe(group, () => [what, "to " + node, sentAt + ", " + end]);
}
