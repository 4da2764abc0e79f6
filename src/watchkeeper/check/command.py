"""The commands `explore`, `replay` and `conform`: every interleaving, and single schedules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watchkeeper.console import completion, options
from watchkeeper.console.defaults import is_default
from watchkeeper.console.exit import HOLDS, USAGE, VIOLATED, Stop, print_json
from watchkeeper.console.options import example
from watchkeeper.console.progress import ProgressLine
from watchkeeper.console.signals import INTERRUPTS

if TYPE_CHECKING:
    from watchkeeper.check.browse import Browser
    from watchkeeper.checker.search.search import Progress, SearchOptions
    from watchkeeper.scenarios import Scenario

EVERY_S = 1.0
LAST_PORT = 65_535
BUDGET_S = 300.0
"""The time for all searches of a scenario without bounds of its own."""


@click.command(
    epilog=example(
        "watchkeeper explore consumer-crash --variant kafka_07",
        "watchkeeper explore consumer-crash --all --budget 10m",
    )
)
@options.scenario
@options.variant
@click.option(
    "--all", "finds_all", is_flag=True, help="Find the nearest violation of each property."
)
@click.option(
    "--budget",
    type=options.DURATION,
    help="The time for all searches of a scenario without `bounds:`.  [default: 5m]",
)
@options.max_states
@options.max_seconds
@options.max_memory
@click.option(
    "--reduce/--no-reduce", "reduces", default=True, help="Use partial-order reduction."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="With 2, one core expands states while another looks up new ones.",
)
@click.option("--serve", "serves", is_flag=True, help="Then serve a page to browse its states.")
@click.option(
    "--port",
    type=click.IntRange(0, LAST_PORT),
    default=0,
    help="The port of that page, on 127.0.0.1.  [default: a free one]",
)
@options.out
@options.talking
@options.as_json
def explore(
    scenario: str,
    variant: str | None,
    finds_all: bool,
    budget: float | None,
    max_states: int | None,
    max_seconds: float | None,
    max_memory: float | None,
    reduces: bool,
    jobs: int,
    serves: bool,
    port: int,
    out: Path,
    as_json: bool,
) -> int:
    """Search every interleaving of SCENARIO, within its bounds.

    Every order of operations, notifications and faults is tried. If a property is violated,
    the shortest counterexample is printed. A scenario without `bounds:` gets a battery of
    searches: each fault and each change of topics once, for groups that begin fresh or
    settled, with and without messages. With --serve it is one search, of what its timeline has.

    \b
    Exit codes: 0 holds within the bounds, but for a known limit of the scenario; 1 violated;
    2 a limit was reached, or the search was interrupted; 4 usage or environment.
    """
    from watchkeeper.check.limits import limits
    from watchkeeper.checker.search.search import SearchOptions
    from watchkeeper.run.run import planned

    named, _ = planned(scenario, variant)
    within = limits(max_states, max_seconds, max_memory)
    searching = SearchOptions(within, finds_all, reduces, jobs)
    if port and not serves and not is_default("port"):
        raise Stop(USAGE, "--port is the port of the page that --serve serves")
    if named.bounds() is None and not serves:
        budget_s = BUDGET_S if budget is None else budget
        return _search_battery(named, variant, budget_s, searching, out, as_json=as_json)
    if budget is not None and not is_default("budget"):
        raise Stop(
            USAGE,
            f"{scenario} has `bounds:` of its own, so it is one search: --budget is the time for "
            "the searches of a scenario without them; use --max-seconds",
        )
    browser = _search_bounds(named, variant, searching, out, as_json=as_json)
    if serves:
        from watchkeeper.check.browse import serve

        serve(browser, port)
    return browser.explored.exit_code


def _search_bounds(
    scenario: Scenario, variant: str | None, searching: SearchOptions, out: Path, *, as_json: bool
) -> Browser:
    """Search a scenario within its own bounds, or those of its timeline; report the result."""
    from watchkeeper.check import check, folder
    from watchkeeper.check.browse import Browser

    with Teller() as teller:
        explored = check.explore_scenario(scenario, variant, searching, tell=teller.tell)
    browser = Browser(explored)
    files = folder.write(browser, out)
    if as_json:
        print_json(check.to_json(explored, files))
    else:
        from watchkeeper.api.tables import console
        from watchkeeper.check.report import report

        report(explored, console(), files)
    return browser


def _search_battery(
    scenario: Scenario,
    variant: str | None,
    budget_s: float,
    searching: SearchOptions,
    out: Path,
    *,
    as_json: bool,
) -> int:
    """Search every cell of a scenario without bounds, and report the result."""
    from watchkeeper.check import battery, folder

    with Teller() as teller:
        done = battery.explore_battery(
            scenario, variant, budget_s=budget_s, options=searching, tell=teller.tell_of_cell
        )
    files = folder.write_battery(done, out)
    if as_json:
        print_json(battery.to_json(done, files))
    else:
        from watchkeeper.api.tables import console
        from watchkeeper.check.battery_report import report

        report(done, console(), files)
    return done.exit_code


class Teller(ProgressLine):
    """The progress of a search on a terminal, once a second; an interrupt ends the search."""

    def __init__(self) -> None:
        super().__init__(after_s=EVERY_S, every_s=EVERY_S)

    def tell_of_cell(self, cell: str, progress: Progress) -> None:
        """Show the progress of one search of a battery."""
        self._tell(f"{cell}: ", progress)

    def tell(self, progress: Progress) -> None:
        """Show the progress unless the last line is recent."""
        self._tell("", progress)

    def _tell(self, what: str, progress: Progress) -> None:
        if INTERRUPTS.came:
            from watchkeeper.checker.search.search import SearchEnded

            raise SearchEnded("it was interrupted")
        if self.is_due:
            from watchkeeper.check.report import progress_line

            self.say(f"{what}{progress_line(progress)}")


@click.command(
    epilog=example(
        "watchkeeper replay runs/consumer-crash-kafka_07-explore/counterexample.yaml",
        "watchkeeper replay counterexample.yaml --world live",
    )
)
@click.argument("counterexample", shell_complete=completion.runs)
@click.option(
    "--world",
    default="sim",
    show_default=True,
    type=click.Choice(["sim", "live"]),
    help="The simulation, or a real ZooKeeper, one operation at a time.",
)
@options.zookeeper
@options.reaching
@options.as_json
def replay(
    counterexample: str, world: str, zookeeper: str | None, as_json: bool, **access: Any
) -> int:
    """Replay COUNTEREXAMPLE, a file that `explore` has written, or the folder with it.

    The simulation has to reach the same violation. Live, every answer, every event and the
    final znodes are compared with those of the search.

    \b
    Exit codes: 0 every step conforms, and the simulation reaches the same violation;
    1 not; 4 usage or environment.
    """
    from watchkeeper.check import replay_file

    done = replay_file.replay_file(
        counterexample, world, zookeeper, options.credentials_in(access)
    )
    if as_json:
        print_json(replay_file.to_json(done))
    else:
        print(done.text)
        zookeeper = f"zookeeper {done.zookeeper}" if done.zookeeper else ""
        for more in filter(None, (done.known_limit, done.limits, zookeeper)):
            print(more)
    return HOLDS if done.conforms and done.reached else VIOLATED


@click.command(epilog=example("watchkeeper conform consumer-crash --schedules 20 --seed 1"))
@options.scenario
@options.variant
@click.option(
    "--schedules",
    default=100,
    show_default=True,
    type=options.MANY,
    help="The number of schedules.",
)
@options.seed
@options.verified_zookeeper
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
    """Replay random schedules of SCENARIO on a real ZooKeeper.

    Each is drawn from the steps that a search could take; every answer, every event and the
    final znodes are compared with those of the search.

    \b
    Exit codes: 0 all conform; 1 one does not; 4 usage or environment.
    """
    from watchkeeper.check import replay_file

    done = replay_file.conform_scenario(
        scenario, variant, schedules, seed, zookeeper, options.credentials_in(access)
    )
    if as_json:
        print_json(replay_file.conformed_json(done))
    else:
        print(done.text)
        print(f"zookeeper {done.zookeeper}")
    return HOLDS if done.conforms else VIOLATED
