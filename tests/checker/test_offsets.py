"""A group with its offsets in Kafka, in every interleaving with its coordinators."""

from __future__ import annotations

from dataclasses import replace

import pytest

from watchkeeper.check.control_plane_command import OFFSETS_FAULTS
from watchkeeper.checker.offsets.group import Bounds, Steps, initial
from watchkeeper.checker.offsets.search import search
from watchkeeper.checker.offsets.state import TOMBSTONE, Entry, Fault, noted
from watchkeeper.checker.search.search import Limits
from watchkeeper.model.properties.group_offsets import FOUND, NOT_MISSING, STAYS_EXPIRED
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.replication.variants import (
    HARDENED,
    KAFKA_08,
    Expiry,
    OffsetFetches,
    OffsetsCache,
    ReplicationVariant,
)

ONE = Bounds(members=1, commits=2, epochs=2)
HARMLESS = (Fault.CRASH, Fault.REPLY, Fault.LATE, Fault.MEMBER, Fault.EXPIRY)


def bounds(*faults: Fault, size: Bounds = ONE) -> Bounds:
    """Return the bounds of a search with some faults."""
    return size._replace(faults=frozenset(faults))


@pytest.mark.parametrize("fault", Fault)
def test_hardened_withstands_each_fault(fault: Fault) -> None:
    result = search(HARDENED, bounds(fault))
    assert (result.verdict, result.steps) == (Verdict.HOLDS, ())


@pytest.mark.parametrize("fault", HARMLESS)
def test_kafka_08_withstands_some_faults_alone(fault: Fault) -> None:
    assert search(KAFKA_08, bounds(fault)).verdict is Verdict.HOLDS


@pytest.mark.parametrize(("fault", "steps"), [(Fault.DEPOSED, 6), (Fault.MOVED, 10)])
def test_kafka_08_misses_an_offset_after_a_hand_over(fault: Fault, steps: int) -> None:
    """From a cache that is stale, or was loaded up to a high watermark that lags."""
    result = search(KAFKA_08, bounds(fault))
    assert result.violated == NOT_MISSING.name
    assert len(result.steps) == steps
    assert result.steps[-1].endswith("with no offset")


@pytest.mark.parametrize(
    ("variant", "faults"),
    [
        (replace(HARDENED, offset_fetches=OffsetFetches.AT_ONCE), (Fault.DEPOSED,)),
        (replace(HARDENED, offsets_cache=OffsetsCache.LOADED), (Fault.MOVED,)),
        (replace(HARDENED, expiry=Expiry.CACHED), (Fault.EXPIRY,)),
        pytest.param(
            replace(KAFKA_08, offset_fetches=OffsetFetches.CONFIRMED),
            (Fault.EXPIRY, Fault.CRASH),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["answers at once", "loads a cache", "expires under a commit", "expires while it loads"],
)
def test_each_rule_of_hardened_is_needed(
    variant: ReplicationVariant, faults: tuple[Fault, ...]
) -> None:
    result = search(variant, bounds(*faults))
    assert result.verdict is Verdict.VIOLATED
    assert result.violated in (FOUND.name, NOT_MISSING.name, STAYS_EXPIRED.name)


def test_a_search_that_is_cut_short_says_nothing() -> None:
    result = search(HARDENED, bounds(*Fault), limits=Limits(states=100))
    assert result.verdict is Verdict.UNKNOWN


def test_each_fault_strikes() -> None:
    """None is without effect: each leads to states that there are not without it."""
    calm = search(HARDENED, bounds()).states
    for fault in Fault:
        assert search(HARDENED, bounds(fault)).states > calm, fault


def test_two_members_search_more_than_one() -> None:
    two = search(HARDENED, ONE._replace(members=2))
    assert two.verdict is Verdict.HOLDS
    assert two.states > search(HARDENED, ONE).states


def test_the_cache_is_that_of_the_broker() -> None:
    """An older record never replaces a newer one, and a tombstone removes what is before it."""
    old, new = Entry(1, 0), Entry(2, 3)
    assert noted(None, old) == old
    assert noted(old, new) == new
    assert noted(new, old) == new
    assert noted(old, Entry(TOMBSTONE, 4)) is None
    assert noted(new, Entry(TOMBSTONE, 2)) == new


def test_the_first_state_is_a_coordinator_without_commits() -> None:
    steps = [step.text for step in Steps(KAFKA_08, ONE).of(initial(ONE))]
    assert "member 1 sends commit 1 to a, which appends it" in steps
    assert not any("fetch to" in step for step in steps)


def test_the_command_knows_every_fault() -> None:
    """By the names that the search has for them."""
    assert {word.upper() for word in OFFSETS_FAULTS} == {fault.name for fault in Fault}
