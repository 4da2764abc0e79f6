"""The smallest scenario for each kind of failure that a sweep found.

One thing after the other is taken away from a failing run, as long as a run of what is left
still fails in this way; with its seed, or with one of the first few. The search ends when nothing
more can be taken away, or when its time is over: then the smallest scenario so far is the result.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import yaml

from watchkeeper.console.progress import ProgressLine
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.sweep_summary import FailureBucket
from watchkeeper.pipeline.sweeps.chunk import OutOfTime, signatures_until
from watchkeeper.pipeline.sweeps.grid import Cell
from watchkeeper.pipeline.sweeps.store import Store
from watchkeeper.scenarios import Scenario, ScenarioError, from_text
from watchkeeper.scenarios.shrink_steps import Fields, bare, smaller
from watchkeeper.sweep.grid import Planned

SMALLEST = "smallest"
OTHER_SEEDS = range(3)
"""The seeds to try after the same seed does not fail any more."""
COLLECT_EVERY = 20
"""After so many runs the garbage collector looks at what they left: it hardly ever does alone."""

Tell = Callable[[int], None]
"""Receives the number of runs so far."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a search that has ended."""

    seed: int
    runs: int
    """The number of runs of the search."""
    complete: bool
    """Whether nothing more can be taken away; otherwise its time was over."""
    seconds: float
    """The time that it had, together with the searches for the other failures."""


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest scenario that was found for a failure signature."""

    way: str
    """The short name of the signature."""
    file: str
    command: str
    seed: int
    runs: int
    complete: bool

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the summary."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Shrinking:
    """A search for a smaller scenario that fails in the same way."""

    cell: Cell
    signature: str
    seed: int
    fields: Fields
    until_s: float
    tell: Tell
    runs: int = 0
    complete: bool = False
    tried: set[str] = field(default_factory=set)

    def go(self) -> None:
        """Take away whatever can be taken away, until the time is over or an interrupt comes."""
        try:
            barest = bare(self.fields)
            if self._seed_that_fails(text_of(barest)) == self.seed:
                self.fields = barest
            while (step := next(self._steps(), None)) is not None:
                self.seed, self.fields = step
            self.complete = True
        except (OutOfTime, KeyboardInterrupt):
            return

    def _steps(self) -> Iterator[tuple[int, Fields]]:
        """Yield smaller scenarios with the same failure signature, and their seeds."""
        for fields in smaller(self.fields):
            text = text_of(fields)
            if text not in self.tried:
                self.tried.add(text)
                seed = self._seed_that_fails(text)
                if seed is not None:
                    yield seed, fields

    def _seed_that_fails(self, text: str) -> int | None:
        """Return a seed with the same failure signature; None if there is none."""
        try:
            plan = from_text("smallest.yaml", text).plan(self.cell.plan.variant)
        except ScenarioError:  # what was left makes no sense
            return None
        cell = Cell(0, (), plan, None, self.cell.profile)
        seeds: list[int] = list(dict.fromkeys((self.seed, *OTHER_SEEDS)))
        return next((seed for seed in seeds if self._fails(cell, seed)), None)

    def _fails(self, cell: Cell, seed: int) -> bool:
        found = signatures_until(self.until_s, cell, seed)
        self.runs += 1
        self.tell(self.runs)
        if self.runs % COLLECT_EVERY == 0:
            gc.collect()
        return self.signature in found


def text_of(fields: Fields) -> str:
    """The text of a scenario."""
    text: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100)
    return text


def all_smallest(
    store: Store,
    planned: Planned,
    ways: Sequence[FailureBucket],
    seconds: float,
    line: ProgressLine,
    say: Callable[[str], None],
) -> tuple[Smallest, ...]:
    """The smallest scenario for each signature; all searches together have so many seconds.

    Each search has an equal share of the time that those before it left. An interrupt ends the
    search that is under way: what it has found is kept, and the same command goes on with it.
    """
    left = [way for way in ways if _is_open(_known(_place(store, way)), seconds)]
    if left:
        line.end()
        say(f"shrink  {counted(len(left), 'failure')}, in at most {seconds:g} s")
    end_s = monotonic() + seconds
    for at, way in enumerate(left):
        if INTERRUPTS.came:
            break
        what = f"{planned.scenario.name}: shrinking failure {at + 1} of {len(left)}"
        line.say(what)
        share = max(end_s - monotonic(), 0.0) / (len(left) - at)
        search = _search(store, planned, way, share, _teller(what, end_s, line))
        _write(store, planned, way, search, 0.0 if INTERRUPTS.came else seconds)
    return tuple(_found(store, planned, way) for way in ways if _place(store, way).exists())


def _teller(what: str, end_s: float, line: ProgressLine) -> Tell:
    def tell(runs: int) -> None:
        if line.is_due:
            line.say(f"{what}, {runs:,} runs, at most {max(end_s - monotonic(), 0):.0f} s left")

    return tell


def _is_open(known: Known | None, seconds: float) -> bool:
    """Whether a search has to begin, or has more time now than it had before."""
    return known is None or (not known.complete and seconds > known.seconds)


def _search(
    store: Store, planned: Planned, way: FailureBucket, seconds: float, tell: Tell
) -> Shrinking:
    """Look for the smallest scenario with a failure signature, from the smallest so far."""
    place = _place(store, way)
    known = _known(place)
    cell = planned.grid.cells[way.first.cell]
    seed, runs, fields = way.first.seed, 0, _fields_of(planned.choice_of(cell.number).scenario)
    if known is not None:
        seed, runs, fields = known.seed, known.runs, yaml.safe_load(place.read_text())
    fields = {**fields, "variant": cell.plan.variant}
    until_s = monotonic() + seconds
    search = Shrinking(cell, way.signature, seed, fields, until_s, tell, runs)
    search.go()
    return search


def _fields_of(scenario: Scenario) -> Fields:
    return dict(scenario.document.data)


def _write(
    store: Store, planned: Planned, way: FailureBucket, search: Shrinking, seconds: float
) -> None:
    """Write what a search has found.

    What is known of it is in the head of the scenario: a kill could separate two files, and
    the search would be done again.
    """
    place = _place(store, way)
    known = {
        "seed": search.seed,
        "runs": search.runs,
        "complete": search.complete,
        "seconds": seconds,
    }
    command = planned.run_command(str(place), None, search.seed)
    head = f"# {json.dumps(known)}\n# {way.signature}\n# as in {way.first.run_id}\n# {command}\n"
    store.write(place, f"{head}{text_of(_named(search, planned, way))}".encode())


def _found(store: Store, planned: Planned, way: FailureBucket) -> Smallest:
    place = _place(store, way)
    known = _known(place)
    assert known is not None, "every search leaves a file"
    command = planned.run_command(str(place), None, known.seed)
    return Smallest(way.name, str(place), command, known.seed, known.runs, known.complete)


def _place(store: Store, way: FailureBucket) -> Path:
    return store.home / SMALLEST / f"{way.name}.yaml"


def _known(place: Path) -> Known | None:
    """What an earlier search has left; None if there was none."""
    if not place.exists():
        return None
    with place.open(encoding="utf-8") as written:
        return Known(**json.loads(written.readline().removeprefix("# ")))


def _named(search: Shrinking, planned: Planned, way: FailureBucket) -> Fields:
    variant = search.cell.plan.variant
    return {
        **search.fields,
        "name": f"{planned.scenario.name}-{way.name}",
        "about": f"The smallest scenario that was found in which {variant} fails in this way.",
    }
