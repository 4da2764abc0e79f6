// The run as a film: what is after the moment that is played is covered, and uncovers in virtual time.

const SPEEDS = [0.1, 1, 5, 20, 100];
const LATE = 0.92; // of the view, from which on it moves along

const film = { at: 0, speed: 5, isOn: false, isPlaying: false, last: 0 };
const veil = make(stage, "div", { class: "veil", hidden: "" });
const veilTime = make(veil, "span");

function showMoment() {
  const covered = film.isOn && film.at < data.end;
  veil.hidden = !covered;
  if (!covered) return;
  veil.style.left = Math.min(Math.max(x(film.at), LEFT), width) + "px";
  const entry = data.entries.findLast(([from]) => from <= film.at);
  veilTime.textContent = (film.at / 1e6).toFixed(2) + " s" + (entry ? " · " + entry[5] : "");
}

function play(isPlaying) {
  if (isPlaying && (!film.isOn || film.at >= data.end)) film.at = view.from;
  film.isOn = true;
  film.isPlaying = isPlaying;
  film.last = performance.now();
  playing.textContent = isPlaying ? "❚❚ pause" : "▶ play";
  showMoment();
  if (isPlaying) requestAnimationFrame(nextFrame);
}

function nextFrame(now) {
  if (!film.isPlaying) return;
  goTo(film.at + (now - film.last) * 1000 * film.speed);
  film.last = now;
  if (film.at >= data.end) play(false);
  else requestAnimationFrame(nextFrame);
}

// Shows a moment; the view moves along when the moment leaves it.
function goTo(us) {
  film.at = Math.min(us, data.end);
  const length = view.to - view.from;
  if (film.at > view.from + length * LATE && view.to < data.end) look(film.at - length * 0.1, film.at + length * 0.9);
  showMoment();
}

function stop() {
  film.isOn = film.isPlaying = false;
  playing.textContent = "▶ play";
  showMoment();
}

const films = make(controls, "span", { class: "set" });
const playing = button(films, "▶ play", () => play(!film.isPlaying), "the run as a film; the space bar");
playing.id = "play";
const speed = make(films, "select", { "aria-label": "speed", title: "virtual seconds a second" });
for (const each of SPEEDS) make(speed, "option", { value: each, ...(each === film.speed ? { selected: "" } : {}) }, each + " ×");
speed.addEventListener("change", () => { film.speed = Number(speed.value); });
button(films, "■", stop, "end the film: show all of the run; the key Escape");

addEventListener("keydown", (event) => {
  if (event.target === speed || isTyping(event) || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === " " && !(event.target instanceof HTMLButtonElement)) play(!film.isPlaying);
  else if (event.key === "Escape") stop();
  else return;
  event.preventDefault();
});
addEventListener("resize", showMoment);
afterLook.push(showMoment);
