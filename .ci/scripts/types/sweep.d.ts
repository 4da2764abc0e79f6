// The data of the page of a sweep: the summary that `watchkeeper sweep --json` prints.

type Interval = [number, number];

interface Cell {
  at: (string | number | boolean)[];
  runs: number;
  verdicts: Record<string, number>;
  violated: { number: number; per_1000: number; interval: Interval };
  time_to_rest_us: Record<"least" | "median" | "p90" | "most", Microseconds> | null;
  reads: { median: number };
  moves: { median: number };
  command: string;
}

interface Signature {
  signature: string;
  number: number;
  per_1000: number;
  interval: Interval;
  cells: number[];
  known_limits: Record<string, string>;
  first: { command: string };
  smallest?: { command: string } | null;
}

// What the colour of a cell shows.
interface Measure {
  name: string;
  of: (cell: Cell) => number | null;
  to: number[];
  most?: number;
  show: (value: number) => string;
}

interface Axis {
  name: string;
  values: (string | number | boolean)[];
  at: number;
}

interface PageData {
  runs: number;
  verdicts: Record<string, number>;
  axes: [name: string, values: (string | number | boolean)[]][];
  cells: Cell[];
  failures: Signature[];
  unknown: Signature[];
  determinism: { repeated: number; differing: { command: string }[] };
  self_test: string;
  command: string;
}
