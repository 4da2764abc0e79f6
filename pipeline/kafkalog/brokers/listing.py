"""Lists the logs of brokers, with the offsets that each has now.

In 0.8 any broker says which topics there are and who leads their partitions. All topics are
requested, since a request that names one would create it. In 0.7 there is no such request: topics
are named by the user, and the partitions of one are those for which a fetch has no error.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import count, groupby
from typing import NamedTuple

from watchkeeper.model.log.format import requests, requests_08
from watchkeeper.model.log.format.errors import (
    NO_ERROR,
    OffsetOutOfRange,
    WrongPartition,
    error_of,
)
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.format.requests_08 import (
    PartitionError,
    PartitionTime,
    TopicTimes,
    error_name,
)
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC
from watchkeeper.model.wire_08.metadata import (
    HAS_A_LEADER,
    NO_LEADER,
    MetadataRequest,
    MetadataResponse,
)
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.brokers.addresses import Address, Brokers
from watchkeeper.pipeline.kafkalog.brokers.broker_log import BrokerLog
from watchkeeper.pipeline.kafkalog.brokers.connection import Connection
from watchkeeper.pipeline.kafkalog.brokers.protocol import protocol_of
from watchkeeper.pipeline.kafkalog.brokers.retries import Failed, retried

MOST_SEGMENTS = 1 << 16
"""The most segments of a log whose starts are requested."""
OFFSETS_BYTES = 64 + 8 * MOST_SEGMENTS
"""The largest response with their starts."""
PROBE_BYTES = 64
"""How much is fetched to see whether a partition is there."""
PROBE_LIMIT_BYTES = 1024


def logs_at(
    brokers: Brokers, topics: Iterable[str], broker: int | None = None
) -> list[BrokerLog]:
    """The logs of brokers, sorted; `broker` is the id of the only one of 0.7.

    PipelineProblem if a topic is not there, or a broker cannot be reached for a while.
    """
    wanted = frozenset(topics)
    if protocol_of(brokers) == "0.7":
        found = list(_logs_07(brokers, sorted(wanted), broker))
    else:
        found = retried(
            lambda: list(_logs_08(brokers, wanted)),
            brokers.retry_ms,
            f"the logs at {brokers} are unknown",
        )
    return sorted(found, key=lambda log: (log.topic, log.partition, log.broker))


# --- 0.7 -------------------------------------------------------------------------------


def _logs_07(brokers: Brokers, topics: list[str], broker: int | None) -> Iterator[BrokerLog]:
    if not topics:
        raise PipelineProblem(
            f"the protocol of Kafka 0.7, spoken at {brokers}, has no request for the names of "
            "topics; name the topics"
        )
    numbered = list(_with_ids(brokers, broker))
    found = [
        log
        for number, address in numbered
        for log in retried(
            lambda number=number, address=address: list(  # type: ignore[misc]
                _of_broker(brokers, number, address, topics)
            ),
            brokers.retry_ms,
            f"the logs at {address} are unknown",
        )
    ]
    for topic in topics:
        if not any(log.end for log in found if log.topic == topic):
            raise PipelineProblem(
                f"there is no message of topic {topic} at {brokers}; a broker of 0.7 answers the "
                "same for a topic that is empty and for one that is not there"
            )
    yield from found


def _with_ids(brokers: Brokers, broker: int | None) -> Iterator[tuple[int, Address]]:
    """Each broker with its id, which is a part of what an offset of 0.7 means."""
    if len(brokers.addresses) == 1:
        [address] = brokers.addresses
        given = address.broker if address.broker is not None else broker
        yield given or 0, address
        return
    ids = [address.broker for address in brokers.addresses]
    if None in ids or len(set(ids)) < len(ids):
        raise PipelineProblem(
            f"in Kafka 0.7, whose protocol is spoken at {brokers}, every broker has messages of "
            "its own; give each its id: ID:HOST:PORT,..."
        )
    yield from ((address.broker or 0, address) for address in brokers.addresses)


def _of_broker(
    brokers: Brokers, number: int, address: Address, topics: list[str]
) -> Iterator[BrokerLog]:
    with Connection(address.host_port) as connection:
        for topic in topics:
            for partition in _partitions_07(connection, topic):
                segments = _offsets_07(connection, topic, partition, LATEST, MOST_SEGMENTS)
                [start] = _offsets_07(connection, topic, partition, EARLIEST, 1)
                yield BrokerLog(
                    topic=topic,
                    broker=number,
                    partition=partition,
                    format="0.7",
                    start=start,
                    end=segments[0],
                    boundaries=segments[::-1],
                    address=address.host_port,
                    brokers=brokers,
                )


def _partitions_07(connection: Connection, topic: str) -> Iterator[int]:
    """The partitions of a topic; all of a topic that is not there are empty."""
    for partition in count():
        fetch = requests.FetchRequest(topic, partition, 0, PROBE_BYTES)
        code = connection.ask_07(fetch, PROBE_LIMIT_BYTES).error_code
        if code == WrongPartition.code:
            return
        if code not in (NO_ERROR, OffsetOutOfRange.code):
            raise error_of(code)(f"{topic}-{partition}")
        yield partition


def _offsets_07(
    connection: Connection, topic: str, partition: int, time_ms: int, most: int
) -> tuple[int, ...]:
    request = requests.OffsetsRequest(topic, partition, time_ms, most)
    response = connection.ask_07(request, OFFSETS_BYTES)
    if response.error_code != NO_ERROR:
        raise error_of(response.error_code)(f"{topic}-{partition}")
    offsets: tuple[int, ...] = response.offsets
    if not offsets:
        raise Failed(f"there is no offset of {topic}-{partition}")
    return offsets


# --- 0.8 -------------------------------------------------------------------------------


class Led(NamedTuple):
    """A partition and its leader."""

    address: str
    broker: int
    topic: str
    partition: int


def metadata(brokers: Brokers) -> MetadataResponse:
    """The metadata of all topics, from the first broker that can be reached."""
    failure: Exception | None = None
    for address in brokers.addresses:
        try:
            with Connection(address.host_port) as connection:
                found: MetadataResponse = connection.ask_08(MetadataRequest())
                return found
        except OSError as error:
            failure = error
    assert failure is not None, "there is at least one address"
    raise failure


def leaders(
    found: MetadataResponse, topics: Iterable[str], partitions: Container[int] | None = None
) -> list[Led]:
    """The leader of each partition of topics, or of these partitions; Failed if one has none."""
    where = {each.broker: f"{each.host}:{each.port}" for each in found.brokers}
    by_name = {each.topic: each for each in found.topics}
    led = []
    for topic in topics:
        described = by_name[topic]
        if described.error_code and not described.partitions:
            raise Failed(f"topic {topic} has {error_name(described.error_code)}")
        for one in described.partitions:
            if partitions is not None and one.partition not in partitions:
                continue
            if one.error_code not in HAS_A_LEADER or one.leader == NO_LEADER:
                raise Failed(f"{topic}-{one.partition} has no leader now")
            if one.leader not in where:
                raise Failed(f"the leader of {topic}-{one.partition} is not alive")
            led.append(Led(where[one.leader], one.leader, topic, one.partition))
    return led


def _logs_08(brokers: Brokers, wanted: frozenset[str]) -> Iterator[BrokerLog]:
    found = metadata(brokers)
    there = {each.topic for each in found.topics}
    if missing := wanted - there:
        names = sorted(there)
        raise PipelineProblem(
            f"there is no topic {', '.join(sorted(missing))} at {brokers}; the topics there are "
            f"{', '.join(names[:10]) or 'none'}{' and others' if len(names) > 10 else ''}"
        )
    topics = sorted(wanted or there - {OFFSETS_TOPIC})
    if not topics:
        raise PipelineProblem(f"there is no topic at {brokers}; there is nothing to read")
    led = sorted(leaders(found, topics))
    for (address, broker), some in groupby(led, key=lambda one: (one.address, one.broker)):
        yield from _led_by(brokers, address, broker, list(some))


def _led_by(brokers: Brokers, address: str, broker: int, led: list[Led]) -> Iterator[BrokerLog]:
    with Connection(address) as connection:
        ends = _offsets_08(connection, led, LATEST)
        starts = _offsets_08(connection, led, EARLIEST)
    for one in led:
        yield BrokerLog(
            topic=one.topic,
            broker=broker,
            partition=one.partition,
            format="0.8",
            start=starts[one.topic, one.partition],
            end=ends[one.topic, one.partition],
            boundaries=(),
            address=address,
            brokers=brokers,
        )


def _offsets_08(
    connection: Connection, led: list[Led], time_ms: int
) -> dict[tuple[str, int], int]:
    """The first or last offsets, by topic and partition; Failed if a partition has an error."""
    topics = tuple(
        TopicTimes(topic, tuple(PartitionTime(one.partition, time_ms) for one in some))
        for topic, some in groupby(led, key=lambda one: one.topic)
    )
    response = connection.ask_08(requests_08.OffsetsRequest(topics))
    found: dict[tuple[str, int], int] = {}
    for topic in response.topics:
        for one in topic.partitions:
            if one.error_code != PartitionError.NONE or not one.offsets:
                raise Failed(f"{topic.topic}-{one.partition} has {error_name(one.error_code)}")
            found[topic.topic, one.partition] = one.offsets[0]
    if len(found) < len(led):
        raise Failed("a response lacks partitions that were requested")
    return found
