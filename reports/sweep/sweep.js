// The page of a sweep: which axes the maps have, which cell is chosen, and the failure signatures.

stage.classList.add("sweep");

const mapped = data.axes.map(([name, values], at) => ({ name, values, at })).filter((axis) => axis.values.length > 1);
/** @type {{ across: Axis | null, down: Axis | null, measure: Measure }} */
const shown = {
  across: mapped[Math.max(mapped.length - (mapped.length > 2 ? 2 : 1), 0)] || null,
  down: mapped.length > 1 ? mapped[mapped.length > 2 ? mapped.length - 3 : 0] : null,
  measure: MEASURES[0],
};

const controls = element("controls");
const legend = element("legend");
const where = section("Where");
const maps = make(where, "div");
const chosen = make(where, "div", { class: "chosen-cell", hidden: "" });

/** @param {string} title */
function section(title) {
  const made = make(stage, "section");
  make(made, "h2", {}, title);
  return made;
}

/**
 * @param {Element} parent
 * @param {string} what
 * @param {string} text
 */
function command(parent, what, text) {
  const line = make(parent, "div", { class: "command" });
  make(line, "span", {}, what);
  make(line, "code", {}, text);
}

// --- maps ----------------------------------------------------------------------------------

/**
 * @template {{ name: string }} Choice
 * @param {string} what
 * @param {Choice[]} axes
 * @param {Choice | null} chosenAxis
 * @param {(choice: Choice) => void} choose
 */
function picker(what, axes, chosenAxis, choose) {
  const set = make(controls, "span", { class: "set" });
  make(set, "label", {}, what);
  const select = make(set, "select", { "aria-label": what });
  for (const axis of axes) {
    const option = make(select, "option", {}, axis.name);
    option.selected = axis === chosenAxis;
  }
  select.addEventListener("change", () => { choose(axes[select.selectedIndex]); drawMaps(); });
}

function drawControls() {
  controls.replaceChildren();
  picker("colour", MEASURES, shown.measure, (measure) => { shown.measure = measure; });
  if (mapped.length < 2) return;
  /** @type {(one: "across" | "down", other: "across" | "down", axis: Axis) => void} */
  const swap = (one, other, axis) => {
    if (shown[other] === axis) shown[other] = shown[one];
    shown[one] = axis;
    drawControls();
  };
  picker("across", mapped, shown.across, (axis) => swap("across", "down", axis));
  picker("down", mapped, shown.down, (axis) => swap("down", "across", axis));
}

// The maps of one variant are beside one another.
function drawMaps() {
  maps.replaceChildren();
  /** @param {Axis} axis */
  const isFree = (axis) => axis !== shown.across && axis !== shown.down;
  const variant = mapped.find((axis) => axis.at === data.axes.length - 1 && isFree(axis));
  const others = mapped.filter((axis) => isFree(axis) && axis !== variant);
  for (const value of variant ? variant.values : [null]) {
    const cells = data.cells.filter((cell) => !variant || cell.at[variant.at] === value);
    if (value !== null) make(maps, "h3", { class: "variant" }, String(value));
    const row = make(maps, "div", { class: "maps" });
    for (const [name, found] of grouped(cells, others)) {
      const map = make(row, "div");
      if (name) make(map, "h3", {}, name);
      drawMap(map, found, shown.across, shown.down, shown.measure, choose);
    }
  }
  drawLegend();
}

/**
 * @param {Cell[]} cells
 * @param {Axis[]} axes
 */
function grouped(cells, axes) {
  const groups = new Map();
  for (const cell of cells) {
    const name = axes.map((axis) => axis.name + " " + cell.at[axis.at]).join(", ");
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(cell);
  }
  return groups;
}

function drawLegend() {
  legend.replaceChildren();
  const { to, most, name } = shown.measure;
  const made = make(legend, "span");
  make(made, "span", {}, name + ":");
  if (most) {
    make(made, "span", { class: "scale", style: "width:20px;background:" + NONE });
    make(made, "span", {}, "none");
  }
  make(made, "span", { class: "scale", style: "background:linear-gradient(90deg," + mixed(to, 0) + "," + mixed(to, 1) + ")" });
  make(made, "span", {}, most ? "few to all" : "few to most");
}

/**
 * @param {Cell} cell
 * @param {Element} box
 */
function choose(cell, box) {
  for (const before of maps.querySelectorAll(".cell.on")) before.classList.remove("on");
  box.classList.add("on");
  chosen.hidden = false;
  chosen.replaceChildren();
  const [title, ...lines] = tipOf(cell);
  make(chosen, "h3", {}, title);
  for (const line of lines) make(chosen, "p", {}, line);
  const at = data.cells.indexOf(cell);
  for (const failure of data.failures) {
    if (failure.cells.includes(at)) make(chosen, "p", { class: "signature" }, "fails: " + failure.signature);
  }
  command(chosen, "one run", cell.command);
}

// --- failure signatures --------------------------------------------------------------------

/**
 * @param {string} title
 * @param {Signature[]} signatures
 * @param {string} kind
 */
function drawSignatures(title, signatures, kind) {
  if (!signatures.length) return;
  const made = section(title);
  for (const failure of signatures) {
    const box = make(made, "div", { class: "failure " + kind });
    const [low, high] = failure.interval;
    const often = counted(failure.number, "run") + ": " + round(failure.per_1000) + " in 1,000 runs (95 % interval " + round(low) + " to " + round(high) + ")";
    make(box, "b", {}, failure.signature);
    make(box, "p", { class: "soft" }, often + ", in " + counted(failure.cells.length, "cell"));
    for (const [variant, limit] of Object.entries(failure.known_limits)) make(box, "p", {}, "Known limit of " + variant + ": " + limit);
    command(box, "first", failure.first.command);
    if (failure.smallest) command(box, "smallest", failure.smallest.command);
  }
}

drawControls();
drawMaps();
drawSignatures("Failure signatures", data.failures, "");
drawSignatures("Unknown", data.unknown, "open");
drawRows(make(section("How often, how soon"), "div", { class: "wide", tabindex: 0, role: "region", "aria-label": "how often, how soon" }), data.cells);
const whole = section("The sweep");
command(whole, "reproduce", data.command);
command(whole, "self-test", data.self_test + ": violated, as expected");
command(whole, "determinism", counted(data.determinism.repeated, "run") + " of " + data.runs.toLocaleString("en") + " were repeated; " + (data.determinism.differing.length || "none") + " had another result");
for (const run of data.determinism.differing.slice(0, 20)) command(whole, "differs", run.command + " --check-determinism");
