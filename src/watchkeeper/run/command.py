"""The commands `run`, `compare`, `report` and `diff`, and those that list what can be run."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watchkeeper.console import completion, options
from watchkeeper.console.defaults import is_default
from watchkeeper.console.exit import HOLDS, UNKNOWN, VIOLATED, print_json
from watchkeeper.console.options import example

if TYPE_CHECKING:
    from watchkeeper.api.result import Result

# --- run -------------------------------------------------------------------------------


@click.command(
    epilog=example(
        "watchkeeper run consumer-crash --variant kafka_08 --seed 7",
        "watchkeeper run consumer-crash --world live",
    )
)
@options.scenario
@options.variant
@options.seed
@click.option(
    "--world",
    default="sim",
    show_default=True,
    type=click.Choice(["sim", "live"]),
    help="Simulate, or start processes and an embedded ZooKeeper.",
)
@options.out
@click.option("--pictures/--no-pictures", default=True, help="Draw figures and pages.")
@click.option("--check-determinism", is_flag=True, help="Run it a second time and compare.")
@click.option("--all", "shows_all", is_flag=True, help="Show every property with its evidence.")
@options.profile
@options.elsewhere
@options.talking
@options.as_json
def run(
    scenario: str,
    variant: str | None,
    seed: int,
    world: str,
    out: Path,
    pictures: bool,
    check_determinism: bool,
    shows_all: bool,
    profile: Path | None,
    as_json: bool,
    **live: Any,
) -> int:
    """Run SCENARIO, judge it and draw it.

    SCENARIO is a file, the name of a shipped scenario, or - for standard input. The folder of
    the run gets its trace, its verdict, and its figures and pages.

    \b
    Exit codes: 0 holds, or as the scenario expects, also a known limit; 1 violated, or not
    as expected; 2 unknown or interrupted; 3 not deterministic; 4 usage or environment.
    """
    from watchkeeper.run import live_run
    from watchkeeper.run.run import run as run_scenario

    live = options.live_options(live, world)
    if world != "sim":
        profile = None if is_default("profile") else profile
        check_determinism = check_determinism and not is_default("check_determinism")
    ran = run_scenario(
        scenario,
        variant,
        seed,
        out,
        world=world,
        pictures=pictures,
        checks_determinism=check_determinism,
        where=live_run.where(world, options.credentials_in(live), **live),
        profile=profile,
    )
    if as_json:
        print_json(ran.result.to_json(ran.files))
    else:
        _show(ran.result, ran.files, shows_all=shows_all)
    if ran.missing:
        print(ran.missing_text, file=sys.stderr)
        return UNKNOWN
    return ran.result.exit_code


def _show(result: Result, files: list[str], *, shows_all: bool) -> None:
    from watchkeeper.api.result import report
    from watchkeeper.api.tables import console

    report(result, console(), files, shows_all=shows_all)


# --- listings --------------------------------------------------------------------------


@click.command(epilog=example("watchkeeper init", "watchkeeper init my-checks"))
@click.argument("folder", default=".", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a scenario and a test to start from into FOLDER.

    They are first.yaml and test_first.py. A file that is there is never overwritten.
    """
    from watchkeeper.run.starter import write_starter

    for place in write_starter(folder):
        print(place)


@click.command(epilog=example("watchkeeper scenarios"))
@options.as_json
def scenarios(as_json: bool) -> None:
    """List the scenarios that come with watchkeeper."""
    from watchkeeper.run.catalogue import scenario_rows, show_scenarios

    if as_json:
        print_json(scenario_rows())
    else:
        show_scenarios()


@click.command(epilog=example("watchkeeper variants --json"))
@options.as_json
def variants(as_json: bool) -> None:
    """List the versions of the protocol."""
    from watchkeeper.run.catalogue import show_variants, variant_rows

    rows = variant_rows()
    if as_json:
        print_json(rows)
    else:
        show_variants(rows)


@click.command(epilog=example("watchkeeper schema > scenario.schema.json"))
@options.as_json
def schema(as_json: bool) -> None:
    """Print the JSON Schema of a scenario file, for editors."""
    from watchkeeper.scenarios import json_schema

    print_json(json_schema())


@click.command(epilog=example("watchkeeper validate scenarios", "watchkeeper validate my.yaml"))
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", shell_complete=completion.scenarios
)
@options.as_json
def validate(files: tuple[str, ...], as_json: bool) -> None:
    """Check scenario files without running them.

    FILE is a scenario file, a folder (every *.yaml and *.yml in it), the name of a shipped
    scenario, or - for standard input. Each is planned for every variant that it names.

    \b
    Exit codes: 0 all are valid; 4 one is not, or cannot be read.
    """
    from watchkeeper.run.validate import all_of
    from watchkeeper.run.validate import validate as check_files

    valid, wrong = check_files(files)
    if as_json and not wrong:
        print_json([one.to_json() for one in valid])
    elif not as_json:
        for one in valid:
            print(one)
    if wrong:
        raise all_of(wrong)


