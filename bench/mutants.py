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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from drawn import LOAD, Draw
from measuring import Report, parser_of

from model.plan import Plan
from model.planting import Plant
from model.properties import judge
from model.verdicts import Verdict
from model.zoo import PLANTS
from sim.world import simulate
from tests.planted import shown
from watchkeeper.zoo import catch, plan_of
from watchkeeper.zoo_page import Row, zoo_page

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
    bounds = plant.configuration.bounds
    count = 0
    for seed in range(seeds):
        found = violated(Draw(plant.name, plan, bounds, seed).drawn(), seed)
        if found and found - violated(Draw(plant.name, base, bounds, seed).drawn(), seed):
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
        given.write.write_text(zoo_page(rows, given.seeds, shown()), encoding="utf-8")
    return 0 if all(row.caught_by == row.plant.caught_by.name for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
