// The page of messages: charts over one axis of time, with the values under the pointer. A drag
// zooms in, a double click shows the whole run.

const LEFT = 90;
const RIGHT = 24;
const LABEL_STEP = 17;
const MOST_LEVELS = 7;
const TITLE = 30;
const HIGH = 120;
const GAP = 16;
const PAPER = 1100; // charts of this width are fitted to paper: their words stay legible
const pane = make(stage, "div", { class: "pane wide", tabindex: 0, role: "region", "aria-label": "charts over time" });
const hair = make(stage, "div", { class: "hair", hidden: "" });
const chosen = make(stage, "div", { class: "chosen", hidden: "" });
/** @type {Set<string>} */
const hidden = new Set();
const view = { from: 0, to: Math.max(data.end, 1) };
/** @type {number | null} */
let dragged = null;
let isPrinted = false;
let topEdge = 0;
/** @type {number[]} */
let tops = [];

const width = () => isPrinted ? PAPER : Math.max(pane.clientWidth - 2, 480);
const inner = () => width() - LEFT - RIGHT;
/** @param {Microseconds} us */
const place = (us) => LEFT + ((us - view.from) / (view.to - view.from)) * inner();
/** @param {number} x */
const moment = (x) => view.from + ((x - LEFT) / inner()) * (view.to - view.from);
/**
 * @param {Microseconds} begins
 * @param {Microseconds} ends
 */
const isShown = (begins, ends) => ends >= view.from && begins <= view.to;

// --- drawing -------------------------------------------------------------------------------

function drawPage() {
  pane.replaceChildren();
  const flags = flagsOf(data.entries.filter(([begins, ends]) => isShown(begins, ends)));
  topEdge = 24 + LABEL_STEP * Math.max(0, ...flags.map((flag) => flag.level));
  const legends = data.charts.map(legendOf);
  tops = [];
  legends.forEach((words, at) => {
    const above = at ? tops[at - 1] + HIGH + GAP : topEdge;
    tops.push(above + TITLE + LABEL_STEP * Math.max(0, ...words.map((word) => word.row)));
  });
  const bottom = tops.length ? tops[tops.length - 1] + HIGH : topEdge;
  const svg = draw(pane, "svg", { width: width(), height: bottom + 28 });
  const inside = draw(draw(svg, "defs", {}), "clipPath", { id: "inside" });
  draw(inside, "rect", { x: LEFT, y: 0, width: inner(), height: bottom });
  for (const us of ticks(view.from, view.to, Math.max(2, inner() / 90))) {
    draw(svg, "line", { x1: place(us), x2: place(us), y1: topEdge, y2: bottom, stroke: "var(--grid)" });
    draw(svg, "text", { x: place(us), y: bottom + 17, "text-anchor": "middle", class: "soft" }, String(us / 1e6));
  }
  draw(svg, "text", { x: LEFT - 14, y: bottom + 17, "text-anchor": "end", class: "soft" }, "seconds");
  data.charts.forEach((chart, at) => drawChart(svg, chart, tops[at]));
  for (const flag of flags) drawEntry(svg, flag, bottom);
  // The lines of the timeline must not cross out a name: the legends lie above them.
  data.charts.forEach((chart, at) => drawLegend(svg, chart, legends[at], tops[at] - 9));
  pane.classList.toggle("paper", isPrinted);
  pane.style.aspectRatio = isPrinted ? PAPER + " / " + (bottom + 28) : "";
  if (isPrinted) fitPaper(svg, PAPER, 0, bottom + 28);
}

/**
 * @param {SVGElement} svg
 * @param {Chart} chart
 * @param {number} top
 */
function drawChart(svg, chart, top) {
  for (const [share, text] of chart.ticks) {
    const y = top + HIGH * (1 - share);
    draw(svg, "line", { x1: LEFT, x2: LEFT + inner(), y1: y, y2: y, stroke: "var(--grid)" });
    draw(svg, "text", { x: LEFT - 10, y: y + 4, "text-anchor": "end", class: "soft" }, text);
  }
  const clipped = draw(svg, "g", { "clip-path": "url(#inside)" });
  for (const line of chart.lines) if (!hidden.has(chart.title + line.name)) drawLine(clipped, line, top);
  for (const [us, share] of chart.marks) {
    const y = top + HIGH * (1 - share);
    const cross = `M${place(us) - 5},${y - 5}l10,10m0,-10l-10,10`;
    draw(clipped, "path", { d: cross, stroke: data.breach, "stroke-width": 2.2 });
  }
}

// How many points of a piece lie before a moment; they are in order.
/**
 * @param {Point[]} piece
 * @param {Microseconds} us
 */
