"""Groups that read from brokers that replicate: what is committed, from the leaders."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.test_replication import cluster
from watchkeeper import Result, simulate
from watchkeeper.model.properties.at_quiescence import COVER
from watchkeeper.model.properties.control_plane.replication import READ
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.replication import leader
from watchkeeper.model.replication.messages import ENTRY_BYTES
from watchkeeper.model.replication.requests import FetchedPart
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import ScenarioError

LOAD = {"at": "2s", "produce": "clicks", "rate": "50/s", "acks": "all", "for": "6s"}
FROM_THE_BEGINNING = {"auto.offset.reset": "smallest"}


def read(
    *timeline: dict[str, Any],
    seed: int = 1,
    variant: str = "hardened",
    config: dict[str, Any] | None = None,
    replication: dict[str, Any] | None = None,
    session: str = "1s",
    **group: Any,
) -> Result:
    """Simulate a group that reads one topic."""
    group = {
        "consumers": 1,
        "streams": {"clicks": 1},
        "config": FROM_THE_BEGINNING if config is None else config,
        "guarantee": "at least once",
        **group,
    }
    scenario = cluster(*timeline, partitions=2, replicas=3, **(replication or {}))
    scenario["clusters"]["main"]["session_timeout"] = session
    return simulate({**scenario, "groups": {"billing": group}}, variant=variant, seed=seed)


def offsets(result: Result) -> list[tuple[str, int, int]]:
    """Return the offsets that were handed on: partition, from and to."""
    return [
        (event.partition, at, to)
        for event in result.trace.of_kind(EventKind.CONSUMED)
        for _, _, _, at, to, *_ in event.detail["ranges"]
    ]


@pytest.mark.parametrize("variant", ["hardened", "kafka_08"])
@pytest.mark.parametrize("victim", ["leader of clicks/0", "controller", "billing/0"])
def test_every_message_reaches_the_group(variant: str, victim: str) -> None:
    """In the order of the log, whatever crashes."""
    for seed in range(3):
        again = {"at": "9s", "restart": victim}
        result = read(LOAD, {"at": "5s", "crash": victim}, again, seed=seed, variant=variant)
        found = {each.claim.name: each for each in result.judgement.findings}
        assert found["delivery to billing"].verdict is Verdict.HOLDS
        assert found["order"].verdict is Verdict.HOLDS
        assert found["delivery to billing"].exercised >= 300
        assert found[READ.name].verdict is Verdict.HOLDS


def test_a_lost_leader_is_looked_for_after_a_pause() -> None:
    """Until a successor is elected brokers name the old one: a consumer does not go round."""
    result = read(LOAD, {"at": "4s", "crash": "leader of clicks/0"})
    failures = list(result.trace.of_kind(EventKind.FETCH_FAILED))
    assert 1 <= len(failures) <= 3_000 // 200


def test_a_group_that_begins_at_the_end_reads_what_is_new() -> None:
    """The end is the high watermark; a group begins there by default."""
    late = [{"starts": "5s"}]
    result = read(LOAD, config={}, consumers=late, guarantee="measured")
    begins = list(result.trace.of_kind(EventKind.OFFSET_RESET))
    assert [event.detail["why"] for event in begins] == ["no offset"] * 2
    assert all(event.detail["to"] > 50 for event in begins)
    assert min(at for _, at, _ in offsets(result)) > 50


def test_no_member_reads_what_followers_do_not_have() -> None:
    """Both followers are cut off: the leader stores on, and hands on nothing of it."""
    timeline = [
        {**LOAD, "acks": "leader"},
        {"at": "4s", "pause": "broker/1", "for": "20s"},
        {"at": "4s", "pause": "broker/2", "for": "20s"},
    ]
    patient = {"lag_time": "60s"}
    result = read(*timeline, replication=patient, session="30s", guarantee="measured")
    stored = max(
        event.detail["ranges"][-1][4]
        for event in result.trace.of_kind(EventKind.STORED)
        if event.t_us < 13_000_000
    )
    before = [
        event.detail["ranges"][-1][4]
        for event in result.trace.of_kind(EventKind.CONSUMED)
        if event.t_us < 13_000_000
    ]
    assert max(before) < 60 < 140 < stored
    assert max(to for _, _, to in offsets(result)) == stored


def test_a_leader_that_hands_on_everything_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers of it read messages that are lost with it."""
    part = leader._part

    def eager(all_of: Any, wanted: Any, of_consumer: bool) -> FetchedPart:
        return part(all_of, wanted._replace(leader_epoch=wanted.leader_epoch), False)

    monkeypatch.setattr(leader, "_part", eager)
    timeline = [
        {**LOAD, "acks": "leader"},
        {"at": "4s", "pause": "broker/1", "for": "10s"},
        {"at": "4s", "pause": "broker/2", "for": "10s"},
    ]
    result = read(*timeline, variant="kafka_08", guarantee="measured")
    assert READ.name in result.judgement.violated()


