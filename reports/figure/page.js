"use strict";

// Shared by all pages: the data, making elements, and the tip of the mark under the pointer.
// Everything from the trace is put on the page as text, never as markup.

/**
 * An element that every page has.
 * @param {string} id
 * @returns {HTMLElement}
 */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error("the page has no element with the id " + id);
  return found;
}

/** @type {PageData} */
const data = JSON.parse(element("data").textContent);
const stage = element("stage");
const tip = element("tip");
const patterns = element("patterns");
const svgSpace = patterns.namespaceURI;

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Element | null} parent
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {string | null} text
 */
function make(parent, tag, attributes = {}, text = null) {
  const made = document.createElement(tag);
  for (const name in attributes) made.setAttribute(name, String(attributes[name]));
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Element} parent
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {string | null} text
 */
function draw(parent, tag, attributes = {}, text = null) {
  const made = /** @type {SVGElementTagNameMap[Tag]} */ (document.createElementNS(svgSpace, tag));
  for (const name in attributes) made.setAttribute(name, String(attributes[name]));
  if (text !== null) made.textContent = text;
  parent.append(made);
  return made;
}

/** @param {number} us */
function seconds(us) {
  return (us / 1e6).toFixed(6) + " s";
}

/** @param {number} us */
function duration(us) {
  if (us < 1000) return us + " µs";
  return us < 1e6 ? (us / 1000).toFixed(1) + " ms" : (us / 1e6).toFixed(2) + " s";
}

/**
 * @param {number} number
 * @param {string} noun
 */
function counted(number, noun) {
  return number.toLocaleString("en") + " " + noun + (number === 1 ? "" : "s");
}

// Whether a key belongs to a field and is not a command to the page.
/** @param {KeyboardEvent} event */
function isTyping(event) {
  return event.target instanceof Element && ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
}

// A button is called by its text; one whose text is a sign is called by its title.
/**
 * @param {Element} parent
 * @param {string} text
 * @param {(event: MouseEvent) => unknown} does
 * @param {string} title
 */
function button(parent, text, does, title = "") {
  const named = title && !/[a-z]/i.test(text) ? { title, "aria-label": title } : { title };
  const made = make(parent, "button", { type: "button", ...named }, text);
  made.addEventListener("click", does);
  return made;
}

// --- the tip of a mark -------------------------------------------------------------------

// The tip of each mark is a function that returns [title, line, line, ...].
/** @type {WeakMap<Element, TipLines>} */
const tips = new WeakMap();

/**
 * @template {Element} Mark
 * @param {Mark} mark
 * @param {TipLines} lines
 */
function describe(mark, lines) {
  mark.setAttribute("data-tip", "");
  tips.set(mark, lines);
  return mark;
}

/** @param {PointerEvent} event */
function showTip(event) {
  const mark = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
  const describes = mark && tips.get(mark);
  tip.hidden = !describes;
  if (!describes) return;
  const [title, ...lines] = describes();
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

/**
 * @param {number} first
 * @param {number} last
 */
function events(first, last) {
  return first === last ? "#" + first : "#" + first + " to #" + last + " of the trace";
}

// Fits a part of a picture to the width of the paper, from one height to another.
/**
 * @param {SVGElement} svg
 * @param {number} wide
 * @param {number} top
 * @param {number} bottom
 */
function fitPaper(svg, wide, top, bottom) {
  svg.setAttribute("viewBox", `0 ${top} ${wide} ${bottom - top}`);
  svg.setAttribute("width", "100%");
  svg.removeAttribute("height");
}

// --- an axis -------------------------------------------------------------------------------

/**
 * @param {number} from
 * @param {number} to
 * @param {number} most
 */
function ticks(from, to, most) {
  let step = 1;
  for (let at = 0; (to - from) / step > most; at++) step *= [2, 2.5, 2][at % 3];
  /** @type {number[]} */
  const found = [];
  for (let us = Math.ceil(from / step) * step; us <= to; us += step) found.push(us);
  return found;
}
