// The state after the chosen step, beside the path: what the step did, what may come next, whose
// each claim is, where every process stands, and the tree of znodes.

// --- the step --------------------------------------------------------------------------------

function drawStepDetails(parent, step) {
  const sentence = make(parent, "p");
  swatch(sentence, step.node);
  make(sentence, "b", {}, step.node);
  sentence.append(" " + step.text);
  if (step.fault) make(sentence, "span", { class: "fault" }, " (a fault: " + step.fault.replaceAll("_", " ") + ")");
  if (step.operation) drawAnswer(parent, step.operation, step.answer, step.full);
  if (!step.reads.length) return;
  const more = make(parent, "details");
  make(more, "summary", {}, counted(step.reads.length, "more answer") + " in the same step");
  for (const [operation, answer, , full] of step.reads) drawAnswer(more, operation, answer, full);
}

function drawAnswer(parent, operation, answer, full) {
  const line = make(parent, "p");
  make(line, "code", {}, operation);
  if (!answer) return;
  line.append(" → ");
  make(line, "code", {}, answer);
  const isLonger = full.startsWith("{") || (full.startsWith("[") && operation.startsWith("multi"));
  if (isLonger && !full.includes('"error"')) make(make(parent, "p", { class: "soft" }), "code", {}, full);
}

// --- the steps that may come -----------------------------------------------------------------

function someOrNo(number, noun) {
  return number ? counted(number, noun) : "No " + noun;
}

/** @type {[string, (choice: Choice) => boolean][]} */
const KINDS = [
  ["Steps", (choice) => !choice.step.fault && !choice.idle],
  ["Steps for which nothing waits", (choice) => !choice.step.fault && choice.idle],
  ["Faults", (choice) => Boolean(choice.step.fault)],
];

// The steps that are enabled in the state `number`, but for the one at `left`.
function drawChoices(parent, number, { left = -1, keys = false, headings = false } = {}) {
  const { choices } = states[number];
  const distance = isWhole && inPage.includes(sought) ? distancesTo(sought) : null;
  for (const [title, belongs] of KINDS) {
    const found = choices.map((choice, at) => ({ choice, at })).filter(({ choice, at }) => belongs(choice) && at !== left);
    if (!found.length) continue;
    if (headings) make(parent, "h4", {}, title);
    const list = make(parent, "ol", { class: "choices" });
    for (const { choice, at } of found) drawChoice(make(list, "li"), number, at, choice, distance, keys);
  }
}

function drawChoice(parent, number, at, choice, distance, keys) {
  const made = button(parent, "", () => takeAt(number, at));
  if (keys && at < 9) make(made, "span", { class: "key", title: "the key that takes this step" }, String(at + 1));
  if (way[number] === at) make(made, "span", { class: "key soft" }, "taken");
  writeChoice(made, choice.step);
  for (const name of choice.violates) make(made, "div", { class: "breaks" }, "✗ violates " + name);
  if (graph && choice.leadsTo === NOT_HELD) make(made, "div", { class: "soft" }, "leads out of this page");
  if (!distance || choice.violates.includes(sought)) return;
  const far = distance[choice.leadsTo];
  make(made, "div", { class: far < 0 ? "soft" : "near" }, far < 0 ? sought + " cannot be violated after it" : counted(far, "step") + " from a violation of " + sought);
}

function writeChoice(parent, step) {
  swatch(parent, step.node);
  make(parent, "b", {}, step.node);
  make(parent, "span", { class: step.fault ? "fault" : "" }, " " + step.text);
  if (!step.operation) return;
  parent.append(": ");
  make(parent, "code", {}, step.operation);
  if (step.answer) {
    parent.append(" → ");
    make(parent, "code", {}, step.answer);
  }
  if (step.reads.length) make(parent, "span", { class: "soft" }, ", then " + counted(step.reads.length, "read"));
}

function drawNext(parent) {
  const { choices, complete } = states[chosen];
  make(parent, "h3", {}, complete ? someOrNo(choices.length, "step") + " may come next" : "The step that the path takes next");
  drawChoices(parent, chosen, { keys: true, headings: complete });
  if (!complete) make(parent, "p", { class: "soft" }, choices.length ? "Other steps are not in this page." : "The path ends here.");
  make(parent, "p", { class: "refusal", role: "status" });
}

