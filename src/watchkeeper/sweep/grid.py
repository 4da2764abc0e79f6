"""The grid of a sweep, made of a command: seeds, variants, and values of fields."""

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

from watchkeeper.api.named_profile import NamedProfile
from watchkeeper.api.simulate import latencies_of, versions
from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.mutants.by_name import variant_named
from watchkeeper.model.sweep_summary import Example
from watchkeeper.pipeline.ship_code import code_digest
from watchkeeper.pipeline.sweeps.grid import Cell, Grid
from watchkeeper.run.run import loaded, read_profile
from watchkeeper.scenarios import Scenario, ScenarioError, from_text
from watchkeeper.scenarios.overrides import (
    BadChange,
    Change,
    changed,
    parse_change,
    value_text,
    without_lines,
)
from watchkeeper.scenarios.text.errors import expected

DEFAULT_SEEDS = "100"
SCENARIOS = "scenarios"
"""The folder for the scenarios that a sweep has made by changing values."""
MOST_CELLS = 5_000
MOST_SEEDS = 10**9
LARGEST_SEED = 2**62
_SEEDS = re.compile(r"(?:(?P<number>\d{1,19})|(?P<first>\d{1,19})\.\.(?P<last>\d{1,19}))")


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of the command; None or empty where an option is not given."""

    scenario: str
    out: Path
    seeds: str | None = None
    variants: str | None = None
    changes: tuple[str, ...] = ()
    profile: Path | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A scenario with one choice of values."""

    scenario: Scenario
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """A sweep before it begins: its scenario, its choices of values, and its grid."""

    request: Request
    scenario: Scenario
    choices: tuple[Choice, ...]
    grid: Grid
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    """Path of a field -> its values."""
    variants: tuple[str, ...]
    profile: NamedProfile | None

    @property
    def is_changed(self) -> bool:
        """Whether the runs are of scenarios that stand in no file of the user."""
        return bool(self.axes)

    def choice_of(self, cell: int) -> Choice:
        """Return the choice of values of a cell."""
        return self.choices[cell // (len(self.grid.cells) // len(self.choices))]

    def file_of(self, choice: Choice) -> Path:
        """Return the file for the scenario of a choice."""
        return self.request.out / SCENARIOS / f"{choice.scenario.name}.yaml"

    def command(self, example: Example) -> str:
        """Return the command that reproduces one run of the sweep."""
        source = self.scenario.source
        if self.is_changed:
            source = str(self.file_of(self.choice_of(example.cell)))
        return self.run_command(source, self.grid.cells[example.cell].plan.variant, example.seed)

    def run_command(self, source: str, variant: str | None, seed: int) -> str:
        """Return the command that runs a scenario with the profile of the sweep."""
        words = ["watchkeeper", "run", source]
        words += ["--variant", variant] if variant else []
        words += ["--profile", self.profile.source] if self.profile else []
        return shlex.join([*words, "--seed", str(seed)])

    def pinned(self) -> dict[str, Any]:
        """Return the identity of the sweep; its folder refuses every other one."""
        seeds = self.grid.seeds
        pins: dict[str, Any] = {
            "scenario": self.scenario.name,
            "source": sha256(self.scenario.text.encode()).hexdigest(),
            "variants": list(self.variants),
            "set": {path: list(values) for path, values in self.axes},
            "seeds": seeds_text(seeds),
            "profile": self.profile.digest if self.profile else "",
            "version": versions()["watchkeeper"],
            "code": code_digest(),
        }
        digest = sha256(json.dumps(pins, sort_keys=True).encode()).hexdigest()
        return {**pins, "digest": digest}


def planned(request: Request) -> Planned:
    """Return the sweep of a command; Stop where its arguments make no sense."""
    scenario = loaded(request.scenario)
    own = scenario.model.sweep
    seeds = seeds_in(request.seeds or (own.seeds if own else None) or DEFAULT_SEEDS)
    shipped = own.variants if own else []
    variants = tuple(_variants(request.variants)) if request.variants else tuple(shipped)
    changes = _changes(scenario, request.changes)
    profile = read_profile(request.profile)
    number = max(len(variants), 1)
    for change in changes:
        number *= len(change.values)
    if number > MOST_CELLS:
        raise Stop(
            USAGE,
            f"this is a grid of {number:,} choices of variants and values; expected at most "
            f"{MOST_CELLS:,}: give fewer values, and more seeds",
        )
    choices = tuple(_choices(scenario, changes))
    cells = tuple(_cells(choices, variants, profile))
    names = tuple(dict.fromkeys(cell.plan.variant for cell in cells))
    axes = tuple((change.path, tuple(map(value_text, change.values))) for change in changes)
    return Planned(
        request, scenario, choices, Grid(cells, seeds), axes, variants or names, profile
    )


def seeds_in(text: str) -> range:
    """Return the seeds that a text stands for: `100` is 0 to 99, `5..20` is 5 to 20."""
    found = _SEEDS.fullmatch(text.strip())
    if found is None:
        raise _bad_seeds(
            text, "is neither a number of seeds, such as 100, nor FIRST..LAST, such as 5..20"
        )
    if found["number"]:
        seeds = range(int(found["number"]))
    else:
        seeds = range(int(found["first"]), int(found["last"]) + 1)
    if not seeds:
        raise _bad_seeds(text, "is no seed; expected at least 1, or FIRST..LAST such as 17..17")
    if len(seeds) > MOST_SEEDS or seeds.stop > LARGEST_SEED:
        raise _bad_seeds(text, "is more than 1,000,000,000 seeds")
    return seeds


def _bad_seeds(text: str, reason: str) -> Stop:
    return Stop(USAGE, f"Invalid value for '--seeds': {text!r} {reason}")


def seeds_text(seeds: range) -> str:
    """Return seeds as `--seeds` takes them, such as 0..99."""
    return f"{seeds.start}..{seeds.stop - 1}"


def _variants(text: str) -> Iterator[str]:
    for name in dict.fromkeys(name.strip() for name in text.split(",")):
        if variant_named(name) is None:
            message = expected(name, "a variant", VARIANTS)
            raise Stop(USAGE, f"Invalid value for '--variants': {message}")
        yield name


def _changes(scenario: Scenario, given: Sequence[str]) -> list[Change]:
    """Return the changes: those of the command before those of the scenario."""
    message = scenario.model.sweep
    own = {
        path: Change(path, tuple(values))
        for path, values in (message.set if message else {}).items()
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
    """Yield every choice of values; the scenario as it is where no field is changed."""
    if not changes:
        yield Choice(scenario, ())
        return
    combined = list(product(*(change.values for change in changes)))
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
    """Return the refusal of values that make a scenario invalid."""
    message = ", ".join(f"{path}={value_text(value)}" for path, value in pairs)
    return Stop(USAGE, f"Invalid value for '--set': with {message}: {without_lines(error)}")
