"""The offsets of groups that a broker writes and reads for clients, and who coordinates a group.

Version 0 of the requests means the offsets in ZooKeeper, `/consumers/<group>/offsets`, which
hold no metadata. Version 1 means the offset manager of a coordinator, which this broker is for
no group: it answers as a broker of Kafka does that does not coordinate the group.

Kafka 0.8.2.2: KafkaApis.handleOffsetCommitRequest, handleOffsetFetchRequest and
handleConsumerMetadataRequest, OffsetManager.
"""

from __future__ import annotations

from collections.abc import Iterable

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.errors import NodeExists, NoNode, ZooKeeperError
from watchkeeper.model.actor.operations import Create, GetData, SetData
from watchkeeper.model.actor.retry import Direct, create_with_parents
from watchkeeper.model.broker_08.cluster import ClusterView
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.registry import paths
from watchkeeper.model.wire_08.by_topic import OfTopic, flat, grouped
from watchkeeper.model.wire_08.group_offsets import (
    NO_COMMITTED_OFFSET,
    CommitRequest,
    CommitRequestV1,
    CommittedRequest,
    ConsumerMetadataResponse,
    PartitionCommit,
    PartitionCommitted,
    PartitionNumber,
    PartitionOutcome,
    TimedCommit,
)
from watchkeeper.model.zookeeper.java_hash_order import string_hash

OFFSETS_TOPIC = "__consumer_offsets"
LARGEST_METADATA = 4096
"""The default of `offset.metadata.max.bytes`, in characters."""

Commits = Iterable[OfTopic[PartitionCommit]] | Iterable[OfTopic[TimedCommit]]


# --- version 0: ZooKeeper --------------------------------------------------------------


async def commit(
    request: CommitRequest, view: ClusterView, largest_metadata: int
) -> tuple[OfTopic[PartitionOutcome], ...]:
    """Write offsets to ZooKeeper, one partition after the other."""
    return grouped(
        [
            (
                topic,
                PartitionOutcome(
                    one.partition,
                    await _commit(request.group, topic, one, view, largest_metadata),
                ),
            )
            for topic, one in flat(request.topics)
        ]
    )


async def _commit(
    group: str, topic: str, one: PartitionCommit, view: ClusterView, largest_metadata: int
) -> PartitionError:
    if topic not in view.topics:
        return PartitionError.UNKNOWN_TOPIC_OR_PARTITION
    if len(one.metadata or "") > largest_metadata:
        return PartitionError.OFFSET_METADATA_TOO_LARGE
    path = _path(group, topic, one.partition)
    if path is None:
        return PartitionError.UNKNOWN
    data = paths.encode_number(one.offset)
    try:
        await _write(path, data)
    except ZooKeeperError:
        return PartitionError.UNKNOWN
    return PartitionError.NONE


async def _write(path: str, data: bytes) -> None:
    try:
        await SetData(path, data, purpose="commit")
    except NoNode:
        try:
            await create_with_parents(Direct(), Create(path, data, purpose="commit"))
        except NodeExists:
            await SetData(path, data, purpose="commit")


async def committed(
    request: CommittedRequest,
) -> tuple[OfTopic[PartitionCommitted], ...]:
    """Read offsets from ZooKeeper, one partition after the other."""
    return grouped(
        [
            (topic, await _committed(request.group, topic, one))
            for topic, one in flat(request.topics)
        ]
    )


async def _committed(group: str, topic: str, one: PartitionNumber) -> PartitionCommitted:
    """Read one offset; a group that never committed has the error of an unknown partition."""
    path = _path(group, topic, one.partition)
    if path is None:
        return _no_offset(one.partition, PartitionError.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        data = (await GetData(path, False, "read offsets")).data
    except NoNode:
        return _no_offset(one.partition, PartitionError.UNKNOWN_TOPIC_OR_PARTITION)
    except ZooKeeperError:
        return _no_offset(one.partition, PartitionError.UNKNOWN)
    offset = paths.offset_in((data or b"").decode("ascii", "replace"))
    if offset is None:
        return _no_offset(one.partition, PartitionError.UNKNOWN)
    return PartitionCommitted(one.partition, offset)


def _path(group: str, topic: str, partition: int) -> str | None:
    """The znode of an offset; None for names that cannot be in a path."""
    if not group or not topic or "/" in group or "/" in topic or "\0" in group + topic:
        return None
    if group in (".", "..") or topic in (".", ".."):
        return None
    return paths.offset(group, Partition(topic, str(partition)))


def _no_offset(partition: int, error: PartitionError) -> PartitionCommitted:
    return PartitionCommitted(partition, NO_COMMITTED_OFFSET, "", error)


# --- version 1: the coordinator --------------------------------------------------------


def coordinator_of(
    group: str, view: ClusterView, me: int, correlation_id: int
) -> ConsumerMetadataResponse:
    """Name the coordinator of a group: the leader of the group's partition of the offsets topic.

    Without that topic, without a leader, or if it would be this broker, there is none.
    """
    leader = _coordinator(group, view)
    endpoint = view.brokers.get(leader) if leader not in (None, me) else None
    if endpoint is None:
        error = PartitionError.CONSUMER_COORDINATOR_NOT_AVAILABLE
        return ConsumerMetadataResponse(correlation_id, error)
    return ConsumerMetadataResponse(
        correlation_id, PartitionError.NONE, endpoint.broker, endpoint.host, endpoint.port
    )


def _coordinator(group: str, view: ClusterView) -> int | None:
    partitions = view.topics.get(OFFSETS_TOPIC)
    if not partitions:
        return None
    partition = partitions.get(partition_of(group, len(partitions)))
    return None if partition is None else partition.leader


def partition_of(group: str, count: int) -> int:
    """The partition of the offsets topic that holds the offsets of a group."""
    number = string_hash(group)
    return (0 if number == -(2**31) else abs(number)) % count


def error_of_coordinator(view: ClusterView) -> PartitionError:
    """What a broker answers to a commit or fetch of version 1 that it does not coordinate."""
    if OFFSETS_TOPIC in view.topics:
        return PartitionError.NOT_COORDINATOR_FOR_CONSUMER
    return PartitionError.CONSUMER_COORDINATOR_NOT_AVAILABLE


def refused_commit(
    request: CommitRequestV1 | CommitRequest, error: PartitionError
) -> tuple[OfTopic[PartitionOutcome], ...]:
    """Refuse each offset of a commit with the same error."""
    parts: Iterable[tuple[str, PartitionCommit | TimedCommit]] = flat(request.topics)
    return grouped((topic, PartitionOutcome(one.partition, error)) for topic, one in parts)


def refused_fetch(
    request: CommittedRequest, error: PartitionError
) -> tuple[OfTopic[PartitionCommitted], ...]:
    """Answer each partition of a fetch of offsets with the same error."""
    return grouped(
        (topic, _no_offset(one.partition, error)) for topic, one in flat(request.topics)
    )
