"""The coordinator of groups in a broker: the offset manager over the logs of the broker.

A commit is answered after the append, and noted in the cache under the lock of the log: the cache
and the log have the same order. The tombstones of expired commits are chosen under the same lock,
so that none follows a newer commit.

As in 0.8.2.2, a commit needs no loaded cache, and may name topics that do not exist.

Kafka 0.8.2.2: KafkaApis.handleOffsetCommitRequest, handleOffsetFetchRequest and
handleConsumerMetadataRequest, OffsetManager.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol

from watchkeeper.model.actor.effects import emit, now_ms
from watchkeeper.model.actor.tasks import Start
from watchkeeper.model.broker_08.cluster import Cluster
from watchkeeper.model.broker_08.error_codes import code_of
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.message_08 import encode
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.log_08.checks import check_set
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.offset_manager.cache import OffsetCache
from watchkeeper.model.offset_manager.load import load
from watchkeeper.model.offset_manager.manager import Changes, OffsetManager
from watchkeeper.model.offset_manager.records import message_of
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, OffsetSettings
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire_08.by_topic import OfTopic, flat, grouped
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    CommittedRequest,
    ConsumerMetadataResponse,
    PartitionCommitted,
    PartitionOutcome,
)


class PartitionLogs(Protocol):
    """The logs of a broker, and the lock of each."""

    def existing_log(self, topic: str, partition: int) -> KeyedLog | None:
        """Return the log of a partition; None if nothing was ever appended."""

    async def log_of(self, topic: str, partition: int) -> KeyedLog:
        """Return the log of a partition, and create it first if there is none."""

    async def locked(self, log: KeyedLog, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do some work under the lock of a log."""

    async def read(self, log: KeyedLog, offset: int, size_bytes: int) -> bytes:
        """Read messages under the lock of a log."""

    async def appended(self, topic: str, partition: int) -> None:
        """Wake up the fetches that wait for messages of a partition."""


class GroupCoordinator:
    """What a broker does for the groups that it coordinates."""

    def __init__(
        self, broker: int, cluster: Cluster, logs: PartitionLogs, settings: OffsetSettings
    ) -> None:
        """`broker` is the id of this broker in the cluster."""
        self.manager = OffsetManager(settings)
        self._broker = broker
        self._cluster = cluster
        self._logs = logs

    # --- who coordinates ---------------------------------------------------------------

    async def coordinator_of(self, group: str, correlation_id: int) -> ConsumerMetadataResponse:
        """Name the leader of the partition of a group, whether it has loaded that or not.

        Without the topic this creates it, and answers that there is no coordinator yet.
        """
        await self._cluster.refresh()
        partitions = self._cluster.view.topics.get(OFFSETS_TOPIC, {})
        view = partitions.get(self.manager.partition_of(group))
        if view is None:
            await self._cluster.create(OFFSETS_TOPIC, self.manager.settings.creation)
        leader = None if view is None else self._cluster.view.brokers.get(view.leader)
        if leader is None:
            error = PartitionError.CONSUMER_COORDINATOR_NOT_AVAILABLE
            return ConsumerMetadataResponse(correlation_id, error)
        error = PartitionError.NONE
        return ConsumerMetadataResponse(
            correlation_id, error, leader.broker, leader.host, leader.port
        )

    async def follow(self) -> None:
        """Load the partitions that this broker leads now, and drop those that it has lost."""
        partitions = self._cluster.view.topics.get(OFFSETS_TOPIC, {})
        led = [index for index, each in partitions.items() if each.leader == self._broker]
        new = self.manager.lead(led)
        if not new:
            return
        if len(partitions) != self.manager.settings.partitions:
            await emit(
                EventKind.OFFSETS_SPREAD_DIFFERS,
                topic=OFFSETS_TOPIC,
                partitions=len(partitions),
                configured=self.manager.settings.partitions,
            )
        await Start(f"load {OFFSETS_TOPIC}", partial(self._load, new))

    async def _load(self, caches: Mapping[int, OffsetCache]) -> None:
        for partition, cache in sorted(caches.items()):
            try:
                log = self._logs.existing_log(OFFSETS_TOPIC, partition)
                chunk_bytes = self.manager.settings.load_buffer_bytes
                found = await load(log, cache, self._logs.read, chunk_bytes)
            except LogError as error:
                # Without an answer its groups wait; with one they would begin elsewhere.
                await emit(
                    EventKind.OFFSETS_NOT_LOADED,
                    topic=OFFSETS_TOPIC,
                    partition=partition,
                    error=str(error),
                )
                continue
            if found.messages:
                await emit(
                    EventKind.OFFSETS_LOADED,
                    topic=OFFSETS_TOPIC,
                    partition=partition,
                    offsets=len(cache),
                    **found._asdict(),
                )

    # --- commits and fetches -----------------------------------------------------------

    async def commit(self, request: CommitRequestV1) -> tuple[OfTopic[PartitionOutcome], ...]:
        """Append the offsets of a group; return the outcome for each partition."""
        partition = self.manager.partition_of(request.group)
        changes = self.manager.changes(request, await now_ms())
        error = self._cluster.view.error_at(self._broker, OFFSETS_TOPIC, partition)
        if error is PartitionError.NONE:
            error = await self._append(partition, lambda: changes)
        return grouped(
            (topic, PartitionOutcome(one.partition, self.manager.outcome(one, error)))
            for topic, one in flat(request.topics)
        )

    def committed(self, request: CommittedRequest) -> tuple[OfTopic[PartitionCommitted], ...]:
        """Return the offsets of a group."""
        topics = self._cluster.view.topics
        return grouped(
            self.manager.committed(
                request, lambda topic, partition: partition in topics.get(topic, {})
            )
        )

    async def expire(self) -> int:
        """Remove the commits that have expired; return how many."""
        count = 0
        for partition in self.manager.loaded():
            now = await now_ms()
            if self.manager.expired(partition, now):
                before = self.manager.size_of(partition)
                await self._append(partition, partial(self.manager.expired, partition, now))
                count += before - self.manager.size_of(partition)
        return count

    async def _append(self, partition: int, choose: Callable[[], Changes]) -> PartitionError:
        """Append what is chosen under the lock of the log, and note it."""
        try:
            log = await self._logs.log_of(OFFSETS_TOPIC, partition)
            await self._logs.locked(log, partial(self._append_now, log, partition, choose))
        except LogError as refused:
            return code_of(refused)
        await self._logs.appended(OFFSETS_TOPIC, partition)
        return PartitionError.NONE

    async def _append_now(
        self, log: KeyedLog, partition: int, choose: Callable[[], Changes]
    ) -> None:
        changes = choose()
        if changes:
            data = encode(message_of(key, each) for key, each in changes.items())
            largest_bytes = log.settings.largest_payload_bytes
            done = await log.append_set(check_set(data, largest_entry_bytes=largest_bytes))
            self.manager.note(partition, done.offset, changes)
