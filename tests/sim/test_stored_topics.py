"""Topics of brokers that store messages: created, grown and deleted while they run."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.scenarios import from_text
from watchkeeper.sim.world import simulate

SCENARIO = """
name: topics
about: topics that come and go
clusters:
  main:
    zookeeper: {{servers: 1}}
    brokers: 2
    storage: {{config: {{log.flush.interval: 20}}}}
    topics: {{clicks: {{partitions_per_broker: {partitions}}}}}
groups:
  billing:
    consumers: 1
    filter: {{white_list: "(clicks|views)", streams: 1}}
    config: {{auto.commit.interval.ms: {commits_ms}, refresh.leader.backoff.ms: 100}}
timeline:
{timeline}
settle: {settle_s}s
"""


def run(*timeline: str, partitions: int = 1, commits_ms: int = 500, settle_s: int = 12) -> Trace:
    """Run a timeline; nothing is violated."""
    lines = "\n".join(f"  - {{{entry}}}" for entry in timeline)
    text = SCENARIO.format(
        timeline=lines, partitions=partitions, commits_ms=commits_ms, settle_s=settle_s
    )
    plan = from_text("topics.yaml", text).plan("hardened")
    done = simulate(plan, 1)
    findings = judge(plan, done.trace, done.effects).findings
    assert [finding.evidence for finding in findings if finding.verdict is Verdict.VIOLATED] == []
    return done.trace


def stored(trace: Trace, topic: str, after_us: int = 0) -> dict[str, list[int]]:
    """Partition -> the offsets at which messages were stored."""
    found: dict[str, list[int]] = {}
    for event in trace.of_kind(EventKind.STORED):
        if event.topic == topic and event.t_us > after_us:
            found.setdefault(event.partition, []).append(event.detail["ranges"][0][3])
    return found


def written(trace: Trace, op: str, path: str) -> list[Event]:
    """The writes of a kind that took effect at a path."""
    return [
        event
        for event in trace.of_kind(EventKind.APPLIED)
        if event.detail["op"] == op and event.detail.get("path") == path
    ]


def consumed_size(trace: Trace, after_us: int) -> int:
    """The number of messages that the group was handed after a moment."""
    return sum(
        message_range[2] - message_range[1]
        for event in trace.of_kind(EventKind.CONSUMED)
        if event.t_us > after_us
        for message_range in event.detail["ranges"]
    )


def logs_opened(trace: Trace) -> list[Any]:
    """The ends of logs, as brokers say them."""
    return [event.detail["end"] for event in trace.of_kind(EventKind.LOG_OPENED)]


def test_a_topic_that_is_created_has_all_its_partitions() -> None:
    """On brokers that run already: each takes messages, and stays registered with its number."""
    trace = run(
        "at: 2s, create_topic: views, partitions_per_broker: 3",
        "at: 4s, produce: views, rate: 400/s, size: 300B, for: 4s",
    )

    assert len(stored(trace, "views")) == 6
    assert not list(trace.of_kind(EventKind.REQUEST_REFUSED))
    numbers = [
        event.detail["did"][0][3] for event in written(trace, "create", "/brokers/topics/views/0")
    ]
    assert numbers == ["3"]
    assert not written(trace, "set", "/brokers/topics/views/0")


PRODUCING = "produce: clicks, rate: 400/s, size: 300B"


def test_a_topic_that_is_deleted_and_created_begins_at_0() -> None:
    """Its messages are gone, and it is registered again."""
    trace = run(
        f"at: 2s, {PRODUCING}, for: 4s",
        "at: 8s, delete_topic: clicks",
        "at: 12s, create_topic: clicks, partitions_per_broker: 1",
        f"at: 14s, {PRODUCING}, for: 4s",
    )

    assert {
        name: offsets[0] for name, offsets in stored(trace, "clicks", 12_000_000).items()
    } == {
        "0-0": 0,
        "1-0": 0,
    }
    assert len(written(trace, "create", "/brokers/topics/clicks/0")) == 1
    assert consumed_size(trace, 12_000_000) > 1_000


def test_a_topic_that_is_deleted_under_load_is_created_by_the_next_message() -> None:
    """As Kafka 0.7 creates every topic; it begins at 0, and is registered again."""
    trace = run(f"at: 2s, {PRODUCING}, for: 10s", "at: 6s, delete_topic: clicks")

    later = stored(trace, "clicks", 6_100_000)
    assert later
    for partition, offsets in later.items():
        assert offsets[0] < 100_000
        broker = partition.partition("-")[0]
        assert len(written(trace, "create", f"/brokers/topics/clicks/{broker}")) == 1


@pytest.mark.parametrize("moment", range(10))
def test_a_topic_can_be_deleted_at_any_moment(moment: int) -> None:
    """Of an append, a flush or a fetch: no broker fails."""
    trace = run(
        "at: 2s, produce: clicks, rate: 20000/s, size: 1kB, for: 2s",
        f"at: {3000 + 7 * moment}ms, delete_topic: clicks",
    )

    assert not list(trace.of_kind(EventKind.BROKER_FAILED))


@pytest.mark.parametrize(
    "moments", [range(0, 100, 10), pytest.param(range(100), marks=pytest.mark.slow)], ids=len
)
def test_a_topic_can_be_deleted_while_it_is_read(moments: range) -> None:
    """A fetch that comes while its log is being deleted loses its connection; no broker fails.

    That takes a message that was just stored, and a consumer that asks every other millisecond.
    """
    text = SCENARIO.replace("backoff.ms: 100", "backoff.ms: 2")
    for moment in moments:
        lines = (
            "  - {at: 2s, produce: clicks, rate: 2000/s, size: 200B, for: 1500ms}\n"
            f"  - {{at: {2950 + 2 * moment}ms, delete_topic: clicks}}"
        )
        fields = text.format(timeline=lines, partitions=1, commits_ms=500, settle_s=1)
        trace = simulate(from_text("topics.yaml", fields).plan("hardened"), moment).trace
        assert not list(trace.of_kind(EventKind.BROKER_FAILED))


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_topic_that_is_deleted_under_load_is_registered_where_it_is_stored(
    partitions: int,
) -> None:
    """Also where messages come between the deletions of its logs: no partition has no reader.

    A message that was under way to a log of the deleted topic does not bring the topic back.
    """
    for moment in range(40):
        produce = "produce: clicks, rate: 2000/s, size: 200B, for: 1100ms"
        timeline = (f"at: 2s, {produce}", f"at: {2950 + 4 * moment}ms, delete_topic: clicks")
        trace = run(*timeline, partitions=partitions)
        for broker in (0, 1):
            ends = [
                event.kind
                for event in trace.of_kind(EventKind.STORED, EventKind.LOG_OPENED)
                if event.node == f"broker/{broker}" and event.t_us > 2_950_000
            ]
            path = f"/brokers/topics/clicks/{broker}"
            registered = len(written(trace, "create", path))
            is_stored = ends[-1:] == [EventKind.STORED] and EventKind.LOG_OPENED in ends
            assert registered >= is_stored


def test_a_broker_that_is_down_deletes_a_topic_when_it_starts() -> None:
    """Before it opens its logs, and with the topic created again meanwhile."""
    trace = run(
        f"at: 2s, {PRODUCING}, for: 4s",
        "at: 7s, leave: broker/1",
        "at: 8s, delete_topic: clicks",
        "at: 9s, create_topic: clicks, partitions_per_broker: 1",
        "at: 12s, start: broker/1",
        f"at: 14s, {PRODUCING}, for: 4s",
    )

    assert {
        name: offsets[0] for name, offsets in stored(trace, "clicks", 13_000_000).items()
    } == {
        "0-0": 0,
        "1-0": 0,
    }
    assert logs_opened(trace) == [0, 0]


def test_a_trace_says_that_a_log_was_deleted() -> None:
    """Each log of the topic ends at 0 from then on."""
    trace = run(f"at: 2s, {PRODUCING}, for: 4s", "at: 8s, delete_topic: clicks")

    assert logs_opened(trace) == [0, 0]


@pytest.mark.parametrize(
    "moments", [range(0, 30, 3), pytest.param(range(30), marks=pytest.mark.slow)], ids=len
)
def test_a_commit_under_way_at_a_reset_is_not_the_first_one_after_it(moments: range) -> None:
    """Then the next one, of a lower offset, is no step back."""
    for moment in moments:
        run(
            "at: 2s, produce: clicks, rate: 200/s, size: 200B, for: 1833ms",
            "at: 5s, delete_topic: clicks",
            "at: 6s, create_topic: clicks, partitions_per_broker: 1",
            f"at: {8000 + moment}ms, produce: clicks, rate: 300/s, size: 200B, for: 1s",
            commits_ms=2,
            settle_s=3,
        )
