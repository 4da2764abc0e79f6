"""The commands about every interleaving; `cli` adds them to the others."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from watchkeeper import options
from watchkeeper.endings import print_json

if TYPE_CHECKING:
    from explore.search import Progress

EVERY_S = 1.0


@click.command()
@click.argument("scenario")
@options.variant
@click.option(
    "--all", "goes_on", is_flag=True, help="Find the nearest violation of each property."
)
@click.option("--max-states", type=options.MANY, help="Give up after so many states.")
@click.option(
    "--max-seconds", type=click.FloatRange(0, min_open=True), help="Give up after that."
)
@click.option(
    "--max-memory",
    type=click.FloatRange(0, min_open=True),
    metavar="GIB",
    help="Give up when so much memory is used.  [default: three quarters of what is free]",
)
@click.option(
    "--reduce/--no-reduce", "reduces", default=True, help="Pass over what makes no difference."
)
@options.out
@options.as_json
def explore(
    scenario: str,
    variant: str | None,
    goes_on: bool,
    max_states: int | None,
    max_seconds: float | None,
    max_memory: float | None,
    reduces: bool,
    out: Path,
    as_json: bool,
) -> int:
    """Search every interleaving of SCENARIO, within its bounds.

    Every order of operations, notifications and faults is tried. Either nothing is violated,
    or the shortest counterexample is told.

    \b
    Exit codes: 0 holds within the bound, 1 violated, 2 a limit was reached or the search
    interrupted, 4 usage or environment.
    """
    from watchkeeper import exploring, exploring_files
    from watchkeeper.commands import planned

    named, _ = planned(scenario, variant)
    limits = exploring.limits(max_states, max_seconds, max_memory)
    explored = exploring.explore_scenario(
        named, variant, limits=limits, goes_on=goes_on, reduces=reduces, tell=_Teller().tell
    )
    files = exploring_files.write(explored, out)
    if as_json:
        print_json(exploring.to_json(explored, files))
    else:
        from watchkeeper.exploring_printing import report
        from watchkeeper.printing import console

        report(explored, console(), files)
    return explored.exit_code


class _Teller:
    """Says on a terminal, once a second, how far a search has come."""

    def __init__(self) -> None:
        self.said_s = time.monotonic()

    def tell(self, progress: Progress) -> None:
        """Say it, if the last time is long ago."""
        now = time.monotonic()
        if sys.stderr.isatty() and now - self.said_s >= EVERY_S:
            from watchkeeper.exploring_printing import progress_line

            self.said_s = now
            print(f"\r\x1b[K{progress_line(progress)}", end="", file=sys.stderr, flush=True)
