"""The command `explore-replicas`: every order of steps of the replicas of one partition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from watchkeeper.console import options
from watchkeeper.console.exit import print_json
from watchkeeper.console.options import example
from watchkeeper.console.progress import ProgressLine

if TYPE_CHECKING:
    from watchkeeper.checker.search.search import Progress

EVERY_S = 1.0
FAULTS = ("crash", "old-checkpoint", "power", "reply", "deposed", "unclean")
RULES = ("high-watermark", "kip-101", "kip-279", "fetch-epochs", "kip-320")
PROPERTIES = ("strong-isr", "weak-isr", "leader-in-isr")


@click.command(
    "explore-replicas",
    epilog=example(
        "watchkeeper explore-replicas --fault crash",
        "watchkeeper explore-replicas --replicas 3 --epochs 2 --rule kip-101",
        "watchkeeper explore-replicas --variant hardened --fault crash --fault reply",
    ),
)
@click.option(
    "--variant",
    type=click.Choice(["kafka_08", "hardened"]),
    default="kafka_08",
    show_default=True,
    help="The version of replication.",
)
@click.option(
    "--rule",
    type=click.Choice(RULES),
    help="How a follower cuts its log.  [default: that of the variant]",
)
@click.option(
    "--fault",
    "faults",
    type=click.Choice(FAULTS),
    multiple=True,
    help="A fault that may strike once, at any moment; several may be given.",
)
@click.option(
    "--property",
    "violates",
    type=click.Choice(PROPERTIES),
    default=PROPERTIES[0],
    show_default=True,
    help="The property that is searched for a violation.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1, 5),
    default=2,
    show_default=True,
    help="The number of replicas.",
)
@click.option(
    "--records",
    type=options.MANY,
    default=2,
    show_default=True,
    help="The number of records that producers send.",
)
@click.option(
    "--log",
    type=options.MANY,
    default=2,
    show_default=True,
    help="The largest number of records in a log.",
)
@click.option(
    "--epochs",
    type=options.MANY,
    default=3,
    show_default=True,
    help="The number of changes of leader or ISR by the controller.",
)
@click.option("--max-states", type=options.MANY, help="End the search after so many states.")
@click.option(
    "--max-seconds",
    type=click.FloatRange(0, min_open=True),
    help="End the search after so many seconds.",
)
@click.option(
    "--max-memory",
    type=click.FloatRange(0, min_open=True),
    metavar="GIB",
    help="End a search that uses so much memory.  [default: three quarters of the free]",
)
@options.out
@options.as_json
def explore_replicas(
    variant: str,
    rule: str | None,
    faults: tuple[str, ...],
    violates: str,
    replicas: int,
    records: int,
    log: int,
    epochs: int,
    max_states: int | None,
    max_seconds: float | None,
    max_memory: float | None,
    out: Path,
    as_json: bool,
) -> int:
    """Search every order of steps of the replicas of one partition.

    Controllers say who leads; replicas append, fetch, cut their logs, and change the ISR. If the
    property is violated, a shortest path is printed, and written as a page that shows each
    replica after each step.

    \b
    Exit codes: 0 holds within the bound; 1 violated; 2 a limit was reached, or the search was
    interrupted; 4 usage or environment.
    """
    from watchkeeper.check import replicas as replicas_search
    from watchkeeper.check.check import limits
    from watchkeeper.checker.replication.partition import Bounds

    with _Teller() as teller:
        searched = replicas_search.explore_replicas(
            variant,
            rule,
            Bounds(replicas, log, records, epochs),
            tuple(sorted(set(faults))),
            {word: name for name, word in replicas_search.PROPERTY_NAMES.items()}[violates],
            limits=limits(max_states, max_seconds, max_memory),
            tell=teller.tell,
        )
    files = replicas_search.write(searched, out)
    if as_json:
        print_json(replicas_search.to_json(searched, files))
    else:
        from watchkeeper.api.tables import console

        replicas_search.report(searched, console(), files)
    return searched.exit_code


class _Teller(ProgressLine):
    """The progress of a search on a terminal, once a second."""

    def __init__(self) -> None:
        super().__init__(after_s=EVERY_S, every_s=EVERY_S)

    def tell(self, progress: Progress) -> None:
        """Show the progress unless the last line is recent."""
        if self.is_due:
            from watchkeeper.check.report import progress_line

            self.say(progress_line(progress))
