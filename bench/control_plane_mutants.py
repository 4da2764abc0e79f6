"""Bugs of Kafka's control plane, put back one at a time: which property catches each.

    python bench/control_plane_mutants.py [--seeds 12] [--only NAME] [--json]

- **Bugs** that were fixed before 0.8.2.2, each as a mistake in a function.
- **Answers** of `hardened` that 0.8.2.2 gives otherwise, each taken back by itself: a bug that
  0.8.2.2 has, or a cost.

Each is run in a replay and in the shipped scenarios that are meant for it, and then in drawn
ones, until a property is violated that is not violated without it.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.control_plane_bugs import controllers, replicas
from bench.control_plane_bugs.answers import answers
from bench.control_plane_bugs.mutant import Mutant, Scenario
from bench.support.report import Report, parser_of
from tests.sim import test_replication_chaos

from watchkeeper import simulate
from watchkeeper.api.simulate import scenario_of
from watchkeeper.scenarios import ScenarioError, shipped

SHIPPED_SEEDS, REPLAY_SEEDS = 3, 8


class Caught(NamedTuple):
    """Where a mutant was caught first."""

    where: str
    properties: tuple[str, ...]
    runs: int
    """How many runs it took."""


@cache
def replicated() -> tuple[str, ...]:
    """The shipped scenarios of clusters that replicate."""
    return tuple(
        name
        for name in shipped()
        if any(one.replication is not None for one in scenario_of(name).plan("hardened").clusters)
    )


Run = tuple[str | int, int]
"""A shipped scenario, `drawn` or the place of a replay in its mutant, and a seed."""


def runs_of(mutant: Mutant, seeds: int) -> Iterator[Run]:
    """Yield the scenarios and seeds in which a mutant is run."""
    for place, one in enumerate(mutant.scenarios):
        if isinstance(one, dict):
            yield from ((place, seed) for seed in range(1, REPLAY_SEEDS + 1))
        elif one == "drawn":
            yield from (("drawn", seed) for seed in range(seeds))
        elif one == "every":
            yield from ((each, 1) for each in replicated())
        else:
            yield from ((one, seed) for seed in range(1, SHIPPED_SEEDS + 1))


def scenario_in(mutant: Mutant, run: Run) -> str | Scenario:
    """What is simulated in a run of a mutant."""
    what, seed = run
    if what == "drawn":
        return test_replication_chaos.drawn(seed)
    return mutant.scenarios[what] if isinstance(what, int) else what


def violated(mutant: Mutant, run: Run) -> frozenset[str] | None:
    """The violated properties of a run; None for a timeline that contradicts itself."""
    try:
        result = simulate(scenario_in(mutant, run), variant=mutant.variant, seed=run[1])
    except ScenarioError:
        return None
    except Exception as error:  # a mistake may also end a program
        return frozenset({f"fails: {type(error).__name__}"})
    return frozenset(result.judgement.violated())


_usual: dict[tuple[str | int, str, int], frozenset[str] | None] = {}


def usual(mutant: Mutant, run: Run) -> frozenset[str] | None:
    """What is violated without a mutant."""
    what, seed = run
    key = (id(mutant.scenarios[what]) if isinstance(what, int) else what, mutant.variant, seed)
    if key not in _usual:
        _usual[key] = violated(mutant, run)
    return _usual[key]


def caught(mutant: Mutant, seeds: int) -> Caught | None:
    """Run a mutant until it is caught; None if it is not."""
    number = 0
    for run in runs_of(mutant, seeds):
        before = usual(mutant, run)
        if before is None:
            continue
        number += 1
        with mutant.apply():
            found = violated(mutant, run) or frozenset()
        if found - before:
            return Caught(_in_words(run), tuple(sorted(found - before)), number)
    return None


def _in_words(run: Run) -> str:
    what, seed = run
    if isinstance(what, int):
        return f"its replay, seed {seed}"
    return f"seed {seed}, drawn" if what == "drawn" else what


def parsed() -> Namespace:
    """The options of this command."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--seeds", type=int, default=12, help="drawn scenarios for each (12)")
    parser.add_argument("--only", help="the mutants whose name begins so")
    return parser.parse_args()


def main() -> None:
    """Run every mutant, and print where it is caught."""
    options = parsed()
    head = ("mutant", "variant", "what is wrong", "caught by", "in", "runs")
    report = Report("mutants of the control plane", head)
    for mutant in (*controllers.BUGS, *replicas.BUGS, *answers()):
        if options.only and not mutant.name.startswith(options.only):
            continue
        found = caught(mutant, options.seeds)
        shown = (
            ("-", "-", "-")
            if found is None
            else (found.properties[0], found.where, str(found.runs))
        )
        report.rows.append([mutant.name, mutant.variant, mutant.says, *shown])
        report.data[mutant.name] = None if found is None else found._asdict()
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
