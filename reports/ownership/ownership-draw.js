// The picture of the page of ownership: rows, breaches, gaps, strips and the timeline.

const WIDE_LEFT = 170;
const NARROW_LEFT = 96;
const NARROW = 600;
let LEFT = WIDE_LEFT;
const RIGHT = 24;
const ROW = data.rows.length > 80 ? 17 : 23;
const TITLE = 28;
const STRIP = 21;
const THINNEST_BREACH = 3;
const THINNEST_GAP = 0.3;
const PALE = 0.32;
const FLAG = 17;
const MOST_FLAGS = 7;
const SHORTEST_VIEW = 20;

const view = { from: 0, to: Math.max(data.end, 1) };
let width = 0;
/** @type {Target | null} */
let marked = null;
const wanted = { text: "", onlyMarked: false };

function x(us) {
  return LEFT + ((us - view.from) / (view.to - view.from)) * (width - LEFT - RIGHT);
}

function time(px) {
  const us = view.from + ((px - LEFT) / (width - LEFT - RIGHT)) * (view.to - view.from);
  return Math.min(Math.max(us, 0), data.end);
}

function member(number) {
  return data.members[number][0];
}

// --- patterns ------------------------------------------------------------------------------

function pattern(id, size, path, colour, paper) {
  const made = draw(patterns, "pattern", { id, width: size, height: size, patternUnits: "userSpaceOnUse" });
  if (paper) draw(made, "rect", { width: size, height: size, fill: "var(--paper)" });
  draw(made, "path", { d: path, stroke: colour, "stroke-width": 1, fill: "none" });
}

pattern("gap", 6, "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", "var(--gap)", true);
pattern("zombie", 6, "M0,0 l6,6 M0,6 l6,-6", "var(--breach)", true);
pattern("stripes", 5, "M1,0 v5 M2,0 v5 M3,0 v5", "var(--paper)", false);

// --- the lines of the two panes ------------------------------------------------------------

// Whether a row is searched for: by its place, or by a member that fetched it.
function isWanted(row) {
  if (wanted.onlyMarked && !row.breaches.length) return false;
  if (!wanted.text) return true;
  const names = row.fetched.map((span) => member(span[4]));
  return [row.place.join("/"), ...names].some((name) => name.toLowerCase().includes(wanted.text));
}

function partitionLines() {
  const lines = [];
  let before = "";
  data.rows.forEach((row, at) => {
    if (!isWanted(row)) return;
    const title = row.place[1] ? row.place[0] + " · " + row.place[1] : row.place[0];
    if (title !== before) lines.push({ title, height: TITLE });
    before = title;
    lines.push({ row, at, height: ROW });
  });
  return lines;
}

function stripLines() {
  const title = { title: "sessions of the " + data.words.members, height: TITLE };
  return [title, ...data.strips.map(([number, states, label]) => ({ number, states, label, height: STRIP }))];
}

function placed(lines) {
  let top = 0;
  for (const line of lines) {
    line.top = top;
    top += line.height;
  }
  return { lines, height: top + 6 };
}

// --- marks -----------------------------------------------------------------------------------

function box(parent, line, from, to, attributes, thinnest = 0, share = 0.8) {
  const left = Math.max(x(from), LEFT);
  const right = Math.min(Math.max(x(to), x(from) + thinnest), width - RIGHT + thinnest);
  if (right < LEFT || x(from) > width - RIGHT || right - left < 0) return null;
  const high = line.height * share;
  return draw(parent, "rect", {
    x: left,
    y: line.top + (line.height - high) / 2,
    width: right - left,
    height: high,
    ...attributes,
  });
}

function spanLines(span) {
  const [from, to, first, last] = span;
  return [seconds(from) + " to " + seconds(to) + ", " + duration(to - from), events(first, last)];
}

function place(row) {
  return row.place[1] ? row.place[1] + "/" + row.place[2] + " of " + row.place[0] : row.place[2];
}

function linked(mark, span) {
  mark.addEventListener("click", (event) => {
    if (!dragged) location.href = "spacetime.html#" + placeOfClick(span, inStage(event));
  });
}

// A click on a wide mark means its moment, and one on a narrow mark the event that it begins with.
const WIDE_ENOUGH = 12;

function placeOfClick(span, at) {
  const isWide = x(span[1]) - x(span[0]) > WIDE_ENOUGH && at - x(span[0]) > WIDE_ENOUGH / 3;
  return isWide ? "us=" + Math.round(time(at)) : "seq=" + span[2];
}

function mark(made, span, lines) {
  if (!made) return null;
  describe(made, () => [...lines(), ...spanLines(span)]);
  linked(made, span);
  return made;
}

function drawRow(parent, line) {
  const row = line.row;
  draw(parent, "text", { x: LEFT - 10, y: line.top + line.height / 2 + 4, "text-anchor": "end" }, row.place[2]);
  for (const gap of row.gaps) {
    if (x(gap[1]) - x(gap[0]) < THINNEST_GAP) continue;
    mark(box(parent, line, gap[0], gap[1], { fill: "url(#gap)" }), gap, () => [
      place(row),
      "gap: a broker serves it and no member fetches it",
    ]);
  }
  for (const span of row.held) {
    const [name, fill] = data.members[span[4]];
    mark(box(parent, line, span[0], span[1], { fill, "fill-opacity": PALE }), span, () => [
      place(row),
      name + " " + data.words.holds,
    ]);
  }
  for (const span of row.fetched) drawFetched(parent, line, span);
  for (const span of row.breaches) drawBreach(parent, line, span);
}

