// The page of an analysis: agreement of the two judgements, failures, coverage of steps and
// faults, the curve of one run, and a row of measures for each run and group.

stage.classList.add("sweep");

const BREACH = "var(--breach)";
const GOOD = "var(--good)";

/** @param {string} title */
function section(title) {
  const made = make(stage, "section");
  make(made, "h2", {}, title);
  return make(made, "div", { class: "wide" });
}

/**
 * @param {Element} parent
 * @param {string[]} heads
 * @param {(string | number)[][]} rows
 */
function table(parent, heads, rows) {
  const made = make(parent, "table");
  const head = make(made, "tr");
  for (const one of heads) make(head, "th", {}, one);
  for (const row of rows) {
    const line = make(made, "tr");
    for (const one of row) make(line, "td", {}, String(one));
  }
}

/** @param {number} value */
function round(value) {
  return value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(2);
}

// --- agreement -----------------------------------------------------------------------------

/** @param {Element} parent */
function drawAgreement(parent) {
  const names = [...new Set([...Object.keys(data.agreed), ...Object.keys(data.not_computed)])].sort();
  /** @param {string} name */
  const differ = (name) => data.differences.filter((one) => one.property.split(":")[0] === name).length;
  table(parent, ["property", "agree", "differ", "not computed a second time"], names.map((name) => [
    name, data.agreed[name] || "-", differ(name) || "-", data.not_computed[name] || "-",
  ]));
  for (const one of data.differences) {
    const box = make(parent, "div", { class: "failure" });
    make(box, "b", {}, one.run + ": " + one.property);
    make(box, "p", { class: "signature" }, "judged " + one.recorded + ", computed " + one.computed + (one.event === null ? "" : ", by event " + one.event));
  }
}

// --- failures ------------------------------------------------------------------------------

/** @param {Element} parent */
function drawFailures(parent) {
  for (const one of data.failures) {
    const box = make(parent, "div", { class: "failure" });
    const [low, high] = one.interval;
    const [least, most] = one.runs_to_find;
    make(box, "b", {}, round(one.per_1000) + " in 1,000 runs");
    make(box, "span", { class: "soft" }, "  95 % interval " + round(low) + " to " + round(high) + "; here " + one.number + " of " + one.of + "; " + least + (most === null ? " or more" : " to " + most) + " seeds find it");
    make(box, "p", { class: "signature" }, one.signature);
    for (const [variant, limit] of Object.entries(one.known_limits)) make(box, "p", {}, "Known limit of " + variant + ": " + limit);
    const line = make(box, "div", { class: "command" });
    make(line, "span", {}, "smallest");
    make(line, "code", {}, one.command || one.smallest);
  }
}

// --- faults and steps ----------------------------------------------------------------------

/** @param {Element} parent */
function drawCoverage(parent) {
  const faults = [...new Set(data.coverage.map((one) => one.fault))];
  const steps = [...new Set(data.coverage.map((one) => one.step))];
  const left = 230, top = 90, wide = 62, high = 18;
  const most = Math.max(1, ...data.coverage.map((one) => one.times));
  const svg = draw(parent, "svg", { width: left + faults.length * wide + 80, height: top + steps.length * high + 10 });
  faults.forEach((fault, at) => {
    const x = left + (at + 0.5) * wide;
    draw(svg, "text", { x, y: top - 8, transform: "rotate(-35 " + x + " " + (top - 8) + ")" }, fault);
  });
  steps.forEach((step, at) => draw(svg, "text", { x: left - 8, y: top + at * high + 13, class: "end" }, step));
  for (const one of data.coverage) {
    const x = left + faults.indexOf(one.fault) * wide;
    const y = top + steps.indexOf(one.step) * high;
    const share = Math.log(1 + one.times) / Math.log(1 + most);
    const fill = one.times ? "rgba(47,102,179," + (0.15 + 0.85 * share) + ")" : "var(--raised)";
    const box = draw(svg, "rect", { x: x + 1, y: y + 1, width: wide - 2, height: high - 2, fill });
    describe(box, () => [one.fault + ", " + one.step, one.times ? one.times + " times, in " + counted(one.runs, "run") : "never"]);
    if (one.times) draw(svg, "text", { x: x + wide / 2, y: y + 13, class: "number", style: share > 0.6 ? "fill:#fff" : "" }, String(one.times));
  }
}

