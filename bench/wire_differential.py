"""Random operations through the wire: ours beside Apache's, and not one byte of sense may differ.

    python bench/wire_differential.py [--operations 100000] [--servers 3] [--seed 0]

Several raw connections, each with a session, send the same requests to Apache's servers and to
ours: every opcode of ZooKeeper 3.9, alone, pipelined and in multis, with paths, flags, versions,
ACLs and bodies that are right or wrong; sessions that are closed, expire, lose their connection
or go on over another one (with `--servers 3` at another server); requests for sessions of others.
Compared are all answers with their error codes and zxids, every field of a Stat that is no
clock, watch events and their order on each connection, and which connections are closed. How,
is written at the top of `wire/player.py`.

A difference is sought in fewer steps, on fresh servers (`--shrink` attempts), and printed with
the steps before it. The run stops at the first one; with `--differences 20` it goes on with the
next script on fresh servers until there are 20 that look different. `--against python` compares
ours with ours and `java` Apache's with Apache's, which shows what this bench is unsure of itself.

Left out: quotas (`/zookeeper/quota` is read only), SASL, reconfiguration beyond its refusal.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of
from bench.support.zookeepers import KINDS, NAMES, NEVER_MS, Kind, Wanted, start
from bench.wire.jute import Op
from bench.wire.player import Player, Transcript
from bench.wire.steps import Burst, Step, Steps, as_text, number_of

A_SCRIPT = 1_000
"""The operations of one script, which has a tree of its own."""
SHOWN = 30
"""How many steps before a difference are printed."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two servers differ."""

    steps: tuple[Step, ...]
    """The steps until the difference, which the last one shows."""
    one: Transcript
    other: Transcript


class Pair:
    """Servers of two kinds, and a player for each."""

    def __init__(self, options: Namespace, stack: ExitStack) -> None:
        wanted = Wanted(
            servers=options.servers,
            tick_ms=250,
            min_session_ms=500,
            max_session_ms=30_000,
            container_check_ms=NEVER_MS,
        )
        self.zookeepers = [stack.enter_context(start(kind, wanted)) for kind in options.kinds]
        self.players = [
            Player(zookeeper.addresses, options.slots) for zookeeper in self.zookeepers
        ]
        for player in self.players:
            stack.callback(player.close)
        self._threads = stack.enter_context(ThreadPoolExecutor(len(self.players)))

    def first_difference(self, steps: Sequence[Step]) -> Difference | None:
        """Play steps until the servers differ; None if they do not."""
        for at, step in enumerate(steps):
            plays = [self._threads.submit(player.play, step) for player in self.players]
            one, other = (play.result() for play in plays)
            if one != other:
                return Difference(tuple(steps[: at + 1]), one, other)
        return None


def scripts(options: Namespace) -> Iterator[list[Step]]:
    """Scripts without end, by the seed."""
    chance = Random(options.seed)
    number = 0
    while True:
        drawn = Steps(
            Random(chance.getrandbits(64)),
            f"/r{number}",
            slots=options.slots,
            servers=options.servers,
        )
        yield drawn.script(options.script)
        number += 1


@dataclass(slots=True)
class Found:
    """What a run has done."""

    operations: int = 0
    scripts: int = 0
    seconds: float = 0.0
    differences: dict[Signature, Difference] = field(default_factory=dict)
    counts: Counter[Signature] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)


def compared(options: Namespace) -> Found:
    """Play scripts until enough is played, or enough differences are found."""
    found = Found()
    begun = time.monotonic()
    all_scripts = scripts(options)
    while found.operations < options.operations and len(found.counts) < options.differences:
        played, difference = on_one_pair(options, all_scripts, found)
        if difference is None:
            continue
        signature = signature_of(difference)
        found.counts[signature] += 1
        if found.counts[signature] == 1:
            print(f"\na difference: {signature}", file=sys.stderr)
            shrinking = Shrinking(options, difference)
            shrinking.run(played)
            found.differences[signature] = shrinking.best
    found.seconds = time.monotonic() - begun
    return found


def on_one_pair(
    options: Namespace, all_scripts: Iterator[list[Step]], found: Found
) -> tuple[list[Step], Difference | None]:
    """Play scripts on one pair of servers; returns what went before a difference, and it."""
    played: list[Step] = []
    with ExitStack() as stack:
        pair = Pair(options, stack)
        while found.operations < options.operations:
            script = next(all_scripts)
            difference = pair.first_difference(script)
            steps = script if difference is None else difference.steps
            found.kinds.update(names_of(steps))
            found.operations += sum(map(number_of, steps))
            found.scripts += 1
            print(f"\r{found.operations:,} operations", end="", file=sys.stderr, flush=True)
            if difference is not None:
                return played, difference
            played += script
    return played, None


Signature = tuple[str, ...]


def signature_of(difference: Difference) -> Signature:
    """What a difference looks like, without names and numbers, to tell one from another."""
    one, other = next((one, other) for _, one, other in differing_notes(difference))
    return (type(difference.steps[-1]).__name__, shape_of(one), shape_of(other))