function drawFetched(parent, line, span) {
  const [name, fill, ink] = data.members[span[4]];
  const made = mark(box(parent, line, span[0], span[1], { fill }, 0.5), span, () => [
    place(line.row),
    name + " " + data.words.does,
  ]);
  drawStripes(parent, made, span[4]);
  const wide = name.length * 6.6 + 12;
  if (!made || line.height < 16) return;
  const left = Number(made.getAttribute("x"));
  const at = free(left, left + Number(made.getAttribute("width")), wide, taken(line.row));
  if (at === null) return;
  draw(parent, "text", { x: at + 6, y: line.top + line.height / 2 + 4, style: "fill:" + ink + ";stroke:" + fill, class: "clear halo" }, name);
}

// Where there are more members than colours, stripes along a bar tell them apart.
function drawStripes(parent, bar, number) {
  if (!bar) return;
  const [, , ink, stripes] = data.members[number];
  const [x, y, width, high] = ["x", "y", "width", "height"].map((name) => Number(bar.getAttribute(name)));
  for (const share of data.stripes.at.slice(0, stripes)) {
    draw(parent, "rect", { x, y: y + high * share, width, height: high * data.stripes.high, fill: ink, class: "clear" });
  }
}

// The places of a row that no name may cover: the lines of the timeline, and breaches.
function taken(row) {
  const found = row.breaches.map((span) => [x(span[0]), Math.max(x(span[1]), x(span[0]) + THINNEST_BREACH)]);
  for (const [from, to] of data.entries) found.push([x(from), x(from)], [x(to), x(to)]);
  return found.sort((one, other) => one[0] - other[0]);
}

function free(left, right, wide, intervals) {
  let at = left;
  for (const [first, last] of intervals) if (last > at && first < at + wide) at = last;
  return at + wide <= right ? at : null;
}

function drawBreach(parent, line, span) {
  const members = span[4];
  const zombies = span[5];
  const look = isSplit(span) ? { fill: "var(--breach)" } : { fill: "url(#zombie)", stroke: "var(--breach)", "stroke-width": 0.7 };
  mark(box(parent, line, span[0], span[1], look, THINNEST_BREACH), span, () => [
    place(line.row),
    isSplit(span) ? data.words.split_name + ": " + members.map(member).join(" and ") + " " + data.words.together : data.words.zombie_name,
    ...zombies.map((number) => member(number) + " " + data.words.dead),
  ]);
}

function isSplit(span) {
  return span[6];
}

function drawStrip(parent, line) {
  const [name, colour] = data.members[line.number];
  draw(parent, "text", { x: LEFT - 10, y: line.top + line.height / 2 + 4, "text-anchor": "end" }, line.label);
  // A state that is drawn wider than it lasted is drawn last: otherwise the next one would hide it.
  const later = (span) => (STATES[span[4]].thinnest ? 1 : 0);
  for (const span of [...line.states].sort((one, other) => later(one) - later(other))) {
    const made = drawState(parent, line, span, colour);
    if (span[4] === "connected") drawStripes(parent, made, line.number);
    mark(made, span, () => [name, span[4]]);
  }
}

const STATES = {
  "connected": { share: 0.6, look: (colour) => ({ fill: colour }) },
  "suspended": { share: 0.6, look: (colour) => ({ fill: colour, stroke: colour }), over: "url(#stripes)" },
  "paused": { share: 0.6, look: (colour) => ({ fill: colour, "fill-opacity": PALE }) },
  "paused, session dead": { share: 0.6, look: (colour) => ({ fill: colour, "fill-opacity": PALE }), line: 0.1 },
  "session dead, process runs": { share: 0.6, look: () => ({ fill: "var(--ink)" }), thinnest: THINNEST_BREACH },
  "no session": { share: 0.6, look: (colour) => ({ fill: "var(--paper)", stroke: colour }) },
  "program over, session lives on": { share: 0.3, look: (colour) => ({ fill: colour }) },
  "process gone, session lives on": { share: 0.14, look: (colour) => ({ fill: colour }) },
  "not running": { share: 0.07, look: () => ({ fill: "var(--faint)" }) },
};

function drawState(parent, line, span, colour) {
  const { share, look, over, thinnest, line: middle } = STATES[span[4]];
  const made = box(parent, line, span[0], span[1], look(colour), thinnest || 0, share);
  if (made && over) box(parent, line, span[0], span[1], { fill: over, class: "clear" }, 0, share);
  if (made && middle) box(parent, line, span[0], span[1], { fill: "var(--ink)", class: "clear" }, 0, middle);
  return made;
}

// --- the timeline ----------------------------------------------------------------------------

