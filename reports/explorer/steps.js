// Choosing a step of a path: by a key, by a link in the heading, the next fault. A page with a path
// has `steps`, and its function `choose` shows the state after one of them, or before the first.

let chosen = 0;

/** @param {number} direction */
function nextFault(direction) {
  const at = steps.flatMap((step, index) => (isFault(step) ? [index + 1] : []));
  const next = direction > 0 ? at.find((number) => number > chosen) : at.findLast((number) => number < chosen);
  if (next) choose(next);
}

/** @type {Record<string, () => number>} */
const KEYS = {
  ArrowDown: () => chosen + 1, ArrowRight: () => chosen + 1, j: () => chosen + 1,
  ArrowUp: () => chosen - 1, ArrowLeft: () => chosen - 1, k: () => chosen - 1,
  PageDown: () => chosen + 10, PageUp: () => chosen - 10, Home: () => 0, End: () => steps.length,
};

/** @param {KeyboardEvent} event */
function isCommand(event) {
  return !event.ctrlKey && !event.altKey && !event.metaKey && !isTyping(event);
}

addEventListener("keydown", (event) => {
  if (!KEYS[event.key] || !isCommand(event)) return;
  event.preventDefault();
  choose(Math.min(Math.max(KEYS[event.key](), 0), steps.length));
});

// Each step named in the heading becomes a link to it.
/** @param {number} most */
function linkSteps(most) {
  for (const paragraph of document.querySelectorAll("header p:not(.run)")) {
    const parts = paragraph.textContent.split(/\b(step \d+)\b/);
    paragraph.replaceChildren(...parts.map((part, at) => {
      const number = at % 2 ? Number(part.slice(5)) : 0;
      return number && number <= most ? make(null, "a", { href: "#step-" + number }, part) : part;
    }));
  }
}

// The buttons that go from step to step; returns the words between them.
/** @param {Element} parent */
function stepButtons(parent) {
  const moves = make(parent, "span", { class: "set" });
  button(moves, "‹", () => choose(Math.max(chosen - 1, 0)), "the step before (arrow up)").id = "before";
  const words = make(moves, "span");
  button(moves, "›", () => choose(Math.min(chosen + 1, steps.length)), "the next step (arrow down)").id = "after";
  return words;
}
