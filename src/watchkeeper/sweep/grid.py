"""From a command to what it sweeps: seeds, variants, and the values that are changed in turn."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from model.sweeps import Example
from model.variants import VARIANTS
from model.zoo import variant_named
from pipeline.shipping import code_digest
from pipeline.sweeps.grid import Cell, Grid
from scenarios import Scenario, ScenarioError, from_text
from scenarios.changing import (
    BadChange,
    Change,
    changed,
    parse_change,
    value_text,
    without_lines,
)
from scenarios.problems import expected
from watchkeeper.commands import loaded, read_profile
from watchkeeper.endings import USAGE, Stop
from watchkeeper.profiles import NamedProfile
from watchkeeper.running import latencies_of, versions

DEFAULT_SEEDS = "0:100"
SCENARIOS = "scenarios"
"""The folder for the scenarios that a sweep has made by changing values."""
MOST_CELLS = 5_000
MOST_SEEDS = 10**9
LARGEST_SEED = 2**62
_SEEDS = re.compile(r"(\d{1,19})(?::(\d{1,19}))?")


@dataclass(frozen=True, slots=True)
class Request:
    """What the command asks for; None and nothing where it does not say."""

    scenario: str
    out: Path
    seeds: str | None = None
    variants: str | None = None
    changes: tuple[str, ...] = ()
    profile: Path | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The scenario, with one choice of values."""

    scenario: Scenario
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """What is swept."""

    request: Request
    scenario: Scenario
    choices: tuple[Choice, ...]
    grid: Grid
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    """Path -> the values it is given."""
    variants: tuple[str, ...]
    profile: NamedProfile | None

    @property
    def is_changed(self) -> bool:
        """Whether runs are of a scenario that nobody has written."""
        return bool(self.axes)

    def choice_of(self, cell: int) -> Choice:
        """The choice of values of a cell."""
        return self.choices[cell // (len(self.grid.cells) // len(self.choices))]

    def file_of(self, choice: Choice) -> Path:
        """Where the scenario of a choice is written."""
        return self.request.out / SCENARIOS / f"{choice.scenario.name}.yaml"

    def command(self, example: Example) -> str:
        """The command that runs one run of the sweep again."""
        source = self.scenario.source
        if self.is_changed:
            source = str(self.file_of(self.choice_of(example.cell)))
        return self.run_command(source, self.grid.cells[example.cell].plan.variant, example.seed)

    def run_command(self, source: str, variant: str | None, seed: int) -> str:
        """The command that runs a scenario, with the profile of the sweep."""
        words = ["watchkeeper", "run", source]
        words += ["--variant", variant] if variant else []
        words += ["--profile", self.profile.source] if self.profile else []
        return shlex.join([*words, "--seed", str(seed)])

    def pinned(self) -> dict[str, Any]:
        """What the folder of the sweep is for; other commands are refused there."""
        seeds = self.grid.seeds
        said: dict[str, Any] = {
            "scenario": self.scenario.name,
            "source": sha256(self.scenario.text.encode()).hexdigest(),
            "variants": list(self.variants),
            "set": {path: list(values) for path, values in self.axes},
            "seeds": f"{seeds.start}:{seeds.stop}",
            "profile": self.profile.digest if self.profile else "",
            "version": versions()["watchkeeper"],
            "code": code_digest(),
        }
        digest = sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
        return {**said, "digest": digest}


def planned(request: Request) -> Planned:
    """What a command sweeps; Stop where that makes no sense."""
    scenario = loaded(request.scenario)
    said = scenario.model.sweep
    seeds = seeds_in(request.seeds or (said.seeds if said and said.seeds else DEFAULT_SEEDS))
    own = said.variants if said else []
    variants = tuple(_variants(request.variants)) if request.variants else tuple(own)
    changes = _changes(scenario, request.changes)
    profile = read_profile(request.profile)
    number = max(len(variants), 1)
    for one in changes:
        number *= len(one.values)
    if number > MOST_CELLS:
        raise Stop(
            USAGE,
            f"this is a grid of {number:,} choices of variants and values; expected at most "
            f"{MOST_CELLS:,}: give fewer values, and more seeds",
        )
    choices = tuple(_choices(scenario, changes))
    cells = tuple(_cells(choices, variants, profile))
    names = tuple(dict.fromkeys(one.plan.variant for one in cells))
    axes = tuple((one.path, tuple(map(value_text, one.values))) for one in changes)
    return Planned(
        request, scenario, choices, Grid(cells, seeds), axes, variants or names, profile
    )


def seeds_in(text: str) -> range:
    """The seeds that `0:1000` means: the first, and the first that is none of them."""
    found = _SEEDS.fullmatch(text.strip())
    if found is None:
        raise Stop(
            USAGE, f"Invalid value for '--seeds': {text!r} is not FIRST:END, such as 0:1000"
        )
    first = int(found[1])
    seeds = range(first, int(found[2]) if found[2] else first + 1)
    if not seeds:
        raise Stop(
            USAGE,
            f"Invalid value for '--seeds': {text!r} holds no seed; END is the first that is not "
            f"run, so expected more than {first}, such as {first}:{first + 1000}",
        )
    if len(seeds) > MOST_SEEDS or seeds.stop > LARGEST_SEED:
        raise Stop(USAGE, f"Invalid value for '--seeds': {text!r} holds more than 1,000,000,000")
    return seeds


def _variants(text: str) -> Iterator[str]:
    for name in dict.fromkeys(one.strip() for one in text.split(",")):
        if variant_named(name) is None:
            said = expected(name, "a variant", VARIANTS)
            raise Stop(USAGE, f"Invalid value for '--variants': {said}")
        yield name


def _changes(scenario: Scenario, given: Sequence[str]) -> list[Change]:
    """What is changed: as the command says, and where it says nothing as the scenario does."""
    said = scenario.model.sweep
    own = {
        path: Change(path, tuple(values)) for path, values in (said.set if said else {}).items()
    }
    found: dict[str, Change] = {}
    try:
        for text in given:
            change = parse_change(text)
            if change.path in found:
                raise BadChange(f"{change.path} stands twice; give all its values at once")
            found[change.path] = change
    except BadChange as error:
        raise _bad(error) from None
    return list({**own, **found}.values())


def _choices(scenario: Scenario, changes: list[Change]) -> Iterator[Choice]:
    """Every choice of values; the scenario as it is where nothing is changed."""
    if not changes:
        yield Choice(scenario, ())
        return
    combined = list(product(*(one.values for one in changes)))
    digits = len(str(len(combined) - 1))
    for at, values in enumerate(combined):
        pairs = [(change.path, value) for change, value in zip(changes, values, strict=True)]
        yield Choice(
            _changed(scenario, pairs, f"{scenario.name}-p{at:0{digits}d}"),
            tuple((path, value_text(value)) for path, value in pairs),
        )


def _changed(scenario: Scenario, pairs: list[tuple[str, Any]], name: str) -> Scenario:
    try:
        text = changed(scenario.document, pairs, name)
        return from_text(f"{name}.yaml", text)
    except BadChange as error:
        raise _bad(error) from None
    except ScenarioError as error:
        raise _misfit(pairs, error) from None


def _cells(
    choices: Iterable[Choice], variants: Sequence[str], profile: NamedProfile | None
) -> Iterator[Cell]:
    number = 0
    for choice in choices:
        for variant in variants or (choice.scenario.model.variant,):
            try:
                plan = choice.scenario.plan(variant)
            except ScenarioError as error:
                if not choice.parameters:
                    raise Stop(USAGE, str(error)) from None
                raise _misfit(choice.parameters, error) from None
            wanted = choice.scenario.expected_of(variant)
            yield Cell(number, choice.parameters, plan, wanted, latencies_of(profile))
            number += 1


def _bad(error: BadChange) -> Stop:
    return Stop(USAGE, f"Invalid value for '--set': {error}")


def _misfit(pairs: Iterable[tuple[str, Any]], error: ScenarioError) -> Stop:
    """What is said of a scenario that is wrong once values are changed."""
    said = ", ".join(f"{path}={value_text(value)}" for path, value in pairs)
    return Stop(USAGE, f"Invalid value for '--set': with {said}: {without_lines(error)}")
