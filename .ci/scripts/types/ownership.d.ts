// The data of the page of ownership; members are named by their number.

type Span = [from: Microseconds, to: Microseconds, first: Sequence, last: Sequence];
type MemberSpan = [...Span, member: number];
type StateSpan = [...Span, state: string];
type Breach = [...Span, members: number[], zombies: number[], isSplit: boolean];
type Entry = [...Span, kind: string, label: string, lasts: boolean];
type Member = [name: string, colour: string, ink: string, stripes: number];

interface Row {
  place: string[];
  fetched: MemberSpan[];
  held: MemberSpan[];
  breaches: Breach[];
  gaps: Span[];
}

// A line of a pane: a title, a row of partitions, or the sessions of a member.
interface Line {
  title?: string;
  row?: Row;
  at?: number;
  number?: number;
  states?: StateSpan[];
  label?: string;
  height: number;
  top: number;
}

type RowLine = Line & { row: Row };
type StripLine = Line & { number: number; states: StateSpan[]; label: string };

interface Pane {
  element: HTMLElement;
  lines: Line[];
  height: number;
  drawLine: (parent: SVGElement, line: Line) => void;
}

// What a jump leads to.
interface Target {
  at: number;
  span: Span | Breach;
}

// How a state of a session is drawn; `line` is the height of a line in its middle.
interface StateLook {
  share: number;
  look: (colour: string) => Attributes;
  over?: string;
  thinnest?: number;
  line?: number;
}

interface PageData {
  end: Microseconds;
  words: {
    place: string;
    member: string;
    members: string;
    does: string;
    holds: string;
    dead: string;
    together: string;
    breach: string;
    split: string;
    split_name: string;
    zombie: string;
    zombie_name: string;
    paused: string;
    never: string;
    nothing: string;
    banner: string;
    unharmed: string;
    has_gaps: boolean;
  };
  closer: [Microseconds, Microseconds] | null;
  stripes: { at: number[]; high: number; looks: number };
  members: Member[];
  rows: Row[];
  strips: [member: number, states: StateSpan[], label: string][];
  entries: Entry[];
}
