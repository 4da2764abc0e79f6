"""Random small systems: a search with all reductions says what one without any says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st

from tests.support.checker.clusters import controlled, outcome_of, small
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.search.search import Limits, Search, SearchOptions
from watchkeeper.model.plan.bounds import KINDS, Begin, Bounds

MOST_STATES = 30_000
"""Larger systems are not compared: the search without reductions would take too long."""
VARIANTS: Mapping[str, tuple[Literal["0.7", "0.8"], ...]] = {
    "hardened": ("0.7", "0.8"),
    "kafka_07": ("0.7",),
    "kafka_08": ("0.8",),
    "documented": ("0.7",),
    "adopts-by-name": ("0.7",),
    "stale-memory": ("0.7",),
    "clears-away": ("0.7",),
    "lost-reply": ("0.7",),
    "memory-lost": ("0.7",),
}
"""Variants, and mutants whose mistakes concern registrations, claims and answers."""


@dataclass(frozen=True)
class SmallSystem:
    """What is drawn."""

    variant: str
    layout: Literal["0.7", "0.8"]
    brokers: int
    begin: Begin
    messages: int
    faults: Mapping[str, int] = field(default_factory=dict)
    elects: bool = False
    """Whether the brokers elect a controller."""

    def outcome(self, *, reduces: bool) -> dict[str, Any]:
        if self.elects:
            plan = controlled(self.variant, brokers=self.brokers, consumers=2)
        else:
            plan = small(self.variant, layout=self.layout, brokers=self.brokers, partitions=1)
        bounds = Bounds(self.faults, 2, self.messages, self.begin)
        system = ClusterSystem(plan, bounds, folds=reduces)
        limits = Limits(states=MOST_STATES)
        options = SearchOptions(limits, finds_all=True, reduces=reduces, keeps_all=0)
        search = Search(system, options)
        found = search.run()
        return outcome_of(system, search, found) if found.is_complete else {"complete": False}


@st.composite
def small_systems(draw: st.DrawFn) -> SmallSystem:
    variant = draw(st.sampled_from(sorted(VARIANTS)))
    kinds = draw(st.lists(st.sampled_from(KINDS), max_size=2, unique=True))
    faults = dict.fromkeys(kinds, 1)
    if "restart" in faults:
        faults["crash"] = 1
    if "broker_restart" in faults:
        faults["broker_crash"] = 1
    layout = draw(st.sampled_from(VARIANTS[variant]))
    return SmallSystem(
        variant,
        layout,
        draw(st.integers(1, 2)),
        draw(st.sampled_from(("settled", "fresh"))),
        draw(st.integers(0, 1)),
        faults,
        layout == "0.8" and draw(st.booleans()),
    )


def check(drawn: SmallSystem) -> None:
    plain = drawn.outcome(reduces=False)
    assume(plain["complete"])
    event("violated" if plain["violated"] else "holds")

    assert drawn.outcome(reduces=True) == plain


@settings(max_examples=10)
@given(small_systems())
@example(SmallSystem("documented", "0.7", 1, "settled", 0))
def test_reductions_change_no_verdict(drawn: SmallSystem) -> None:
    check(drawn)


@pytest.mark.slow
@settings(max_examples=200)
@given(small_systems())
def test_reductions_change_no_verdict_of_two_hundred_systems(drawn: SmallSystem) -> None:
    check(drawn)
