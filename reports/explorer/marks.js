// The marks of the picture of a path: what was fetched, claimed and notified, and when.
//
// Time is counted in steps. The state before the first step has number 0, the state after a step
// has the number of that step. An interval includes the state `begins` and excludes the state
// `ends`; one without an end lasts beyond the last step.

const natural = new Intl.Collator("en", { numeric: true }).compare;

// The group of a member, by its name.
function groupOf(node) {
  return node.slice(0, Math.max(0, node.lastIndexOf("/")));
}

// The intervals in which a (node, what) kept one state. A moment is a list of them, for the state
// of a path with its number; a change of state ends an interval and begins the next.
function intervals(moments) {
  const found = [];
  const since = new Map();
  moments.forEach((moment, number) => {
    const now = new Map(moment.map((one) => [one.node + "\n" + one.what, one]));
    for (const [key, one] of since) {
      if (now.has(key) && now.get(key).state === one.state) continue;
      found.push({ ...one, ends: number });
      since.delete(key);
    }
    for (const [key, one] of now) if (!since.has(key)) since.set(key, { ...one, begins: number, ends: null });
  });
  found.push(...since.values());
  return found.sort((a, b) => natural(a.what, b.what) || a.begins - b.begins || natural(a.node, b.node));
}

function isAlive(process) {
  return process.session.startsWith("alive");
}

function fetching(state) {
  return Object.entries(state.processes).flatMap(([node, process]) => process.fetches.map((what) => ({ node, what, state: isAlive(process) ? "alive" : "dead" })));
}

// Which process fetched which partition when; the state is that of its session.
function fetchedOn(states) {
  return intervals(states.map(fetching));
}

// Which process had a claim on which partition when; the state says whether with an earlier session.
function claimedOn(states) {
  return intervals(states.map(({ claims }) => Object.entries(claims).map(([what, [node, isEarlier]]) => ({ node, what, state: isEarlier ? "earlier" : "" }))));
}

// When several members of one group fetched one partition; the node is the group. Only the strict
// property forbids a second owner whose session is dead.
function sharedOn(states, property) {
  return intervals(states.map((state) => {
    const owners = new Map();
    for (const { node, what, state: session } of fetching(state)) {
      if (session !== "alive" && property !== data.strict) continue;
      const key = groupOf(node) + "\n" + what;
      owners.set(key, (owners.get(key) || 0) + 1);
    }
    return [...owners].filter(([, number]) => number > 1).map(([key]) => ({ node: key.split("\n")[0], what: key.split("\n")[1], state: "" }));
  }));
}

// A track for each bar of one column, so that simultaneous bars are side by side.
function tracksFor(bars) {
  const last = [];
  return bars.map((bar) => {
    const free = [...last.keys()].filter((at) => last[at].ends !== null && last[at].ends <= bar.begins);
    // A node whose state changes (its session dies) has two adjacent bars: one track for both.
    const same = free.filter((at) => last[at].node === bar.node && last[at].ends === bar.begins);
    const track = [...same, ...free, last.length][0];
    last[track] = bar;
    return track;
  });
}

// The partitions of each group that a process fetches or claims, each with its members.
function columnsOf(fetched, claimed) {
  const found = new Map();
  const column = (group, what) => found.get(group + "\n" + what) || found.set(group + "\n" + what, { group, what, nodes: new Set() }).get(group + "\n" + what);
  for (const bar of fetched) column(groupOf(bar.node), bar.what).nodes.add(bar.node);
  for (const claim of claimed) if (claim.node !== data.unknown_owner) column(groupOf(claim.node), claim.what);
  // A claim of an unknown owner has no group: it gets a column only if no group has one.
  for (const claim of claimed) if (![...found.values()].some(({ what }) => what === claim.what)) column("", claim.what);
  return [...found.values()]
    .sort((a, b) => natural(a.group, b.group) || natural(a.what, b.what))
    .map((one) => ({ ...one, nodes: [...one.nodes].sort(natural) }));
}

