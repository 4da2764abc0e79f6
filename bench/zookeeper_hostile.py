"""Frames that are wrong, clients that do not read, and connections that say nothing.

    python bench/zookeeper_hostile.py [--frames 100000] [--seed 0] [--json]

- **Mutated frames** (`wire/mutated_frames.py`), some on each connection, behind a session or
  in its place. Each whole frame has to be answered or its connection closed; a length that cannot
  be closes the connection; the server logs a reason for each connection that it closes and never
  an exception. A witness with a session of its own creates, reads and deletes all the while.
- **A client that does not read** what it has requested is disconnected.
- **Half-open**: a thousand connections that say nothing do not stop the next one, and are closed
  in time.

Memory is that of the server's process: it may grow by the longest frame for each connection that
is open at one time, and by the znodes that the frames have made.
"""

from __future__ import annotations

import re
import sys
import time
from argparse import Namespace
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of
from bench.support.zookeepers import NAMES, Wanted, ZooKeeper, memory_kb, peak_kb, start
from bench.wire import jute
from bench.wire.jute import OPEN, Op
from bench.wire.mutated_frames import MOST_BYTES, MutatedFrames, owed_to
from bench.wire.raw_line import ANSWER_S, Line

LAST_XID = 0x7ABCDEF0
"""The xid of the request behind the frames of a connection: its answer is the last one."""
EVERY = 200
"""After so many connections the witness works, and memory is read."""
SPARE_KB = 32 * 1024
"""What an interpreter's heap may grow by when it is first used."""
UNREAD_REQUESTS = 400
UNREAD_BYTES = 500_000
CLOSED_WITHIN_S = 30.0
MOST_KB = 128 * 1024
"""Twice what a client of ours may leave unread: it is copied once on its way."""
SHOWN = 5


