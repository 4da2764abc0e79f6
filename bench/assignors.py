"""How long each assignor takes: a million partitions dealt to a thousand streams.

    python bench/assignors.py [--partitions 1000000] [--streams 1000] [--rounds 5] [--json]

`sort` is what a member does with what it has read, whichever assignor comes after; `deal`
is the assignor itself, for every member; `share` is what one member needs of it. Input that
comes sorted is the common case: the 0.8 layout lists partitions by number. The bar is for
`deal`; `sort + deal` is all that lies between what was read and the share of every member.

Every assignment is checked: no partition twice, and none missing but where the assignor is
known to leave some (`range_floor`, by as many as do not divide).
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import CLOCKS, Bar, Clock, Report, Spread, parser_of, spread

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.group.assignment import (
    ASSIGNORS,
    Assignment,
    Assignor,
    TopicView,
    assign,
    share,
    topic_view,
)
from watchkeeper.model.registry.paths import Layout, partition_07

LAYOUTS: tuple[Layout, ...] = ("0.7", "0.8")
ORDERS = ("sorted", "shuffled")
BAR_S = 1.0
BROKERS = 1000


def topic_of(layout: Layout, partitions: int, order: str) -> list[Partition]:
    """The partitions of one topic, as a member reads them."""
    if layout == "0.8":
        listed = [Partition("clicks", str(index)) for index in range(partitions)]
    else:
        each = -(-partitions // BROKERS)
        numbers = (divmod(index, each) for index in range(partitions))
        listed = [partition_07("clicks", broker, index) for broker, index in numbers]
    if order == "shuffled":
        random.Random(7).shuffle(listed)
    return listed


def timed(work: Callable[[], Any], rounds: int, clock: Clock) -> tuple[Spread, Any]:
    """How long something takes, and what came out."""
    times: list[float] = []
    made: Any = None
    for _ in range(rounds):
        made = None  # what was made before is freed before the clock starts
        began = clock()
        made = work()
        times.append(clock() - began)
    return spread(times), made


def check(assignor: Assignor, topic: TopicView, made: Assignment) -> None:
    """See that everything was dealt once, as far as the assignor deals everything."""
    dealt = [partition for partitions in made.values() for partition in partitions]
    left = len(topic.partitions) % len(topic.streams) if assignor == "range_floor" else 0
    if len(dealt) != len(topic.partitions) - left or len(set(dealt)) != len(dealt):
        raise SystemExit(f"{assignor} dealt {len(dealt)} of {len(topic.partitions)} partitions")


class Bench:
    """One size, with its report."""

    def __init__(self, partitions: int, streams: int, rounds: int, clock_name: str) -> None:
        self.partitions = partitions
        self.names = [f"billing_c{number:04d}-0" for number in range(streams)]
        self.rounds = rounds
        self.clock = CLOCKS[clock_name]
        self.report = Report(
            f"{partitions:,} partitions, {streams:,} streams: seconds, {rounds} rounds, "
            f"{clock_name} time",
            ("layout", "input", "assignor", "sort", "deal", "sort + deal", "deal best", "share"),
        )

    def measure(self) -> Report:
        """Measure every assignor on every input."""
        worst: dict[Assignor, Spread] = {}
        for layout in LAYOUTS:
            for order in ORDERS:
                for assignor, dealing in self._measure_input(layout, order):
                    known = worst.get(assignor)
                    if known is None or dealing.median > known.median:
                        worst[assignor] = dealing
        self.report.bars = [
            Bar(f"deal, {assignor}, slowest input", "less than", BAR_S, "s", dealing)
            for assignor, dealing in worst.items()
        ]
        return self.report

    def _measure_input(self, layout: Layout, order: str) -> list[tuple[Assignor, Spread]]:
        listed = topic_of(layout, self.partitions, order)
        sorting, topic = self._timed(lambda: topic_view("clicks", listed, self.names, layout))
        found: list[tuple[Assignor, Spread]] = []
        for assignor in ASSIGNORS:
            dealing, made = self._timed(lambda name=assignor: assign(name, (topic,)))
            check(assignor, topic, made)
            del made
            own, _ = self._timed(lambda name=assignor: share(name, (topic,), self.names[:1]))
            self._add_row(layout, order, assignor, sorting, dealing, own)
            found.append((assignor, dealing))
        return found

    def _timed(self, work: Callable[..., Any]) -> tuple[Spread, Any]:
        return timed(work, self.rounds, self.clock)

    def _add_row(
        self,
        layout: Layout,
        order: str,
        assignor: Assignor,
        sorting: Spread,
        dealing: Spread,
        own: Spread,
    ) -> None:
        figures = (
            sorting.median,
            dealing.median,
            sorting.median + dealing.median,
            dealing.best,
            own.median,
        )
        self.report.rows.append(
            [layout, order, assignor, *(f"{seconds:.3f}" for seconds in figures)]
        )
        self.report.data.setdefault("runs", []).append(
            {
                "layout": layout,
                "input": order,
                "assignor": assignor,
                "sort": asdict(sorting),
                "deal": asdict(dealing),
                "share": asdict(own),
            }
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--partitions", type=int, default=1_000_000, help="(1,000,000)")
    parser.add_argument("--streams", type=int, default=1_000, help="(1,000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is run (5)")
    options = parser.parse_args(arguments)
    bench = Bench(options.partitions, options.streams, options.rounds, options.clock)
    bench.measure().show(as_json=options.json)


if __name__ == "__main__":
    main()
