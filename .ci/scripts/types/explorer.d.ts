// The data of the page on which a search is browsed. A graph has each part that several states
// share once: its states have the numbers of parts.

interface Process {
  phase: string;
  session: string;
  waits: string;
  pending: string[];
  fetches: string[];
}

type Claim = [owner: string, isEarlier: boolean];
type Znode = [path: string, text: string, owner: string, isEarlier: boolean];
type Answer = [operation: string, answer: string, failed: boolean, full: string];

interface Step {
  node: string;
  does: string;
  then: string;
  text: string;
  fault: string;
  operation: string;
  answer: string;
  failed: boolean;
  full: string;
  loses: boolean;
  reads: Answer[];
}

// A step that is enabled; `leadsTo` is the number of a state where the page holds states.
interface Choice {
  step: Step;
  violates: string[];
  idle: boolean;
  leadsTo: number;
}

interface State {
  number: number;
  processes: Record<string, Process>;
  claims: Record<string, Claim>;
  registry: Record<string, string>;
  znodes: Znode[];
  choices: Choice[];
  disabled: string[];
  violates: string[];
  rest: boolean;
  complete: boolean;
}

interface NumberedState {
  processes: Record<string, number>;
  claims: number;
  registry: number;
  znodes: number[];
  choices: [step: number, violates: number, idle: boolean, leadsTo: number][];
  disabled: number[];
  violates: string[];
  rest: boolean;
  complete: boolean;
}

interface Graph {
  parts: unknown[];
  states: NumberedState[];
}

type Cycle = [first: number, last: number];

// A path to a violation.
interface Path {
  choices: number[];
  says: string;
  proof: string;
  violation: number;
  cycle: Cycle | null;
}

// What one process did with one partition or znode, from a state until another one.
interface Moment {
  node: string;
  what: string;
  state: string;
}

interface Bar extends Moment {
  begins: number;
  ends: number | null;
  track: number;
}

interface Column {
  group: string;
  what: string;
  nodes: string[];
  bars: Bar[];
}

interface Marks {
  columns: Column[];
  claimed: Bar[];
  lanes: string[];
  cycle: Cycle | null;
  shared: Bar[];
  notifications: Bar[];
}

interface PageData {
  nodes: [name: string, colour: string][];
  consumers: string[];
  unknown_owner: string;
  strict: string;
  paths: Record<string, Path>;
  opens: string;
  command: string;
  graph: Graph | null;
}
