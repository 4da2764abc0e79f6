"""The offset manager of a broker: the caches of the partitions that it leads.

Kafka 0.8.2.2: OffsetManager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.offset_manager.cache import OffsetCache
from watchkeeper.model.offset_manager.records import CommittedOffset, OffsetKey
from watchkeeper.model.offset_manager.settings import OffsetSettings
from watchkeeper.model.wire_08.by_topic import flat
from watchkeeper.model.wire_08.group_offsets import (
    NO_COMMITTED_OFFSET,
    NOW,
    CommitRequestV1,
    CommittedRequest,
    PartitionCommitted,
    TimedCommit,
)
from watchkeeper.model.zookeeper.java_hash_order import string_hash

Changes = Mapping[OffsetKey, CommittedOffset | None]
"""What is to be appended: commits, and None for what is removed."""

ERRORS_OF_APPENDS = {
    PartitionError.UNKNOWN_TOPIC_OR_PARTITION: PartitionError.CONSUMER_COORDINATOR_NOT_AVAILABLE,
    PartitionError.NOT_LEADER_FOR_PARTITION: PartitionError.NOT_COORDINATOR_FOR_CONSUMER,
}
"""What a commit answers for an error of the append; others are passed on."""


def partition_of(group: str, count: int) -> int:
    """The partition of the offsets topic that holds the offsets of a group."""
    number = string_hash(group)
    return (0 if number == -(2**31) else abs(number)) % count


class OffsetManager:
    """What one broker knows of the offsets of groups."""

    def __init__(self, settings: OffsetSettings) -> None:
        self.settings = settings
        self._led: dict[int, OffsetCache] = {}

    def partition_of(self, group: str) -> int:
        """Return the partition of a group, by the configured number of partitions.

        A topic that has another number (KAFKA-2336) does not change that.
        """
        return partition_of(group, self.settings.partitions)

    # --- which partitions --------------------------------------------------------------

    def lead(self, partitions: Collection[int]) -> Mapping[int, OffsetCache]:
        """Lead these partitions and no others; return the caches that have to be loaded.

        The cache of a partition that is led no longer is dropped, and the next one is a new
        object: a loader that is late fills what nothing reads.
        """
        self._led = {index: cache for index, cache in self._led.items() if index in partitions}
        new = {index: OffsetCache() for index in partitions if index not in self._led}
        self._led.update(new)
        return new

    def loaded(self) -> tuple[int, ...]:
        """Return the partitions that are led and loaded."""
        return tuple(index for index, cache in self._led.items() if cache.is_loaded)

    def size_of(self, partition: int) -> int:
        """Return the number of offsets that are known of a partition."""
        return len(self._led.get(partition, ()))

    # --- commits -----------------------------------------------------------------------

    def changes(self, request: CommitRequestV1, now_ms: int) -> Changes:
        """Return what a commit appends; offsets with too long a text are left out."""
        return {
            OffsetKey(request.group, topic, one.partition): CommittedOffset(
                one.offset,
                one.metadata or "",
                now_ms if one.timestamp_ms == NOW else one.timestamp_ms,
            )
            for topic, one in flat(request.topics)
            if not self._is_too_long(one)
        }

    def outcome(self, one: TimedCommit, appended: PartitionError) -> PartitionError:
        """Return what a commit answers for a partition."""
        if self._is_too_long(one):
            return PartitionError.OFFSET_METADATA_TOO_LARGE
        return ERRORS_OF_APPENDS.get(appended, appended)

    def _is_too_long(self, one: TimedCommit) -> bool:
        return len(one.metadata or "") > self.settings.largest_metadata

    # --- fetches -----------------------------------------------------------------------

    def committed(
        self,
        request: CommittedRequest,
        is_known: Callable[[str, int], bool],
        *,
        since_ms: int | None = None,
    ) -> Iterator[tuple[str, PartitionCommitted]]:
        """Yield the committed offsets of a fetch; `is_known` says whether a partition exists.

        A partition that does not exist has an error, also at a broker that coordinates nothing.
        With `since_ms`, a commit that is older counts as none, whether it has a tombstone or not.
        """
        cache = self._led.get(self.partition_of(request.group))
        for topic, one in flat(request.topics):
            if is_known(topic, one.partition):
                key = OffsetKey(request.group, topic, one.partition)
                yield topic, _answer(cache, key, since_ms)
            else:
                error = PartitionError.UNKNOWN_TOPIC_OR_PARTITION
                yield topic, no_offset(one.partition, error)

    # --- expiry ------------------------------------------------------------------------

    def expired(self, partition: int, now_ms: int, *, while_it_loads: bool = False) -> Changes:
        """Return the tombstones of the commits of a partition that have expired.

        A partition that is not loaded has none: what is newer may not be known yet. As shipped it
        has (KAFKA-2163).
        """
        cache = self._led.get(partition)
        if cache is None or not (cache.is_loaded or while_it_loads):
            return {}
        return dict.fromkeys(cache.committed_before(self.oldest_ms(now_ms)))

    def oldest_ms(self, now_ms: int) -> int:
        """Return the time before which a commit has expired."""
        return now_ms - self.settings.retention_ms

    def note(self, partition: int, first_offset: int, changes: Changes) -> None:
        """Note what was appended to a partition."""
        cache = self._led.get(partition)
        if cache is not None:
            for at, (key, committed) in enumerate(changes.items(), first_offset):
                cache.note(at, key, committed)


def _answer(
    cache: OffsetCache | None, key: OffsetKey, since_ms: int | None
) -> PartitionCommitted:
    if cache is None:
        return no_offset(key.partition, PartitionError.NOT_COORDINATOR_FOR_CONSUMER)
    if not cache.is_loaded:
        return no_offset(key.partition, PartitionError.OFFSETS_LOAD_IN_PROGRESS)
    found = cache.get(key)
    if found is None or (since_ms is not None and found.committed_ms < since_ms):
        return no_offset(key.partition)
    return PartitionCommitted(key.partition, found.offset, found.metadata)


def no_offset(partition: int, error: PartitionError = PartitionError.NONE) -> PartitionCommitted:
    """Return the answer without an offset: none was committed, or there is an error."""
    return PartitionCommitted(partition, NO_COMMITTED_OFFSET, "", error)
