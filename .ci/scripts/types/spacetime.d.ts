// The data of the page of space and time. It comes in columns, and is rows from
// `spacetime-data.js` on; lanes are named by their number.

type EventRow = [
  us: Microseconds,
  node: string,
  kind: string,
  session: number,
  zxid: number,
  place: string,
  detail: number,
];
type EventColumns = Record<
  "seq" | "us" | "node" | "kind" | "session" | "zxid" | "place" | "detail",
  number[]
>;

interface Item {
  kind: "operation" | "firing" | "rebalance" | "mark" | "across";
  for: string;
  label: string;
  tone: "ok" | "error" | "lost" | "";
  node: number;
  server: number;
  from: Microseconds;
  to: Microseconds | null;
  at: Microseconds | null;
  events: Sequence[];
}

type ItemColumns = Record<"kind" | "for" | "label" | "tone" | "node" | "server" | "from", number[]> & {
  to: (number | null)[];
  at: (number | null)[];
  events: number[][];
};

// An item that is shown, with its number.
interface Shown {
  item: Item;
  at: number;
}

type LaneState = [from: Microseconds, to: Microseconds, state: string];

interface Lane {
  name: string;
  kind: string;
  process: string;
  colour: string;
  states: LaneState[];
}

// A part of the picture, in its pixels.
interface Part {
  top: number;
  bottom: number;
  left: number;
}

type TextPlace = [x: number, y: number, anchor: string];

interface PageData {
  end: Microseconds;
  together: Microseconds;
  lanes: Lane[];
  words: string[];
  details: number[][];
  breaches: Sequence[];
  events: EventColumns;
  items: ItemColumns;
}
