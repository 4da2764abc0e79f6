"""The offsets of groups in ZooKeeper, which a broker writes and reads for clients.

Version 0 of the requests means the offsets in `/consumers/<group>/offsets`, which hold no
metadata. Version 1 means the coordinator of the group.

Kafka 0.8.2.2: KafkaApis.handleOffsetCommitRequest, handleOffsetFetchRequest.
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
    PartitionCommit,
    PartitionCommitted,
    PartitionNumber,
    PartitionOutcome,
    TimedCommit,
)

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


# --- without ZooKeeper -------------------------------------------------------------------


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
