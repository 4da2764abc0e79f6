// Where states come from: the page holds them, or the command that serves the page has them.
// A place is a list of choices: the number of the step that is taken in each state on the way.

const NOT_HELD = -1; // the number of a state that the page does not hold

const graph = data.graph;

function part(number) {
  return graph.parts[number];
}

// The states of the page that were put together already, by number.
const whole = new Map();

// A state of the page, with its parts in place of their numbers.
function stateOf(number) {
  if (!whole.has(number)) {
    const state = graph.states[number];
    whole.set(number, {
      ...state,
      number,
      processes: Object.fromEntries(Object.entries(state.processes).map(([name, at]) => [name, part(at)])),
      claims: part(state.claims),
      registry: part(state.registry),
      znodes: state.znodes.map(part),
      choices: state.choices.map(([step, violates, idle, leadsTo]) => ({ step: part(step), violates: part(violates), idle, leadsTo })),
      disabled: state.disabled.map(part),
    });
  }
  return whole.get(number);
}

// Whether every state that can be reached is in the page.
const isWhole = graph !== null && graph.states.every((state) => state.complete && state.choices.every(([, , , end]) => end !== NOT_HELD));

// Whether the page holds a path, without the other steps that are enabled on it.
const isAlone = graph !== null && graph.states.some((state) => !state.complete);

function beyond() {
  return "The state after this step is not in this page; this command shows it: " + data.command;
}

// The states along a way, the first one first; an error with a sentence where one is not to be had.
async function statesOf(way) {
  return graph ? statesInPage(way) : servedStates(way);
}

function statesInPage(way) {
  const found = [stateOf(0)];
  for (const choice of way) {
    const taken = found.at(-1).choices[choice];
    if (!taken) throw new Error("the address names a step that is not enabled there: it is of another scenario or version");
    if (taken.leadsTo === NOT_HELD) throw new Error(beyond());
    found.push(stateOf(taken.leadsTo));
  }
  return found;
}

// The way that was served last, and its states: only those that differ are served again.
let served = { way: [], states: [] };

function sharedLength(one, other) {
  const differs = one.findIndex((choice, at) => choice !== other[at]);
  return differs < 0 ? one.length : differs;
}

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
function distancesTo(property) {
  const before = graph.states.map(() => []);
  const distance = graph.states.map(() => -1);
  graph.states.forEach((state, at) => state.choices.forEach(([, , , end]) => { if (end !== NOT_HELD) before[end].push(at); }));
  let near = graph.states.map((_, at) => at).filter((at) => graph.states[at].violates.includes(property));
  for (const at of near) distance[at] = 0;
  const breaks = (at) => graph.states[at].choices.some(([, violates]) => part(violates).includes(property));
  const byStep = graph.states.map((_, at) => at).filter((at) => distance[at] < 0 && breaks(at));
  for (let steps = 1; near.length || steps === 1; steps++) {
    const next = [...near.flatMap((at) => before[at]), ...(steps === 1 ? byStep : [])].filter((at) => distance[at] < 0);
    near = [...new Set(next)];
    for (const at of near) distance[at] = steps;
  }
  return distance;
}

// The choices that lead from a state to the nearest violation of a property; null without one.
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
  const found = new Set();
  for (const state of graph.states) {
    state.violates.forEach((name) => found.add(name));
    for (const [, violates] of state.choices) part(violates).forEach((name) => found.add(name));
  }
  return [...found].sort();
}
