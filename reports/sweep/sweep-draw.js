// The pictures of a sweep: maps of two axes, one for each choice of the other axes; and a row for
// each cell with its rate of failures, the interval of that rate, and its time to rest.

const BREACH = [216, 18, 27];
const BLUE = [47, 102, 179];
const NONE = "var(--good-ground)";
const UNKNOWN = "var(--grid)";

/** @type {Measure[]} */
const MEASURES = [
  { name: "violated, of 1,000", of: (cell) => cell.violated.per_1000, to: BREACH, most: 1000, show: (value) => round(value) },
  { name: "median time to rest, s", of: (cell) => cell.time_to_rest_us && cell.time_to_rest_us.median / 1e6, to: BLUE, show: (value) => value.toFixed(1) },
  { name: "median reads", of: (cell) => cell.reads.median, to: BLUE, show: (value) => round(value) },
  { name: "median moves of partitions", of: (cell) => cell.moves.median, to: BLUE, show: (value) => round(value) },
];

/** @param {number} value */
function round(value) {
  return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(2);
}

/**
 * @param {number[]} to
 * @param {number} share
 */
function mixed(to, share) {
  const part = 0.12 + 0.88 * share;
  return "rgb(" + to.map((channel) => Math.round(255 + (channel - 255) * part)).join(",") + ")";
}

/** @param {Measure} measure */
function scaleOf(measure) {
  const values = data.cells.map(measure.of).filter((value) => value !== null);
  const most = measure.most || Math.max(1e-9, ...values);
  /** @type {(value: number | null) => string} */
  return (value) => {
    if (value === null) return UNKNOWN;
    if (measure.most && value === 0) return NONE;
    return mixed(measure.to, Math.min(value / most, 1));
  };
}

/** @param {string} colour */
function inkOn(colour) {
  const [red, green, blue] = (colour.match(/\d+/g) || []).map(Number);
  return colour.startsWith("rgb") && red * 299 + green * 587 + blue * 114 < 140000 ? "var(--paper)" : "var(--ink)";
}

// --- names ---------------------------------------------------------------------------------

/** @param {AxisValue} value */
function widthOf(value) {
  return 7.2 * String(value).length;
}

/** @param {Cell} cell */
function cellText(cell) {
  return data.axes.map(([name], at) => name + " " + cell.at[at]);
}

/** @param {Cell} cell */
function tipOf(cell) {
  const [low, high] = cell.violated.interval;
  const counts = Object.entries(cell.verdicts).map(([verdict, number]) => number.toLocaleString("en") + " " + verdict);
  const rest = cell.time_to_rest_us;
  return [
    cellText(cell).join(", "),
    counts.join(", ") + " of " + counted(cell.runs, "run"),
    "violated in " + round(cell.violated.per_1000) + " of 1,000; 95 % interval " + round(low) + " to " + round(high),
    rest ? "at rest after " + duration(rest.median) + " (median), " + duration(rest.p90) + " (90 %), " + duration(rest.most) + " (longest)" : "never at rest for good",
    counted(cell.reads.median, "read") + ", " + counted(cell.moves.median, "move") + " of a partition (medians)",
  ];
}

// --- a map ---------------------------------------------------------------------------------

const BOX = { wide: 62, high: 34 };

/**
 * @param {Element} parent
 * @param {Cell[]} cells
 * @param {Axis | null} across
 * @param {Axis | null} down
 * @param {Measure} measure
 * @param {(cell: Cell, box: Element) => void} choose
 */
function drawMap(parent, cells, across, down, measure, choose) {
  const paint = scaleOf(measure);
  const [acrossName, acrossValues] = across ? data.axes[across.at] : ["", [""]];
  const [downName, downValues] = down ? data.axes[down.at] : ["", [""]];
  const left = 14 + Math.max(widthOf(downName) * (down ? 1 : 0), ...downValues.map(widthOf), 10);
  const wide = Math.max(BOX.wide, ...acrossValues.map((value) => widthOf(value) + 10));
  const top = 24;
  const width = Math.max(left + acrossValues.length * wide + 8, left + widthOf(acrossName));
  const svg = draw(parent, "svg", { width, height: top + downValues.length * BOX.high + 40 });
  if (down) draw(svg, "text", { x: left - 8, y: 14, class: "soft end" }, downName);
  downValues.forEach((value, row) => {
    draw(svg, "text", { x: left - 8, y: top + row * BOX.high + 21, class: "end" }, String(value));
  });
  acrossValues.forEach((value, column) => {
    draw(svg, "text", { x: left + (column + 0.5) * wide, y: top + downValues.length * BOX.high + 16, class: "middle" }, String(value));
  });
  if (across) draw(svg, "text", { x: left, y: top + downValues.length * BOX.high + 34, class: "soft" }, acrossName);
  for (const cell of cells) {
    const column = across ? acrossValues.indexOf(cell.at[across.at]) : 0;
    const row = down ? downValues.indexOf(cell.at[down.at]) : 0;
    const value = measure.of(cell);
    const colour = paint(value);
    const x = left + column * wide;
    const y = top + row * BOX.high;
    const box = draw(svg, "rect", { x: x + 1, y: y + 1, width: wide - 2, height: BOX.high - 2, rx: 3, fill: colour, class: "cell" });
    describe(box, () => tipOf(cell));
    box.addEventListener("click", () => choose(cell, box));
    draw(svg, "text", { x: x + wide / 2, y: y + 21, class: "number", fill: inkOn(colour), style: "fill:" + inkOn(colour) }, value === null ? "-" : measure.show(value));
  }
}

