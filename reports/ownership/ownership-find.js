// Finding something in the page of ownership: a search, rows with marks only, the map of the whole
// run, and keys.

// --- which rows ----------------------------------------------------------------------------------

function filterRows() {
  panes[0] = Object.assign(panes[0], placed(partitionLines()));
  partitions.replaceChildren();
  drawAll();
  const number = data.rows.filter(isWanted).length;
  const all = counted(data.rows.length, data.words.place);
  numberFound.textContent = number === data.rows.length ? all : number.toLocaleString("en") + " of " + all;
}

function onlyRows(isOnly) {
  wanted.onlyMarked = isOnly;
  marks.setAttribute("aria-pressed", String(isOnly));
  marks.classList.toggle("on", isOnly);
  filterRows();
}

function showAllRows() {
  wanted.text = search.value = "";
  onlyRows(false);
}

const finding = make(controls, "span", { class: "set" });
const search = make(make(finding, "label", { class: "set" }, "find "), "input", { type: "search", id: "find", placeholder: data.words.place + " or " + data.words.member });
search.addEventListener("input", () => { wanted.text = search.value.trim().toLowerCase(); filterRows(); });
const marks = button(finding, "only rows with a red mark", () => onlyRows(!wanted.onlyMarked), "rows with a " + data.words.breach);
marks.id = "only-marked";
marks.setAttribute("aria-pressed", "false");
marks.disabled = !data.rows.some((row) => row.breaches.length);
const numberFound = make(finding, "span", { class: "soft", id: "found", role: "status" });
numberFound.textContent = counted(data.rows.length, data.words.place);

// --- the map ---------------------------------------------------------------------------------------

const MAP_HEIGHT = 30;
const BINS = 300;

// How many gaps begin in each part of the run, as a share of the most.
function gapShares() {
  const bins = new Array(BINS).fill(0);
  for (const row of data.rows) {
    for (const [from] of row.gaps) bins[Math.min(Math.floor((from / Math.max(data.end, 1)) * BINS), BINS - 1)]++;
  }
  const most = Math.max(...bins, 1);
  return bins.map((number) => number / most);
}

const shares = gapShares();
const breachTimes = data.rows.flatMap((row) => row.breaches.map(([from]) => from));
const map = make(null, "div", { class: "pane fixed minimap", role: "img", "aria-label": "the whole run, with its gaps and red marks; the part in view is framed" });
stage.prepend(map);

function mapX(us) {
  return LEFT + (us / Math.max(data.end, 1)) * (width - LEFT - RIGHT);
}

function drawMap() {
  const svg = fresh(map, MAP_HEIGHT);
  const bin = (width - LEFT - RIGHT) / BINS;
  draw(svg, "text", { x: LEFT - 10, y: 19, "text-anchor": "end", class: "soft" }, "whole run");
  draw(svg, "rect", { x: LEFT, y: 4, width: width - LEFT - RIGHT, height: MAP_HEIGHT - 8, fill: "var(--raised)" });
  shares.forEach((share, at) => {
    if (share) draw(svg, "rect", { x: LEFT + at * bin, y: MAP_HEIGHT - 4 - 16 * share, width: bin, height: 16 * share, fill: "var(--gap)" });
  });
  for (const [from, , , , kind] of data.entries) {
    if (kind === "fault") draw(svg, "line", { x1: mapX(from), x2: mapX(from), y1: 4, y2: MAP_HEIGHT - 4, stroke: "var(--fault)", "stroke-dasharray": "3 2" });
  }
  for (const us of breachTimes) draw(svg, "line", { x1: mapX(us), x2: mapX(us), y1: 2, y2: MAP_HEIGHT - 2, stroke: "var(--breach)", "stroke-width": 2 });
  draw(svg, "rect", { class: "view", x: mapX(view.from), y: 1, width: Math.max(mapX(view.to) - mapX(view.from), 3), height: MAP_HEIGHT - 2, rx: 3 });
}

function centreAt(event) {
  const us = ((inStage(event) - LEFT) / (width - LEFT - RIGHT)) * data.end;
  const length = view.to - view.from;
  look(us - length / 2, us + length / 2);
}

map.addEventListener("pointerdown", (event) => {
  event.stopPropagation(); // dragging on the map moves the view and selects no part of it
  map.setPointerCapture(event.pointerId);
  centreAt(event);
});
map.addEventListener("pointermove", (event) => { if (event.buttons & 1) centreAt(event); });
afterLook.push(drawMap);
addEventListener("resize", drawMap);

// --- keys ------------------------------------------------------------------------------------------

function pan(share) {
  const by = (view.to - view.from) * share;
  look(view.from + by, view.to + by);
}

function press(id) {
  const pressed = document.getElementById(id);
  if (pressed) pressed.click();
}

const KEYS = {
  "ArrowLeft": () => pan(-0.2),
  "ArrowRight": () => pan(0.2),
  "+": () => zoom(0.5),
  "-": () => zoom(2),
  "0": () => { marked = null; look(0, data.end); },
  "n": () => press("next-breach"),
  "p": () => press("previous-breach"),
  "m": () => { if (!marks.disabled) onlyRows(!wanted.onlyMarked); },
  "/": () => search.focus(),
};

addEventListener("keydown", (event) => {
  if (isTyping(event) || event.ctrlKey || event.altKey || event.metaKey || !KEYS[event.key]) return;
  KEYS[event.key]();
  event.preventDefault();
});
make(controls, "span", { class: "soft" }, "Keys: ← → move, + − zoom, 0 whole run, n p red marks, m only marked rows, / find.");
drawMap();
