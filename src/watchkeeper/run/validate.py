"""Scenario files, checked without a run: their form, and a plan for each variant they name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.run.run import STANDARD_INPUT, loaded, stopped_by
from watchkeeper.scenarios import ScenarioError

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Valid:
    """A scenario file that can be run."""

    file: str
    scenario: str
    variants: tuple[str, ...]
    """Those that it names: its own, and those of its expectations."""

    def __str__(self) -> str:
        return f"{self.file}: {self.scenario} ({', '.join(self.variants)})"

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {"file": self.file, "scenario": self.scenario, "variants": [*self.variants]}


def validate(names: Iterable[str]) -> tuple[list[Valid], list[Stop]]:
    """Check files, those in folders, and shipped scenarios: what is valid, and what is not."""
    valid: list[Valid] = []
    wrong: list[Stop] = []
    for file in dict.fromkeys(file for name in names for file in _files(name)):
        try:
            valid.append(_checked(file))
        except Stop as stop:
            wrong.append(stop)
    return valid, wrong


def all_of(wrong: list[Stop]) -> Stop:
    """Return the end of a command that tells the problems of every file."""
    problems = [problem for stop in wrong for problem in stop.problems]
    return Stop(USAGE, "\n".join(map(str, wrong)), problems)


def _files(name: str) -> list[str]:
    """Return the scenario files in a folder, or the name itself."""
    place = Path(name)
    if name == STANDARD_INPUT or not place.is_dir():
        return [name]
    found = sorted(str(path) for path in place.iterdir() if path.suffix in SUFFIXES)
    if not found:
        raise Stop(USAGE, f"{name}: there is no file *.yaml in this folder; name a scenario file")
    return found


def _checked(file: str) -> Valid:
    """Read a scenario, and plan it for each variant that it names."""
    scenario = loaded(file)
    try:
        own = scenario.plan().variant
        others = [variant for variant in scenario.expectations if variant != own]
        for variant in others:
            scenario.plan(variant)
    except ScenarioError as error:
        raise stopped_by(error) from None
    return Valid(file, scenario.name, (own, *others))
