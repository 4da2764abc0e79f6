// The axis of the page of space and time, and the pauses that are folded.

/**
 * @param {SVGElement} svg
 * @param {number} first
 * @param {number} last
 */
function drawFolds(svg, first, last) {
  for (let at = Math.max(first, 1); at < Math.min(last + 1, moments.length); at++) {
    if (moments[at] - moments[at - 1] <= FOLD_US) continue;
    draw(svg, "rect", { x: 0, y: tops[at] - FOLD / 2 - 14, width, height: 17, fill: "var(--raised)" });
  }
}

// The axis stays at the left edge, above everything that is scrolled below it.
function drawTime() {
  axis.replaceChildren();
  const { top, bottom, left: edge } = view();
  const [first, last] = [momentAfter(top - BEYOND), momentAfter(bottom + BEYOND)];
  const right = edge + GUTTER - 14;
  draw(axis, "rect", { x: edge, y: top - BEYOND, width: GUTTER - 6, height: bottom - top + 2 * BEYOND, fill: "var(--paper)", "fill-opacity": 0.92 });
  const ceiling = top;
  let written = ceiling;
  let isNamed = false;
  for (let at = first; at < last; at++) {
    const [us, y] = [moments[at], tops[at]];
    const pause = at ? us - moments[at - 1] : Infinity;
    const isFold = pause > FOLD_US;
    const burst = bursts[at];
    const isFirst = burst === us;
    if (y < ceiling + (isFirst ? 4 : 12)) continue;
    if (!isNamed && !isFirst) { // above the first visible offsets, the time that they count from
      isNamed = true;
      written = ceiling + 12;
      draw(axis, "text", { x: right, y: written + 4, "text-anchor": "end", class: "title" }, seconds(burst));
    }
    if (isFold && at) {
      draw(axis, "text", { x: right, y: y - FOLD / 2 - 1, "text-anchor": "end", class: "soft" }, duration(pause) + " pass");
    }
    if (!isFirst && y - written < 15) continue;
    written = y;
    isNamed = true;
    draw(axis, "text", { x: right, y: y + 4, "text-anchor": "end", class: isFirst ? "title" : "soft" }, isFirst ? seconds(us) : offset(us - burst));
    draw(axis, "line", { x1: right + 4, x2: right + 10, y1: y, y2: y, stroke: "var(--faint)" });
  }
}

// All offsets from the begin of a burst have one precision.
/** @param {Microseconds} us */
function offset(us) {
  return "+" + (us / 1000).toFixed(3) + " ms";
}