function pointsBefore(piece, us) {
  let [low, high] = [0, piece.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (piece[middle][0] < us) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The points of a piece that the shown part needs. Of more than four within one pixel, the first,
// the lowest, the highest and the last cover all that the others would.
/** @param {Point[]} piece */
function pointsInSight(piece) {
  /** @type {Point[]} */
  const found = [];
  /** @type {Point[]} */
  let column = [];
  const add = () => {
    if (column.length <= 4) return found.push(...column);
    const byShare = column.toSorted((one, other) => one[1] - other[1]);
    const edges = [byShare[0], byShare[byShare.length - 1]].toSorted((one, other) => one[0] - other[0]);
    return found.push(column[0], ...edges, column[column.length - 1]);
  };
  const perPixel = (view.to - view.from) / inner();
  /** @param {Point} point */
  const pixel = ([us]) => Math.round((us - view.from) / perPixel);
  const last = Math.min(pointsBefore(piece, view.to) + 1, piece.length);
  for (let at = Math.max(pointsBefore(piece, view.from) - 1, 0); at < last; at++) {
    if (column.length && pixel(column[0]) !== pixel(piece[at])) {
      add();
      column = [];
    }
    column.push(piece[at]);
  }
  add();
  return found;
}

/**
 * @param {Element} parent
 * @param {ChartLine} line
 * @param {number} top
 */
function drawLine(parent, line, top) {
  const perPixel = (view.to - view.from) / inner();
  /** @param {number} pixels */
  const tenths = (pixels) => Math.round(pixels * 10) / 10; // long numbers take long to be read
  /** @param {Microseconds} us */
  const place = (us) => tenths(LEFT + (us - view.from) / perPixel);
  for (const piece of line.pieces) {
    const interval = pointsInSight(piece);
    if (!interval.length) continue;
    const steps = interval.map(([us, share], at) => {
      const y = tenths(top + HIGH * (1 - share));
      return at ? `H${place(us)}V${y}` : `M${place(us)},${y}`;
    });
    const floor = `V${top + HIGH}H${place(interval[0][0])}Z`;
    const look = line.filled
      ? { d: steps.join("") + floor, fill: line.colour }
      : { d: steps.join(""), fill: "none", stroke: line.colour, "stroke-width": line.width + 0.3, "stroke-dasharray": line.dash };
    draw(parent, "path", look);
  }
}

// The legend beside the title, on as many rows as it needs; the widths of texts are estimates.
/** @param {Chart} chart */
function legendOf(chart) {
  const begins = LEFT + 7.6 * chart.title.length + 22;
  const more = chart.left_out ? [counted(chart.left_out, "line") + " not drawn"] : [];
  const remarks = [...chart.marks.map((mark) => "✕ " + mark[2]), ...more];
  const words = [...chart.lines.map((line) => ({ text: line.name, line, x: 0, row: 0 })), ...remarks.map((text) => ({ text, line: null, x: 0, row: 0 }))];
  let x = begins;
  let row = 0;
  for (const word of words) {
    const wide = 6.9 * word.text.length + (word.line ? 50 : 20);
    if (x > begins && x + wide > LEFT + inner()) [x, row] = [begins, row + 1];
    Object.assign(word, { x, row });
    x += wide;
  }
  return words;
}

// The names of the lines; a click on a name hides or shows its line.
/**
 * @param {SVGElement} svg
 * @param {Chart} chart
 * @param {LegendWord[]} words
 * @param {number} bottom
 */
function drawLegend(svg, chart, words, bottom) {
  const rows = Math.max(0, ...words.map((word) => word.row));
  const first = bottom - LABEL_STEP * rows;
  draw(svg, "text", { x: LEFT, y: first, class: "title halo" }, chart.title);
  for (const { text, line, x, row } of words) {
    const y = first + LABEL_STEP * row;
    if (line === null) {
      draw(svg, "text", { x, y, class: "halo soft" }, text);
      continue;
    }
    const key = chart.title + line.name;
    const entry = draw(svg, "g", { cursor: "pointer", opacity: hidden.has(key) ? 0.35 : 1 });
    draw(entry, "line", { x1: x, x2: x + 24, y1: y - 4, y2: y - 4, stroke: line.colour, "stroke-width": line.filled ? 9 : line.width + 0.5, "stroke-dasharray": line.dash });
    draw(entry, "text", { x: x + 30, y, class: "halo" }, text);
    entry.addEventListener("click", () => { if (!hidden.delete(key)) hidden.add(key); drawPage(); });
  }
}

// Each label of the timeline is put above those that begin within its width; one that would be
// too high is left out (level -1).
/** @param {Entry[]} entries */
function flagsOf(entries) {
  const flags = entries.map((entry) => ({ entry, x: Math.max(place(entry[0]), LEFT), wide: 7.2 * entry[3].length + 14, level: 0 }));
  for (let at = flags.length - 1; at >= 0; at--) {
    const under = flags.slice(at + 1).filter((flag) => flag.x < flags[at].x + flags[at].wide);
    const level = Math.max(-1, ...under.map((flag) => flag.level)) + 1;
    flags[at].level = level < MOST_LEVELS ? level : -1;
  }
  return flags;
}

/**
 * @param {SVGElement} svg
 * @param {Flag} flag
 * @param {number} bottom
 */
function drawEntry(svg, { entry, x, level }, bottom) {
  const [, ends, kind, label, lasts] = entry;
  const isFault = kind === "fault";
  const colour = isFault ? "var(--fault)" : "var(--gap)";
  const until = Math.min(place(ends), LEFT + inner());
  const y = topEdge - 6 - LABEL_STEP * Math.max(level, 0);
  if (lasts) draw(svg, "rect", { x, y: topEdge, width: until - x, height: bottom - topEdge, fill: "var(--fault)", opacity: 0.12, class: "clear" });
  for (const [edge, from] of lasts ? [[x, y - 10], [until, topEdge]] : [[x, y - 10]]) {
    draw(svg, "line", { x1: edge, x2: edge, y1: from, y2: bottom, stroke: colour, "stroke-dasharray": isFault ? "4 2" : "1 2", class: "clear" });
  }
  if (level >= 0) draw(svg, "text", { x: x + 4, y, fill: colour, class: isFault ? "title halo" : "soft halo" }, label);
}

// --- values and zoom -----------------------------------------------------------------------

/**
 * @param {ChartLine} line
 * @param {Microseconds} us
 */
function valueAt(line, us) {
  for (const interval of line.pieces) {
    if (us < interval[0][0] || us > interval[interval.length - 1][0]) continue;
    let at = 0;
    while (at + 1 < interval.length && interval[at + 1][0] <= us) at++;
    return interval[at][2];
  }
  return "-";
}

pane.addEventListener("pointermove", (event) => {
  const box = pane.getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top + pane.scrollTop;
  const isInside = x >= LEFT && x <= LEFT + inner();
  hair.hidden = tip.hidden = !isInside;
  if (dragged !== null) showChosen(x, dragged);
  if (!isInside || !tops.length) return;
  hair.style.left = x + "px";
  const below = tops.findIndex((top) => y < top + HIGH + GAP / 2);
  const at = below < 0 ? tops.length - 1 : below;
  const us = Math.round(moment(x));
  tip.replaceChildren();
  make(tip, "b", {}, seconds(us));
  make(make(tip, "div"), "i", {}, data.charts[at].title);
  for (const line of data.charts[at].lines) make(make(tip, "div"), "span", {}, line.name + ": " + valueAt(line, us));
  tip.style.left = Math.min(event.clientX + 16, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8) + "px";
});

/**
 * @param {number} x
 * @param {number} dragged
 */
function showChosen(x, dragged) {
  chosen.hidden = Math.abs(x - dragged) < 4;
  chosen.style.left = Math.min(x, dragged) + "px";
  chosen.style.width = Math.abs(x - dragged) + "px";
}

pane.addEventListener("pointerdown", (event) => { dragged = event.clientX - pane.getBoundingClientRect().left; });
addEventListener("pointerup", (event) => {
  const x = event.clientX - pane.getBoundingClientRect().left;
  const edges = dragged === null ? [] : [moment(Math.min(x, dragged)), moment(Math.max(x, dragged))];
  const isZoom = dragged !== null && Math.abs(x - dragged) >= 4 && edges[1] - edges[0] >= 1000;
  dragged = null;
  chosen.hidden = true;
  if (isZoom) look(Math.max(edges[0], 0), Math.min(edges[1], data.end));
});
pane.addEventListener("dblclick", () => look(0, Math.max(data.end, 1)));
pane.addEventListener("pointerleave", () => { hair.hidden = tip.hidden = true; });

/**
 * @param {Microseconds} from
 * @param {Microseconds} to
 */
function look(from, to) {
  Object.assign(view, { from, to });
  drawPage();
}

button(make(element("controls"), "span", { class: "set" }), "whole run", () => look(0, Math.max(data.end, 1)));
make(element("legend"), "span", {}, "Drag to zoom in, double click for the whole run; a click on a name hides its line.");
addEventListener("resize", drawPage);

/** @param {boolean} isBegun */
function putOnPaper(isBegun) {
  isPrinted = isBegun;
  drawPage();
}

addEventListener("beforeprint", () => putOnPaper(true));
addEventListener("afterprint", () => putOnPaper(false));
drawPage();
