"""The smallest scenario that fails in the same way as a run of a sweep.

One thing after the other is taken away, as long as a run of what is left still has the same
signature; with its seed, or with one of the first few. It ends when nothing more can be
taken away, or when it has taken too long.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import yaml

from model.sweeps import Way
from pipeline.sweeps.grid import Cell
from pipeline.sweeps.store import Store
from pipeline.sweeps.work import run_row
from scenarios import Scenario, ScenarioError, from_text
from watchkeeper.smaller import Fields, bare, smaller
from watchkeeper.sweep_grid import Planned

SMALLEST = "smallest"
OTHER_SEEDS = range(3)
"""What is tried when a run with the same seed does not fail any more."""
LONGEST_S = 30.0


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest scenario that was found for a way of failing."""

    way: str
    """The short name of the way."""
    file: str
    command: str
    seed: int
    runs: int
    """How many runs it took to find it."""
    complete: bool
    """Whether nothing more can be taken away; otherwise it took too long."""

    def to_json(self) -> dict[str, Any]:
        """What is said of it."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Shrinking:
    """A search for a smaller scenario that fails in the same way."""

    cell: Cell
    signature: str
    seed: int
    fields: Fields
    until_s: float
    runs: int = 0
    complete: bool = True
    tried: set[str] = field(default_factory=set)

    def go(self) -> None:
        """Take away whatever can be taken away."""
        while (step := next(self._steps(), None)) is not None:
            self.seed, self.fields = step

    def _steps(self) -> Iterator[tuple[int, Fields]]:
        """Smaller scenarios that fail in the same way, and with which seed."""
        for fields in smaller(self.fields):
            if monotonic() > self.until_s:
                self.complete = False
                return
            text = text_of(fields)
            if text not in self.tried:
                self.tried.add(text)
                seed = self.seed_that_fails(text)
                if seed is not None:
                    yield seed, fields

    def seed_that_fails(self, text: str) -> int | None:
        """With which seed a scenario fails in the same way; None if it does not."""
        try:
            plan = from_text("smallest.yaml", text).plan(self.cell.plan.variant)
        except ScenarioError:  # what was left makes no sense
            return None
        cell = Cell(0, (), plan, None, self.cell.profile)
        seeds: list[int] = list(dict.fromkeys((self.seed, *OTHER_SEEDS)))
        for seed in seeds:
            self.runs += 1
            if run_row(cell, seed, 0).signature == self.signature:
                return seed
        return None


def text_of(fields: Fields) -> str:
    """The text of a scenario."""
    text: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100)
    return text


def shrink(scenario: Scenario, way: Way, cell: Cell, longest_s: float = LONGEST_S) -> Shrinking:
    """Look for the smallest scenario that fails in a way, beginning with one that does."""
    fields = {**scenario.document.data, "variant": cell.plan.variant}
    until_s = monotonic() + longest_s
    search = Shrinking(cell, way.signature, way.first.seed, fields, until_s)
    barest = bare(fields)
    if search.seed_that_fails(text_of(barest)) == search.seed:
        search.fields = barest
    search.go()
    return search


def smallest_of(store: Store, planned: Planned, way: Way) -> Smallest:
    """The smallest scenario for a way of failing: as it was found before, or found now.

    What is known of the search stands in the head of the scenario: two files could be torn
    apart by a kill, and the search would be done again.
    """
    place = store.home / SMALLEST / f"{way.name}.yaml"
    if not place.exists():
        cell = planned.grid.cells[way.first.cell]
        search = shrink(planned.choice_of(way.first.cell).scenario, way, cell)
        command = planned.run_command(str(place), None, search.seed)
        known = {"seed": search.seed, "runs": search.runs, "complete": search.complete}
        head = (
            f"# {json.dumps(known)}\n# {way.signature}\n# as in {way.first.run_id}\n# {command}\n"
        )
        store.write(place, f"{head}{text_of(_named(search, planned, way))}".encode())
    with place.open(encoding="utf-8") as written:
        said = json.loads(written.readline().removeprefix("# "))
    command = planned.run_command(str(place), None, said["seed"])
    return Smallest(way.name, str(place), command, **said)


def _named(search: Shrinking, planned: Planned, way: Way) -> Fields:
    variant = search.cell.plan.variant
    return {
        **search.fields,
        "name": f"{planned.scenario.name}-{way.name}",
        "about": f"The smallest scenario that was found in which {variant} fails in this way.",
    }
