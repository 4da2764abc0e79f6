"""Scenario files as tests: each `test_*.yaml` that is a scenario is one, or one a seed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from watchkeeper.api.result import Result

NAME = re.compile(r"test_.*\.ya?ml")
CLUSTERS = re.compile(r"^clusters:", re.MULTILINE)
"""The field of every scenario: other tools have files of such names, too."""


def is_scenario(path: Path) -> bool:
    """Whether a file is a scenario that is to be collected."""
    if NAME.fullmatch(path.name) is None:
        return False
    return CLUSTERS.search(path.read_text(encoding="utf-8", errors="replace")) is not None


def _from_here(path: Path) -> str:
    """The path of a file as a command names it, which runs in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


class NotAsExpected(AssertionError):
    """A run is not as its scenario expects."""


class ScenarioFile(pytest.File):
    """A scenario file."""

    seeds: int = 1
    variant: str | None = None

    def collect(self) -> Iterator[ScenarioTest]:
        """Yield a test for each seed."""
        for seed in range(self.seeds):
            item: ScenarioTest = ScenarioTest.from_parent(self, name=f"seed{seed}")
            item.seed, item.variant = seed, self.variant
            yield item


class ScenarioTest(pytest.Item):
    """A run of a scenario, which has to be as the scenario expects."""

    seed = 0
    variant: str | None = None

    def runtest(self) -> None:
        """Run the scenario in simulation, and judge it."""
        from watchkeeper.api.simulate import simulate
        from watchkeeper.suite.plugin import RUNS

        result: Result = simulate(_from_here(self.path), seed=self.seed, variant=self.variant)
        self.stash.setdefault(RUNS, []).append(result)
        if result.exit_code != 0:
            raise NotAsExpected(f"{self.path.name} is not as it expects")

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:
        """Return one sentence; what the run shows stands in a section of its own."""
        if isinstance(excinfo.value, NotAsExpected):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the test is."""
        return self.path, 0, f"{self.path.name}, seed {self.seed}"
