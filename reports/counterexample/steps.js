// Choosing a step: by a key, by the address of the page, by a link in the heading. The page of a
// counterexample has `steps`, and `show` draws the state after one of them.

let chosen = 0;

function choose(number) {
  show(number);
  location.replace("#step-" + chosen);
}

function fromHash() {
  const found = /^#step-(\d+)$/.exec(location.hash);
  const number = found ? Number(found[1]) : data.violation;
  if (number !== chosen || !number) show(number);
}

function nextFault(direction) {
  const at = steps.map((step, index) => [step.fault, index + 1]).filter(([fault]) => fault).map(([, number]) => number);
  const next = direction > 0 ? at.find((number) => number > chosen) : at.findLast((number) => number < chosen);
  if (next) choose(next);
}

const KEYS = {
  ArrowDown: () => chosen + 1, ArrowRight: () => chosen + 1, j: () => chosen + 1,
  ArrowUp: () => chosen - 1, ArrowLeft: () => chosen - 1, k: () => chosen - 1,
  PageDown: () => chosen + 10, PageUp: () => chosen - 10, Home: () => 1, End: () => steps.length,
};

addEventListener("keydown", (event) => {
  if (!KEYS[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  choose(KEYS[event.key]());
});
addEventListener("hashchange", fromHash);

// Each step named in the heading becomes a link to it.
for (const paragraph of document.querySelectorAll("header p:not(.run)")) {
  const parts = paragraph.textContent.split(/\b(step \d+)\b/);
  paragraph.replaceChildren(...parts.map((part, at) => {
    const number = at % 2 ? Number(part.slice(5)) : 0;
    return number && number <= steps.length ? make(null, "a", { href: "#step-" + number }, part) : part;
  }));
}
