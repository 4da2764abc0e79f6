"""A broker of 0.8 as the coordinator of groups: commits, fetches, loads, expiry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.keyed_broker import Broker, registered
from watchkeeper.model.actor.operations import GetChildren
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode, records
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.log_08.checks import check_set
from watchkeeper.model.offset_manager.records import (
    CommittedOffset,
    OffsetKey,
    message_of,
    read_record,
)
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, OffsetSettings
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PartitionState, TopicAssignment
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    CommittedRequestV1,
    ConsumerMetadataRequest,
    PartitionCommitted,
    PartitionNumber,
    PartitionOutcome,
    TimedCommit,
)

GROUP = "g1"
AT = 42
"""The partition of the group."""
MINUTE_MS = 60_000


def coordinated(**settings: Any) -> Broker:
    """A broker with the topics `t` and `__consumer_offsets`."""
    broker = Broker(offsets=OffsetSettings(**settings))
    broker.create("t")
    broker.ask(ConsumerMetadataRequest(GROUP))
    return broker


def commit(broker: Broker, *parts: TimedCommit, topic: str = "t") -> Any:
    """The outcome of a commit."""
    return broker.ask(CommitRequestV1(GROUP, (OfTopic(topic, parts),))).topics[0].parts


def committed(broker: Broker, partition: int = 0, topic: str = "t", group: str = GROUP) -> Any:
    """What a fetch of an offset gives."""
    topics = (OfTopic(topic, (PartitionNumber(partition),)),)
    return broker.ask(CommittedRequestV1(group, topics)).topics[0].parts[0]


def in_log(broker: Broker) -> list[tuple[OffsetKey, CommittedOffset | None]]:
    """What the log of the partition of the group has."""
    path = f"{OFFSETS_TOPIC}-{AT}/{0:020}.log"
    contents = broker.storage.files[path].contents
    assert isinstance(contents, bytes)
    return [read_record(record) for record in records(contents)]


# --- who coordinates -------------------------------------------------------------------


def test_the_topic_is_created_for_the_first_who_looks_for_a_coordinator() -> None:
    broker = registered()
    first = broker.ask(ConsumerMetadataRequest(GROUP))
    assert (first.error_code, first.broker, first.host, first.port) == (15, -1, "", -1)
    path = f"/brokers/topics/{OFFSETS_TOPIC}/partitions"
    assert len(broker.znodes.answer(GetChildren(path))) == 50

    found = broker.ask(ConsumerMetadataRequest(GROUP))

    assert (found.error_code, found.broker, found.host, found.port) == (0, 3, "h", 9092)


def test_the_topic_is_created_where_no_other_is() -> None:
    broker = Broker(creates_topics=False)

    assert broker.ask(ConsumerMetadataRequest(GROUP)).error_code == 15
    assert broker.ask(ConsumerMetadataRequest(GROUP)).error_code == 0


def test_a_broker_that_was_killed_while_it_created_the_topic_creates_the_rest() -> None:
    broker = Broker()
    broker.run(broker.serving.log_of(OFFSETS_TOPIC, 3))

    assert broker.ask(ConsumerMetadataRequest(GROUP)).error_code == 15
    assert broker.ask(ConsumerMetadataRequest(GROUP)).error_code == 0


def test_another_broker_coordinates() -> None:
    broker = registered(4)
    broker.create("t")
    path = paths.topic(OFFSETS_TOPIC)
    rows = {index: ((4,) if index == AT else (3,)) for index in range(50)}
    broker.znodes.put(path, TopicAssignment(tuple(rows.items())).encode())
    broker.znodes.put(f"{path}/partitions/{AT}/state", PartitionState(4, (4,)).encode())

    found = broker.ask(ConsumerMetadataRequest(GROUP))

    assert (found.error_code, found.broker, found.host, found.port) == (0, 4, "h4", 9004)
    refused = PartitionError.NOT_COORDINATOR_FOR_CONSUMER
    assert commit(broker, TimedCommit(0, 1)) == (PartitionOutcome(0, refused),)
    assert committed(broker) == PartitionCommitted(0, -1, "", refused)


def test_without_the_topic_a_commit_finds_no_coordinator() -> None:
    broker = Broker()
    broker.create("t")

    assert commit(broker, TimedCommit(0, 1))[0].error_code == 15
    assert committed(broker).error_code == 16


def test_groups_are_spread_by_the_configured_number() -> None:
    """KAFKA-2336: a topic that has fewer partitions has none for some groups."""
    broker = registered()
    assignment = TopicAssignment(tuple((index, (3,)) for index in range(40)))
    broker.znodes.put(paths.topic(OFFSETS_TOPIC), assignment.encode())

    assert broker.ask(ConsumerMetadataRequest(GROUP)).error_code == 15
    assert broker.ask(ConsumerMetadataRequest(GROUP)).error_code == 15
    assert broker.ask(ConsumerMetadataRequest("test-group")).error_code == 0
    [differs] = broker.emitted
    assert differs.kind == EventKind.OFFSETS_SPREAD_DIFFERS
    assert dict(differs.detail) == {"configured": 50, "partitions": 40}


# --- commits and fetches ---------------------------------------------------------------


def test_a_commit_is_a_message_and_is_fetched() -> None:
    broker = coordinated()
    now = broker.storage.now_ms

    assert committed(broker) == PartitionCommitted(0)
    parts = (TimedCommit(0, 42, metadata="one"), TimedCommit(1, 43, 1000, None))
    assert commit(broker, *parts) == (PartitionOutcome(0), PartitionOutcome(1))

    assert committed(broker) == PartitionCommitted(0, 42, "one")
    assert committed(broker, 1) == PartitionCommitted(1, 43)
    assert in_log(broker) == [
        (OffsetKey(GROUP, "t", 0), CommittedOffset(42, "one", now)),
        (OffsetKey(GROUP, "t", 1), CommittedOffset(43, "", 1000)),
    ]
    assert committed(broker, group="other") == PartitionCommitted(0)


def test_a_text_that_is_too_long_leaves_its_offset_out() -> None:
    broker = coordinated()

    parts = commit(
        broker, TimedCommit(0, 5, metadata="x" * 4096), TimedCommit(1, 6, metadata="x" * 4097)
    )

    assert [one.error_code for one in parts] == [0, PartitionError.OFFSET_METADATA_TOO_LARGE]
    assert committed(broker).offset == 5
    assert committed(broker, 1) == PartitionCommitted(1)
    assert len(in_log(broker)) == 1


def test_a_partition_that_does_not_exist() -> None:
    """It can be committed (KAFKA-1852), but not fetched."""
    broker = coordinated()

    assert commit(broker, TimedCommit(0, 5), topic="u") == (PartitionOutcome(0),)
    assert committed(broker, topic="u") == PartitionCommitted(0, -1, "", 3)
    assert committed(broker, 7) == PartitionCommitted(7, -1, "", 3)


def test_a_commit_that_a_log_refuses_has_its_error() -> None:
    broker = coordinated(largest_metadata=1 << 20)

    parts = (TimedCommit(0, 1, metadata="x" * 32_000),) * 40
    assert commit(broker, *parts)[0].error_code == 0
    text = "é" * 16_000
    log = broker.serving.logs.get(OFFSETS_TOPIC, AT)
    assert log is not None
    log.settings = replace(log.settings, largest_payload_bytes=20_000)
    assert commit(broker, TimedCommit(1, 1, metadata=text))[0].error_code == 10
    assert committed(broker, 1) == PartitionCommitted(1)


def test_only_the_coordinator_writes_to_the_topic() -> None:
    broker = coordinated()

    found = broker.produce(encode([KeyedMessage(b"k", b"v")]), AT, topic=OFFSETS_TOPIC)

    assert found.error_code == PartitionError.INVALID_TOPIC


def test_a_commit_wakes_a_fetch_of_the_topic() -> None:
    broker = coordinated()
    broker.later = [lambda: commit(broker, TimedCommit(0, 5))]

    part = broker.fetch(0, wait_ms=300, partition=AT, topic=OFFSETS_TOPIC)

    assert [each.offset for each in records(part.messages)] == [0]


# --- loading ---------------------------------------------------------------------------


def put_commits(broker: Broker, *changes: tuple[int, int | None]) -> None:
    """Append commits of partitions outside of any request; None removes one."""
    log = broker.run(broker.serving.log_of(OFFSETS_TOPIC, AT))
    messages = [
        message_of(
            OffsetKey(GROUP, "t", partition),
            None if offset is None else CommittedOffset(offset, "", broker.storage.now_ms),
        )
        for partition, offset in changes
    ]
    data = encode(messages)
    broker.run(log.append_set(check_set(data, largest_entry_bytes=1 << 20)))


def restarted(broker: Broker) -> None:
    """End the process as by SIGKILL, and start one that leads what it led; it has not loaded."""
    broker.start()
    broker.run(broker.serving.refresh())


def test_a_process_loads_what_was_committed() -> None:
    broker = coordinated()
    put_commits(broker, (0, 10), (1, 20), (0, 11), (1, None))

    restarted(broker)
    assert committed(broker).error_code == PartitionError.OFFSETS_LOAD_IN_PROGRESS
    broker.run_tasks()

    assert committed(broker) == PartitionCommitted(0, 11)
    assert committed(broker, 1) == PartitionCommitted(1)
    [loaded] = [each for each in broker.emitted if each.kind == EventKind.OFFSETS_LOADED]
    assert dict(loaded.detail) == {"messages": 4, "offsets": 1, "partition": AT, "unreadable": 0}


def test_commits_during_a_load_are_not_overtaken_by_it() -> None:
    broker = coordinated(load_buffer_bytes=60)
    put_commits(broker, (0, 10), (1, 20), (0, 11), (1, 21))
    restarted(broker)
    found = []

    def between_chunks() -> None:
        found.append(committed(broker).error_code)
        found.append(commit(broker, TimedCommit(0, 12))[0].error_code)

    broker.later = [between_chunks, between_chunks]
    broker.run_tasks()

    assert found == [14, 0, 14, 0]
    assert committed(broker) == PartitionCommitted(0, 12)
    assert committed(broker, 1) == PartitionCommitted(1, 21)


def test_messages_that_are_no_offsets_do_not_end_a_load() -> None:
    """KAFKA-1580: 0.8.2 ended its load there, and answered with what it had."""
    broker = coordinated()
    put_commits(broker, (0, 10))
    log = broker.run(broker.serving.log_of(OFFSETS_TOPIC, AT))
    data = encode([KeyedMessage(None, b"?"), KeyedMessage(b"\0\2\0\0", b"members")])
    broker.run(log.append_set(check_set(data, largest_entry_bytes=1 << 20)))
    put_commits(broker, (0, 11))

    restarted(broker)
    broker.run_tasks()

    assert committed(broker) == PartitionCommitted(0, 11)
    assert dict(broker.emitted[-1].detail)["unreadable"] == 2


def test_a_damaged_log_is_never_taken_for_loaded() -> None:
    """Its groups wait, and the trace says why; an answer would move them to another offset."""
    broker = coordinated()
    put_commits(broker, (0, 10), (0, 11), (0, 12))
    restarted(broker)
    file = broker.storage.files[f"{OFFSETS_TOPIC}-{AT}/{0:020}.log"]
    assert isinstance(file.contents, bytes)
    file.contents = file.contents[:70] + b"!" + file.contents[71:]
    broker.run_tasks()

    assert committed(broker).error_code == 14
    assert committed(broker, group="group1").error_code == 0
    assert [each.kind for each in broker.emitted][-1] == EventKind.OFFSETS_NOT_LOADED


# --- expiry ----------------------------------------------------------------------------


def test_commits_expire_by_their_own_times() -> None:
    broker = coordinated(retention_ms=MINUTE_MS)
    now = broker.storage.now_ms
    commit(broker, TimedCommit(0, 5), TimedCommit(1, 6, now - MINUTE_MS - 1))

    assert broker.run(broker.serving.coordinator.expire()) == 1

    assert committed(broker) == PartitionCommitted(0, 5)
    assert committed(broker, 1) == PartitionCommitted(1)
    assert in_log(broker)[2:] == [(OffsetKey(GROUP, "t", 1), None)]
    restarted(broker)
    broker.run_tasks()
    assert committed(broker, 1) == PartitionCommitted(1)
    assert broker.run(broker.serving.coordinator.expire()) == 0


def test_a_commit_that_comes_while_another_expires_stays() -> None:
    """The tombstone is chosen under the lock of the log, behind the commit."""
    broker = coordinated(retention_ms=MINUTE_MS)
    commit(broker, TimedCommit(0, 5, timestamp_ms=1))
    expiring = broker.serving.coordinator.expire()
    effect = expiring.send(None)
    while type(effect).__name__ != "Put":
        effect = expiring.send(broker.answer(effect))
    assert commit(broker, TimedCommit(0, 7)) == (PartitionOutcome(0),)

    assert broker.run(expiring, effect) == 0
    assert committed(broker) == PartitionCommitted(0, 7)