function drawEntries(parent, height) {
  for (const entry of data.entries) {
    const [from, to, , , kind, , lasts] = entry;
    if (to < view.from || from > view.to) continue;
    const left = Math.max(x(from), LEFT);
    if (lasts) {
      const wide = Math.max(Math.min(x(to), width - RIGHT) - left, 0);
      draw(parent, "rect", { x: left, y: 0, width: wide, height, fill: "var(--fault)", "fill-opacity": 0.12, class: "clear" });
    }
    for (const at of lasts ? [from, to] : [from]) drawMoment(parent, at, 0, height, kind);
  }
}

function drawMoment(parent, at, top, bottom, kind) {
  if (at < view.from || at > view.to) return;
  const line = { x1: x(at), x2: x(at), y1: top, y2: bottom, class: "clear" };
  draw(parent, "line", { ...line, stroke: "var(--paper)", "stroke-width": 2.5, "stroke-opacity": 0.6 });
  const isFault = kind === "fault";
  const dashes = isFault ? "5 3" : "1.5 3";
  draw(parent, "line", { ...line, stroke: isFault ? "var(--fault)" : "var(--gap)", "stroke-dasharray": dashes });
}

// The labels of the timeline: each is put above those that begin within its width.
function flags() {
  const shown = data.entries
    .filter(([from, to]) => to >= view.from && from <= view.to)
    .map((entry) => {
      const from = x(Math.max(entry[0], view.from));
      return { entry, from, to: from + entry[5].length * 6.9 + 12, level: 0 };
    });
  for (let at = shown.length - 1; at >= 0; at--) {
    const under = shown.slice(at + 1).filter((other) => other.level < MOST_FLAGS && other.from < shown[at].to);
    shown[at].level = Math.max(-1, ...under.map((other) => other.level)) + 1;
  }
  return shown;
}

function drawAxis() {
  const shown = flags();
  const flying = shown.filter((flag) => flag.level < MOST_FLAGS);
  const high = (Math.max(-1, ...flying.map((flag) => flag.level)) + 1) * FLAG + 24;
  const svg = fresh(axis, high);
  for (const flag of flying) {
    const y = high - 24 - flag.level * FLAG;
    const [, , , , kind, label] = flag.entry;
    drawMoment(svg, flag.entry[0], y - 10, high, kind);
    const weight = kind === "fault" ? 600 : 400;
    const isCut = flag.to > width;
    const text = draw(svg, "text", {
      x: flag.from + (isCut ? -5 : 5),
      y,
      "text-anchor": isCut ? "end" : "start",
      style: "font-weight:" + weight,
    }, label);
    if (kind !== "fault") text.setAttribute("class", "soft");
    mark(text, flag.entry, () => [label]);
  }
  draw(svg, "text", { x: LEFT - 10, y: high - 7, "text-anchor": "end", class: "soft" }, "seconds");
  const shownAt = numbers();
  for (const us of shownAt) {
    draw(svg, "text", { x: x(us), y: high - 7, "text-anchor": "middle", class: "soft halo" }, tickText(us, shownAt));
  }
  const hidden = shown.length - flying.length;
  remarks.textContent = [
    hidden ? "No room for " + counted(hidden, "label") + " of the timeline; zoom in." : "",
    widened(),
    shortGaps(),
  ].join(" ");
}

// All numbers of an axis have as many decimals as its step needs.
/**
 * @param {Microseconds} us
 * @param {Microseconds[]} all
 */
function tickText(us, [one, other]) {
  const step = other === undefined ? 1e6 : other - one;
  const decimals = [0, 1, 2, 3, 4, 5].find((some) => Number.isInteger((step / 1e6) * 10 ** some));
  return (us / 1e6).toFixed(decimals === undefined ? 6 : decimals);
}

// As many numbers as there is room for.
function numbers() {
  return ticks(view.from, view.to, Math.min(Math.max(Math.floor((width - LEFT - RIGHT) / 52), 2), 14));
}

function inView([from, to]) {
  return to >= view.from && from <= view.to;
}

// The duration that is as wide as a number of pixels.
function timeOf(px) {
  return ((view.to - view.from) / (width - LEFT - RIGHT)) * px;
}

// The remark on marks that are drawn wider than they lasted, so that they are visible at all.
function widened() {
  const us = timeOf(THINNEST_BREACH);
  const isShort = (span) => span[1] - span[0] < us && inView(span);
  const dead = data.strips.flatMap(([, states]) => states.filter((span) => STATES[span[4]].thinnest));
  const number = [...data.rows.flatMap((row) => row.breaches), ...dead].filter(isShort).length;
  return number ? counted(number, "mark") + " in red or black, shorter than " + duration(Math.round(us)) + ", drawn wider than " + (number === 1 ? "it" : "they") + " lasted." : "";
}

// The remark on gaps that are too short to be visible.
function shortGaps() {
  const us = timeOf(THINNEST_GAP);
  const isShort = (gap) => gap[1] - gap[0] < us && inView(gap);
  const number = data.rows.flatMap((row) => row.gaps).filter(isShort).length;
  return number ? counted(number, "gap") + " shorter than " + duration(Math.round(us)) + (number === 1 ? " needs" : " need") + " more zoom to be seen." : "";
}
