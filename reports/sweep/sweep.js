// The page of a sweep: which axes the maps have, which cell was chosen, the ways of failing.

stage.classList.add("sweep");

const mapped = data.axes.map(([name, values], at) => ({ name, values, at })).filter((axis) => axis.values.length > 1);
const shown = {
  across: mapped[Math.max(mapped.length - (mapped.length > 2 ? 2 : 1), 0)] || null,
  down: mapped.length > 1 ? mapped[mapped.length > 2 ? mapped.length - 3 : 0] : null,
  measure: MEASURES[0],
};

const controls = document.getElementById("controls");
const legend = document.getElementById("legend");
const maps = make(section("Where"), "div");
const chosen = make(maps.parentNode, "div", { class: "chosen-cell", hidden: "" });

function section(title) {
  const made = make(stage, "section");
  make(made, "h2", {}, title);
  return made;
}

function command(parent, what, text) {
  const line = make(parent, "div", { class: "command" });
  make(line, "span", {}, what);
  make(line, "code", {}, text);
}

// --- maps ----------------------------------------------------------------------------------

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
  const swap = (one, other, axis) => {
    if (shown[other] === axis) shown[other] = shown[one];
    shown[one] = axis;
    drawControls();
  };
  picker("across", mapped, shown.across, (axis) => swap("across", "down", axis));
  picker("down", mapped, shown.down, (axis) => swap("down", "across", axis));
}

// The maps of one variant stand beside each other.
function drawMaps() {
  maps.replaceChildren();
  const isFree = (axis) => axis !== shown.across && axis !== shown.down;
  const variant = mapped.find((axis) => axis.at === data.axes.length - 1 && isFree(axis));
  const others = mapped.filter((axis) => isFree(axis) && axis !== variant);
  for (const value of variant ? variant.values : [null]) {
    const cells = data.cells.filter((cell) => value === null || cell.at[variant.at] === value);
    if (value !== null) make(maps, "h3", { class: "variant" }, value);
    const row = make(maps, "div", { class: "maps" });
    for (const [name, found] of grouped(cells, others)) {
      const map = make(row, "div");
      if (name) make(map, "h3", {}, name);
      drawMap(map, found, shown.across, shown.down, shown.measure, choose);
    }
  }
  drawLegend();
}

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

function choose(cell, box) {
  for (const one of maps.querySelectorAll(".cell.on")) one.classList.remove("on");
  box.classList.add("on");
  chosen.hidden = false;
  chosen.replaceChildren();
  const [title, ...lines] = tipOf(cell);
  make(chosen, "h3", {}, title);
  for (const line of lines) make(chosen, "p", {}, line);
  const at = data.cells.indexOf(cell);
  for (const way of data.failures) {
    if (way.cells.includes(at)) make(chosen, "p", { class: "said" }, "fails: " + way.signature);
  }
  command(chosen, "one run", cell.command);
}

// --- ways of failing -----------------------------------------------------------------------

function drawWays(title, ways, kind) {
  if (!ways.length) return;
  const made = section(title);
  for (const way of ways) {
    const box = make(made, "div", { class: "way " + kind });
    const [low, high] = way.interval;
    const often = counted(way.number, "run") + ": " + round(way.per_1000) + " of 1,000 (" + round(low) + " to " + round(high) + ")";
    make(box, "b", {}, way.properties.join(", ") || "nothing can be said");
    make(box, "span", { class: "soft" }, "  " + often + ", in " + counted(way.cells.length, "cell"));
    make(box, "p", { class: "said" }, way.signature);
    command(box, "first", way.first.command);
    if (way.smallest) command(box, "smallest", way.smallest.command);
  }
}

drawControls();
drawMaps();
drawWays("Ways of failing", data.failures, "");
drawWays("Left open", data.unknown, "open");
drawRows(make(section("How often, how soon"), "div", { class: "wide" }), data.cells);
const whole = section("The sweep");
command(whole, "again", data.command);
command(whole, "canary", data.canary + ", which was made to fail, has failed");
command(whole, "twice", counted(data.determinism.repeated, "run") + " of " + data.runs.toLocaleString("en") + " were run twice; " + (data.determinism.differing.length || "none") + " came out differently");
for (const one of data.determinism.differing.slice(0, 20)) command(whole, "differs", one.command + " --check-determinism");
