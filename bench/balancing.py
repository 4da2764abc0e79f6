"""Two ways to spread producers over brokers: a layer-4 balancer, and ZooKeeper.

    python bench/balancing.py [--brokers 3,8] [--producers 8,40] [--keys 150] [--json]

The runs are those of `watchkeeper experiment balancing`, with other numbers of brokers, producers
and keys; `watchkeeper.experiment.clients.load_balance` says what is counted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Report, number, parser_of

from watchkeeper.experiment.clients.load_balance import RATE, WAYS, Seen, seen


def share(value: float | None) -> str:
    """A share as people read it."""
    return "-" if value is None else f"{value:.0%}"


def row(run: Seen) -> list[str]:
    """A run as a row of the table."""
    before, since = run.disordered or ("-", "-")
    return [
        str(run.brokers),
        str(run.producers),
        run.way,
        str(run.connections),
        number(run.requested),
        f"{run.load:.2f}",
        f"{run.new_load:.2f}",
        share(run.stuck),
        share(run.moved),
        str(before),
        str(since),
    ]


def measure(brokers: Sequence[int], producers: Sequence[int], keys: int, seed: int) -> Report:
    """Run every way with every number of brokers and producers."""
    found = [
        seen(some, many, way, keys, seed) for some, many, way in product(brokers, producers, WAYS)
    ]
    report = Report(
        f"Producers over brokers, {RATE:,} messages a second by Zipf, seed {seed}",
        (
            *("brokers", "producers", "way", "connections", "requested", "most/mean"),
            *("new/mean", "keys stick", "keys move", "disorder before", "since"),
        ),
        notes=[
            "connections: of producers to brokers. requested: of ZooKeeper, by producers",
            "most/mean: load of the busiest broker before another joins; new/mean: of that one, "
            "once all know it",
            "disorder: messages handed on behind a later one of their key, before and since",
        ],
    )
    report.rows.extend(map(row, found))
    report.data["runs"] = [asdict(run) for run in found]
    return report


def counts(text: str) -> list[int]:
    """Numbers with commas between them."""
    return [int(number) for number in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--brokers", type=counts, default=[3, 8], help="how many (3,8)")
    parser.add_argument("--producers", type=counts, default=[8, 40], help="how many (8,40)")
    parser.add_argument("--keys", type=int, default=150, help="of how many keys (150)")
    parser.add_argument("--seed", type=int, default=0, help="of every run (0)")
    options = parser.parse_args(arguments)
    report = measure(options.brokers, options.producers, options.keys, options.seed)
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
