"""Fetches between brokers in the layout of Kafka 0.8: key 1 in version 0.

With these a broker follows one of Kafka, and one of Kafka follows it. They carry no epochs, so a
follower cuts at its high watermark and at nothing else. Where the leader's log begins and ends a
follower has to ask, with the request for offsets, once it is out of its range.

Kafka 0.8.2.2: ReplicaFetcherThread, KafkaApis.handleFetchRequest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.rpc import Call
from watchkeeper.model.log.format.errors import InvalidMessageSize
from watchkeeper.model.log.format.requests import EARLIEST, LATEST
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    OffsetsResponse,
    PartitionTime,
    TopicTimes,
)
from watchkeeper.model.registry.payloads import TopicConfig
from watchkeeper.model.replication.leader import serve_fetch
from watchkeeper.model.replication.messages import decoded, encoded
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replica_log import HIDDEN
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.requests import (
    CONSUMER,
    ErrorCode,
    FetchedPart,
    FetchRecords,
    Wanted,
)
from watchkeeper.model.wire_08.by_topic import flat, grouped
from watchkeeper.model.wire_08.fetch import (
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
)

SOCKET_TIMEOUT_MS = 30_000
"""`replica.socket.timeout.ms`."""
PART_BYTES = 1 << 20
"""`replica.fetch.max.bytes`."""
LARGEST_PART_BYTES = 64 << 20
"""How much is fetched of a partition whose next message is longer than `PART_BYTES`."""
SEGMENT_BYTES = 1 << 30
"""`log.segment.bytes`."""
SOME_BYTES = 1
"""`replica.fetch.min.bytes`."""

# --- a follower ------------------------------------------------------------------------


async def fetch_parts(
    all_of: Replicas, address: str, wanted: Sequence[Wanted]
) -> tuple[FetchedPart, ...]:
    """Fetch from a broker of Kafka, in the order of what is wanted; raises a CallError."""
    found = await _fetched(all_of, address, wanted, PART_BYTES)
    parts: list[FetchedPart] = []
    for one in wanted:
        try:
            parts.append(_part_of(one, found))
        except InvalidMessageSize:
            # The next message alone is longer than what was fetched of it.
            more = await _fetched(all_of, address, [one], LARGEST_PART_BYTES)
            parts.append(_part_of(one, more))
    return tuple(parts)


async def _fetched(
    all_of: Replicas, address: str, wanted: Iterable[Wanted], size_bytes: int
) -> dict[Partition, PartitionFetched]:
    topics = grouped(
        (each.partition.topic, PartitionFetch(int(each.partition.name), each.offset, size_bytes))
        for each in wanted
    )
    me = all_of.me
    request = FetchRequest(me.fetch_wait_ms, SOME_BYTES, topics, replica_id=me.broker_id)
    response: FetchResponse = await Call(address, request, SOCKET_TIMEOUT_MS)
    return {Partition(topic, str(part.partition)): part for topic, part in flat(response.topics)}


def _part_of(wanted: Wanted, found: dict[Partition, PartitionFetched]) -> FetchedPart:
    partition, offset, _ = wanted
    part = found.get(partition)
    if part is None:
        return FetchedPart(partition, offset, ErrorCode.UNKNOWN)
    records = tuple(decoded(part.messages, offset))
    return FetchedPart(
        partition, offset, ErrorCode.of(part.error_code), records, max(part.high_watermark, 0)
    )


async def range_at(
    all_of: Replicas, address: str, partition: Partition
) -> tuple[int, int] | None:
    """Return where the log of a leader begins and ends; None if it does not say.

    Raises a CallError.
    """
    begin = await _offset_at(all_of, address, partition, EARLIEST)
    end = await _offset_at(all_of, address, partition, LATEST)
    return None if begin is None or end is None else (begin, end)


async def _offset_at(
    all_of: Replicas, address: str, partition: Partition, time_ms: int
) -> int | None:
    times = (PartitionTime(int(partition.name), time_ms),)
    request = OffsetsRequest((TopicTimes(partition.topic, times),), all_of.me.broker_id)
    response: OffsetsResponse = await Call(address, request, SOCKET_TIMEOUT_MS)
    offsets = [each for topic in response.topics for each in topic.partitions]
    return offsets[0].offsets[0] if offsets and offsets[0].offsets else None


async def begin_at(all_of: Replicas, replica: Replica, offset: int) -> None:
    """Give up the log of a follower; it begins at an offset, before which the leader has none."""
    await all_of.cut(replica, 0)
    await all_of.files.append(replica.partition, 0, ())
    replica.log[:] = repeat(HIDDEN, offset)


# --- a leader --------------------------------------------------------------------------


async def serve_kafka_fetch(all_of: Replicas, request: FetchRequest) -> FetchResponse:
    """Answer a follower or a consumer of Kafka, as any other one."""
    places = [*flat(request.topics)]
    wanted = tuple(
        Wanted(Partition(topic, str(one.partition)), one.offset) for topic, one in places
    )
    wait_ms = request.max_wait_ms if request.min_bytes > 0 else 0
    replica = max(request.replica_id, CONSUMER)
    fetched = await serve_fetch(
        all_of, FetchRecords(replica, wanted, max(wait_ms, 0)), min_bytes=request.min_bytes
    )
    parts = (
        (topic, _to_send(one, part, _most_bytes(all_of, topic, one)))
        for (topic, one), part in zip(places, fetched.parts, strict=True)
    )
    return FetchResponse(0, grouped(parts))


def _most_bytes(all_of: Replicas, topic: str, wanted: PartitionFetch) -> int:
    """Not more than a segment: a follower of Kafka stops at a set that is larger than its own."""
    config = all_of.settings.get(topic, TopicConfig())
    return min(max(wanted.max_bytes, 0), config.number("segment.bytes", SEGMENT_BYTES))


def _to_send(wanted: PartitionFetch, part: FetchedPart, most_bytes: int) -> PartitionFetched:
    """The last message may be partial, as everywhere in a fetched set."""
    if part.error is not ErrorCode.NONE:
        return PartitionFetched(wanted.partition, int(part.error))
    data = encoded(part.records, part.offset)[:most_bytes]
    return PartitionFetched(wanted.partition, int(part.error), part.high_watermark, data)
