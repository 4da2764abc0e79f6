"""How soon a search catches each mutant, and how often a simulation does.

    python bench/mutants.py [--seeds 1000] [--jobs 2] [--mutants A,B] [--write PAGE] [--json]

`--write docs/mutants.md` writes the page.

Each mutant is searched for in its configuration. Then the same cluster is simulated, seed by
seed: the same members, and faults of the same kinds at moments that the seed draws. A seed
catches a mutant if a property is violated in its run and the base does not violate that
property with the same seed. A run in which a fault had no effect is not left out, since chance
has to hit the moment, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.mutant_search import catch, plan_of
from bench.support.random_faults import LOAD, Draw
from bench.support.report import Report, parser_of
from docs.mutants_page import Row, mutants_page
from tests.support.messages.mutant_runs import shown

from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.mutants.catalogue import MUTANTS
from watchkeeper.model.mutants.mutant import Mutant
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.sim.world import simulate

# --- counting --------------------------------------------------------------------------


def violated(plan: Plan, seed: int) -> frozenset[str]:
    """What a run violates."""
    simulated = simulate(plan, seed)
    judgement = judge(plan, simulated.trace, simulated.effects)
    return frozenset(
        finding.claim.name
        for finding in judgement.findings
        if finding.verdict is Verdict.VIOLATED
    )


def seeds_that_catch(mutant: Mutant, seeds: int) -> int:
    """How many of so many seeds catch a mutant."""
    extra = [f"settle: {15 if mutant.base.backs_off else 10}s"]
    if mutant.configuration.bounds.messages:
        extra.append(LOAD)
    plan, base = plan_of(mutant, mutant.variant, extra), plan_of(mutant, mutant.base, extra)
    bounds = mutant.configuration.bounds
    count = 0
    for seed in range(seeds):
        found = violated(Draw(mutant.name, plan, bounds, seed).drawn(), seed)
        if found and found - violated(Draw(mutant.name, base, bounds, seed).drawn(), seed):
            count += 1
    return count


def measured(name: str, seeds: int) -> Row:
    """One row of the page."""
    mutant = MUTANTS[name]
    caught = catch(mutant)
    return Row(
        mutant,
        caught.what,
        caught.steps,
        caught.states,
        round(caught.seconds, 1),
        seeds_that_catch(mutant, seeds),
    )


def _all(names: Sequence[str], seeds: int, jobs: int) -> Iterator[Row]:
    """Every row, in order."""
    if jobs == 1:
        yield from (measured(name, seeds) for name in names)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(measured, names, [seeds] * len(names))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the page if an option says so."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--seeds", type=int, default=1_000, help="for each mutant (1000)")
    parser.add_argument("--mutants", default=",".join(MUTANTS), help="which (all)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--write", type=Path, help="where the page is written to")
    given = parser.parse_args(arguments)
    report = Report("Mutants", ("mutant", "caught by", "steps", "states", "s", "seeds"))
    rows = []
    names = given.mutants.split(",")
    for name, row in zip(names, _all(names, given.seeds, given.jobs), strict=True):
        rows.append(row)
        figures = (f"{row.steps}", f"{row.states:,}", f"{row.seconds}", f"{row.seeds:,}")
        report.rows.append([name, row.caught_by, *figures])
        print(f"{name}: {row.seeds} of {given.seeds} seeds", file=sys.stderr, flush=True)
    report.data["mutants"] = [row.to_json() for row in rows]
    report.notes.append(f"seeds: how many of {given.seeds:,} simulated ones catch it")
    report.show(as_json=given.json)
    if given.write is not None:
        given.write.write_text(mutants_page(rows, given.seeds, shown()), encoding="utf-8")
    return 0 if all(row.caught_by == row.mutant.caught_by.name for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
