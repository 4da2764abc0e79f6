// The data of the page of messages; heights are shares of the height of a chart.

// When, how high, and the value in words.
type Point = [us: Microseconds, share: number, says: string];

interface ChartLine {
  name: string;
  colour: string;
  dash: string;
  filled: boolean;
  width: number;
  pieces: Point[][];
}

interface Chart {
  title: string;
  left_out: number;
  ticks: [share: number, text: string][];
  lines: ChartLine[];
  marks: [us: Microseconds, share: number, text: string][];
}

type Entry = [from: Microseconds, to: Microseconds, kind: string, label: string, lasts: boolean];

// A name in a legend, and where it stands; a remark has no line.
interface LegendWord {
  text: string;
  line: ChartLine | null;
  x: number;
  row: number;
}

interface Flag {
  entry: Entry;
  x: number;
  wide: number;
  level: number;
}

interface PageData {
  end: Microseconds;
  breach: string;
  charts: Chart[];
  entries: Entry[];
}