@dataclass(slots=True)
class Found:
    """What became of frames and connections."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """What a server owed and did not do, with the bytes."""
    slowest_ms: float = 0.0
    """The longest that the witness waited for its four requests."""
    memory_kb: list[int] = field(default_factory=list)
    unread_kb: int = 0
    """By how much memory grew at its peak while a client did not read."""


class Witness:
    """A session that does nothing wrong beside those that do."""

    def __init__(self, address: str) -> None:
        self.line = Line(address)
        self._name = f"/witness-{self.line.begin_session().session:x}"
        self._xid = 0
        self._expect(Op.CREATE, jute.create(self._name, b"", OPEN, 1))

    def work(self) -> float:
        """Create, read, delete, and look after its ephemeral; returns how long it took, in ms."""
        begun = time.perf_counter()
        path = f"{self._name}-{self._xid}"
        self._expect(Op.CREATE, jute.create(path, b"data", OPEN, 1))
        self._expect(Op.GET_DATA, jute.with_watch(path, True))
        self._expect(Op.DELETE, jute.with_int(path, -1))
        self._expect(Op.EXISTS, jute.with_watch(self._name, False))
        return (time.perf_counter() - begun) * 1_000

    def _expect(self, opcode: int, body: bytes) -> None:
        self._xid += 1
        error, _ = self.line.call(self._xid, opcode, body)
        if error:
            raise AssertionError(f"the witness' request {opcode} has the error {error}")


# --- mutated frames --------------------------------------------------------------------------


def attack(zookeeper: ZooKeeper, options: Namespace, found: Found) -> None:
    """Send mutated frames until there were enough."""
    chance = Random(options.seed)
    frames = MutatedFrames(chance)
    witness = Witness(zookeeper.addresses[0])
    found.memory_kb.append(memory_kb(zookeeper.pids))
    connections = 0
    while found.counts["frames"] < options.frames:
        if chance.random() < 0.05:
            one_connection(zookeeper, [frames.first_frame()], found, has_session=False)
        else:
            sent = [frames.frame() for _ in range(chance.choice((1, 2, 3, 5, 10)))]
            one_connection(zookeeper, sent, found, has_session=True)
        connections += 1
        if connections % EVERY == 0:
            found.slowest_ms = max(found.slowest_ms, witness.work())
            found.memory_kb.append(memory_kb(zookeeper.pids))
            print(f"\r{found.counts['frames']:,} frames", end="", file=sys.stderr, flush=True)
    witness.work()
    witness.line.close()
    found.counts["connections"] = connections


def one_connection(
    zookeeper: ZooKeeper, sent: list[bytes], found: Found, *, has_session: bool
) -> None:
    """Send frames on a connection of their own, and see that each has its due."""
    line = Line(zookeeper.addresses[0])
    if has_session:
        line.begin_session(1_000)
    data = b"".join(sent)
    owed = owed_to(data)
    is_whole = owed.ending == "whole"
    last = jute.request(LAST_XID, Op.EXISTS, jute.with_watch("/", False))
    line.send(data + last if is_whole and has_session else data)
    found.counts["frames"] += len(sent)
    answers = 0
    is_last = False
    enough = owed.answers + (is_whole and has_session)
    ends = time.monotonic() + ANSWER_S
    while not is_last and line.is_open and time.monotonic() < ends:
        if answers >= enough and owed.ending != "bad length":
            break
        payload = line.frame(ANSWER_S)
        if payload is not None:
            xid = jute.INT.unpack_from(payload)[0]
            is_last = xid == LAST_XID
            answers += xid != jute.EVENT_XID or is_last
    judge(data, owed.answers, owed.ending, answers, line, found)
    line.close()


def judge(data: bytes, frames: int, ending: str, answers: int, line: Line, found: Found) -> None:
    """Count what became of the frames of a connection."""
    if not line.is_open:
        found.counts["connections closed by the server"] += 1
        found.counts["frames answered"] += min(answers, frames)
    elif ending == "bad length":
        found.wrong.append(f"open behind a length that cannot be: {shown(data)}")
    elif answers < frames:
        found.wrong.append(f"{answers} of {frames} frames have an answer: {shown(data)}")
    else:
        found.counts["frames answered"] += frames
        found.counts[f"connections left open, {ending}"] += 1


def shown(data: bytes) -> str:
    """Bytes, the end of many."""
    return data.hex() if len(data) < 400 else f"... {data[-400:].hex()} ({len(data)} bytes)"


# --- clients that do not read, and connections that say nothing ------------------------------


def unread(zookeeper: ZooKeeper, found: Found) -> None:
    """Request much and read nothing: the server hangs up, and keeps no more than it may."""
    line = Line(zookeeper.addresses[0])
    line.begin_session()
    body = jute.create("/large", bytes(UNREAD_BYTES), OPEN, 0)
    line.call(1, Op.CREATE, body)
    before_kb = memory_kb(zookeeper.pids)
    read = jute.with_watch("/large", False)
    for at in range(UNREAD_REQUESTS):
        line.send(jute.request(at + 2, Op.GET_DATA, read))
    witness = Witness(zookeeper.addresses[0])
    ends = time.monotonic() + CLOSED_WITHIN_S
    most_kb = 0
    while line.is_open and time.monotonic() < ends:
        found.slowest_ms = max(found.slowest_ms, witness.work())
        most_kb = max(most_kb, peak_kb(zookeeper.pids) - before_kb)
        line.send(jute.request(1, Op.PING, b""))  # fails once the server has hung up
        time.sleep(0.05)
    if line.is_open:
        found.wrong.append(
            f"a client that leaves {UNREAD_REQUESTS * UNREAD_BYTES:,} bytes unread is connected "
            f"after {CLOSED_WITHIN_S:g} s"
        )
    found.unread_kb = most_kb
    line.close()
    witness.line.close()


def half_open(zookeeper: ZooKeeper, number: int, found: Found) -> None:
    """Connections that say nothing: the next client works, and they are closed in time."""
    lines = [Line(zookeeper.addresses[0]) for _ in range(number)]
    for at, line in enumerate(lines):
        line.send((b"", b"\0", b"\0\0\0", b"\0\0\0\x2c\0")[at % 4])
    begun = time.perf_counter()
    witness = Witness(zookeeper.addresses[0])
    found.slowest_ms = max(found.slowest_ms, witness.work())
    next_ms = (time.perf_counter() - begun) * 1_000
    found.counts["ms to the session of the next client"] = round(next_ms)
    ends = time.monotonic() + CLOSED_WITHIN_S
    still = list(lines)
    while still and time.monotonic() < ends:
        for line in still:
            line.frame(0.0)
        still = [line for line in still if line.is_open]
        witness.work()
        time.sleep(0.2)
    found.counts["half-open connections closed in time"] = number - len(still)
    if still:
        found.wrong.append(f"{len(still)} of {number} half-open connections are open")
    for line in lines:
        line.close()
    witness.line.close()


# --- the table -------------------------------------------------------------------------------


def exceptions_in(output: str) -> list[str]:
    """The lines of a server's log that show an exception."""
    pattern = re.compile(r"^Traceback|^\w*(Error|Exception)\b|\bERROR\b|CRITICAL", re.MULTILINE)
    return [line for line in output.splitlines() if pattern.search(line)]


