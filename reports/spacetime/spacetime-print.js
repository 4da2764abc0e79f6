// The page of space and time on paper, where nothing is scrolled: all of a short run is drawn, and of
// a longer one so many pixels from what is in sight.

const MOST_PRINTED = 20000;
/** @type {Part | null} */
let printed = null;
let place = [0, 0];

// What the picture is drawn for: a part of the run, and the left edge.
function view() {
  return printed || { top: pane.scrollTop, bottom: pane.scrollTop + pane.clientHeight, left: pane.scrollLeft };
}

/** @param {number} y */
function momentAt(y) {
  return moments[Math.min(firstFrom(tops, y), moments.length - 1)];
}

function putOnPaper() {
  const top = Math.max(Math.min(pane.scrollTop, height - MOST_PRINTED), 0);
  const bottom = Math.min(top + MOST_PRINTED, height);
  printed = { top, bottom, left: 0 };
  place = [pane.scrollLeft, pane.scrollTop]; // which a pane that is not scrolled forgets
  drawPane();
  if (head.firstChild instanceof SVGElement) fitPaper(head.firstChild, width, 0, HEAD);
  fitPaper(canvas, width, top, bottom);
  pane.classList.add("paper");
  pane.style.aspectRatio = width + " / " + (bottom - top);
  if (bottom - top === height) return;
  const part = seconds(momentAt(top)) + " to " + seconds(momentAt(bottom));
  stage.prepend(make(null, "p", { id: "printed" }, "Of this run " + part + " are printed; scroll to another moment to print that one."));
}

function takeFromPaper() {
  document.getElementById("printed")?.remove();
  printed = null;
  canvas.removeAttribute("viewBox");
  pane.classList.remove("paper");
  pane.style.aspectRatio = "";
  lay();
  [pane.scrollLeft, pane.scrollTop] = place;
  drawPane();
}

addEventListener("beforeprint", putOnPaper);
addEventListener("afterprint", takeFromPaper);
