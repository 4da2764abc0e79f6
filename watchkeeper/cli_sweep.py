"""The command about runs by the hundred; `cli` adds it to the others."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from watchkeeper import options
from watchkeeper.endings import print_json


@click.command()
@click.argument("scenario")
@click.option("--seeds", metavar="FIRST:END", help="Which, such as 0:1000.  [default: 0:100]")
@click.option("--variants", metavar="A,B", help="Which; the scenario's own unless given.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=A,B",
    help="Give a value of the scenario each of these in turn: timeline.1.at=5s,10s",
)
@click.option(
    "--runner",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "process", "pool", "spark"]),
    help="This process, several, or Spark; auto goes by the work there is.",
)
@click.option("--master", help="Spark's: local[2], spark://HOST:PORT, yarn or k8s://...")
@click.option("--jobs", type=options.MANY, help="How many at once.  [default: as many as cores]")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder of this sweep; the same command goes on with what is in it.",
)
@click.option(
    "--traces",
    default=100,
    show_default=True,
    type=click.IntRange(0),
    help="Keep at most so many traces of failures.",
)
@click.option("--shrink/--no-shrink", default=True, help="Look for the smallest failures.")
@click.option(
    "--chunk",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Commit results in chunks of at least so much work.",
)
@options.profile
@options.as_json
def sweep(
    scenario: str,
    seeds: str | None,
    variants: str | None,
    changes: tuple[str, ...],
    runner: str,
    master: str | None,
    jobs: int | None,
    out: Path,
    traces: int,
    shrink: bool,
    chunk: float,
    profile: Path | None,
    as_json: bool,
) -> int:
    """Run SCENARIO with many seeds, variants and values, and say how often it fails.

    A scenario may say itself what a sweep of it runs; what is given here comes first. Results
    are tables in the folder, a row a run. Killed at any moment, the same command goes on.

    \b
    Exit codes: 0 all runs hold, or are as expected; 1 some are not, or the sweep is invalid;
    2 unknown or interrupted; 3 some are not deterministic; 4 usage or environment.
    """
    from watchkeeper import sweep_printing, sweeping
    from watchkeeper.sweep_grid import Request

    swept = sweeping.sweep(
        Request(scenario, out, seeds, variants, changes, profile),
        sweeping.Means(runner, master, jobs, traces, shrink, chunk),
        lambda what: print(f"runner  {what}", file=sys.stderr),
    )
    said = sweep_printing.to_json(swept)
    files = sweep_printing.write(swept, said)
    if as_json:
        print_json({**said, "files": files})
    else:
        from watchkeeper.printing import console

        sweep_printing.report(swept, console(), files)
    return swept.exit_code
