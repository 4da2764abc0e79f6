"""How long each assignor takes: a million partitions dealt to a thousand streams.

    python bench/assignors.py [partitions] [streams]

`sort` is what a member does with what it has read, whichever assignor comes after; `deal`
is the assignor itself, for everybody; `share` is what one member needs of it. Input that
comes sorted is the common case: the 0.8 layout lists partitions by number.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from model.asks import Partition
from model.assignment import ASSIGNORS, assign, share, topic_view
from model.registry import Layout, partition_07

LAYOUTS: tuple[Layout, ...] = ("0.7", "0.8")
BAR_S = 1.0
BROKERS = 1000


def main() -> None:
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    streams = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    names = [f"billing_c{number:04d}-0" for number in range(streams)]
    print(f"{partitions:,} partitions, {streams:,} streams; seconds, the best of three")
    print(
        f"{'layout':8}{'input':10}{'assignor':15}{'sort':>6}{'deal':>7}{'share':>7}  deal < 1 s"
    )
    for layout in LAYOUTS:
        for order in ("sorted", "shuffled"):
            measure(layout, order, topic_of(layout, partitions, order), names)


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


def measure(layout: Layout, order: str, listed: list[Partition], names: list[str]) -> None:
    sorting, view = timed(lambda: (topic_view("clicks", listed, names, layout),))
    for assignor in ASSIGNORS:
        dealing, _ = timed(lambda assignor=assignor: assign(assignor, view))
        own, _ = timed(lambda assignor=assignor: share(assignor, view, names[:1]))
        columns = f"{sorting:6.2f}{dealing:7.2f}{sorting + dealing:7.2f}{own:7.2f}"
        verdict = "yes" if dealing < BAR_S else "NO"
        print(f"{layout:8}{order:10}{assignor:15}{columns}  {verdict}")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The shortest of three times, and what came out."""
    times: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        made = work()
        times.append(time.perf_counter() - began)
    return min(times), made


if __name__ == "__main__":
    main()
