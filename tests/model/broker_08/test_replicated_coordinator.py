"""The coordinator in a broker that replicates: what it answers from, and when."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.tasks import Draw, Start
from watchkeeper.model.broker_08.replicated_coordinator import coordinate_groups
from watchkeeper.model.log.format.message_08 import encode
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.offset_manager.records import CommittedOffset, OffsetKey, message_of
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, ReplicatedOffsetSettings
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replica_files import ReplicaFiles
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.requests import BrokerAddress, LeaderState
from watchkeeper.model.replication.settings import ReplicationSettings
from watchkeeper.model.replication.variants import HARDENED, KAFKA_08, ReplicationVariant
from watchkeeper.model.wire_08.by_topic import flat, grouped
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    CommittedRequestV1,
    ConsumerMetadataRequest,
    PartitionNumber,
    TimedCommit,
)

GROUP = "billing"
CLICKS = Partition("clicks", "0")
OFFSETS = Partition(OFFSETS_TOPIC, "0")
FETCH = CommittedRequestV1(GROUP, grouped([("clicks", PartitionNumber(0))]))
COMMIT = CommitRequestV1(GROUP, grouped([("clicks", TimedCommit(0, 7))]))


def record(number: int, offset: int) -> Record:
    """Return a committed offset of the group, as a record of the offsets topic."""
    key = OffsetKey(GROUP, "clicks", 0)
    message = encode([message_of(key, CommittedOffset(offset, "", 1_000))])
    return Record(0, number, message)


class Broker:
    """A broker that leads the offsets topic alone; what it does is answered at once."""

    def __init__(self, variant: ReplicationVariant, log: list[Record], mark: int) -> None:
        settings = ReplicationSettings(0, variant)
        self.replicas = Replicas(settings, ReplicaFiles(), lambda: 5_000)
        self.replica = Replica(OFFSETS, log, mark, leader=0, leader_epoch=3, isr=(0,))
        self.replica.epoch_start = len(log)
        self.replicas.by_partition[OFFSETS] = self.replica
        state = LeaderState(CLICKS, PartitionState(0, (0,), 0, 1), 0, (0,))
        self.replicas.states = {CLICKS: state, OFFSETS: state._replace(partition=OFFSETS)}
        self.replicas.alive = (BrokerAddress(0, "one.example:9092"),)
        coordinate_groups(self.replicas, ReplicatedOffsetSettings(partitions=1))
        self.started: list[Any] = []

    def does(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do some work, and what it starts."""
        answer: Any = None
        try:
            while True:
                effect = work.send(answer)
                answer = 77 if isinstance(effect, Draw) else None
                if isinstance(effect, Start):
                    self.started.append(effect.thread)
        except StopIteration as done:
            return done.value

    def asks(self, request: Any) -> Any:
        """Return the response to a request."""
        return self.does(self.replicas.hooks.answers[type(request)](request))

    def begins_to_lead(self) -> None:
        """A request of a controller has said who leads."""
        assert self.replicas.hooks.on_leaders is not None, "a coordinator follows who leads"
        self.does(self.replicas.hooks.on_leaders())

    def loads(self) -> None:
        """Run what was started."""
        for work in self.started:
            self.does(work())

    def offset(self) -> tuple[int, PartitionError]:
        """Return the offset of the group, and the error."""
        [(_, one)] = flat(self.asks(FETCH).topics)
        return one.offset, one.error_code


def test_hardened_answers_once_its_high_watermark_has_reached_what_it_found() -> None:
    """A predecessor may have acknowledged all that is in its log."""
    broker = Broker(HARDENED, [record(1, 40), record(2, 41)], mark=1)
    broker.begins_to_lead()
    assert broker.offset() == (-1, PartitionError.OFFSETS_LOAD_IN_PROGRESS)
    broker.replica.high_watermark = 2
    assert broker.offset() == (41, PartitionError.NONE)


def test_hardened_answers_what_is_committed_and_no_more() -> None:
    """A record above the high watermark may be cut."""
    broker = Broker(HARDENED, [record(1, 40)], mark=1)
    broker.begins_to_lead()
    broker.replica.log.append(record(2, 50))
    assert broker.offset() == (40, PartitionError.NONE)


@pytest.mark.parametrize(("mark", "found"), [(0, -1), (1, 41)])
def test_kafka_08_loads_nothing_below_a_high_watermark_of_0_else_whole_chunks(
    mark: int, found: int
) -> None:
    """What it has read is what it answers from."""
    broker = Broker(KAFKA_08, [record(1, 40), record(2, 41)], mark)
    broker.begins_to_lead()
    assert broker.offset() == (-1, PartitionError.OFFSETS_LOAD_IN_PROGRESS)
    broker.loads()
    assert broker.offset() == (found, PartitionError.NONE)


def test_a_cache_is_dropped_with_the_leadership() -> None:
    """Also where the broker leads again: in another epoch the log may be another one."""
    broker = Broker(KAFKA_08, [record(1, 40)], mark=1)
    broker.begins_to_lead()
    broker.loads()
    broker.replica.leader = 1
    broker.begins_to_lead()
    assert broker.offset() == (-1, PartitionError.NOT_COORDINATOR_FOR_CONSUMER)
    broker.replica.leader, broker.replica.leader_epoch = 0, 5
    broker.begins_to_lead()
    assert broker.offset() == (-1, PartitionError.OFFSETS_LOAD_IN_PROGRESS)


def test_a_broker_that_does_not_lead_refuses_commits_and_names_who_leads() -> None:
    """From what it remembers."""
    broker = Broker(HARDENED, [], mark=0)
    broker.replica.leader = 1
    [(_, outcome)] = flat(broker.asks(COMMIT).topics)
    assert outcome.error_code == PartitionError.NOT_COORDINATOR_FOR_CONSUMER
    found = broker.asks(ConsumerMetadataRequest(GROUP))
    assert (found.broker, found.host, found.port) == (0, "one.example", 9092)
    broker.replicas.alive = ()
    found = broker.asks(ConsumerMetadataRequest(GROUP))
    assert found.error_code == PartitionError.CONSUMER_COORDINATOR_NOT_AVAILABLE
