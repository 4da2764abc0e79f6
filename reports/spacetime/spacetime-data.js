// The data of the page of space and time: rows are made of the columns that it comes in.

/** @param {number[]} differences */
function sums(differences) {
  let sum = 0;
  return differences.map((difference) => (sum += difference));
}

/** @param {number} number */
const word = (number) => data.words[number];

/**
 * @param {EventColumns} columns
 */
function eventRows({ seq, us, node, kind, session, zxid, place, detail }) {
  const [numbers, moments] = [sums(seq), sums(us)];
  /** @type {Record<Sequence, EventRow>} */
  const rows = {};
  numbers.forEach((number, at) => {
    rows[number] = [moments[at], word(node[at]), word(kind[at]), session[at], zxid[at], word(place[at]), detail[at]];
  });
  return rows;
}

/**
 * @param {ItemColumns} columns
 * @returns {Item[]}
 */
function itemRows(columns) {
  const starts = sums(columns.from);
  /** @type {(from: Microseconds, us: Microseconds | null) => Microseconds | null} */
  const after = (from, us) => (us === null ? null : from + us);
  return starts.map((from, at) => ({
    kind: /** @type {Item["kind"]} */ (word(columns.kind[at])),
    for: word(columns.for[at]),
    label: word(columns.label[at]),
    tone: /** @type {Item["tone"]} */ (word(columns.tone[at])),
    node: columns.node[at],
    server: columns.server[at],
    from,
    to: after(from, columns.to[at]),
    at: after(from, columns.at[at]),
    events: sums(columns.events[at]),
  }));
}

/** @param {number} number */
function detailText(number) {
  return data.details[number].map(word).join('"');
}

const eventAt = eventRows(data.events);
const items = itemRows(data.items);
