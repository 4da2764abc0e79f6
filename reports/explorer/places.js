// Where states come from: the page holds all of them, or the command that serves it has them.
// A place is a list of choices: the number of the step that is taken in each state on the way.

const graph = data.graph;

function part(number) {
  return graph.parts[number];
}

// A state of the page, with its parts in place of their numbers.
function whole(state) {
  return {
    processes: Object.fromEntries(Object.entries(state.processes).map(([name, at]) => [name, part(at)])),
    znodes: state.znodes.map(part),
    choices: state.choices.map(([step, violates, idle, leadsTo]) => ({ step: part(step), violates: part(violates), idle, leadsTo })),
    disabled: state.disabled.map(part),
    violates: state.violates,
    rest: state.rest,
  };
}

// The state of a place, and the steps on the way there; an error with a sentence where there is none.
async function placeOf(way) {
  if (graph) return placeInPage(way);
  const answer = await fetch("state?way=" + way.join("."));
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

function placeInPage(way) {
  let at = 0;
  const steps = [];
  for (const choice of way) {
    const taken = graph.states[at].choices[choice];
    if (!taken) throw new Error("the address names a step that is not enabled there: it is of another scenario or version");
    steps.push(part(taken[0]));
    at = taken[3];
  }
  return { steps, state: whole(graph.states[at]), number: at };
}

// --- the nearest violation of a property, in a page that holds all states --------------------

// The number of steps from each state to the nearest violation of a property; -1 where none is near.
function distancesTo(property) {
  const before = graph.states.map(() => []);
  const distance = graph.states.map(() => -1);
  graph.states.forEach((state, at) => state.choices.forEach(([, , , end]) => before[end].push(at)));
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

// The choices that lead from a state to the nearest violation of a property.
function wayTo(property, from) {
  const distance = distancesTo(property);
  const way = [];
  for (let at = from; distance[at] > 0;) {
    const { choices } = graph.states[at];
    const breaking = distance[at] === 1 ? choices.findIndex(([, violates]) => part(violates).includes(property)) : -1;
    const choice = breaking >= 0 ? breaking : choices.findIndex(([, , , end]) => distance[end] === distance[at] - 1);
    way.push(choice);
    if (breaking >= 0) break;
    at = choices[choice][3];
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
