"""The port of a live broker that replicates: answers, offsets, and peers that are no brokers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_zookeeper import until
from watchkeeper.model.actor.effects import Emit, Partition
from watchkeeper.model.actor.rpc import Call
from watchkeeper.model.broker_08.replicated_clients import serve_clients
from watchkeeper.model.broker_08.replicated_coordinator import coordinate_groups
from watchkeeper.model.log.format import requests_08
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode, wrap
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    PartitionError,
    PartitionTime,
    TopicTimes,
)
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, ReplicatedOffsetSettings
from watchkeeper.model.registry.payloads import PartitionState, TopicConfig
from watchkeeper.model.replication import leader, wire
from watchkeeper.model.replication.messages import encoded
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replica_files import ReplicaFiles
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.requests import (
    BrokerAddress,
    DescribeTopic,
    ErrorCode,
    FetchedPart,
    FetchedRecords,
    FetchRecords,
    LeaderState,
    StopReplica,
    TopicMetadata,
    Wanted,
)
from watchkeeper.model.replication.settings import ReplicationSettings
from watchkeeper.model.replication.variants import HARDENED, KAFKA_08
from watchkeeper.model.wire_08 import table
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import FetchRequest, PartitionFetch, PartitionFetched
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    CommittedRequestV1,
    ConsumerMetadataRequest,
    PartitionNumber,
    TimedCommit,
)
from watchkeeper.model.wire_08.metadata import MetadataRequest, leaders_in
from watchkeeper.model.wire_08.produce import PartitionAppended, PartitionMessages, ProduceRequest
from watchkeeper.real.broker.disk_worker import DiskWorker
from watchkeeper.real.broker.replica_server import ReplicaServer
from watchkeeper.real.ports import HOST, free_ports
from watchkeeper.real.process.loop_thread import Loop
from watchkeeper.real.process.tasks import Tasks
from watchkeeper.real.storage.file_storage import FileStorage

CLICKS = Partition("clicks", "0")


class Served:
    """A broker's port, and tasks of another process."""

    def __init__(self, root: Path) -> None:
        self.failures: list[str] = []
        self.loop = Loop("broker")
        (self.port,) = free_ports(1)
        self.replicas = Replicas(ReplicationSettings(0, HARDENED), ReplicaFiles(), lambda: 0)
        log = [Record(1, 10), Record(1, 11)]
        self.replicas.by_partition[CLICKS] = Replica(CLICKS, log, high_watermark=1)
        serve_clients(self.replicas)
        self.tasks = Tasks(remind=print, failed=self._failed)
        self.tasks.answer_immediately(Emit, lambda effect: None)
        self.loop.begin(self._serve_files(root)).result()
        self.server = ReplicaServer(self.replicas, self.tasks, self._failed)
        self.loop.begin(self.server.open(HOST, self.port)).result()

    async def _serve_files(self, root: Path) -> None:
        DiskWorker(FileStorage(root).answer).serve(self.tasks)

    def _failed(self, name: str, error: Exception) -> None:
        self.failures.append(f"{name}: {error}")

    def call(self, request: Any) -> Any:
        """Send a request as a task does."""

        async def body() -> Any:
            return await Call(f"{HOST}:{self.port}", request, 5_000)

        return self.loop.begin(self.tasks.run(body(), "a task")).result(10)

    def exchange(self, data: bytes) -> bytes:
        """Send bytes, and read up to the end of the connection or a whole frame."""
        with socket.create_connection((HOST, self.port), 5) as connection:
            connection.sendall(data)
            head = connection.recv(4)
            size_bytes = int.from_bytes(head)
            found = b""
            while head and len(found) < size_bytes:
                found += connection.recv(size_bytes)
            return found


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.loop.begin(served.server.close()).result(10)
    served.loop.begin(served.tasks.end()).result(10)
    served.loop.close()
    assert served.failures == []


def lead(broker: Served) -> None:
    """Let the broker lead."""
    broker.replicas.by_partition[CLICKS].leader = 0
    broker.replicas.by_partition[CLICKS].leader_epoch = 1


def test_a_request_is_answered(broker: Served) -> None:
    """Over one connection, one after the other."""
    assert broker.call(DescribeTopic("clicks")) == TopicMetadata((), ())
    wanted = FetchRecords(1, (Wanted(CLICKS, 1, 1),), 0)
    part = FetchedPart(CLICKS, 1, ErrorCode.NOT_LEADER)
    assert broker.call(wanted) == FetchedRecords((part,))
    lead(broker)
    part = FetchedPart(CLICKS, 1, ErrorCode.NONE, (Record(1, 11),), 1, 2)
    assert broker.call(wanted) == FetchedRecords((part,))


