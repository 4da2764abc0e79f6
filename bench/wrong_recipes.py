"""Mistakes in copies of kazoo's recipes: by which policy each is caught, and how soon.

    python bench/wrong_recipes.py [--seeds 1000] [--json]

Each mistake is one changed place of a recipe (`support/wrong_recipes.py`). The program of
`docs/recipes` that uses the recipe runs seed by seed, by chance and by PCT with a depth of three,
with the faults of one kind, until a property is violated that the recipe as it is does not
violate with the same seed and the same policy.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, once, parser_of
from bench.support.wrong_recipes import MISTAKES, Mistake, in_place
from docs.recipes.cells import case_of

from watchkeeper.virtual.schedule.policies import parse_policy
from watchkeeper.virtual.world.campaign import Campaign
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.run import prepare

POLICIES = ("random", "pct:3")


def catch(mistake: Mistake, policy: str, seeds: int) -> tuple[int, str] | None:
    """How many seeds it takes, and which property is violated; None if none of them is."""
    wrong = Campaign(case_of(mistake.program, mistake.fault), parse_policy(policy))
    right = Campaign(wrong.case, wrong.policy)
    for seed in range(seeds):
        with in_place(mistake):
            found = violated(wrong.run(seed))
        if found:
            # The faults of a seed are aimed by the requests of a run without faults.
            found -= violated(right.run(seed))
        if found:
            return seed + 1, min(found)
    return None


def violated(outcome: Outcome) -> set[str]:
    """The properties that a run violates."""
    return {finding.claim.name for finding in outcome.violated}


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--seeds", type=int, default=1_000, help="at most, for each (1000)")
    parser.add_argument("--only", default="", help="mistakes whose name has this in it")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    prepare()
    columns = (
        "mistake",
        "recipe",
        "faults",
        *(f"{each}: seeds" for each in POLICIES),
        "property",
    )
    report = Report("mistakes in copies of kazoo's recipes", columns)
    caught = 0
    chosen = [mistake for mistake in MISTAKES if options.only in mistake.name]
    for mistake in chosen:
        found = {policy: catch(mistake, policy, options.seeds) for policy in POLICIES}
        shown = [str(each[0]) if each else "not caught" for each in found.values()]
        claims = {each[1] for each in found.values() if each}
        report.rows.append(
            [mistake.name, mistake.recipe, mistake.fault, *shown, ", ".join(sorted(claims))]
        )
        report.data[mistake.name] = {policy: each and each[0] for policy, each in found.items()}
        caught += bool(claims)
    report.bars.append(Bar("mistakes caught", "at least", len(chosen), "", once(caught)))
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