def test_a_fetch_holds_as_many_messages_as_fit() -> None:
    """And a message that does not fit ends the partition, with a sentence."""
    fitting = {**FROM_THE_BEGINNING, "fetch.message.max.bytes": 2 * ENTRY_BYTES}
    result = read(LOAD, config=fitting)
    assert result.judgement.violated() == []
    assert max(to - at for _, at, to in offsets(result)) <= 2

    tight = {**FROM_THE_BEGINNING, "fetch.message.max.bytes": ENTRY_BYTES - 1}
    result = read(LOAD, config=tight, guarantee="measured")
    assert offsets(result) == []
    failures = [event.detail["why"] for event in result.trace.of_kind(EventKind.STREAM_FAILED)]
    assert all("a fetch of this size gives no message" in why for why in failures)
    assert len(failures) >= 2


def test_a_deleted_topic_that_comes_again_is_read_from_its_beginning() -> None:
    """The offsets of the old one are out of range."""
    timeline = [
        LOAD,
        {"at": "10s", "delete_topic": "clicks"},
        {"at": "14s", "create_topic": "clicks", "partitions": 2},
        {"at": "17s", "produce": "clicks", "rate": "20/s", "acks": "all", "for": "2s"},
    ]
    result = read(*timeline, guarantee="measured")
    assert READ.name not in result.judgement.violated()
    late = [
        event.detail["ranges"][0][3]
        for event in result.trace.of_kind(EventKind.CONSUMED)
        if event.t_us > 17_000_000
    ]
    assert min(late) == 0


def test_a_group_without_messages_has_no_guarantee() -> None:
    """Without replication or storage a log is a rate."""
    scenario = cluster()
    del scenario["clusters"]["main"]["replication"]
    group = {"consumers": 1, "streams": {"clicks": 1}, "guarantee": "at least once"}
    with pytest.raises(ScenarioError, match="lacks `storage` and `replication`"):
        simulate({**scenario, "groups": {"billing": group}}, variant="hardened")


@pytest.mark.parametrize("variant", ["hardened", "kafka_08"])
def test_a_topic_that_was_deleted_by_request_needs_no_reader(variant: str) -> None:
    """Full cover is judged by what the registry has: while the topic is there, and again."""
    gone = {"at": "8s", "write_znode": "/admin/delete_topics/clicks", "data": ""}
    result = read(gone, variant=variant, guarantee="measured")
    assert list(result.trace.of_kind(EventKind.TOPIC_DELETED))
    assert result.judgement.finding(COVER.name).verdict is Verdict.HOLDS
    again = {"at": "12s", "create_topic": "clicks", "partitions": 3}
    result = read(gone, again, variant=variant, guarantee="measured")
    last = [event for event in result.trace.of_kind(EventKind.FETCHING) if event.t_us > 12e6]
    assert {event.partition for event in last} == {"0", "1", "2"}
    assert result.judgement.finding(COVER.name).verdict is Verdict.HOLDS