def test_the_requests_of_a_group_are_answered(broker: Served) -> None:
    """In Kafka's own encoding, over the files of the broker."""
    place = Partition(OFFSETS_TOPIC, "0")
    replica = Replica(place, [], leader=0, leader_epoch=0, isr=(0,))
    broker.replicas.by_partition[place] = replica
    state = LeaderState(CLICKS, PartitionState(0, (0,), 0, 1), 0, (0,))
    broker.replicas.states = {CLICKS: state, place: state._replace(partition=place)}
    broker.replicas.alive = (BrokerAddress(0, f"{HOST}:{broker.port}"),)
    coordinate_groups(broker.replicas, ReplicatedOffsetSettings(partitions=1))
    found = broker.call(ConsumerMetadataRequest("billing"))
    assert (found.broker, found.port) == (0, broker.port)
    commit = CommitRequestV1("billing", (OfTopic("clicks", (TimedCommit(0, 42),)),))
    [(_, [outcome])] = broker.call(commit).topics
    assert outcome.error_code == 0
    fetch = CommittedRequestV1("billing", (OfTopic("clicks", (PartitionNumber(0),)),))
    [(_, [committed])] = broker.call(fetch).topics
    assert (committed.offset, committed.error_code) == (42, 0)


def offsets(
    broker: Served, partition: int, *, replica_id: int = -1
) -> tuple[int, tuple[int, ...]]:
    """Ask for the end of a log; returns the error and the offsets."""
    asked = OffsetsRequest((TopicTimes("clicks", (PartitionTime(partition),)),), replica_id)
    frame = broker.exchange(requests_08.encode_request(asked, 3, "a consumer"))
    (topic,) = requests_08.decode_response(frame).topics
    return topic.partitions[0].error_code, topic.partitions[0].offsets


def test_consumers_read_up_to_the_high_watermark(broker: Served) -> None:
    """Of the leader; the log is longer."""
    assert offsets(broker, 0) == (PartitionError.NOT_LEADER_FOR_PARTITION, ())
    lead(broker)
    assert offsets(broker, 0) == (PartitionError.NONE, (1,))
    assert offsets(broker, 7) == (PartitionError.UNKNOWN_TOPIC_OR_PARTITION, ())


def test_a_follower_of_kafka_is_answered(broker: Served) -> None:
    """It has what lies above the high watermark too, and the leader learns how far it is."""
    lead(broker)
    replica = broker.replicas.by_partition[CLICKS]
    replica.replicas = replica.isr = (0, 1)
    # A follower that names no epoch could be one of an old reign, for all that KIP-320 knows.
    stale = fetched(broker, 0, replica_id=1).error_code
    assert stale == PartitionError.STALE_LEADER_EPOCH
    broker.replicas.me = ReplicationSettings(0, KAFKA_08)
    assert fetched(broker, 0, replica_id=1).messages == encoded([Record(1, 10), Record(1, 11)], 0)
    assert replica.high_watermark == 1
    assert offsets(broker, 0, replica_id=1) == (PartitionError.NONE, (2,))
    assert fetched(broker, 2, replica_id=1) == PartitionFetched(0, 0, 2)
    assert fetched(broker, 3, replica_id=1).error_code == PartitionError.OFFSET_OUT_OF_RANGE


def test_a_consumer_of_kafka_reads_what_is_committed(broker: Served) -> None:
    """Up to as many bytes as it wants."""
    lead(broker)
    committed = encoded([Record(1, 10)], 0)
    assert fetched(broker, 0) == PartitionFetched(0, 0, 1, committed)
    assert fetched(broker, 0, max_bytes=50).messages == committed[:50]
    broker.replicas.settings["clicks"] = TopicConfig((("segment.bytes", "60"),))
    assert fetched(broker, 0).messages == committed[:60]


def fetched(
    broker: Served, offset: int, *, replica_id: int = -1, max_bytes: int = 1000
) -> PartitionFetched:
    """Fetch from the partition as a program of Kafka does."""
    wanted = (OfTopic("clicks", (PartitionFetch(0, offset, max_bytes),)),)
    [(_, [part])] = broker.call(FetchRequest(0, 1, wanted, replica_id)).topics
    assert isinstance(part, PartitionFetched)
    return part


