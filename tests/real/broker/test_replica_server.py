"""The port of a live broker that replicates: answers, offsets, and peers that are no brokers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.model.actor.effects import Emit, Partition
from watchkeeper.model.actor.rpc import Call
from watchkeeper.model.broker_08.replicated_coordinator import coordinate_groups
from watchkeeper.model.log.format import requests_08
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    PartitionError,
    PartitionTime,
    TopicTimes,
)
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, ReplicatedOffsetSettings
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.replication import wire
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
from watchkeeper.model.replication.variants import HARDENED
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    CommittedRequestV1,
    ConsumerMetadataRequest,
    PartitionNumber,
    TimedCommit,
)
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


def offsets(broker: Served, partition: int) -> tuple[int, tuple[int, ...]]:
    """Ask for the end of a log; returns the error and the offsets."""
    asked = OffsetsRequest((TopicTimes("clicks", (PartitionTime(partition),)),))
    frame = broker.exchange(requests_08.encode_request(asked, 3, "a consumer"))
    (topic,) = requests_08.decode_response(frame).topics
    return topic.partitions[0].error_code, topic.partitions[0].offsets


def test_consumers_read_up_to_the_high_watermark(broker: Served) -> None:
    """Of the leader; the log is longer."""
    assert offsets(broker, 0) == (PartitionError.NOT_LEADER_FOR_PARTITION, ())
    lead(broker)
    assert offsets(broker, 0) == (PartitionError.NONE, (1,))
    assert offsets(broker, 7) == (PartitionError.NOT_LEADER_FOR_PARTITION, ())


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
