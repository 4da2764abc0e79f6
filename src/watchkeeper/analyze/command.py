"""The command `analyze`: the traces of many runs, judged a second time."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from watchkeeper.console import completion, options
from watchkeeper.console.exit import print_json
from watchkeeper.console.options import example


@click.command(
    epilog=example(
        "watchkeeper analyze runs --out analysis",
        "watchkeeper analyze swept --inevitable consumer-crash-documented-sim-3",
    )
)
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    shell_complete=completion.runs,
)
@click.option(
    "--out",
    default="analysis",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder of the analysis; an earlier analysis there is replaced.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "duckdb", "spark"]),
    default="auto",
    show_default=True,
    help="What computes the tables: duckdb, in this process, or spark, which needs Java; both "
    "give the same result. auto: duckdb up to 200 MB of traces (about a million events), and "
    "above where Spark cannot be started.",
)
@click.option(
    "--master",
    help="The master of Spark: local[2], spark://HOST:PORT, yarn or k8s://...; implies --engine "
    "spark.",
)
@click.option(
    "--inevitable",
    metavar="RUN",
    help="Find the event from which on this failing run had to fail, by branches from many.",
)
@click.option(
    "--branches",
    default=100,
    show_default=True,
    type=options.MANY,
    help="Branches from each event.",
)
@options.talking
@options.as_json
def analyze(
    runs: tuple[Path, ...],
    out: Path,
    engine: str,
    master: str | None,
    inevitable: str | None,
    branches: int,
    as_json: bool,
) -> int:
    """Analyse the traces in RUNS, and judge every run a second time.

    RUNS are folders of runs or of sweeps, or folders that contain some. Every property is
    computed a second time, from the trace alone and by other code, and has to come to the
    verdict of the run.

    \b
    Exit codes: 0 both agree on all runs; 1 they do not; 2 there was nothing to compare, or
    interrupted; 4 usage or environment.
    """
    from watchkeeper.analyze import analyze as analysis
    from watchkeeper.analyze import report
    from watchkeeper.analyze.engines import EngineName

    request = analysis.Request(runs, out, master, inevitable, branches, EngineName(engine))
    done = analysis.analyze(request, report.write)
    if as_json:
        print_json(report.to_json(done))
    else:
        from watchkeeper.api.tables import console

        report.report(done, console())
    for difference in done.found.differences:
        print(report.sentence(difference), file=sys.stderr)
    return done.exit_code
