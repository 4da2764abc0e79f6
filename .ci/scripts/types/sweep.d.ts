// The data of the page of a sweep: the summary that `watchkeeper sweep --json` prints.

type Interval = [number, number];
type AxisValue = string | number | boolean;

type Distribution = Record<"number" | "least" | "median" | "p90" | "most", number>;

interface Cell {
  scenario: string;
  variant: string;
  mix: unknown[];
  parameters: Record<string, unknown>;
  met: Record<string, number>;
  known_limit: string | null;
  at: AxisValue[];
  runs: number;
  verdicts: Record<string, number>;
  violated: { number: number; per_1000: number; interval: Interval };
  time_to_rest_us: Distribution | null;
  reads: Distribution;
  moves: Distribution;
  command: string;
}

interface Example {
  run_id: string;
  seed: number;
  command: string;
}

interface Smallest {
  way: string;
  file: string;
  command: string;
  seed: number;
  runs: number;
  complete: boolean;
}

interface Signature {
  signature: string;
  number: number;
  per_1000: number;
  interval: Interval;
  cells: number[];
  known_limits: Record<string, string>;
  name: string;
  first: Example;
  smallest?: Smallest | null;
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
  values: AxisValue[];
  at: number;
}

interface PageData {
  runs: number;
  verdicts: Record<string, number>;
  axes: [name: string, values: AxisValue[]][];
  cells: Cell[];
  failures: Signature[];
  unknown: Signature[];
  determinism: { repeated: number; differing: Example[] };
  self_test: string;
  command: string;
}