// --- one failing run -----------------------------------------------------------------------

/**
 * @param {Element} parent
 * @param {Curve} curve
 */
function drawCurve(parent, curve) {
  const left = 50, top = 16, width = 640, height = 220;
  const last = Math.max(1, curve.points[curve.points.length - 1].events);
  /** @param {CurvePoint} point */
  const x = (point) => left + (point.events / last) * width;
  /** @param {number} value */
  const y = (value) => top + height - (value / 1000) * height;
  make(parent, "p", {}, curve.run + ": " + curve.violates.join(", ") + ". The first events stay as they were; every random choice after them is drawn again.");
  const svg = draw(parent, "svg", { width: left + width + 40, height: top + height + 50 });
  for (const value of [0, 250, 500, 750, 1000]) {
    draw(svg, "line", { x1: left, x2: left + width, y1: y(value), y2: y(value), stroke: "var(--grid)" });
    draw(svg, "text", { x: left - 6, y: y(value) + 4, class: "soft end" }, String(value));
  }
  /** @param {CurvePoint} point */
  const rate = (point) => (1000 * point.fail) / point.of;
  draw(svg, "polyline", { points: curve.points.map((point) => x(point) + "," + y(rate(point))).join(" "), fill: "none", stroke: BREACH, "stroke-width": 2 });
  curve.points.forEach((point, at) => {
    const [low, high] = point.interval;
    draw(svg, "line", { x1: x(point), x2: x(point), y1: y(low), y2: y(high), stroke: BREACH, opacity: 0.5 });
    const dot = draw(svg, "circle", { cx: x(point), cy: y(rate(point)), r: 4, fill: at === curve.decided ? GOOD : BREACH });
    describe(dot, () => [counted(point.events, "event") + ", until " + point.at_us / 1e6 + " s", point.fail + " of " + point.of + " branches fail"].concat(at === curve.decided ? ["inevitable from here on"] : []));
  });
  draw(svg, "text", { x: left, y: top + height + 20, class: "soft" }, "0 events kept");
  draw(svg, "text", { x: left + width, y: top + height + 20, class: "soft end" }, last + " events");
  draw(svg, "text", { x: left, y: top + height + 40, class: "soft" }, "branches that fail, of 1,000, with the 95 % interval; green: inevitable from here on");
}

drawAgreement(section("Judged twice"));
if (data.failures.length) drawFailures(section("Failure signatures"));
if (data.inevitable) drawCurve(section("The event that made it inevitable"), data.inevitable);
if (data.coverage.length) drawCoverage(section("Steps and faults that met"));
if (data.measures.length) {
  /** @param {Microseconds | null} us */
  const seconds = (us) => (us === null ? "-" : (us / 1e6).toFixed(3));
  table(section("Runs"), ["run", "group", "rest after, s", "attempts", "reads", "changes", "moves", "at least", "overlap, s", "gap, s", "zombie, s", "messages a second"], data.measures.map((row) => [
    row.run, row.group, seconds(row.rest_after_us), row.attempts, row.reads, row.changes, row.moves, row.least_moves || 0,
    seconds(row.overlap_us), seconds(row.gap_us), seconds(row.zombie_window_us), row.a_second === null ? "-" : round(row.a_second),
  ]));
}
const stored = data.measures.filter((row) => row.most_lag !== null);
if (stored.length) {
  /** @param {number | null} value */
  const number = (value) => (value === null ? "-" : round(value));
  table(section("Messages"), ["run", "group", "accepted", "consumed", "lost", "repeated", "lag at most", "in the end", "uncommitted at most", "in the end", "cache hits"], stored.map((row) => [
    row.run, row.group, number(row.accepted), number(row.consumed), number(row.lost), number(row.repeated), number(row.most_lag), number(row.last_lag),
    number(row.most_uncommitted), number(row.last_uncommitted), row.cache_hits === null ? "-" : (100 * row.cache_hits).toFixed(1) + " %",
  ]));
}
