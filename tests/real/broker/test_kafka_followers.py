"""A broker that follows one of Kafka: what it fetches, where it cuts, and where it begins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.real.broker.test_replica_server import CLICKS, Served, lead
from watchkeeper.model.log.format.message_08 import KeyedMessage, encode
from watchkeeper.model.log.format.requests import EARLIEST
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    OffsetsResponse,
    PartitionError,
    PartitionOffsets,
    TopicOffsets,
)
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.fetcher import BrokerHalted, fetch_from
from watchkeeper.model.replication.messages import encoded
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replica_files import LOG, ReplicaFiles
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.settings import FetchLayout, ReplicationSettings
from watchkeeper.model.replication.variants import HARDENED, KAFKA_08
from watchkeeper.model.wire_08.by_topic import OfTopic
from watchkeeper.model.wire_08.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
)
from watchkeeper.real.ports import HOST

LEADER, FOLLOWER = 0, 1
WITHIN_S = 20


class Following:
    """A leader at its port, and a follower of it, with files of its own."""

    def __init__(self, root: Path, *, allows_unclean: bool = True) -> None:
        self.file = root / "clicks-0" / LOG
        self.leader = Served(root)
        self.leader.replicas.me = ReplicationSettings(LEADER, KAFKA_08)
        lead(self.leader)
        led = self.leader.replicas.by_partition[CLICKS]
        led.replicas = led.isr = (LEADER, FOLLOWER)
        me = ReplicationSettings(
            FOLLOWER,
            KAFKA_08,
            allows_unclean=allows_unclean,
            fetch_wait_ms=0,
            fetch_layout=FetchLayout.KAFKA_08,
        )
        self.replicas = Replicas(me, ReplicaFiles(), lambda: 0)
        self.replica = Replica(CLICKS, [], leader=LEADER, leader_epoch=1)
        self.replicas.by_partition[CLICKS] = self.replica
        self.replicas.addresses[LEADER] = f"{HOST}:{self.leader.port}"

    def has(self, *records: Record) -> None:
        """Give the follower a log."""
        self._run(self.replicas.files.append(CLICKS, 0, records)).result(WITHIN_S)
        self.replica.log.extend(records)

    def until(self, end: int) -> bytes:
        """Follow until the log has an end; return its file."""
        self.replicas.fetchers[LEADER] = None
        following = self._run(fetch_from(self.replicas, LEADER))
        deadline_s = monotonic() + WITHIN_S
        while not following.done() and self.replica.high_watermark != end:
            if monotonic() > deadline_s:
                break
            sleep(0.01)
        self.replica.leader = NO_LEADER
        following.result(WITHIN_S)
        assert (self.replica.end, self.replica.high_watermark) == (end, end)
        return self.file.read_bytes()

    def _run(self, body: Any) -> Any:
        return self.leader.loop.begin(self.leader.tasks.run(body, "follower"))

    def end(self) -> None:
        """End both."""
        self.leader.loop.begin(self.leader.server.close()).result(WITHIN_S)
        self.leader.loop.begin(self.leader.tasks.end()).result(WITHIN_S)
        self.leader.loop.close()


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Following]:
    found = Following(tmp_path)
    yield found
    found.end()


LED = (Record(1, 10), Record(1, 11))
"""The log of the leader."""


def test_a_follower_gets_what_its_leader_has(following: Following) -> None:
    """And the leader hears how far it is, so that both have one high watermark."""
    assert following.until(2) == encoded(LED, 0)
    assert following.leader.replicas.by_partition[CLICKS].high_watermark == 2


def test_a_log_that_is_longer_than_its_leaders_is_cut(following: Following) -> None:
    following.has(*LED, Record(0, 12))
    assert following.until(2) == encoded(LED, 0)


def test_a_broker_that_may_not_cut_halts(tmp_path: Path) -> None:
    """As one of Kafka does."""
    following = Following(tmp_path, allows_unclean=False)
    following.has(*LED, Record(0, 12))
    with pytest.raises(BrokerHalted, match="may not be cut"):
        following.until(2)
    following.end()


def test_a_follower_begins_where_its_leader_begins(following: Following) -> None:
    """What a leader of Kafka has deleted is left out, and the offsets stay."""
    late = encode([KeyedMessage(None, b"a"), KeyedMessage(None, b"b")], 5)

    async def fetch(request: FetchRequest) -> FetchResponse:
        [(_, [wanted])] = request.topics
        assert isinstance(wanted, PartitionFetch)
        if wanted.offset < 5:
            part = PartitionFetched(0, PartitionError.OFFSET_OUT_OF_RANGE)
        else:
            part = PartitionFetched(0, 0, 7, late if wanted.offset == 5 else b"")
        return FetchResponse(0, (OfTopic("clicks", (part,)),))

    async def offsets(request: OffsetsRequest) -> OffsetsResponse:
        at = 5 if request.topics[0].partitions[0].time_ms == EARLIEST else 7
        return OffsetsResponse(0, (TopicOffsets("clicks", (PartitionOffsets(0, 0, (at,)),)),))

    following.leader.replicas.hooks.answers |= {FetchRequest: fetch, OffsetsRequest: offsets}
    following.has(Record(0, 1))
    assert following.until(7) == late


def test_a_variant_that_needs_epochs_has_to_fetch_with_them() -> None:
    with pytest.raises(ValueError, match="the variant hardened needs them"):
        ReplicationSettings(FOLLOWER, HARDENED, fetch_layout=FetchLayout.KAFKA_08)