// The numbers of the columns of a claim; one of an unknown owner is drawn for every group.
function columnsOfClaim(claim, columns) {
  const belongs = ({ group, what }) => what === claim.what && (claim.node === data.unknown_owner || group === groupOf(claim.node));
  return [...columns.keys()].filter((at) => belongs(columns[at]));
}

// The processes that get a lane: consumers, and any other that acts or changes on the path.
function lanesOf(states, steps) {
  const always = new Set([...data.consumers, ...steps.map(({ step }) => step.node)]);
  const changes = (name) => new Set(states.map((state) => JSON.stringify(state.processes[name]))).size > 1;
  return data.nodes.map(([name]) => name).filter((name) => always.has(name) || changes(name));
}

// --- notifications ---------------------------------------------------------------------------

// The watch events that a process has not received yet; each begins with a path.
function eventsFor(process) {
  return process.pending.filter((event) => event.startsWith("/"));
}

// The watch events that ZooKeeper sent, from the step that sent each. The state is "received",
// "lost" or, for an event without an end, "on its way".
function notificationsOn(states, steps) {
  const found = data.nodes.flatMap(([name]) => notificationsTo(name, states, steps));
  return found.sort((a, b) => a.begins - b.begins || natural(a.node, b.node) || natural(a.what, b.what));
}

function notificationsTo(node, states, steps) {
  const found = [];
  let pending = eventsFor(states[0].processes[node]).map((what) => ({ node, what, begins: 0 }));
  steps.forEach(({ step }, at) => {
    // States hold texts without identity. Equal texts are matched oldest first; those left over
    // after the match are new.
    const unmatched = eventsFor(states[at + 1].processes[node]);
    const isKept = ({ what }) => unmatched.includes(what) && unmatched.splice(unmatched.indexOf(what), 1).length > 0;
    const kept = [];
    for (const one of pending) {
      if (isKept(one)) kept.push(one);
      else found.push({ ...one, ends: at + 1, state: step.node === node && step.loses ? "lost" : "received" });
    }
    pending = [...kept, ...unmatched.map((what) => ({ node, what, begins: at + 1 }))];
  });
  return [...found, ...pending.map((one) => ({ ...one, ends: null, state: "on its way" }))];
}

// --- what has changed ------------------------------------------------------------------------

// Whose a claim is, and whether it is of a session that its owner does not use any more.
function claimWords([owner, isEarlier]) {
  return isEarlier ? "an earlier session of " + owner : owner;
}

// A sentence for each change of fetching, claims and data from a state to the next.
function changesOf(before, after) {
  const sentences = [];
  for (const [node, { fetches }] of Object.entries(after.processes)) {
    const was = before.processes[node].fetches;
    const begun = fetches.filter((what) => !was.includes(what));
    const ended = was.filter((what) => !fetches.includes(what));
    if (begun.length) sentences.push(node + " fetches " + begun.join(", "));
    if (ended.length) sentences.push(node + " stops " + ended.join(", "));
  }
  const namesIn = (part) => [...new Set([...Object.keys(before[part]), ...Object.keys(after[part])])].sort(natural);
  for (const what of namesIn("claims")) {
    const [was, now] = [before.claims[what], after.claims[what]];
    if (!now) sentences.push(what + ": no claim any more");
    else if (!was || was[0] !== now[0]) sentences.push(what + ": " + now[0] + " claims");
    else if (was[1] !== now[1]) sentences.push(what + ": " + (now[1] ? "the claim is of an earlier session now" : now[0] + " claims"));
  }
  for (const name of namesIn("registry")) {
    const now = after.registry[name];
    if (now !== before.registry[name]) sentences.push(name + ": " + (now === undefined ? "nothing any more" : now));
  }
  return sentences;
}

// How many steps at the beginning set up what the path is about: before the first one that fetches,
// claims, is a fault or violates a property.
function setUpOf(states, steps) {
  const isAbout = ({ step, violates }, at) => {
    const [before, after] = [states[at], states[at + 1]];
    return step.fault || violates.length > 0 || JSON.stringify([fetching(before), before.claims]) !== JSON.stringify([fetching(after), after.claims]);
  };
  const first = steps.findIndex(isAbout);
  return first < 0 ? 0 : first;
}