# --- existing runs ---------------------------------------------------------------------


@click.command(epilog=example("watchkeeper report runs/consumer-crash-hardened-sim-0"))
@click.argument("folder", type=click.Path(path_type=Path), shell_complete=completion.runs)
@click.option("--gif", "moves", is_flag=True, help="Draw ownership as a film too, a GIF.")
@options.as_json
def report(folder: Path, moves: bool, as_json: bool) -> None:
    """Draw the figures of the run in FOLDER again, from its trace."""
    from watchkeeper.run.run import draw_again

    files = draw_again(folder, moves=moves)
    if as_json:
        print_json({"folder": str(folder), "files": files})
    else:
        for name in files:
            print(name)


@click.command("open", epilog=example("watchkeeper open", "watchkeeper open runs/my-run"))
@click.argument(
    "place",
    metavar="[RUN]",
    default="runs",
    type=click.Path(path_type=Path),
    shell_complete=completion.runs,
)
def open_run(place: Path) -> None:
    """Open the first page of RUN in a browser.

    RUN is the folder of a run, or one with runs, of which the last is opened; by default runs/.
    `run` lets the link `latest` beside its folder lead to it.
    """
    from watchkeeper.run.run import first_page

    page = first_page(place)
    print(page)
    if not webbrowser.open(page.resolve().as_uri()):
        print("no browser is there to open it", file=sys.stderr)


@click.command(
    epilog=example("watchkeeper export runs/consumer-crash-hardened-sim-0 --format shiviz")
)
@click.argument("run", type=click.Path(path_type=Path), shell_complete=completion.runs)
@click.option(
    "--format",
    "viewer",
    type=click.Choice(["perfetto", "shiviz", "transcript"]),
    default="perfetto",
    show_default=True,
    help="For Perfetto and Chrome's tracing, for ShiViz, or to read: a line an event.",
)
@click.option("--out", type=click.Path(path_type=Path), help="The file to write.")
@options.as_json
def export(run: Path, viewer: str, out: Path | None, as_json: bool) -> None:
    """Write the trace of RUN in another format.

    RUN is the folder of a run, or a trace. Without --out the file is beside the trace:
    perfetto.json, shiviz.log or transcript.txt.
    """
    from watchkeeper.run.run import export_trace

    file = export_trace(run, viewer, out)
    if as_json:
        print_json({"run": str(run), "format": viewer, "file": file})
    else:
        print(file)


@click.command(
    epilog=example(
        "watchkeeper diff runs/consumer-crash-hardened-sim-0 runs/consumer-crash-hardened-sim-1"
    )
)
@click.argument("one", type=click.Path(path_type=Path), shell_complete=completion.runs)
@click.argument("other", type=click.Path(path_type=Path), shell_complete=completion.runs)
@options.as_json
def diff(one: Path, other: Path, as_json: bool) -> int:
    """Show the first difference between two runs.

    ONE and OTHER are folders of runs. What follows from the difference is shown, too.

    \b
    Exit codes: 0 the runs are the same; 1 they differ; 4 usage or environment.
    """
    from watchkeeper.run import difference

    parting = difference.diff(one, other)
    if as_json:
        print_json(difference.parting_json(parting))
    else:
        difference.show_parting(parting, (str(one), str(other)))
    return HOLDS if parting is None else VIOLATED


# --- both worlds -----------------------------------------------------------------------


@click.command(epilog=example("watchkeeper compare consumer-crash --seeds 20 --runs 2"))
@options.scenario
@options.variant
@click.option(
    "--seeds",
    default=10,
    show_default=True,
    type=options.MANY,
    help="The number of simulated runs.",
)
@click.option(
    "--runs", default=1, show_default=True, type=options.MANY, help="The number of live runs."
)
@options.out
@options.profile
@options.elsewhere
@options.talking
@options.as_json
def compare(
    scenario: str,
    variant: str | None,
    seeds: int,
    runs: int,
    out: Path,
    profile: Path | None,
    as_json: bool,
    **live: Any,
) -> int:
    """Run SCENARIO in simulation and live, and compare the two.

    \b
    Exit codes: 0 the verdicts agree, or the scenario says why they may differ;
    1 they differ; 2 interrupted; 4 usage or environment.
    """
    from watchkeeper.run import compare as comparing_worlds
    from watchkeeper.run import live_run

    live = options.live_options(live, "live")
    where = live_run.where("live", options.credentials_in(live), **live)
    done = comparing_worlds.compare(
        scenario, variant, out, seeds=seeds, runs=runs, where=where, profile=profile
    )
    if as_json:
        print_json(done.to_json())
    else:
        from watchkeeper.api.tables import console

        comparing_worlds.show(done, console())
    return done.comparison.exit_code