def test_a_producer_of_kafka_is_answered(broker: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages are stored as they are, plain and compressed, and keep their offsets."""
    lead(broker)
    broker.replicas.by_partition[CLICKS] = replica = Replica(
        CLICKS, [], leader=0, leader_epoch=1, isr=(0,)
    )
    two = [KeyedMessage(b"k", b"a"), KeyedMessage(None, b"b")]
    assert produced(broker, encode(two)) == PartitionAppended(0, 0, 0)
    assert produced(broker, wrap(two, Codec.GZIP)) == PartitionAppended(0, 0, 2)
    assert [record.is_hidden for record in replica.log] == [False, False, True, False]
    data = fetched(broker, 0).messages
    assert data == encode(two) + wrap(two, Codec.GZIP, 2)
    monkeypatch.setattr(leader, "RECORDS_A_FETCH", 1)
    assert fetched(broker, 2).messages == wrap(two, Codec.GZIP, 2)
    broker.replicas.settings["clicks"] = TopicConfig((("max.message.bytes", "15"),))
    assert produced(broker, encode(two)).error_code == PartitionError.MESSAGE_SIZE_TOO_LARGE
    broker.replicas.settings["clicks"] = TopicConfig()
    damaged = encode(two)[:-1] + b"?"
    assert produced(broker, damaged).error_code == PartitionError.INVALID_MESSAGE
    assert produced(broker, encode(two), acks=-2).error_code == (
        PartitionError.INVALID_REQUIRED_ACKS
    )


def test_a_producer_waits_for_as_many_members_as_it_says(broker: Served) -> None:
    """`min.insync.replicas` does not count, and nor does a follower outside of the ISR."""
    broker.replicas.settings["clicks"] = TopicConfig((("min.insync.replicas", "3"),))
    broker.replicas.by_partition[CLICKS] = replica = Replica(
        CLICKS, [], leader=0, leader_epoch=1, isr=(0, 1), replicas=(0, 1, 2)
    )
    one = encode([KeyedMessage(b"k", b"a")])
    parts = (OfTopic("clicks", (PartitionMessages(0, one),)),)

    async def body() -> Any:
        return await Call(f"{HOST}:{broker.port}", ProduceRequest(2, 60_000, parts), 60_000)

    waiting = broker.loop.begin(broker.tasks.run(body(), "a producer"))
    until(lambda: replica.end == 1)
    broker.call(FetchRecords(1, (Wanted(CLICKS, 0, 1),), 0))
    assert not waiting.done()
    broker.call(FetchRecords(1, (Wanted(CLICKS, 1, 1),), 0))
    assert waiting.result(10).topics[0].parts == (PartitionAppended(0, 0, 0),)
    replica.isr = (0,)
    late = ProduceRequest(2, 50, parts)
    [(_, [part])] = broker.call(late).topics
    assert (part.error_code, part.offset) == (PartitionError.REQUEST_TIMED_OUT, 1)


def produced(broker: Served, messages: bytes, *, acks: int = -1) -> PartitionAppended:
    """Append to the partition as a producer of Kafka does."""
    parts = (OfTopic("clicks", (PartitionMessages(0, messages),)),)
    [(_, [part])] = broker.call(ProduceRequest(acks, 1000, parts)).topics
    assert isinstance(part, PartitionAppended)
    return part


def test_a_producer_that_waits_for_no_response_is_hung_up_on(broker: Served) -> None:
    """Only if its messages are refused; else the next response is that to its next request."""
    parts = (OfTopic("clicks", (PartitionMessages(0, encode([KeyedMessage(None, b"a")])),)),)
    silent = table.encode_request(ProduceRequest(0, 1000, parts), 1, "a producer")
    ask = table.encode_request(MetadataRequest(), 2, "a producer")
    assert broker.exchange(silent + ask) == b""
    broker.replicas.by_partition[CLICKS] = Replica(CLICKS, [], leader=0, leader_epoch=1, isr=(0,))
    assert broker.exchange(silent + ask)[:4] == b"\0\0\0\x02"


def test_a_client_of_kafka_finds_leaders(broker: Served) -> None:
    """As the controller has told this broker."""
    state = LeaderState(CLICKS, PartitionState(0, (0,), 0, 1), 0, (0, 1))
    broker.replicas.states = {CLICKS: state}
    broker.replicas.alive = (BrokerAddress(0, f"{HOST}:{broker.port}"),)
    found = broker.call(MetadataRequest(("clicks", "views")))
    assert leaders_in(found, found.topics[0]) == {0: f"{HOST}:{broker.port}"}
    assert found.topics[1].error_code == PartitionError.UNKNOWN_TOPIC_OR_PARTITION
    assert [topic.topic for topic in broker.call(MetadataRequest()).topics] == ["clicks"]


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0\0\0\0",
        b"\0\0\0\x01\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x08\0\x04\0\0\0\0\0\x01",
        b"\0\0\0\x08\0\x63\0\0\0\0\0\x01",
    ],
)
def test_a_peer_that_is_no_broker_is_hung_up_on(broker: Served, data: bytes) -> None:
    """And the next one is served."""
    assert broker.exchange(data) == b""
    assert broker.call(DescribeTopic("clicks")) == TopicMetadata((), ())


def test_a_mistake_of_an_answer_is_no_silence(broker: Served) -> None:
    """It ends the process of a broker."""

    async def fails(*arguments: Any) -> None:
        raise ValueError("a mistake")

    broker.replicas.settled = fails  # type: ignore[method-assign]
    frame = wire.encode_request(StopReplica(0, 1, True, (CLICKS,)), 1)
    assert broker.exchange(frame) == b""
    assert broker.failures == ["serve a connection: a mistake"]
    broker.failures.clear()


def test_a_request_that_waits_does_not_hold_up_others(broker: Served) -> None:
    """A follower that waits for records, and another connection."""
    lead(broker)

    async def both() -> Any:
        waiting = asyncio.create_task(
            broker.tasks.run(ask(FetchRecords(1, (Wanted(CLICKS, 2, 1),), 60_000)), "one")
        )
        found = await broker.tasks.run(ask(DescribeTopic("clicks")), "another")
        waiting.cancel()
        return found

    async def ask(request: Any) -> Any:
        return await Call(f"{HOST}:{broker.port}", request, 90_000)

    assert broker.loop.begin(both()).result(20) == TopicMetadata((), ())
