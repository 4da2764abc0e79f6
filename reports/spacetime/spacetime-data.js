// The data of the page of space and time: rows are made of the columns that it comes in.

function sums(differences) {
  let sum = 0;
  return differences.map((difference) => (sum += difference));
}

const word = (number) => data.words[number];

function eventRows({ seq, us, node, kind, session, zxid, place, detail }) {
  const [numbers, moments] = [sums(seq), sums(us)];
  const rows = {};
  numbers.forEach((number, at) => {
    rows[number] = [moments[at], word(node[at]), word(kind[at]), session[at], zxid[at], word(place[at]), detail[at]];
  });
  return rows;
}

function itemRows(columns) {
  const starts = sums(columns.from);
  const after = (from, us) => (us === null ? null : from + us);
  return starts.map((from, at) => ({
    kind: word(columns.kind[at]),
    for: word(columns.for[at]),
    label: word(columns.label[at]),
    tone: word(columns.tone[at]),
    node: columns.node[at],
    server: columns.server[at],
    from,
    to: after(from, columns.to[at]),
    at: after(from, columns.at[at]),
    events: sums(columns.events[at]),
  }));
}

function detailText(number) {
  return data.details[number].map(word).join('"');
}

data.events = eventRows(data.events);
data.items = itemRows(data.items);