def differing_notes(difference: Difference) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Slot, and its notes on both servers from the first that differs on."""
    for name in sorted({*difference.one, *difference.other}, key=lambda name: name[::-1]):
        one, other = difference.one.get(name, []), difference.other.get(name, [])
        if one != other:
            pairs = enumerate(zip(one, other, strict=False))
            shortest = min(len(one), len(other))
            at = next((at for at, (left, right) in pairs if left != right), shortest)
            yield name, one[at:], other[at:]


def shape_of(notes: list[Any]) -> str:
    """The first of some notes: an opcode with its error, the kind of an event, or a word."""
    if not notes:
        return "nothing"
    note = notes[0]
    if isinstance(note, str):
        return note
    if isinstance(note[1], int) and len(note) == 5:
        opcode = Op(note[1]).name if note[1] in set(Op) else "unknown"
        return f"{opcode} {note[3] or type(note[4]).__name__}"
    return f"event {note[3]}" if note[0] == "event" else str(note[0])


def names_of(script: Sequence[Step]) -> Iterator[str]:
    """What a script consists of."""
    known = set(Op)
    for step in script:
        if not isinstance(step, Burst):
            yield type(step).__name__
        for request in getattr(step, "requests", ()):
            yield Op(request.opcode).name if request.opcode in known else "unknown"


# --- fewer steps -----------------------------------------------------------------------------


class Shrinking:
    """Looks for a difference in fewer steps, on fresh servers each time: for the same one."""

    def __init__(self, options: Namespace, difference: Difference) -> None:
        self._options = options
        self.best = difference
        self._signature = signature_of(difference)
        self._left = options.shrink

    def run(self, before: Sequence[Step]) -> None:
        """Try the script alone, then without parts of it, then with fewer requests."""
        if not self._left:
            return
        steps = self.best.steps
        if not self._is_found_in(steps) and not self._is_found_in((*before, *steps)):
            print("it does not come back on fresh servers", file=sys.stderr)
            return
        part = max(1, len(self.best.steps) // 2)
        while self._left > 0:
            if not self._without_a_part(part):
                if part == 1:
                    break
                part //= 2
            part = min(part, max(1, len(self.best.steps) // 2))
        self._left += self._options.shrink // 2
        self._with_fewer_requests()

    def _is_found_in(self, steps: Sequence[Step]) -> bool:
        self._left -= 1
        with ExitStack() as stack:
            difference = Pair(self._options, stack).first_difference(steps)
        if difference is None or signature_of(difference) != self._signature:
            return False
        self.best = difference
        return True

    def _without_a_part(self, part: int) -> bool:
        """Leave out every run of `part` steps that the difference does not need."""
        is_smaller = False
        at = max(0, len(self.best.steps) - 1 - part)
        while self._left > 0:
            steps = self.best.steps
            is_smaller |= self._is_found_in((*steps[:at], *steps[at + part :]))
            if at == 0:
                break
            at = max(0, min(at, len(self.best.steps) - 1) - part)
        return is_smaller

    def _with_fewer_requests(self) -> None:
        """Leave out single requests of bursts, from the last one back."""
        at = len(self.best.steps) - 1
        while at >= 0 and self._left > 0:
            if not self._with_a_request_less(at):
                at -= 1
            at = min(at, len(self.best.steps) - 1)

    def _with_a_request_less(self, at: int) -> bool:
        steps = self.best.steps
        step = steps[at]
        if not isinstance(step, Burst) or len(step.requests) < 2:
            return False
        for number in reversed(range(len(step.requests))):
            fewer = replace(step, requests=step.requests[:number] + step.requests[number + 1 :])
            if self._left > 0 and self._is_found_in((*steps[:at], fewer, *steps[at + 1 :])):
                return True
        return False


# --- output ----------------------------------------------------------------------------------


def explained(difference: Difference, kinds: Sequence[Kind]) -> list[str]:
    """The steps that lead to a difference, and what differs."""
    steps = difference.steps
    lines = [f"the servers differ after {len(steps)} steps:"]
    lines += [f"    {as_text(step)}" for step in steps[-SHOWN:]]
    for name, *notes_of in differing_notes(difference):
        lines.append(f"{name}:")
        for kind, notes in zip(kinds, notes_of, strict=True):
            lines.append(f"    {NAMES[kind]}")
            lines += [f"        {note}" for note in notes[:6]] or ["        nothing"]
    return lines


def reported(options: Namespace, found: Found) -> Report:
    """The table of what was played, and the bar."""
    report = Report(
        f"operations through the wire, {' beside '.join(NAMES[kind] for kind in options.kinds)}, "
        f"{options.servers} server(s), seed {options.seed}",
        ("what", "number"),
        [[name, f"{number:,}"] for name, number in found.kinds.most_common()],
    )
    report.bars.append(Bar("differences", "at most", 0, "", once(len(found.counts))))
    report.notes = [
        f"{found.operations:,} operations in {found.scripts:,} scripts, {found.seconds:.0f} s"
    ]
    report.data = {
        "operations": found.operations,
        "seconds": round(found.seconds, 1),
        "differences": [[*signature, number] for signature, number in found.counts.items()],
        "kinds": dict(found.kinds),
    }
    for signature, difference in found.differences.items():
        shown = ", ".join(signature)
        report.notes += ["", f"difference ({found.counts[signature]}): {shown}"]
        report.notes += explained(difference, options.kinds)
    return report


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--slots", type=int, default=4, help="clients (4)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--script", type=int, default=A_SCRIPT, help="operations of a script")
    parser.add_argument("--shrink", type=int, default=80, help="attempts to shorten (80)")
    parser.add_argument("--differences", type=int, default=1, help="stop after so many (1)")
    parser.add_argument("--against", choices=KINDS, help="compare servers of one kind")
    options = parser.parse_args()
    options.kinds = KINDS if options.against is None else (options.against,) * 2
    return options


def main() -> None:
    options = parsed()
    found = compared(options)
    reported(options, found).show(as_json=options.json)
    sys.exit(bool(found.counts))


if __name__ == "__main__":
    main()
