"""The zoo: how soon a search catches each plant, and how often chance does.

    python bench/zoo.py [--seeds 1000] [--jobs 2] [--plants A,B] [--write docs/zoo.md] [--json]

Each plant is searched for in its configuration. Then the same cluster is simulated, seed by
seed: the same members, and faults of the same kinds at moments that the seed draws. A seed
catches a plant if a property is violated in its run and the base does not violate that
property with the same seed. A run in which a fault had no effect is not left out, since chance
has to hit the moment, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measuring import Report, parser_of

from model.faults import VERBS, Action, Option, Trigger
from model.operations import Purpose
from model.plan import Plan
from model.planting import Plant
from model.properties import judge
from model.verdicts import Verdict
from model.zoo import PLANTS
from sim.world import simulate
from watchkeeper.zoo import catch, plan_of
from watchkeeper.zoo_page import Row, zoo_page

MS = 1_000
S = 1_000 * MS
STRIKE = (1_000 * MS, 5_000 * MS)
"""When things happen."""
AT_ONCE_US = 200 * MS
"""Within what time members start that start at once."""
LOAD = "timeline: [{at: 0s, produce: clicks, rate: 5/s, size: 100B}]"
"""What is said of a run in which there are messages."""
ASKS: tuple[Purpose, ...] = (
    *("register", "read members", "read claims", "read partitions", "fence", "await owner"),
    *("claim", "release", "commit"),
)
"""Where a request or its reply may be lost."""
WRITES: tuple[Purpose, ...] = ("register", "fence", "claim", "release", "commit")


# --- what a seed draws -----------------------------------------------------------------


class Draw:
    """A run of a plant's configuration, as a seed has it."""

    def __init__(self, plant: Plant, plan: Plan, seed: int) -> None:
        self.dice = Random(f"{plant.name}/{seed}")
        self.plant = plant
        self.plan = plan
        self.nodes = [one.node for one in plan.groups[0].consumers]
        self.brokers = [one.node for one in plan.clusters[0].brokers]
        self.crashed: dict[str, int] = {}
        self.begins_us = self.dice.randrange(*STRIKE)

    def drawn(self) -> Plan:
        """The plan, with everybody's start and every fault at a moment of its own."""
        bounds = self.plant.configuration.bounds
        [group] = self.plan.groups
        first = len(group.consumers) - bounds.faults.get("join", 0)
        members = tuple(
            replace(one, starts_us=self._start(is_late=at >= first))
            for at, one in enumerate(group.consumers)
        )
        timeline = list(self.plan.timeline)
        for kind, number in sorted(bounds.faults.items()):
            for _ in range(number if kind != "join" else 0):
                timeline.append(self._fault(kind, len(timeline)))
        group = replace(group, consumers=members)
        return replace(self.plan, groups=(group,), timeline=tuple(timeline))

    def _start(self, *, is_late: bool) -> int:
        if is_late:
            return self.dice.randrange(*STRIKE)
        is_fresh = self.plant.configuration.bounds.begin == "fresh"
        return self.begins_us + self.dice.randrange(AT_ONCE_US) if is_fresh else 0

    def _fault(self, kind: str, number: int) -> Action:
        """One fault of a kind."""
        dice = self.dice
        if kind in ("ghost", "lost_reply", "lost_request"):
            return self._loss(kind, number)
        nodes = self.brokers if kind.startswith("broker_") else self.nodes
        verb = kind.removeprefix("broker_")
        target = dice.choice(nodes)
        at_us = dice.randrange(*STRIKE)
        options: tuple[tuple[Option, Any], ...] = ()
        if verb == "crash":
            self.crashed[target] = at_us
        elif verb == "restart":
            target = next(one for one in nodes if one in self.crashed)
            at_us = self.crashed[target] + dice.randrange(50, 4_000) * MS
        elif verb == "expire" and dice.random() < 0.5:
            options = (("unknown", dice.randrange(10, 2_000) * MS),)
        elif verb == "disconnect":
            options = (("for", dice.randrange(10, 1_500) * MS),)
        return Action(number, VERBS[verb], target, at_us, None, options)

    def _loss(self, kind: str, number: int) -> Action:
        """A request or a reply is lost; a ghost lands later."""
        dice = self.dice
        asks = dice.choice(WRITES if kind == "ghost" else ASKS)
        step = Trigger(dice.choice(self.nodes), asks, dice.randrange(1, 9), "before")
        what = "reply" if kind == "lost_reply" else "request"
        options: tuple[tuple[Option, Any], ...] = ()
        if kind == "ghost":
            options = (("lands_after", dice.randrange(10, 3_000) * MS),)
        return Action(number, VERBS["lose"], what, None, step, options)


# --- counting --------------------------------------------------------------------------


def violated(plan: Plan, seed: int) -> frozenset[str]:
    """What a run violates."""
    simulated = simulate(plan, seed)
    judgement = judge(plan, simulated.trace, simulated.effects)
    return frozenset(
        one.claim.name for one in judgement.findings if one.verdict is Verdict.VIOLATED
    )


def seeds_that_catch(plant: Plant, seeds: int) -> int:
    """How many of so many seeds catch a plant."""
    extra = [f"settle: {15 if plant.base.backs_off else 10}s"]
    if plant.configuration.bounds.messages:
        extra.append(LOAD)
    plan, base = plan_of(plant, plant.variant, extra), plan_of(plant, plant.base, extra)
    count = 0
    for seed in range(seeds):
        found = violated(Draw(plant, plan, seed).drawn(), seed)
        if found and found - violated(Draw(plant, base, seed).drawn(), seed):
            count += 1
    return count


def measured(name: str, seeds: int) -> Row:
    """One row of the page."""
    plant = PLANTS[name]
    caught = catch(plant)
    return Row(
        plant,
        caught.what,
        caught.steps,
        caught.states,
        round(caught.seconds, 1),
        seeds_that_catch(plant, seeds),
    )


def _all(names: Sequence[str], seeds: int, jobs: int) -> Iterator[Row]:
    """Every row, in order."""
    if jobs == 1:
        yield from (measured(name, seeds) for name in names)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(measured, names, [seeds] * len(names))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the page if it is asked for."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--seeds", type=int, default=1_000, help="for each plant (1000)")
    parser.add_argument("--plants", default=",".join(PLANTS), help="which (all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--write", type=Path, help="where the page is written to")
    given = parser.parse_args(arguments)
    report = Report("The zoo", ("plant", "caught by", "steps", "states", "s", "seeds"))
    rows = []
    names = given.plants.split(",")
    for name, row in zip(names, _all(names, given.seeds, given.jobs), strict=True):
        rows.append(row)
        figures = (f"{row.steps}", f"{row.states:,}", f"{row.seconds}", f"{row.seeds:,}")
        report.rows.append([name, row.caught_by, *figures])
        print(f"{name}: {row.seeds} of {given.seeds} seeds", file=sys.stderr, flush=True)
    report.data["plants"] = [row.to_json() for row in rows]
    report.notes.append(f"seeds: how many of {given.seeds:,} simulated ones catch it")
    report.show(as_json=given.json)
    if given.write is not None:
        given.write.write_text(zoo_page(rows, given.seeds), encoding="utf-8")
    return 0 if all(row.caught_by == row.plant.caught_by.name for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
