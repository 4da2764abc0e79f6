// The log of a replica as boxes: the number of each record, the colour of its epoch, and a bar at
// the high watermark. A box with a red frame is a record that a member of the ISR lacks.

const steps = data.steps;
const states = data.states;
const BOX = 26;
const HIGH = 20;
const LOG_WIDTH = Math.max(1, data.longest) * BOX + 16;

/** @param {number | null} epoch */
function colourOf(epoch) {
  return epoch === null || epoch < 0 ? "var(--faint)" : data.colours[epoch % data.colours.length];
}

// The offsets of a replica that break the property after a step: those that it lacks, or that the
// leader has committed.
/**
 * @param {number} number
 * @param {number} replica
 */
function brokenOffsets(number, replica) {
  if (number !== data.violation) return [];
  const about = data.breaches.filter((breach) => breach.member !== null && (breach.member === replica || breach.leader === replica));
  return about.map((breach) => breach.offset);
}

/**
 * @param {number} number
 * @param {number} replica
 */
function isBroken(number, replica) {
  return number === data.violation && data.breaches.some((breach) => breach.member === replica || (breach.member === null && breach.leader === replica));
}

/**
 * @param {Element} parent
 * @param {Replica} replica
 * @param {number[]} broken
 */
function drawLog(parent, replica, broken) {
  const svg = draw(parent, "svg", { width: LOG_WIDTH, height: HIGH + 8, class: "log" });
  for (let offset = 0; offset < data.longest; offset++) {
    const record = replica.log[offset];
    const box = { x: 4 + offset * BOX, y: 4, width: BOX - 3, height: HIGH, rx: 2 };
    const look = record ? { fill: colourOf(record[1]) } : { fill: "none", stroke: "var(--faint)", "stroke-dasharray": "2 2" };
    const mark = draw(svg, "rect", { ...box, ...look });
    if (record) draw(svg, "text", { x: box.x + (BOX - 3) / 2, y: 18, "text-anchor": "middle", class: "clear" }, String(record[0]));
    if (broken.includes(offset)) draw(svg, "rect", { ...box, fill: "none", stroke: "var(--breach)", "stroke-width": 2.5, class: "clear" });
    describe(mark, () => ["offset " + offset, record ? `record ${record[0]}, appended in epoch ${record[1]}` : "no record", offset < replica.high_watermark ? "below the high watermark" : "at or above the high watermark"]);
  }
  const at = 2.5 + replica.high_watermark * BOX;
  draw(svg, "line", { x1: at, x2: at, y1: 0, y2: HIGH + 8, stroke: "var(--ink)", "stroke-width": 3 });
}

/** @param {number[]} numbers */
function named(numbers) {
  return "{" + numbers.join(", ") + "}";
}

/** @param {Replica} replica */
function roleOf(replica) {
  const role = replica.role === "follows" ? "follows " + replica.follows : replica.role;
  return replica.epoch === null ? role : role + ", epoch " + replica.epoch;
}

/** @param {ControllerRequest} request */
function leaderOf(request) {
  return request.leader === null ? "no leader" : "leader " + request.leader;
}

/**
 * @param {number} number
 * @param {(state: ReplicasState) => unknown} part
 */
function isChanged(number, part) {
  return number > 0 && JSON.stringify(part(states[number])) !== JSON.stringify(part(states[number - 1]));
}