let isInsteadOpen = true;

// What else could have happened in place of the chosen step, and who could not move then.
function drawInstead(parent) {
  if (!chosen) return;
  const { choices, disabled, complete } = states[chosen - 1];
  if (!complete && !disabled.length) return;
  const more = make(parent, "details", { class: "instead" });
  more.open = isInsteadOpen;
  more.addEventListener("toggle", () => { isInsteadOpen = more.open; });
  make(more, "summary", {}, complete ? someOrNo(choices.length - 1, "other step") + " could have come instead of step " + chosen : "Instead of step " + chosen);
  drawChoices(more, chosen - 1, { left: way[chosen - 1] });
  make(more, "h4", {}, "Processes that could not move then");
  drawReasons(more, disabled);
}

// Why each process that has no step has none.
function drawReasons(parent, disabled) {
  const list = make(parent, "ul");
  for (const reason of disabled) make(list, "li", {}, reason);
  if (!disabled.length) make(list, "li", { class: "soft" }, "none: every process that runs can move");
}

// --- claims and fetches ----------------------------------------------------------------------

// A claim is shown for its owner's group alone; one of an unknown owner only where no other group
// has the partition.
function claimOf(state, { group, what }) {
  const claim = state.claims[what];
  const groups = new Set(marks.columns.filter((other) => other.what === what).map((other) => other.group));
  return claim && (groups.size < 2 || claim[0].startsWith(group + "/")) ? claim : null;
}

function isWrong(state, fetchers, claim) {
  const alive = fetchers.filter((node) => isAlive(state.processes[node]));
  const isUncovered = sought === "full cover" && breaksAt(chosen) && fetchers.length !== 1;
  return isUncovered || alive.length > 1 || alive.some((node) => !claim || node !== claim[0] || claim[1]);
}

function drawClaims(parent, state) {
  make(parent, "h3", {}, "Claims and fetches");
  if (!marks.columns.length) {
    make(parent, "p", { class: "soft" }, "no process fetches or claims anything on this path");
    return;
  }
  // Programs of a user claim znodes, not partitions.
  const place = marks.columns.every(({ what }) => what.startsWith("/")) ? "znode" : "partition";
  const table = make(parent, "table");
  const head = make(table, "tr");
  for (const word of [place, "claim: whose session", "fetched by"]) make(head, "th", {}, word);
  for (const column of marks.columns) drawClaimLine(table, state, column);
}

function drawClaimLine(table, state, column) {
  const fetchers = column.nodes.filter((node) => state.processes[node].fetches.includes(column.what));
  const claim = claimOf(state, column);
  const line = make(table, "tr", { class: isWrong(state, fetchers, claim) ? "wrong" : "" });
  make(line, "td", {}, column.what);
  const owner = make(line, "td", {}, claim ? null : "–");
  if (claim) {
    swatch(owner, claim[0]);
    owner.append(claimWords(claim));
  }
  const cell = make(line, "td", {}, fetchers.length ? null : "–");
  fetchers.forEach((node, at) => {
    if (at) cell.append(" and ");
    swatch(cell, node);
    cell.append(node + (isAlive(state.processes[node]) ? "" : " (session dead)"));
  });
}

function drawRegistry(parent, now, before) {
  const names = Object.keys(now);
  if (!names.length) return;
  make(parent, "h3", {}, "The registry");
  const table = make(parent, "table");
  for (const name of names) {
    const line = make(table, "tr");
    make(line, "td", {}, name);
    make(make(line, "td", !before || now[name] === before[name] ? {} : { class: "changed" }), "code", {}, now[name]);
  }
}

// --- processes -------------------------------------------------------------------------------

function drawProcesses(parent, state, before) {
  make(parent, "h3", {}, "Processes");
  for (const node of marks.lanes) drawProcess(parent, node, state.processes[node], before && before.processes[node]);
  const others = data.nodes.map(([name]) => name).filter((name) => !marks.lanes.includes(name));
  if (others.length) make(parent, "p", { class: "soft" }, "Unchanged since the beginning, without a lane: " + others.join(", "));
}

