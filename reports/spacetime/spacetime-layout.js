// Selection and layout of the page of space and time. The moments of the shown items are put one
// below the other, at distances that grow slowly with the time between them.

const GUTTER = 112;
const LEAST_MARGIN = 60;
const LONGEST_LABEL = 250;
const NARROWEST = 88;
const WIDEST = 240;
const HEAD = 44;
const FOLD_US = 20000;
const FOLD = 54;
const LONGEST_BURST_US = 100000;
const TALLEST_STEP = 34;
const COLOURS = { ok: "var(--ok)", error: "var(--error)", lost: "var(--breach)", firing: "var(--watch)", ink: "var(--ink)", soft: "var(--soft)" };

const eventNumbers = Object.keys(eventAt).map(Number).sort((one, other) => one - other);
/** @type {Map<Sequence, number>} */
const itemOf = new Map();
items.forEach((item, at) => { for (const seq of item.events) if (!itemOf.has(seq)) itemOf.set(seq, at); });

/** @type {{ node: number | "", purposes: Set<string>, text: string }} */
const selection = { node: "", purposes: new Set(), text: "" };
/** @type {Shown[]} */
let shown = [];
/** @type {(Lane & { at: number })[]} */
let lanes = [];
/** @type {Microseconds[]} */
let moments = [];
/** @type {number[]} */
let tops = [];
/** @type {Microseconds[]} */
let bursts = [];
/** @type {number[]} */
let lowest = [];
let height = 0;
let width = 0;
let apart = 0;
let lead = 0;
let servers = 0;
let marked = -1;
/** @type {Microseconds | null} */
let momentUs = null;

// --- selection -----------------------------------------------------------------------------

/** @param {Sequence} seq */
function eventText(seq) {
  const [, node, kind, , , place, detail] = eventAt[seq];
  return node + " " + kind + " " + place + " " + detailText(detail);
}

/** @param {Item} item */
function matches(item) {
  if (selection.purposes.size && !selection.purposes.has(item.for)) return false;
  if (selection.node !== "" && item.kind !== "across" && item.node !== selection.node && item.server !== selection.node) return false;
  if (!selection.text) return true;
  if (item.label.toLowerCase().includes(selection.text)) return true;
  return item.events.some((seq) => eventText(seq).toLowerCase().includes(selection.text));
}

function filter() {
  shown = items.map((item, at) => ({ item, at })).filter(({ item }) => matches(item));
  const onLanes = shown.filter(({ item }) => item.kind !== "across");
  const used = new Set(onLanes.flatMap(({ item }) => [item.node, item.server]));
  const isFiltered = selection.node !== "" || selection.purposes.size || selection.text;
  lanes = data.lanes.map((lane, at) => ({ ...lane, at })).filter(({ at }) => !isFiltered || used.has(at));
  lay();
  statusText.textContent = isFiltered ? shown.length.toLocaleString("en") + " of " + counted(items.length, "item") : "";
}

function lay() {
  const all = new Set();
  for (const { item } of shown) {
    for (const us of [item.from, item.at, item.to]) if (us !== null) all.add(us);
  }
  moments = [...all].sort((one, other) => one - other);
  let y = 30;
  let burst = 0;
  [tops, bursts] = [[], []];
  moments.forEach((us, at) => {
    const pause = at ? us - moments[at - 1] : Infinity;
    if (at) y += step(pause);
    if (pause > FOLD_US || us - burst > LONGEST_BURST_US) burst = us;
    tops.push(y);
    bursts.push(burst);
  });
  height = y + 60;
  remember();
  servers = lanes.findIndex((lane) => lane.kind === "server");
  lead = margin(lanes[0], -1);
  const margins = GUTTER + lead + margin(lanes[lanes.length - 1], 1);
  const room = (pane.clientWidth - margins) / Math.max(lanes.length, 1);
  apart = Math.min(Math.max(room, NARROWEST), WIDEST);
  width = margins + lanes.length * apart;
  pane.scrollTop = Math.min(pane.scrollTop, height);
  drawHead();
  drawPane();
}

/** @param {Microseconds} us */
function step(us) {
  if (us > FOLD_US) return FOLD;
  return Math.min(8 + 5 * Math.log2(1 + us / 60), TALLEST_STEP);
}

// The number of the first of some ascending numbers that is not below another one.
/**
 * @param {number[]} ascending
 * @param {number} least
 */
function firstFrom(ascending, least) {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The place of any moment, also between those shown.
/** @param {Microseconds} us */
function yOf(us) {
  const at = firstFrom(moments, us);
  if (moments[at] === us) return tops[at];
  if (at === 0) return 12;
  if (at === moments.length) return height - 30;
  const [from, to] = [moments[at - 1], moments[at]];
  return tops[at - 1] + ((us - from) / (to - from)) * (tops[at] - tops[at - 1]);
}

/** @param {number} y */
function momentAfter(y) {
  return firstFrom(tops, y);
}

// The shown items come in the order of their begins. Of each, it is remembered how far down it and
// those before it reach: the first one that can be in sight is then found without looking at all.
/** @type {number[]} */
let begins = [];

function remember() {
  shown.sort((one, other) => one.item.from - other.item.from || one.at - other.at);
  begins = shown.map(({ item }) => yOf(item.from) - 14);
  let deepest = -Infinity;
  lowest = shown.map(({ item }) => (deepest = Math.max(deepest, extent(item)[1])));
}

/**
 * @param {number} above
 * @param {number} below
 */
function itemsBetween(above, below) {
  const some = shown.slice(firstFrom(lowest, above), firstFrom(begins, below));
  return some.filter(({ item }) => extent(item)[1] >= above).sort((one, other) => one.at - other.at);
}

/** @param {number} number */
function xOf(number) {
  const at = lanes.findIndex((lane) => lane.at === number);
  return at < 0 ? null : GUTTER + lead + (at + 0.5) * apart;
}

// --- labels --------------------------------------------------------------------------------

const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
ruler.font = "11px " + getComputedStyle(document.body).fontFamily;
/** @type {Map<string, number>} */
const lengths = new Map();

/** @param {string} text */
function lengthOf(text) {
  const known = lengths.get(text);
  if (known !== undefined) return known;
  const length = ruler.measureText(text).width;
  lengths.set(text, length);
  return length;
}

// The side of its lane on which a mark has its label: away from the servers.
/** @param {number} number */
function sideOf(number) {
  const at = lanes.findIndex((lane) => lane.at === number);
  return servers >= 0 && at < servers ? -1 : 1;
}

// Marks of one lane and one moment, which share a line of text.
/** @param {Shown[]} some */
function markGroups(some) {
  /** @type {Map<string, Shown[]>} */
  const groups = new Map();
  for (const one of some) {
    if (one.item.kind !== "mark" && one.item.kind !== "rebalance") continue;
    const key = one.item.node + " " + one.item.from;
    const group = groups.get(key);
    if (group) group.push(one);
    else groups.set(key, [one]);
  }
  return [...groups.values()];
}

/** @param {Shown[]} together */
function labelOf(together) {
  return together.map(({ item }) => item.label).join(", ");
}

// The room beside the outermost lane for the labels of its marks.
/**
 * @param {(Lane & { at: number }) | undefined} lane
 * @param {number} side
 */
function margin(lane, side) {
  if (!lane || sideOf(lane.at) !== side) return LEAST_MARGIN;
  const own = markGroups(shown.filter(({ item }) => item.node === lane.at));
  const longest = Math.max(0, ...own.map((together) => lengthOf(labelOf(together))));
  return Math.max(LEAST_MARGIN, Math.min(longest, LONGEST_LABEL) + 24);
}
