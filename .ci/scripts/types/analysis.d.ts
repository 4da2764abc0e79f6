// The data of the page of an analysis: the summary that `watchkeeper analyze --json` prints.

type Interval = [number, number];

interface Difference {
  run: string;
  property: string;
  recorded: string;
  computed: string;
  event: number | null;
}

interface Failure {
  signature: string;
  events: number;
  per_1000: number;
  number: number;
  of: number;
  interval: Interval;
  runs_to_find: [number, number | null];
  known_limits: Record<string, string>;
  command: string;
  smallest: string;
}

interface Coverage {
  fault: string;
  step: string;
  times: number;
  runs: number;
}

interface CurvePoint {
  events: number;
  at_us: Microseconds;
  fail: number;
  of: number;
  interval: Interval;
}

interface Curve {
  run: string;
  violates: string[];
  points: CurvePoint[];
  decided: number | null;
}

interface Measures {
  run: string;
  group: string;
  rest_after_us: Microseconds | null;
  attempts: number;
  reads: number;
  changes: number;
  moves: number;
  least_moves: number | null;
  overlap_us: Microseconds | null;
  gap_us: Microseconds | null;
  zombie_window_us: Microseconds | null;
  a_second: number | null;
  accepted: number | null;
  consumed: number | null;
  lost: number | null;
  repeated: number | null;
  most_lag: number | null;
  last_lag: number | null;
  most_uncommitted: number | null;
  last_uncommitted: number | null;
  cache_hits: number | null;
  coming: number | null;
  disturbances: number;
  messages: number | null;
  operations: number;
  refused: number | null;
  unread: number | null;
  zombie_total_us: Microseconds | null;
}

interface PageData {
  agreed: Record<string, number>;
  not_computed: Record<string, number>;
  differences: Difference[];
  failures: Failure[];
  coverage: Coverage[];
  inevitable: Curve | null;
  measures: Measures[];
}
