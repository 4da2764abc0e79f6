"""The commands about every interleaving; `cli` adds them to the others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watchkeeper import options
from watchkeeper.endings import HOLDS, VIOLATED, print_json
from watchkeeper.progress_line import ProgressLine

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
@click.option(
    "--jobs",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="With 2, one core expands states while another looks up what is new.",
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
    jobs: int,
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
    with _Teller() as teller:
        explored = exploring.explore_scenario(
            named,
            variant,
            limits=limits,
            goes_on=goes_on,
            reduces=reduces,
            jobs=jobs,
            tell=teller.tell,
        )
    files = exploring_files.write(explored, out)
    if as_json:
        print_json(exploring.to_json(explored, files))
    else:
        from watchkeeper.exploring_printing import report
        from watchkeeper.printing import console

        report(explored, console(), files)
    return explored.exit_code


class _Teller(ProgressLine):
    """Says on a terminal, once a second, how far a search has come."""

    def __init__(self) -> None:
        super().__init__(after_s=EVERY_S, every_s=EVERY_S)

    def tell(self, progress: Progress) -> None:
        """Say it, if the last time is long ago."""
        if self.is_due:
            from watchkeeper.exploring_printing import progress_line

            self.say(progress_line(progress))


@click.command()
@click.argument("counterexample")
@click.option(
    "--world",
    default="sim",
    show_default=True,
    type=click.Choice(["sim", "live"]),
    help="In the simulation, or on a real ZooKeeper, one operation at a time.",
)
@options.zookeeper
@options.reaching
@options.as_json
def replay(
    counterexample: str, world: str, zookeeper: str | None, as_json: bool, **access: Any
) -> int:
    """Follow the schedule of COUNTEREXAMPLE, a file that `explore` has written.

    The simulation follows it and has to reach the same violation. Live, every answer, every
    event and the znodes in the end are compared with what the exploration says.

    \b
    Exit codes: 0 the schedule goes as it says, and in the simulation to the same violation;
    1 it does not; 4 usage or environment.
    """
    from watchkeeper import replaying_files

    done = replaying_files.replay_file(
        counterexample, world, zookeeper, options.credentials_in(access)
    )
    if as_json:
        print_json(replaying_files.to_json(done))
    else:
        print(done.said)
        if done.limits:
            print(done.limits)
    return HOLDS if done.conforms and done.reached else VIOLATED


@click.command()
@click.argument("scenario")
@options.variant
@click.option("--schedules", default=100, show_default=True, type=options.MANY, help="How many.")
@click.option("--seed", default=0, show_default=True, help="What chance begins with.")
@options.zookeeper
@options.reaching
@options.as_json
def conform(
    scenario: str,
    variant: str | None,
    schedules: int,
    seed: int,
    zookeeper: str | None,
    as_json: bool,
    **access: Any,
) -> int:
    """Follow random schedules of SCENARIO on a real ZooKeeper.

    Each is drawn from what a search of it could do; every answer, every event and the znodes
    in the end are compared with what the exploration says.

    \b
    Exit codes: 0 all conform, 1 one does not, 4 usage or environment.
    """
    from watchkeeper import replaying_files

    done = replaying_files.conform_scenario(
        scenario, variant, schedules, seed, zookeeper, options.credentials_in(access)
    )
    if as_json:
        print_json(replaying_files.conformed_json(done))
    else:
        print(done.said)
    return HOLDS if done.conforms else VIOLATED


@click.command()
@click.option(
    "--write", type=click.Path(path_type=Path), help="Write the page there, and print nothing."
)
@click.option(
    "--check", type=click.Path(path_type=Path), help="Exit 1 if this page is not what is found."
)
def findings(write: Path | None, check: Path | None) -> int:
    """Search the versions of the protocol fault by fault, and tell what was found.

    \b
    Exit codes: 0 the page was made, or is true; 1 the page is not true any more.
    """
    from watchkeeper import findings_page

    made = findings_page.page(lambda what: print(what, file=sys.stderr))
    if check is not None:
        return findings_page.compare(check, made)
    if write is not None:
        findings_page.save(write, made)
    else:
        print(made, end="")
    return HOLDS


EXPLORE_COMMANDS = (explore, replay, conform, findings)
