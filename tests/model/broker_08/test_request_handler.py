"""What a broker of 0.8 does with each request, whatever carries them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.keyed_broker import ME, TWO, Broker, registered
from watchkeeper.model.broker_08.error_codes import RefusedWithoutResponse
from watchkeeper.model.broker_08.request_handler import Late
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode, records, wrap
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    OffsetsResponse,
    PartitionError,
    PartitionTime,
    TopicTimes,
)
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import PartitionState, TopicAssignment
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import PartitionFetched
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequest,
    CommittedRequest,
    PartitionCommit,
    PartitionCommitted,
    PartitionNumber,
    PartitionOutcome,
)
from watchkeeper.model.wire_08.produce import (
    PartitionAppended,
    PartitionMessages,
    ProduceRequest,
    ProduceResponse,
)


def values(part: PartitionFetched) -> list[tuple[int, bytes | None]]:
    """Offsets and values of what was fetched."""
    return [(one.offset, one.value) for one in records(part.messages)]


# --- produce and fetch -----------------------------------------------------------------


def test_what_was_appended_is_fetched() -> None:
    broker = Broker()
    broker.create("t")

    assert broker.produce() == PartitionAppended(0, 0, 0)
    assert broker.produce(wrap([KeyedMessage(None, b"c")], Codec.GZIP), acks=-1).offset == 2
    part = broker.fetch(0)
    assert (part.error_code, part.high_watermark) == (0, 3)
    assert values(part) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert values(broker.fetch(2)) == [(2, b"c")]
    assert broker.fetch(3) == PartitionFetched(0, 0, 3)


@pytest.mark.parametrize(
    ("partition", "topic", "code"),
    [
        (2, "t", PartitionError.UNKNOWN_TOPIC_OR_PARTITION),
        (0, "u", PartitionError.UNKNOWN_TOPIC_OR_PARTITION),
        (-1, "t", PartitionError.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_partition_that_is_not_there(partition: int, topic: str, code: int) -> None:
    broker = Broker()
    broker.create("t")

    assert broker.produce(partition=partition, topic=topic) == PartitionAppended(partition, code)


def test_errors_of_a_fetch_have_codes() -> None:
    broker = Broker()
    broker.create("t")

    assert broker.fetch(0, partition=9) == PartitionFetched(9, 3)
    assert broker.fetch(1) == PartitionFetched(0, 1)
    broker.produce()
    assert broker.fetch(3) == PartitionFetched(0, 1)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (TWO[:-1] + b"!", PartitionError.INVALID_MESSAGE),
        (TWO[:20], PartitionError.INVALID_FETCH_SIZE),
        (encode([KeyedMessage(None, bytes(1_000_013))]), PartitionError.MESSAGE_SIZE_TOO_LARGE),
        (encode([KeyedMessage(None, b"?", 6)]), PartitionError.UNKNOWN),
    ],
    ids=("a wrong CRC", "no whole entry", "too large", "an unknown codec"),
)
def test_a_refused_set_has_a_code_and_the_log_goes_on(data: bytes, code: int) -> None:
    broker = Broker()
    broker.create("t")

    assert broker.produce(data) == PartitionAppended(0, code)
    assert broker.produce().offset == 0


def test_acks_0_has_no_response_and_an_error_closes_the_connection() -> None:
    broker = Broker()
    broker.create("t")
    parts = (OfTopic("t", (PartitionMessages(0, TWO),)),)

    assert broker.ask(ProduceRequest(0, 500, parts)) is None
    with pytest.raises(RefusedWithoutResponse, match=r"u-0.*UNKNOWN_TOPIC"):
        broker.ask(ProduceRequest(0, 500, (OfTopic("u", parts[0].parts),)))
    assert len(values(broker.fetch(0))) == 2


def test_more_acks_than_replicas_time_out_after_the_append() -> None:
    broker = Broker()
    broker.create("t")

    late = broker.ask(ProduceRequest(2, 500, (OfTopic("t", (PartitionMessages(0, TWO),)),)))
    assert isinstance(late, Late)
    assert late.delay_ms == 500
    timed_out = PartitionAppended(0, PartitionError.REQUEST_TIMED_OUT, 0)
    assert late.response == ProduceResponse(7, (OfTopic("t", (timed_out,)),))
    assert broker.produce(acks=-2).error_code == PartitionError.INVALID_REQUIRED_ACKS
    assert broker.fetch(0).high_watermark == 2


# --- a fetch that waits ----------------------------------------------------------------


def test_a_fetch_waits_no_longer_than_it_says() -> None:
    broker = Broker()
    broker.create("t")
    before_ms = broker.storage.now_ms

    assert broker.fetch(0, wait_ms=300) == PartitionFetched(0, 0, 0)
    assert broker.storage.now_ms == before_ms + 300


def test_an_append_wakes_the_fetches_of_its_partition() -> None:
    broker = Broker()
    broker.create("t")
    before_ms = broker.storage.now_ms

    broker.later = [broker.produce]
    assert values(broker.fetch(0, wait_ms=300)) == [(0, b"a"), (1, b"b")]
    assert broker.storage.now_ms == before_ms

    broker.later = [lambda: broker.produce(partition=1)]
    assert broker.fetch(2, wait_ms=300) == PartitionFetched(0, 0, 2)
    assert broker.storage.now_ms == before_ms + 300


def test_a_fetch_waits_for_as_many_bytes_as_it_says() -> None:
    broker = Broker()
    broker.create("t")
    broker.later = [broker.produce, broker.produce, broker.produce]

    part = broker.fetch(0, wait_ms=300, min_bytes=2 * len(TWO))

    assert len(values(part)) == 4
    assert len(broker.later) == 1


def test_an_error_is_not_waited_with() -> None:
    broker = Broker()
    before_ms = broker.storage.now_ms

    assert broker.fetch(0, wait_ms=300).error_code == 3
    assert broker.storage.now_ms == before_ms


# --- offsets and metadata --------------------------------------------------------------


def test_offsets_before_a_time() -> None:
    broker = Broker()
    broker.create("t")
    broker.produce()

    times = (PartitionTime(0, LATEST), PartitionTime(0, EARLIEST), PartitionTime(1, LATEST))
    response = broker.ask(OffsetsRequest((TopicTimes("t", (*times, PartitionTime(5))),)))
    assert isinstance(response, OffsetsResponse)
    found = [(one.error_code, one.offsets) for one in response.topics[0].partitions]
    assert found == [(0, (2,)), (0, (0,)), (0, (0,)), (3, ())]


def test_metadata_creates_topics_if_the_settings_say_so() -> None:
    found = Broker().create("t", "no/name")
    refused = Broker(creates_topics=False).create("t")

    assert found.brokers == (ME,)
    assert [(each.error_code, len(each.partitions)) for each in found.topics] == [(0, 2), (17, 0)]
    assert {one.leader for one in found.topics[0].partitions} == {3}
    assert refused.topics[0].error_code == PartitionError.UNKNOWN_TOPIC_OR_PARTITION


def test_metadata_without_topics_is_about_all() -> None:
    broker = Broker()
    broker.create("b", "a")

    assert [each.topic for each in broker.create().topics] == ["a", "b"]


# --- the registry ----------------------------------------------------------------------


def state_of(broker: Broker, topic: str, index: int) -> PartitionState:
    """The state of a partition in ZooKeeper."""
    path = f"/brokers/topics/{topic}/partitions/{index}/state"
    return PartitionState.decode(path, broker.znodes.data(path))


def put_topic(broker: Broker, replicas: dict[int, tuple[int, ...]]) -> None:
    """A topic that an administrator has made."""
    data = TopicAssignment(tuple(replicas.items())).encode()
    broker.znodes.put(paths.topic("t"), data)


def test_a_topic_that_is_created_is_claimed_and_served() -> None:
    broker = registered()

    broker.create("t")

    assert state_of(broker, "t", 1) == PartitionState(3, (3,), 0, 0)
    assert broker.produce(partition=1).offset == 0


def test_only_partitions_of_this_broker_alone_are_claimed() -> None:
    broker = registered(4)
    put_topic(broker, {0: (3,), 1: (4,), 2: (3, 4)})

    response = broker.create("t")

    leaders = [(one.error_code, one.leader) for one in response.topics[0].partitions]
    assert leaders == [(0, 3), (5, -1), (5, -1)]
    assert broker.produce(partition=1).error_code == PartitionError.NOT_LEADER_FOR_PARTITION


def test_with_a_controller_nothing_is_claimed() -> None:
    broker = registered()
    broker.znodes.put("/controller", b'{"version":1,"brokerid":4,"timestamp":"1"}')
    put_topic(broker, {0: (3,)})

    assert broker.create("t").topics[0].partitions[0].error_code == 5
    broker.znodes.put(
        "/brokers/topics/t/partitions/0/state", PartitionState(3, (3,), 0, 1).encode()
    )
    assert broker.create("t").topics[0].partitions[0].leader == 3


def test_a_partition_that_lost_its_leader_is_claimed_in_the_next_epoch() -> None:
    broker = registered()
    put_topic(broker, {0: (3,)})
    path = "/brokers/topics/t/partitions/0/state"
    broker.znodes.put(path, PartitionState(-1, (3,), 8, 2).encode())

    broker.create("t")

    assert state_of(broker, "t", 0) == PartitionState(3, (3,), 9, 0)


def test_only_live_brokers_are_named() -> None:
    broker = registered(4)
    put_topic(broker, {0: (4, 5)})
    path = "/brokers/topics/t/partitions/0/state"
    broker.znodes.put(path, PartitionState(4, (4, 5)).encode())

    [one] = broker.create("t").topics[0].partitions

    assert (one.error_code, one.leader) == (PartitionError.REPLICA_NOT_AVAILABLE, 4)
    assert (one.replicas, one.isr) == ((4,), (4,))


def test_a_registry_that_is_away_leaves_the_view_as_it_was() -> None:
    broker = registered()
    broker.create("t")
    broker.znodes.is_away = True

    assert broker.create("t").topics[0].error_code == 0
    assert broker.produce().offset == 0


# --- the offsets of groups -------------------------------------------------------------


def committed(broker: Broker, partition: int = 0, group: str = "g") -> Any:
    """What a fetch of offsets of version 0 gives."""
    request = CommittedRequest(group, (OfTopic("t", (PartitionNumber(partition),)),))
    return broker.ask(request).topics[0].parts[0]


def commit(broker: Broker, *parts: PartitionCommit, topic: str = "t", group: str = "g") -> Any:
    """What a commit of version 0 gives."""
    return broker.ask(CommitRequest(group, (OfTopic(topic, parts),))).topics[0].parts


def test_offsets_of_version_0_are_in_zookeeper() -> None:
    broker = registered()
    broker.create("t")

    assert committed(broker) == PartitionCommitted(0, -1, "", 3)
    assert commit(broker, PartitionCommit(0, 42, "kept nowhere")) == (PartitionOutcome(0),)
    assert broker.znodes.data("/consumers/g/offsets/t/0") == b"42"
    assert committed(broker) == PartitionCommitted(0, 42)
    commit(broker, PartitionCommit(0, 43, None))
    assert committed(broker).offset == 43


def test_a_commit_is_refused_partition_by_partition() -> None:
    broker = registered()
    broker.create("t")

    parts = commit(broker, PartitionCommit(0, 1, "x" * 4096), PartitionCommit(1, 1, "x" * 4097))
    assert [one.error_code for one in parts] == [0, PartitionError.OFFSET_METADATA_TOO_LARGE]
    assert commit(broker, PartitionCommit(0, 1), topic="u")[0].error_code == 3
    assert commit(broker, PartitionCommit(0, 1), group="a/b")[0].error_code == -1
    broker.znodes.is_away = True
    assert commit(broker, PartitionCommit(0, 1))[0].error_code == -1
    assert committed(broker).error_code == -1


def test_without_a_registry_there_is_no_place_for_offsets() -> None:
    broker = Broker()
    broker.create("t")

    assert commit(broker, PartitionCommit(0, 1)) == (PartitionOutcome(0, -1),)
    assert committed(broker) == PartitionCommitted(0, -1, "", -1)
