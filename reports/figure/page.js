"use strict";

// Shared by all pages: the data, making elements, and the tip of the mark under the pointer.
// Everything from the trace is put on the page as text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const stage = document.getElementById("stage");
const tip = document.getElementById("tip");
const patterns = document.getElementById("patterns");
const svgSpace = patterns.namespaceURI;

function make(parent, tag, attributes = {}, text = null) {
  const made = document.createElement(tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function draw(parent, tag, attributes = {}, text = null) {
  const made = document.createElementNS(svgSpace, tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  if (text !== null) made.textContent = text;
  parent.append(made);
  return made;
}

function seconds(us) {
  return (us / 1e6).toFixed(6) + " s";
}

function duration(us) {
  if (us < 1000) return us + " µs";
  return us < 1e6 ? (us / 1000).toFixed(1) + " ms" : (us / 1e6).toFixed(2) + " s";
}

function counted(number, noun) {
  return number.toLocaleString("en") + " " + noun + (number === 1 ? "" : "s");
}

// Whether a key belongs to a field and is not a command to the page.
function isTyping(event) {
  return ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
}

// A button is called by its text; one whose text is a sign is called by its title.
function button(parent, text, does, title = "") {
  const named = title && !/[a-z]/i.test(text) ? { title, "aria-label": title } : { title };
  const made = make(parent, "button", { type: "button", ...named }, text);
  made.addEventListener("click", does);
  return made;
}

// --- the tip of a mark -------------------------------------------------------------------

// The tip of each mark is a function that returns [title, line, line, ...].
const tips = new WeakMap();

function describe(mark, lines) {
  mark.setAttribute("data-tip", "");
  tips.set(mark, lines);
  return mark;
}

function showTip(event) {
  const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
  tip.hidden = !mark;
  if (!mark) return;
  const [title, ...lines] = tips.get(mark)();
  tip.replaceChildren();
  make(tip, "b", {}, title);
  for (const line of lines) make(make(tip, "div"), line.startsWith("#") ? "i" : "span", {}, line);
  const left = event.clientX + 14;
  const top = event.clientY + 14;
  tip.style.left = Math.max(4, Math.min(left, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (top + tip.offsetHeight > innerHeight ? Math.max(4, event.clientY - tip.offsetHeight - 10) : top) + "px";
}

stage.addEventListener("pointermove", showTip);
stage.addEventListener("pointerleave", () => { tip.hidden = true; });

function events(first, last) {
  return first === last ? "#" + first : "#" + first + " to #" + last + " of the trace";
}

// Fits a part of a picture to the width of the paper, from one height to another.
function fitPaper(svg, wide, top, bottom) {
  svg.setAttribute("viewBox", `0 ${top} ${wide} ${bottom - top}`);
  svg.setAttribute("width", "100%");
  svg.removeAttribute("height");
}

// --- an axis -------------------------------------------------------------------------------

function ticks(from, to, most) {
  let step = 1;
  for (let at = 0; (to - from) / step > most; at++) step *= [2, 2.5, 2][at % 3];
  const found = [];
  for (let us = Math.ceil(from / step) * step; us <= to; us += step) found.push(us);
  return found;
}
