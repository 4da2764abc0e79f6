"""The command `sweep`: one scenario with many seeds, variants and values."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from watchkeeper.console import options
from watchkeeper.console.exit import print_json
from watchkeeper.console.options import example
from watchkeeper.console.progress import is_quiet


@click.command(
    epilog=example(
        "watchkeeper sweep consumer-crash --seeds 1000 --out swept",
        "watchkeeper sweep consumer-crash --seeds 5..20 --variants kafka_08,hardened --out swept",
        "watchkeeper sweep consumer-crash --set timeline.1.at=5s,10s --out swept",
    )
)
@options.scenario
@click.option(
    "--seeds",
    metavar="N|FIRST..LAST",
    help="How many, from 0 on, or the first and the last.  [default: 100]",
)
@click.option("--variants", metavar="A,B", help="Variants.  [default: that of the scenario]")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=A,B",
    help="Give a field of the scenario each of these values in turn.",
)
@click.option(
    "--runner",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "process", "pool", "spark"]),
    help="This process, several, or Spark; auto decides by the amount of work.",
)
@click.option(
    "--master", help="The master of Spark: local[2], spark://HOST:PORT, yarn or k8s://..."
)
@click.option("--jobs", type=options.MANY, help="How many runs at once.  [default: one a core]")
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder of this sweep; the same command continues what it holds.",
)
@click.option(
    "--traces",
    default=100,
    show_default=True,
    type=click.IntRange(0),
    help="Keep at most so many traces of failing runs.",
)
@click.option(
    "--shrink/--no-shrink",
    default=True,
    help="Look for the smallest scenario with each kind of failure.",
)
@click.option(
    "--shrink-time",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Look for the smallest scenarios for at most so long, all failures together.",
)
@click.option(
    "--chunk",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Commit results in chunks of at least so much work.",
)
@options.profile
@options.talking
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
    shrink_time: float,
    chunk: float,
    profile: Path | None,
    as_json: bool,
) -> int:
    """Run SCENARIO with many seeds, variants and values.

    The report says how often each of them fails, and in which ways. A scenario may have a
    section `sweep`; options given here come first. Results are tables in the folder, one row
    a run. After a kill at any moment the same command continues.

    \b
    Exit codes: 0 all runs hold, or are as expected, also at a known limit;
    1 some are not, or the sweep is invalid;
    2 unknown or interrupted; 3 some are not deterministic; 4 usage or environment.
    """
    from watchkeeper.sweep import report
    from watchkeeper.sweep import sweep as sweeps
    from watchkeeper.sweep.grid import Request

    swept = sweeps.sweep(
        Request(scenario, out, seeds, variants, changes, profile),
        sweeps.Means(runner, master, jobs, traces, shrink_time if shrink else None, chunk),
        lambda line: None if is_quiet() else print(line, file=sys.stderr),
    )
    summary = report.to_json(swept)
    files = report.write(swept, summary)
    if as_json:
        print_json({**summary, "files": files})
    else:
        from watchkeeper.api.tables import console

        report.report(swept, console(), files)
    if swept.is_interrupted:
        print(report.interrupted_text(swept), file=sys.stderr)
    return swept.exit_code