function drawProcess(parent, name, now, earlier) {
  const box = make(parent, "div", { class: "snapshot", style: "border-left-color:" + colourOf(name) });
  make(box, "span", { class: "node" }, name);
  const list = make(box, "dl");
  const line = (word, key, text) => {
    const isChanged = earlier && JSON.stringify(earlier[key]) !== JSON.stringify(now[key]);
    make(list, "dt", {}, word);
    make(list, "dd", isChanged ? { class: "changed" } : {}, text || "–");
  };
  line("phase", "phase", now.phase);
  if (now.phase !== "running") return;
  line("session", "session", now.session);
  line("waits for", "waits", now.waits);
  line("pending", "pending", now.pending.join("\n"));
  line("fetches", "fetches", now.fetches.join(", "));
}

// --- znodes ----------------------------------------------------------------------------------

// The tree: each znode below its parent, with its data and the session that it ends with.
function drawZnodes(parent, state, before) {
  if (!state.complete) return;
  make(parent, "h3", {}, "Znodes");
  const table = make(parent, "table", { class: "tree" });
  const earlier = before ? new Map(before.znodes.map((znode) => [znode[0], znode])) : new Map();
  const now = new Map(state.znodes.map((znode) => [znode[0], znode]));
  const gone = [...earlier.keys()].filter((path) => !now.has(path));
  const inOrder = (a, b) => natural(a.replaceAll("/", "\u0001"), b.replaceAll("/", "\u0001"));
  for (const path of [...now.keys(), ...gone].sort(inOrder)) {
    const znode = now.get(path);
    const isChanged = before && JSON.stringify(earlier.get(path)) !== JSON.stringify(znode);
    drawZnode(table, path, znode, isChanged);
  }
}

function drawZnode(table, path, znode, isChanged) {
  const [, text, owner, isStale] = znode || [];
  const line = make(table, "tr", { class: (isChanged ? "changed " : "") + (isStale ? "stale" : "") });
  const depth = path.split("/").length - 2;
  const name = make(make(line, "td", { style: `padding-left:${depth * 11}px` }), "code", { title: path });
  name.textContent = (depth ? "" : "/") + path.slice(path.lastIndexOf("/") + 1);
  if (!znode) return make(line, "td", { colspan: "2" }, "deleted by the last step");
  make(make(line, "td"), "code", {}, text);
  return make(line, "td", { class: "owner" }, owner && (isStale ? "an earlier session of " : "session of ") + owner);
}

// --- all of it -------------------------------------------------------------------------------

function drawBanners(parent, state) {
  if (given && breaksAt(chosen) && !isOffGiven(chosen)) make(parent, "p", { class: "banner violated" }, given.says + ": " + given.proof);
  else for (const name of violatedAt(chosen)) make(parent, "p", { class: "banner violated" }, "✗ " + name + " is violated");
  if (marks.cycle && isInCycle(chosen)) make(parent, "p", { class: "banner cycle" }, "This step is part of a cycle: the state after step " + marks.cycle[1] + " is the state after step " + (marks.cycle[0] - 1) + ".");
  if (state.rest && !violatedAt(chosen).length) make(parent, "p", { class: "banner rest" }, "nothing has to come any more");
}

function drawState(parent) {
  parent.replaceChildren();
  const state = states[chosen];
  const before = chosen ? states[chosen - 1] : null;
  const title = make(parent, "h2", {}, chosen ? "Step " + chosen : "Before the first step");
  if (chosen) make(title, "small", { class: "soft" }, " of " + steps.length);
  if (given && !given.violation) make(parent, "p", {}, given.says + " from the beginning: no step leads there.");
  drawBanners(parent, state);
  if (chosen) drawStepDetails(parent, steps[chosen - 1].step);
  drawNext(parent);
  drawInstead(parent);
  drawClaims(parent, state);
  drawRegistry(parent, state.registry, before && before.registry);
  drawProcesses(parent, state, before);
  drawZnodes(parent, state, before);
  if (!state.complete) return;
  make(parent, "h3", {}, "Processes that cannot move");
  drawReasons(parent, state.disabled);
}
