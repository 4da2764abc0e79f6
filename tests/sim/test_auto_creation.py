"""Topics that brokers create because a client wants them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.test_replication import cluster
from watchkeeper import Result, simulate
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event
from watchkeeper.scenarios import ScenarioError

LOAD = {"at": "3s", "produce": "fresh", "rate": "50/s", "acks": "all", "for": "3s"}


def created(result: Result) -> list[Event]:
    """Return what brokers have created, or could not."""
    return list(result.trace.of_kind(EventKind.TOPIC_AUTO_CREATED))


def run(*timeline: dict[str, Any], variant: str = "hardened", **creation: Any) -> Result:
    """Simulate three brokers that create topics."""
    scenario = cluster(*timeline, auto_create_topics=creation)
    return simulate(scenario, variant=variant, seed=1)


@pytest.mark.parametrize("variant", ["hardened", "kafka_08"])
def test_the_first_message_creates_its_topic(variant: str) -> None:
    """With as many partitions and replicas as brokers are configured for."""
    result = run(LOAD, variant=variant, partitions=3, replicas=2)

    [one] = created(result)
    assert one.topic == "fresh"
    assert [len(set(replicas)) for replicas in one.detail["replicas"]] == [2, 2, 2]
    stored = {(event.topic, event.detail["partition"]) for event in _stored(result)}
    assert stored == {("fresh", "0"), ("fresh", "1"), ("fresh", "2")}
    assert result.judgement.violated() == []
    assert not list(result.trace.of_kind(EventKind.NOT_ACKNOWLEDGED))


def _stored(result: Result) -> list[Event]:
    return list(result.trace.of_kind(EventKind.STORED))


def test_a_topic_that_is_there_is_not_created() -> None:
    """Clients only learn who leads."""
    result = run({**LOAD, "produce": "clicks"}, partitions=3)
    assert created(result) == []


def test_one_of_two_creators_counts() -> None:
    """Two loads turn to two brokers at once."""
    result = run(LOAD, LOAD, partitions=2, replicas=2)
    assert len(created(result)) == 1
    assert result.judgement.violated() == []


def test_too_few_brokers_create_nothing() -> None:
    """Each question says why; once there are enough, the topic comes."""
    result = run({**LOAD, "at": "100ms"}, partitions=1, replicas=3)
    *refused, made = created(result)
    assert refused
    assert {event.detail["why"] for event in refused} == {
        "the replication factor is 3, and the brokers to place replicas on are 2; lower it, or "
        "start more brokers"
    }
    assert "replicas" in made.detail
    assert _stored(result)


def test_without_the_setting_a_load_needs_a_topic() -> None:
    """The scenario is refused."""
    with pytest.raises(ScenarioError, match="'fresh' is not a topic"):
        simulate(cluster(LOAD), variant="hardened")
