// What the scripts of all pages share. The data of a page is the type `PageData` of its own file.

type Attributes = Record<string, string | number | undefined>;

// The title of a tip, then its lines.
type TipLines = () => string[];

// Seconds and other values of a trace are microseconds and numbers of events.
type Microseconds = number;
type Sequence = number;