// --- a row a cell --------------------------------------------------------------------------

const ROW = 20;
const TOP = 44;
const PLOT = 320;

/**
 * @param {Element} parent
 * @param {Cell[]} cells
 */
function drawRows(parent, cells) {
  const edges = [0];
  data.axes.forEach(([name], at) => {
    edges.push(edges[at] + 18 + Math.max(widthOf(name), ...cells.map((cell) => widthOf(cell.at[at]))));
  });
  const left = edges[edges.length - 1] + 30;
  const rests = cells.flatMap((cell) => cell.time_to_rest_us ?? []);
  const longest = Math.max(1, ...rests.map((one) => one.most));
  const restsAt = left + PLOT + 60;
  const height = cells.length * ROW + TOP;
  const svg = draw(parent, "svg", { width: restsAt + PLOT + 40, height });
  /** @param {number} value */
  const often = (value) => left + (value / 1000) * PLOT;
  /** @param {Microseconds} us */
  const late = (us) => restsAt + (us / longest) * PLOT;
  data.axes.forEach(([name], at) => draw(svg, "text", { x: edges[at], y: 30, class: "soft" }, name));
  draw(svg, "text", { x: left, y: 12, class: "title" }, "violated, of 1,000 runs, with the 95 % interval");
  draw(svg, "text", { x: restsAt, y: 12, class: "title" }, "time to rest: least, median to 90 %, longest");
  for (const value of [0, 250, 500, 750, 1000]) drawTick(svg, often(value), height, String(value));
  for (const us of ticks(0, longest, 5)) drawTick(svg, late(us), height, us / 1e6 + " s");
  cells.forEach((cell, at) => drawRow(svg, cell, edges, TOP + (at + 0.5) * ROW - 4, often, late));
}

/**
 * @param {SVGElement} svg
 * @param {number} x
 * @param {number} height
 * @param {string} text
 */
function drawTick(svg, x, height, text) {
  draw(svg, "line", { x1: x, x2: x, y1: 34, y2: height, stroke: "var(--grid)" });
  draw(svg, "text", { x, y: 30, class: "soft middle" }, text);
}

/**
 * @param {SVGElement} svg
 * @param {Cell} cell
 * @param {number[]} edges
 * @param {number} y
 * @param {(value: number) => number} often
 * @param {(us: Microseconds) => number} late
 */
function drawRow(svg, cell, edges, y, often, late) {
  const [low, high] = cell.violated.interval;
  const colour = cell.violated.number ? "var(--breach)" : "var(--good)";
  cell.at.forEach((value, at) => draw(svg, "text", { x: edges[at], y: y + 4 }, String(value)));
  draw(svg, "line", { x1: often(low), x2: often(high), y1: y, y2: y, stroke: colour, "stroke-width": 2 });
  draw(svg, "circle", { cx: often(cell.violated.per_1000), cy: y, r: 4, fill: colour });
  const rest = cell.time_to_rest_us;
  if (rest) {
    draw(svg, "line", { x1: late(rest.least), x2: late(rest.most), y1: y, y2: y, stroke: "var(--gap)" });
    draw(svg, "rect", { x: late(rest.median), y: y - 4, width: Math.max(late(rest.p90) - late(rest.median), 2), height: 8, fill: "var(--ok)" });
  } else {
    draw(svg, "text", { x: late(0), y: y + 4, class: "soft" }, "never at rest for good");
  }
  const box = draw(svg, "rect", { x: 0, y: y - ROW / 2, width: late(0) + PLOT, height: ROW, fill: "transparent" });
  describe(box, () => tipOf(cell));
}
