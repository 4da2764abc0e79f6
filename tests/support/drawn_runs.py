"""Runs of scenarios that are drawn from a seed, and what is violated in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from watchkeeper import simulate
from watchkeeper.scenarios import ScenarioError

Drawn = Callable[[int], dict[str, Any]]
"""Returns the scenario of a seed."""


def violated(drawn: Drawn, seed: int, variant: str) -> list[str] | None:
    """Return the violated properties; None for a timeline that contradicts itself."""
    try:
        return simulate(drawn(seed), variant=variant, seed=seed).judgement.violated()
    except ScenarioError:
        return None


def found(drawn: Drawn, variant: str, seeds: range) -> set[str]:
    """Return every property that is violated with one of these seeds."""
    return {name for seed in seeds for name in violated(drawn, seed, variant) or ()}


def holds(drawn: Drawn, variant: str, seeds: range, *, most_refused: float) -> None:
    """Insist that nothing is violated, and that most of the timelines could be run."""
    runs = {seed: violated(drawn, seed, variant) for seed in seeds}
    assert {seed: names for seed, names in runs.items() if names} == {}
    assert sum(names is not None for names in runs.values()) > (1 - most_refused) * len(runs)
