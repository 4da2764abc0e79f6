"""The steps of the published TLA+ models: TLC's counts, recorded, are those of a search here."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests import HOME
from watchkeeper.checker.replication.partition import Bounds, LeaderAndIsr, Steps, initial
from watchkeeper.checker.replication.published import (
    INVARIANTS,
    MODELS,
    PublishedModel,
    PublishedSteps,
)
from watchkeeper.checker.replication.search import Holds, search_steps
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.truncation import KIP_101, KIP_279, KIP_320, RULES
from watchkeeper.model.replication.variants import KAFKA_08

RECORDED = json.loads((HOME / "docs" / "truncation_rules.json").read_text(encoding="utf-8"))
"""What `bench/truncation_rules.py --json` printed with TLC."""
EVERY: dict[str, Holds] = {"every state": lambda state: True}
TWO = Bounds(replicas=2, log=2, records=2, epochs=3)
LARGEST_QUICK = 15_000
"""States of a search that is small enough for each run of the tests."""


def steps_of(model: PublishedModel, bounds: Bounds) -> PublishedSteps:
    """Return the steps of a model."""
    return PublishedSteps(replace(KAFKA_08, truncation=model.rule), bounds)


def recorded(model: PublishedModel, invariant: str) -> list[Any]:
    """Return the rows of a model and an invariant."""
    return [
        row
        for row in RECORDED["rows"]
        if (row["module"], row["invariant"]) == (model.module, invariant)
    ]


def test_every_rule_has_a_model() -> None:
    assert tuple(model.rule for model in MODELS) == RULES


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.module)
def test_as_many_states_as_tlc(model: PublishedModel) -> None:
    """In every small search to the end that is recorded."""
    rows = [
        row
        for row in recorded(model, "every state")
        if row["tlc"]["distinct"] < LARGEST_QUICK and row["bounds"]["replicas"] == 2
    ]

    assert rows
    for row in rows:
        found = search_steps(steps_of(model, Bounds(**row["bounds"])), EVERY)
        assert (found.states, found.depth) == (row["tlc"]["distinct"], row["tlc"]["depth"])
        assert row["same_states"]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.module)
def test_as_many_states_as_tlc_in_every_recorded_search(model: PublishedModel) -> None:
    for row in recorded(model, "every state"):
        found = search_steps(steps_of(model, Bounds(**row["bounds"])), EVERY)
        assert (found.states, found.depth) == (row["tlc"]["distinct"], row["tlc"]["depth"])


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.module)
@pytest.mark.parametrize("invariant", ["WeakIsr", "StrongIsr"])
def test_as_many_steps_as_tlc(model: PublishedModel, invariant: str) -> None:
    """To the nearest violation."""
    [row] = [row for row in recorded(model, invariant) if Bounds(**row["bounds"]) == TWO]

    found = search_steps(steps_of(model, TWO), {invariant: INVARIANTS[invariant]})

    assert f"{len(found.counterexamples[invariant])} steps" == row["tlc"]["found"]


def test_what_is_recorded_agrees() -> None:
    """Complete searches in states, violations in steps, and types alone are not judged."""
    for row in RECORDED["rows"]:
        ours, tlc = row["ours"], row["tlc"]
        if row["invariant"] == "TypeOk":
            assert tlc["found"] == "not evaluated"
            continue
        assert ours["found"] == tlc["found"]
        if ours["is_complete"]:
            assert (ours["distinct"], ours["depth"]) == (tlc["distinct"], tlc["depth"])


# --- the three differences of the text from Kafka --------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.module)
def test_kafka_has_other_states_than_the_text(model: PublishedModel) -> None:
    """More, by requests without a leader; the comparison with TLC would notice."""
    steps = steps_of(model, TWO)

    published = search_steps(steps, EVERY).states

    assert search_steps(Steps(steps.variant, TWO), EVERY).states > published


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.module)
def test_violations_of_kafka_are_as_near_as_those_of_the_text(model: PublishedModel) -> None:
    steps = steps_of(model, TWO)
    isr = {name: INVARIANTS[name] for name in ("WeakIsr", "StrongIsr")}

    published, kafka = (
        {name: len(path) for name, path in search_steps(one, isr).counterexamples.items()}
        for one in (steps, Steps(steps.variant, TWO))
    )

    assert published == kafka


def test_the_text_empties_an_isr_without_a_leader() -> None:
    """Kafka leaves the last member there."""
    state = initial(1)
    published = steps_of(MODELS[0], TWO._replace(replicas=1))
    kafka = Steps(published.variant, published.bounds)

    emptied = [step.after for step in published.of(state) if not step.after.cell.isr]

    assert len(emptied) == 1
    assert [step for step in kafka.of(state) if not step.after.cell.isr] == []
    assert list(published.of(emptied[0])) == []


def test_no_replica_of_the_text_learns_that_there_is_no_leader() -> None:
    request = LeaderAndIsr(0, NO_LEADER, frozenset({0}))
    state = initial(2)._replace(cell=request, sent=frozenset({request}))
    published = steps_of(MODELS[4], TWO._replace(epochs=1))

    assert list(published.of(state)) == []
    taken = Steps(published.variant, published.bounds).of(state)
    assert [step.text for step in taken] == [
        "replica 0 learns of no leader in 0",
        "replica 1 learns of no leader in 0",
    ]


@pytest.mark.parametrize(
    ("rule", "follows"), [(KIP_101, False), (KIP_279, True), (KIP_320, True)]
)
def test_a_follower_of_kip_101_whose_epoch_goes_on_cannot_follow(
    rule: object, *, follows: bool
) -> None:
    """`TruncateTo` would cut behind the end of its log."""
    [model] = [model for model in MODELS if model.rule is rule]
    leads = LeaderAndIsr(0, 0, frozenset({0, 1}))
    state = initial(2)
    records = (Record(0, 0), Record(0, 1))
    leader = state.replicas[0]._replace(log=records, believes=leads)
    follower = state.replicas[1]._replace(log=records[:1])
    state = state._replace(
        replicas=(leader, follower), cell=leads, sent=frozenset({leads}), written=2
    )

    published = steps_of(model, TWO._replace(epochs=1))

    text = "replica 1 follows 0 in epoch 0, and cuts 0 of 1 records"
    assert (text in [step.text for step in published.of(state)]) == follows
    assert text in [step.text for step in Steps(published.variant, published.bounds).of(state)]
