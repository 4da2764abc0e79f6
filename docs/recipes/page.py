"""Writes `docs/kazoo-recipes.md`: every recipe of kazoo under every kind of fault.

    python -m docs.recipes.page [--library tooz] [--seeds 300] [--jobs 2] [--cells FILE]

`--library tooz` writes `docs/tooz.md`, on the ZooKeeper driver of OpenStack's tooz.

With `--cells` the runs are kept in a file of JSON lines, and those that it has are not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(HOME))

from docs.recipes.causes import CAUSES, TOOZ_CAUSES  # noqa: E402
from docs.recipes.cells import FAULTS, Cell, case_of, run_cell  # noqa: E402
from docs.recipes.programs import programs_of  # noqa: E402

from watchkeeper.virtual.schedule.policies import parse_policy  # noqa: E402
from watchkeeper.virtual.world.campaign import Campaign  # noqa: E402
from watchkeeper.virtual.world.report import fault_lines  # noqa: E402
from watchkeeper.virtual.world.shrink import shrink  # noqa: E402

KAZOO = """# Kazoo's recipes under faults

Each recipe of kazoo {version} runs in virtual time: unmodified, with its default handler, three
processes with a client each (a few have two), against the simulated ZooKeeper. A cell of the
table is {seeds} seeds; a seed draws one or two faults of the kind, the moment of each, and the
order of the threads. The programs are in `docs/recipes/programs`: they use a recipe as
kazoo's documentation shows it, give an attempt up when it raises an error, and begin it again.
One finding is of no recipe: `client.start(timeout=15)` raises `KazooTimeoutError` at once, and
not after 15 seconds, where its first session ends as soon as it has begun; an application may
start the client again.
"""
TOOZ = """# tooz under faults

OpenStack's tooz {version} coordinates services by locks, groups and leaders; one of its drivers
uses ZooKeeper through kazoo. It runs in virtual time as it comes from the package index: three
processes with a coordinator and its thread of heartbeats each, against the simulated ZooKeeper. A
cell of the table is {seeds} seeds, as in [the table of kazoo's recipes](kazoo-recipes.md). The
programs are in `docs/recipes/programs/tooz_driver.py`, and `examples/test_tooz.py` is a test to
copy. One finding needs no fault: a group that has an election has a member `leader`, which no
process is, since the driver keeps the election's znodes among the members.
"""
READING = """
`·` means that every property held, in runs in which the fault had an effect; with a number, so
many of the runs ended too soon to judge a property. A bold number is how many of the {seeds}
runs violate a property. What no client of ZooKeeper can avoid is not counted: a holder whose
session has ended and who does not know it yet (the *strict* form of mutual exclusion in
[the how-to](how-to/test-kazoo-code.md) leaves it out).

"""


@dataclass(frozen=True, slots=True)
class Library:
    """A library that has a page."""

    name: str
    head: str
    causes: dict[tuple[str, str], str]
    page: Path


LIBRARIES = {
    each.name: each
    for each in (
        Library("kazoo", KAZOO, CAUSES, HOME / "docs/kazoo-recipes.md"),
        Library("tooz", TOOZ, TOOZ_CAUSES, HOME / "docs/tooz.md"),
    )
}


def run_all(library: str, seeds: int, jobs: int, kept: Path | None) -> list[Cell]:
    """Run every cell that is not kept."""
    known = {
        (cell.recipe, cell.fault): cell
        for cell in _kept(kept)
        if cell.runs >= seeds and cell.library == library
    }
    keys = [(recipe, fault) for recipe in programs_of(library) for fault in FAULTS]
    todo = [key for key in keys if key not in known]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(run_cell, *key, range(seeds), library) for key in todo]
        try:
            for number, job in enumerate(as_completed(running), 1):
                cell = job.result()
                known[cell.recipe, cell.fault] = cell
                print(f"{number} of {len(todo)}: {cell.recipe}, {cell.fault}", file=sys.stderr)
                if kept is not None:
                    with kept.open("a") as file:
                        file.write(json.dumps(asdict(cell)) + "\n")
        finally:
            pool.shutdown(cancel_futures=True)
    return [known[key] for key in keys]


def _kept(kept: Path | None) -> Iterator[Cell]:
    if kept is not None and kept.exists():
        for line in kept.read_text().splitlines():
            yield Cell(**json.loads(line))


def table(cells: list[Cell]) -> Iterator[str]:
    """The table: a row a recipe, a column a kind of fault."""
    columns = list(FAULTS)
    yield f"| recipe | {' | '.join(columns)} |"
    yield f"| --- |{' ---: |' * len(columns)}"
    found = {(cell.recipe, cell.fault): cell for cell in cells}
    for recipe in dict.fromkeys(cell.recipe for cell in cells):
        shown = [_shown(found[recipe, fault]) for fault in columns]
        yield f"| {recipe} | {' | '.join(shown)} |"


def _shown(cell: Cell) -> str:
    violated = cell.verdicts.get("violated", 0)
    if violated:
        return f"**{violated}**"
    if cell.fault != "none" and not cell.struck:
        return "none struck"
    unknown = cell.verdicts.get("unknown", 0)
    return f"· {unknown}" if unknown else "·"


def violations(library: Library, cells: list[Cell]) -> Iterator[str]:
    """A section for each property that a recipe violates, with the smallest run found."""
    by_property: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        for name in cell.violated:
            by_property.setdefault((cell.recipe, name), []).append(cell)
    for (recipe, name), found in by_property.items():
        yield from _violation(recipe, name, found)
        yield library.causes.get((recipe, name), "It is found and not explained yet.")
        yield ""


def _violation(recipe: str, name: str, found: list[Cell]) -> Iterator[str]:
    counts = ", ".join(f"{cell.fault} {cell.violated[name]}" for cell in found)
    cell = max(found, key=lambda each: each.violated[name])
    yield f"### {recipe}: {name}"
    yield ""
    yield f"Runs that violate it: {counts}."
    yield f"Seed {cell.first_seed[name]} with {cell.fault}: *{cell.evidence[name]}*."
    yield ""
    yield f"The smallest run found: {smallest(cell, name)}"
    yield ""


def smallest(cell: Cell, name: str) -> str:
    """The smallest run of a cell that violates a property, in words."""
    case = case_of(cell.recipe, cell.fault, cell.library)
    campaign = Campaign(case, parse_policy("random"))
    outcome = campaign.run(cell.first_seed[name])
    small = shrink(case, outcome, most_runs=60)
    decisions = len(small.schedule)
    order = (
        "the default order of threads" if not decisions else f"{decisions} decisions on threads"
    )
    return f"{'; '.join(fault_lines(small))}; {order}."


def page(library: Library, cells: list[Cell], seeds: int) -> str:
    """The whole page."""
    runs = sum(cell.runs for cell in cells)
    head = (library.head + READING).format(version=version(library.name), seeds=seeds)
    lines = ["<!-- made by docs/recipes/page.py -->", head, *table(cells), ""]
    lines += [f"{runs:,} runs in all.", "", "## What is violated, and why", ""]
    lines += violations(library, cells)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Run the cells and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", choices=LIBRARIES, default="kazoo")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cells", type=Path)
    parser.add_argument("--out", type=Path)
    options: Any = parser.parse_args()
    library = LIBRARIES[options.library]
    cells = run_all(library.name, options.seeds, options.jobs, options.cells)
    (options.out or library.page).write_text(page(library, cells, options.seeds))


if __name__ == "__main__":
    main()
