"""The command about the traces of many runs; `cli` adds it to the others."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from watchkeeper import options
from watchkeeper.endings import USAGE, Stop, print_json


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    default="analysis",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder that is written; an earlier analysis there is replaced.",
)
@click.option("--master", help="Spark's: local[2], spark://HOST:PORT, yarn or k8s://...")
@click.option(
    "--inevitable",
    metavar="RUN",
    help="Of this failing run: from which event on it had to fail, by branches from many events.",
)
@click.option(
    "--branches", default=100, show_default=True, type=options.MANY, help="From each event."
)
@options.as_json
def analyze(
    runs: tuple[Path, ...],
    out: Path,
    master: str | None,
    inevitable: str | None,
    branches: int,
    as_json: bool,
) -> int:
    """Analyse the traces in RUNS, and judge every run a second time.

    RUNS are folders of runs or of sweeps, or folders that hold some. Every property is
    computed again, from the trace alone and in another way, and has to come to the verdict of
    the run.

    \b
    Exit codes: 0 both agree on all runs; 1 they do not; 2 there was nothing to compare, or
    interrupted; 4 usage or environment.
    """
    if find_spec("pyspark") is None:
        raise Stop(USAGE, "PySpark is not installed; pip install 'watchkeeper[spark]'")
    from watchkeeper import analysis_printing, analyzing

    request = analyzing.Request(runs, out, master, inevitable, branches)
    done = analyzing.analyze(request, analysis_printing.write)
    if as_json:
        print_json(analysis_printing.to_json(done))
    else:
        from watchkeeper.printing import console

        analysis_printing.report(done, console())
    for one in done.found.differences:
        print(analysis_printing.sentence(one), file=sys.stderr)
    return done.exit_code