def reported(options: Namespace, found: Found, output: str) -> Report:
    """The table of counts, and the bars."""
    report = Report(
        f"hostile input for {NAMES[options.kind]} ZooKeeper, seed {options.seed}",
        ("what", "number"),
        [[name, f"{number:,}"] for name, number in found.counts.items()],
    )
    errors = exceptions_in(output)
    reasons = [line for line in output.splitlines() if line.startswith("closed: ")]
    grown_kb = max(found.memory_kb) - found.memory_kb[0] if found.memory_kb else 0
    report.rows += [
        ["reasons in the log for closed connections", f"{len(reasons):,}"],
        ["slowest turn of the witness, ms", f"{found.slowest_ms:.1f}"],
        ["memory at first, kB", f"{found.memory_kb[0] if found.memory_kb else 0:,}"],
        ["memory at most, kB", f"{max(found.memory_kb, default=0):,}"],
    ]
    closed = found.counts["connections closed by the server"]
    report.bars += [
        Bar("frames", "at least", 100_000, "", once(found.counts["frames"])),
        Bar("frames and clients without their due", "at most", 0, "", once(len(found.wrong))),
        Bar("exceptions in the log", "at most", 0, "", once(len(errors))),
        Bar("closed without a reason", "at most", 0, "", once(max(0, closed - len(reasons)))),
        Bar("memory grown", "at most", MOST_BYTES / 1024 + SPARE_KB, "kB", once(grown_kb)),
        Bar(
            "kept for a client that does not read",
            "at most",
            MOST_KB,
            "kB",
            once(found.unread_kb),
        ),
    ]
    report.notes += [*found.wrong[:SHOWN], *errors[:SHOWN]]
    if errors:
        at = output.find(errors[0])
        report.notes.append(output[at : at + 3_000])
    kinds = Counter(re.sub(r"0x[0-9a-f]+|-?\d+", "N", reason) for reason in reasons)
    report.notes += [f"{number:,} times {reason}" for reason, number in kinds.most_common(20)]
    report.data = {
        "counts": dict(found.counts),
        "wrong": found.wrong,
        "exceptions": errors,
        "reasons": dict(kinds),
        "memory_kb": found.memory_kb,
    }
    return report


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--half-open", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=("python", "java"), default="python")
    parts = "frames,unread,half-open"
    parser.add_argument("--only", default=parts, help=f"which parts ({parts})")
    return parser.parse_args()


def main() -> None:
    options, found = parsed(), Found()
    parts = options.only.split(",")
    with ExitStack() as stack:
        zookeeper = stack.enter_context(start(options.kind, Wanted(tick_ms=500)))
        if "frames" in parts:
            attack(zookeeper, options, found)
        if "unread" in parts:
            unread(zookeeper, found)
        if "half-open" in parts:
            half_open(zookeeper, options.half_open, found)
        output = zookeeper.output
    report = reported(options, found, output)
    report.show(as_json=options.json)
    sys.exit(bool(found.wrong or report.data["exceptions"]))


if __name__ == "__main__":
    main()
