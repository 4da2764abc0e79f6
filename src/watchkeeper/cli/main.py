"""The command line: which commands there are, and how each of them ends.

A command stands in the folder of its use case, as `command.py`; it imports what it does when
it runs. So `--help` is there at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from watchkeeper.analyze.command import analyze
from watchkeeper.check.command import conform, explore, replay
from watchkeeper.check.control_plane_command import (
    explore_brokers,
    explore_offsets,
    explore_replicas,
)
from watchkeeper.check.virtual_command import virtual
from watchkeeper.cli.defaults_command import defaults as defaults_command
from watchkeeper.cli.sections import SectionedGroup, usage_text
from watchkeeper.console.defaults import defaults
from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, Stop, defect, report_stop
from watchkeeper.console.extras import MissingExtra
from watchkeeper.console.options import example
from watchkeeper.console.output import OutputLost, patient
from watchkeeper.console.signals import INTERRUPTED, INTERRUPTS
from watchkeeper.experiment.command import experiment
from watchkeeper.logs.activity_command import activity
from watchkeeper.logs.load_command import load
from watchkeeper.operate.admin_command import config, controller, prefer, reassign, topics
from watchkeeper.operate.command import audit, broker, calibrate, migrate_offsets, mirror, offsets
from watchkeeper.operate.zookeeper_command import zookeeper
from watchkeeper.run.command import (
    compare,
    diff,
    export,
    init,
    open_run,
    report,
    run,
    scenarios,
    schema,
    validate,
    variants,
)
from watchkeeper.sweep.command import sweep

PROGRAM = "watchkeeper"
NO_DEFAULTS = {"-h", "--help", "--version"}
"""With one of these nothing is run, so a wrong file with defaults does not matter."""
SECTIONS = {
    "Run and check": (
        *(init, run, open_run, compare, report, export, diff),
        *(explore, explore_replicas, explore_brokers, explore_offsets, replay, conform),
        *(virtual,),
        *(scenarios, variants, schema, validate, defaults_command),
        experiment,
    ),
    "Sweep and analyse": (sweep, analyze),
    "Operate": (
        *(audit, offsets, migrate_offsets),
        *(topics, reassign, prefer, config, controller),
        *(zookeeper, broker, mirror, calibrate),
    ),
    "Logs": (load, activity),
}


def _print_version(context: click.Context, option: click.Parameter, is_given: bool) -> None:
    if not is_given or context.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"{PROGRAM} {version(PROGRAM)}")
    context.exit()


@click.group(
    cls=SectionedGroup,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=example(
        "watchkeeper run consumer-crash",
        "watchkeeper explore consumer-crash",
        "watchkeeper sweep consumer-crash --seeds 100 --out swept",
    ),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
def app() -> None:
    """Simulate and verify systems that coordinate through ZooKeeper.

    \b
    Exit codes: 0 holds, or as the scenario expects, also a known limit; 1 violated, or not
    as expected; 2 unknown or interrupted; 3 not deterministic; 4 usage or environment.

    An error is a sentence on standard error. With --json it is also the one value on
    standard output: {"error": {"code": ..., "message": ..., "problems": [...]}}. A problem is
    an error in a file, with the keys "file", "line", "field" and "message".
    """


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.stdout = patient(sys.stdout, reports_loss=True)
    sys.stderr = patient(sys.stderr, reports_loss=False)
    code = run_command(sys.argv[1:])
    INTERRUPTS.ignore_from_now_on()
    sys.exit(code)


def run_command(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        try:
            code = _run(arguments)
        except Stop as stop:
            code = report_stop(stop, as_json="--json" in arguments)
        sys.stdout.flush()
        return code
    except OutputLost as lost:
        return report_stop(Stop(USAGE, str(lost)), as_json=False)


def _run(arguments: list[str]) -> int:
    """Run one command; every error becomes a Stop, with a sentence."""
    try:
        held = None if NO_DEFAULTS & {*arguments} else defaults(app, Path.cwd(), os.environ)
        done: Any = app.main(
            arguments,
            prog_name=PROGRAM,
            standalone_mode=False,
            obj=held,
            default_map=held and held.of_commands,
        )
    except (Stop, OutputLost):
        raise
    except click.UsageError as error:
        raise Stop(USAGE, usage_text(error, PROGRAM)) from None
    except MissingExtra as missing:
        raise Stop(USAGE, str(missing)) from None
    except (click.exceptions.Abort, KeyboardInterrupt):
        raise Stop(UNKNOWN, INTERRUPTED) from None
    except Exception as error:
        raise (Stop(UNKNOWN, INTERRUPTED) if INTERRUPTS.came else defect(error)) from None
    return done if isinstance(done, int) else HOLDS
