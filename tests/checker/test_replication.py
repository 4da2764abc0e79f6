"""Truncation rules are searched: which of them keeps what is committed, and which does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from watchkeeper.checker.replication.partition import (
    WITHSTOOD,
    Bounds,
    Fault,
    LeaderAndIsr,
    Partition,
    Replica,
    Steps,
    initial,
)
from watchkeeper.checker.replication.search import PROPERTIES, Result, search
from watchkeeper.checker.search.search import Limits
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.truncation import (
    FETCH_EPOCHS,
    HIGH_WATERMARK,
    KIP_101,
    KIP_279,
    KIP_320,
    RULES,
    TruncationRule,
)
from watchkeeper.model.replication.variants import (
    HARDENED,
    KAFKA_08,
    FirstRequest,
    RefusedIsr,
    ReplicationVariant,
)

TWO = Bounds(replicas=2, log=2, records=2, epochs=3)
THREE = Bounds(replicas=3, log=1, records=1, epochs=2)


def under(rule: TruncationRule) -> ReplicationVariant:
    """Return 0.8.2.2 with another truncation rule."""
    return replace(KAFKA_08, truncation=rule)


def lengths(result: Result) -> dict[str, int]:
    """Violated property -> the number of steps to its violation."""
    return {name: len(steps) for name, steps in result.counterexamples.items()}


@pytest.mark.parametrize(
    ("rule", "violated"),
    [
        (HIGH_WATERMARK, {"strong ISR": 9, "weak ISR": 8}),
        (KIP_101, {"strong ISR": 11, "weak ISR": 11}),
        (KIP_279, {}),
        (FETCH_EPOCHS, {}),
        (KIP_320, {}),
    ],
    ids=[rule.name for rule in RULES],
)
def test_two_replicas(rule: TruncationRule, violated: dict[str, int]) -> None:
    """With two of them only the rules without a common end lose or fork what is committed."""
    result = search(under(rule), TWO)

    assert result.stopped == "" or violated
    assert lengths(result) == violated


def test_truncation_to_the_high_watermark_loses_a_committed_record() -> None:
    """As KAFKA-1211 tells it: the follower cuts what it does not know to be committed."""
    [*_, last] = search(under(HIGH_WATERMARK), TWO).counterexamples["strong ISR"]

    assert last.endswith("cuts 1 of 1 records")


@pytest.mark.parametrize("rule", [KIP_101, KIP_279, KIP_320], ids=lambda rule: rule.name)
def test_three_replicas(rule: TruncationRule) -> None:
    """A follower that asks a leader of another epoch cuts what this epoch has committed."""
    result = search(under(rule), THREE, properties=("strong ISR",))

    assert bool(result.counterexamples) == (rule is not KIP_320)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("agreement", KIP_279.agreement),
        pytest.param("admits_after_own_epoch", False, marks=pytest.mark.slow),
        ("cut_at", HIGH_WATERMARK.cut_at),
    ],
)
def test_each_part_of_the_last_rule_is_needed(part: str, other: object) -> None:
    """Without it, what is committed is lost."""
    rule = KIP_320._replace(**{part: other})  # type: ignore[arg-type]
    result = search(under(rule), THREE._replace(epochs=3), properties=("strong ISR",))

    assert "strong ISR" in result.counterexamples


def test_properties_tell_states_apart() -> None:
    """Each has a state that violates it and no other."""
    both, leads = frozenset({0, 1}), LeaderAndIsr(0, 0, frozenset({0, 1}))
    has = Replica((Record(0, 0),), 1, leads)
    lacks = Replica((), 0, leads)
    alone = has._replace(believes=leads._replace(isr=frozenset({0})))
    cases = {
        "leader in ISR": Partition(
            (has, has), LeaderAndIsr(1, 0, frozenset({1})), frozenset(), 1
        ),
        "strong ISR": Partition((alone, lacks), leads, frozenset(), 1),
        "weak ISR": Partition((has, lacks), LeaderAndIsr(1, 0, frozenset({0})), frozenset(), 1),
    }

    for name, state in cases.items():
        assert [other for other, holds in PROPERTIES.items() if not holds(state)] == [name]
    assert all(holds(Partition((has, has), leads, both, 1)) for holds in PROPERTIES.values())  # type: ignore[arg-type]


def test_a_search_that_meets_its_limit_is_not_complete() -> None:
    result = search(under(KIP_320), THREE, properties=("strong ISR",), limits=Limits(states=100))

    assert result.stopped == "100 states were seen"


def test_what_can_happen_at_first() -> None:
    """The controller alone acts, and never leaves the ISR empty."""
    first = initial(2)
    steps = list(Steps(under(KIP_320), TWO).of(first))

    assert [step.text.split(" (")[0] for step in steps] == [
        "the controller takes 0 for dead",
        "the controller elects 0",
        "the controller takes 1 for dead",
        "the controller elects 1",
    ]
    assert all(step.after.cell.isr for step in steps)
    assert first.cell.leader == NO_LEADER


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("variant", [KAFKA_08, HARDENED], ids=lambda one: one.name)
def test_two_replicas_under_a_fault(variant: ReplicationVariant, fault: Fault) -> None:
    """Of the faults, `hardened` gives way to the two that lose what was written."""
    bounds = TWO._replace(faults=frozenset({fault}))
    result = search(variant, bounds, properties=("strong ISR",))

    assert bool(result.counterexamples) == (variant is KAFKA_08 or fault not in WITHSTOOD)


@pytest.mark.parametrize(
    ("fault", "change"),
    [
        (Fault.CRASH, {"first_request": FirstRequest.TAKEN}),
        (Fault.OLD_CHECKPOINT, {"first_request": FirstRequest.TAKEN}),
        (Fault.REPLY, {"refused_isr": RefusedIsr.KEEPS_VERSION}),
    ],
)
def test_what_hardened_does_is_needed(fault: Fault, change: dict[str, Any]) -> None:
    """Without it the fault finds a way."""
    bounds = TWO._replace(faults=frozenset({fault}))
    weakened = replace(HARDENED, **change)

    assert search(weakened, bounds, properties=("strong ISR",)).counterexamples != {}


@pytest.mark.slow
def test_two_replicas_under_all_stated_faults() -> None:
    """Each kind once, in any order: every state is seen."""
    result = search(HARDENED, TWO._replace(faults=WITHSTOOD), properties=("strong ISR",))

    assert (result.stopped, result.counterexamples) == ("", {})
