// Where states come from: the page holds them, or the command that serves the page has them.
// A place is a list of choices: the number of the step that is taken in each state on the way.

const NOT_HELD = -1; // the number of a state that the page does not hold

const graph = data.graph;
const inGraph = graph ? graph.states : []; // the states that the page holds

/**
 * A part of states, of the type that its place has.
 * @template Part
 * @param {number} number
 */
function part(number) {
  return /** @type {Part} */ (graph && graph.parts[number]);
}

/**
 * The properties that a step violates.
 * @param {NumberedState["choices"][number]} choice
 * @returns {string[]}
 */
function violatedBy([, violates]) {
  return part(violates);
}

// The states of the page that were put together already, by number.
/** @type {Map<number, State>} */
const whole = new Map();

/**
 * A state of the page, with its parts in place of their numbers.
 * @param {number} number
 * @returns {State}
 */
function stateOf(number) {
  const known = whole.get(number);
  if (known) return known;
  const state = inGraph[number];
  /** @type {State} */
  const made = {
    ...state,
    number,
    processes: Object.fromEntries(Object.entries(state.processes).map(([name, at]) => [name, part(at)])),
    claims: part(state.claims),
    registry: part(state.registry),
    znodes: state.znodes.map((znode) => part(znode)),
    choices: state.choices.map(([step, violates, idle, leadsTo]) => ({ step: part(step), violates: part(violates), idle, leadsTo })),
    disabled: state.disabled.map((sentence) => part(sentence)),
  };
  whole.set(number, made);
  return made;
}

// Whether every state that can be reached is in the page.
const isWhole = graph !== null && inGraph.every((state) => state.complete && state.choices.every(([, , , end]) => end !== NOT_HELD));

// Whether the page holds a path, without the other steps that are enabled on it.
const isAlone = graph !== null && inGraph.some((state) => !state.complete);

function beyond() {
  return "The state after this step is not in this page; this command shows it: " + data.command;
}

// The states along a way, the first one first; an error with a sentence where one is not to be had.
/**
 * @param {number[]} way
 * @returns {Promise<State[]>}
 */
async function statesOf(way) {
  return graph ? statesInPage(way) : servedStates(way);
}

/** @param {number[]} way */
function statesInPage(way) {
  const found = [stateOf(0)];
  for (const choice of way) {
    const taken = found[found.length - 1].choices[choice];
    if (!taken) throw new Error("the address names a step that is not enabled there: it is of another scenario or version");
    if (taken.leadsTo === NOT_HELD) throw new Error(beyond());
    found.push(stateOf(taken.leadsTo));
  }
  return found;
}

// The way that was served last, and its states: only those that differ are served again.
/** @type {{ way: number[], states: State[] }} */
let served = { way: [], states: [] };

/**
 * @param {number[]} one
 * @param {number[]} other
 */
function sharedLength(one, other) {
  const differs = one.findIndex((choice, at) => choice !== other[at]);
  return differs < 0 ? one.length : differs;
}

/** @param {number[]} way */
async function servedStates(way) {
  const known = served.states.slice(0, sharedLength(way, served.way) + 1);
  if (known.length > way.length) return known;
  const answer = await fetch(`states?way=${way.join(".")}&from=${known.length}`);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  served = { way, states: [...known, ...found.states] };
  return served.states;
}

// --- the nearest violation of a property, in a page that holds states ------------------------

// The number of steps from each state to the nearest violation of a property that the page holds;
// -1 where none is near.
/** @param {string} property */
function distancesTo(property) {
  /** @type {number[][]} */
  const before = inGraph.map(() => []);
  const distance = inGraph.map(() => -1);
  inGraph.forEach((state, at) => state.choices.forEach(([, , , end]) => { if (end !== NOT_HELD) before[end].push(at); }));
  let near = inGraph.map((_, at) => at).filter((at) => inGraph[at].violates.includes(property));
  for (const at of near) distance[at] = 0;
  const breaks = (at) => inGraph[at].choices.some((choice) => violatedBy(choice).includes(property));
  const byStep = inGraph.map((_, at) => at).filter((at) => distance[at] < 0 && breaks(at));
  for (let steps = 1; near.length || steps === 1; steps++) {
    const next = [...near.flatMap((at) => before[at]), ...(steps === 1 ? byStep : [])].filter((at) => distance[at] < 0);
    near = [...new Set(next)];
    for (const at of near) distance[at] = steps;
  }
  return distance;
}

// The choices that lead from a state to the nearest violation of a property; null without one.
/**
 * @param {string} property
 * @param {number} from
 */
function wayTo(property, from) {
  const distance = distancesTo(property);
  if (distance[from] < 0) return null;
  const way = [];
  for (let at = from; distance[at] > 0;) {
    const { choices } = stateOf(at);
    const breaking = distance[at] === 1 ? choices.findIndex(({ violates, leadsTo }) => leadsTo !== NOT_HELD && violates.includes(property)) : -1;
    const choice = breaking >= 0 ? breaking : choices.findIndex(({ leadsTo }) => leadsTo !== NOT_HELD && distance[leadsTo] === distance[at] - 1);
    if (choice < 0) return null;
    way.push(choice);
    if (breaking >= 0) break;
    at = choices[choice].leadsTo;
  }
  return way;
}

// Every property that a state or a step of the page violates.
function violatedInPage() {
  /** @type {Set<string>} */
  const found = new Set();
  for (const state of inGraph) {
    state.violates.forEach((name) => found.add(name));
    for (const choice of state.choices) violatedBy(choice).forEach((name) => found.add(name));
  }
  return [...found].sort();
}
