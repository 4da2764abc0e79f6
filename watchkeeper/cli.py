"""The command line.

Each command is a few lines here; what it does stands in the module it imports when it
runs. So `--help` is there at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watchkeeper import options
from watchkeeper.cli_activity import activity
from watchkeeper.cli_analyze import analyze
from watchkeeper.cli_explore import EXPLORE_COMMANDS
from watchkeeper.cli_live import LIVE_COMMANDS
from watchkeeper.cli_load import load
from watchkeeper.cli_sweep import sweep
from watchkeeper.endings import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop, defect, print_json, tell
from watchkeeper.interrupts import INTERRUPTED, INTERRUPTS
from watchkeeper.outlets import OutputLost, patient

if TYPE_CHECKING:
    from watchkeeper.result import Result


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """Simulate and verify systems that coordinate through ZooKeeper.

    \b
    Exit codes: 0 holds, or as the scenario expects; 1 violated, or not as expected;
    2 unknown or interrupted; 3 not deterministic; 4 usage or environment.

    An error is a sentence on standard error. With --json it is also the one value on
    standard output: {"error": {"code": ..., "said": ..., "problems": [...]}}. A problem is
    what is wrong with a file, with the keys "file", "line", "field" and "said".
    """


def main() -> None:
    """Run the command line and leave with its exit code."""
    INTERRUPTS.listen()
    sys.stdout = patient(sys.stdout, tells=True)
    sys.stderr = patient(sys.stderr, tells=False)
    code = run_command(sys.argv[1:])
    INTERRUPTS.ignore_from_now_on()
    sys.exit(code)


def run_command(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    try:
        try:
            code = _run(arguments)
        except Stop as stop:
            code = tell(stop, as_json="--json" in arguments)
        sys.stdout.flush()
        return code
    except OutputLost as lost:
        return tell(Stop(USAGE, str(lost)), as_json=False)


def _run(arguments: list[str]) -> int:
    """Run one command; whatever goes wrong becomes a Stop, with a sentence."""
    try:
        done = app.main(arguments, prog_name="watchkeeper", standalone_mode=False)
    except (Stop, OutputLost):
        raise
    except click.UsageError as error:
        said = f"{error.format_message()}\nTry 'watchkeeper --help'."
        raise Stop(USAGE, said) from None
    except (click.exceptions.Abort, KeyboardInterrupt):
        raise Stop(UNKNOWN, INTERRUPTED) from None
    except Exception as error:
        raise (Stop(UNKNOWN, INTERRUPTED) if INTERRUPTS.came else defect(error)) from None
    return done if isinstance(done, int) else HOLDS


# --- run -------------------------------------------------------------------------------


@app.command()
@click.argument("scenario")
@options.variant
@click.option("--seed", default=0, show_default=True, help="What chance begins with.")
@click.option(
    "--world",
    default="sim",
    show_default=True,
    type=click.Choice(["sim", "live"]),
    help="Simulate, or run for real: processes and an embedded ZooKeeper.",
)
@options.out
@click.option("--pictures/--no-pictures", default=True, help="Draw pictures and pages.")
@click.option("--check-determinism", is_flag=True, help="Run twice; name the first difference.")
@options.profile
@options.elsewhere
@options.as_json
def run(
    scenario: str,
    variant: str | None,
    seed: int,
    world: str,
    out: Path,
    pictures: bool,
    check_determinism: bool,
    profile: Path | None,
    as_json: bool,
    **live: Any,
) -> int:
    """Run SCENARIO, judge it and draw it.

    SCENARIO is a file, or the name of a shipped scenario.
    """
    from watchkeeper import commands, living

    ran = commands.run(
        scenario,
        variant,
        seed,
        out,
        world=world,
        pictures=pictures,
        twice=check_determinism,
        where=living.where(world, options.credentials_in(live), **live),
        profile=profile,
    )
    if as_json:
        print_json(ran.result.to_json(ran.files))
    else:
        _show(ran.result, ran.files)
    if ran.missing:
        print(ran.said_of_missing, file=sys.stderr)
        return UNKNOWN
    return ran.result.exit_code


def _show(result: Result, files: list[str]) -> None:
    from watchkeeper.printing import console, report

    report(result, console(), files)


# --- looking around --------------------------------------------------------------------


@app.command()
@options.as_json
def scenarios(as_json: bool) -> None:
    """List the scenarios that come with watchkeeper."""
    from watchkeeper import commands

    rows = commands.scenarios()
    if as_json:
        print_json(rows)
    else:
        from watchkeeper.listing import show_scenarios

        show_scenarios(rows)


@app.command()
@options.as_json
def variants(as_json: bool) -> None:
    """List the versions of the protocol."""
    from watchkeeper import commands

    rows = commands.variants()
    if as_json:
        print_json(rows)
    else:
        from watchkeeper.listing import show_variants

        show_variants(rows)


@app.command()
@options.as_json
def schema(as_json: bool) -> None:
    """Print the JSON Schema of a scenario file, for editors."""
    from scenarios import json_schema

    print_json(json_schema())


# --- runs that have been made ----------------------------------------------------------


@app.command()
@click.argument("folder", type=click.Path(path_type=Path))
@options.as_json
def report(folder: Path, as_json: bool) -> None:
    """Draw the pictures and pages of the run in FOLDER again, from its trace."""
    from watchkeeper import commands

    files = commands.draw_again(folder)
    if as_json:
        print_json({"folder": str(folder), "files": files})
    else:
        for name in files:
            print(name)


@app.command()
@click.argument("one", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path))
@options.as_json
def diff(one: Path, other: Path, as_json: bool) -> int:
    """Show where two runs part, and what followed from it; exit 1 if they do.

    ONE and OTHER are folders of runs.
    """
    from watchkeeper import commands

    parting = commands.diff(one, other)
    if as_json:
        print_json(commands.parting_json(parting))
    else:
        from watchkeeper.listing import show_parting

        show_parting(parting, (str(one), str(other)))
    return HOLDS if parting is None else VIOLATED


@app.command()
@options.as_json
def version(as_json: bool) -> None:
    """Print the version."""
    from watchkeeper import __version__

    if as_json:
        print_json({"watchkeeper": __version__})
    else:
        print(__version__)


for command in (*LIVE_COMMANDS, *EXPLORE_COMMANDS, activity, analyze, load, sweep):
    app.add_command(command)
