"""The coordinator of groups in a broker that replicates: their offsets survive their coordinator.

A commit is appended to a partition of the offsets topic and acknowledged once the replicas have
it. The next leader of that partition is the next coordinator; it finds the commits in its log.

As shipped the coordinator loads its cache when it begins to lead, up to a high watermark that
may lag behind what its predecessor has acknowledged, and answers from the cache even when it has
been deposed and does not know. `hardened` has no such cache: it reads the log below the high
watermark, once that has reached what was there when it began to lead, and answers once the ISR
has confirmed that it leads.

Commits expire. As shipped, the commits in the cache whose time has come get tombstones, even if a
newer commit of the same key is in the log: one that is not read yet (KAFKA-2163), or that waits
for the replicas. That commit is lost. `hardened` looks at the whole log before, and answers with
no commit that is too old: a tombstone that a replica has missed makes no difference.

Kafka 0.8.2.2: OffsetManager, KafkaApis.handleOffsetCommitRequest, handleOffsetFetchRequest and
handleConsumerMetadataRequest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from watchkeeper.model.actor.effects import Partition, emit, sleep
from watchkeeper.model.actor.tasks import Draw, Start
from watchkeeper.model.admin.auto_creation import create_if_missing
from watchkeeper.model.broker_08.replica_cleaner import ReplicaCleaner
from watchkeeper.model.log.format.message_08 import encode
from watchkeeper.model.log.format.message_08 import records as messages_in
from watchkeeper.model.log.format.requests_08 import PartitionError
from watchkeeper.model.offset_manager.cache import OffsetCache
from watchkeeper.model.offset_manager.manager import Changes, OffsetManager, no_offset
from watchkeeper.model.offset_manager.records import OffsetKey, message_of, read_record
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, ReplicatedOffsetSettings
from watchkeeper.model.replication.leader import Content, append_all, append_records, is_confirmed
from watchkeeper.model.replication.messages import message_set_of, size_of
from watchkeeper.model.replication.replica import Replica
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.replicas import Replicas
from watchkeeper.model.replication.requests import ErrorCode
from watchkeeper.model.replication.settings import AutoCreation
from watchkeeper.model.replication.variants import (
    Expiry,
    OffsetFetches,
    OffsetsCache,
    OffsetsTopic,
)
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire_08.by_topic import flat, grouped
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequestV1,
    CommitResponse,
    CommittedRequestV1,
    CommittedResponse,
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
    PartitionOutcome,
)

NUMBER_BITS = 48
"""Of the number that tells the record of a commit from every other record."""
CONFIRMED_WITHIN_MS = 500
"""How long the ISR may take to confirm that a broker leads."""


@dataclass(slots=True)
class Led:
    """A partition of the offsets topic that this broker leads."""

    epoch: int
    """The leader epoch in which it leads."""
    cache: OffsetCache
    next_offset: int = 0
    """The offset of the first record that the cache does not have."""


def coordinate_groups(replicas: Replicas, settings: ReplicatedOffsetSettings) -> None:
    """Let a broker coordinate the groups whose partition of the offsets topic it leads."""
    coordinator = ReplicatedCoordinator(replicas, settings)
    replicas.hooks.on_leaders = coordinator.follow
    replicas.hooks.tasks["expire offsets"] = coordinator.expire_from_time_to_time
    if settings.cleaner.is_enabled:
        replicas.hooks.tasks["compact logs"] = ReplicaCleaner(replicas, settings.cleaner).run
    replicas.hooks.answers |= {
        ConsumerMetadataRequest: coordinator.find,
        CommitRequestV1: coordinator.commit,
        CommittedRequestV1: coordinator.committed,
    }


class ReplicatedCoordinator:
    """What a broker that replicates does for the groups that it coordinates."""

    def __init__(self, replicas: Replicas, settings: ReplicatedOffsetSettings) -> None:
        self._replicas = replicas
        self._settings = settings
        self._manager = OffsetManager(settings)
        self._led: dict[int, Led] = {}

    # --- who coordinates ---------------------------------------------------------------

    async def find(self, request: ConsumerMetadataRequest) -> ConsumerMetadataResponse:
        """Name the leader of the partition of a group; without the topic, create it."""
        partition = _partition(self._manager.partition_of(request.group))
        said = self._replicas.states.get(partition)
        if said is None:
            await self._create()
        address = None if said is None else dict(self._replicas.alive).get(said.state.leader)
        if said is None or address is None:
            error = PartitionError.CONSUMER_COORDINATOR_NOT_AVAILABLE
            return ConsumerMetadataResponse(0, error)
        host, _, port = address.rpartition(":")
        error = PartitionError.NONE
        return ConsumerMetadataResponse(0, error, said.state.leader, host, int(port))

    async def _create(self) -> None:
        variant, settings = self._replicas.me.variant, self._settings
        replicas = settings.replicas
        if variant.offsets_topic is OffsetsTopic.AS_MANY_AS_LIVE:
            replicas = min(replicas, max(len(self._replicas.alive), 1))
        how = AutoCreation(settings.partitions, replicas)
        await create_if_missing(how, OFFSETS_TOPIC, settings=variant.settings_of_new_topic)

    async def follow(self) -> None:
        """Begin with the partitions that this broker leads now, and drop those it has lost."""
        new = self._take_over()
        if self._replicas.me.variant.offsets_cache is OffsetsCache.LOADED:
            for index, led in new.items():
                await Start(f"load {OFFSETS_TOPIC}", partial(self._load, index, led))

    def _take_over(self) -> dict[int, Led]:
        """Follow who leads now; return what this broker has begun to lead."""
        now = {
            int(replica.partition.name): replica
            for replica in self._replicas.led()
            if replica.partition.topic == OFFSETS_TOPIC
        }
        self._led = {
            index: led
            for index, led in self._led.items()
            if index in now and now[index].leader_epoch == led.epoch
        }
        self._manager.lead(self._led)
        caches = self._manager.lead(now)
        new = {index: Led(now[index].leader_epoch, cache) for index, cache in caches.items()}
        self._led |= new
        return new

    # --- what is known -----------------------------------------------------------------

    async def _load(self, index: int, led: Led) -> None:
        """Read the log from its beginning, as shipped: whole chunks below the high watermark."""
        await sleep(0)
        replica = self._replicas.by_partition.get(_partition(index))
        while replica is not None and led.next_offset < replica.high_watermark:
            _note(led, self._chunk(replica, led.next_offset))
            await sleep(0)
        led.cache.is_loaded = True
        await self._note_loaded(index, led)

    def _chunk(self, replica: Replica, start: int) -> list[Record]:
        """Return the records that are read at once; at least one, and none behind the end."""
        end, size_bytes = start, 0
        while end < replica.end:
            size_bytes += size_of([replica.log[end]])
            if end > start and size_bytes > self._settings.load_buffer_bytes:
                break
            end += 1
        return replica.log[start:end]

    async def _read_on(self, index: int, replica: Replica) -> None:
        """Read what has been committed since the last time."""
        led = self._led[index]
        while led.next_offset < replica.high_watermark:
            if self._led.get(index) is not led:
                return
            chunk = self._chunk(replica, led.next_offset)
            _note(led, chunk[: replica.high_watermark - led.next_offset])
            if led.next_offset < replica.high_watermark:
                await sleep(0)
        if not led.cache.is_loaded and replica.high_watermark >= replica.epoch_start:
            led.cache.is_loaded = True
            await self._note_loaded(index, led)

    async def _note_loaded(self, index: int, led: Led) -> None:
        if led.next_offset:
            await emit(
                EventKind.OFFSETS_LOADED,
                topic=OFFSETS_TOPIC,
                partition=index,
                offsets=len(led.cache),
                messages=led.next_offset,
                unreadable=0,
            )

    # --- commits and fetches -----------------------------------------------------------

    async def commit(self, request: CommitRequestV1) -> CommitResponse:
        """Append the offsets of a group, and answer once the replicas have them."""
        index = self._manager.partition_of(request.group)
        changes = self._manager.changes(request, self._replicas.now_ms())
        error = await self._append(index, changes)
        return CommitResponse(
            0,
            grouped(
                (topic, PartitionOutcome(one.partition, self._manager.outcome(one, error)))
                for topic, one in flat(request.topics)
            ),
        )

    async def _append(self, index: int, changes: Changes) -> PartitionError:
        contents = [
            Content(await Draw(NUMBER_BITS), encode([message_of(key, committed)]))
            for key, committed in changes.items()
        ]
        appended = await append_all(
            self._replicas,
            _partition(index),
            contents,
            acks=self._settings.required_acks,
            timeout_ms=self._settings.commit_timeout_ms,
        )
        error = PartitionError(appended.error)
        if error is PartitionError.NONE and not self._follows_log:
            self._manager.note(index, appended.offset, changes)
        return error

    @property
    def _follows_log(self) -> bool:
        return self._replicas.me.variant.offsets_cache is OffsetsCache.FOLLOWS_LOG

    async def committed(self, request: CommittedRequestV1) -> CommittedResponse:
        """Return the offsets of a group."""
        index = self._manager.partition_of(request.group)
        replica = self._replicas.by_partition.get(_partition(index))
        if not await self._may_answer(replica):
            return _refused(request, PartitionError.NOT_COORDINATOR_FOR_CONSUMER)
        self._take_over()
        if replica is not None and index in self._led and self._follows_log:
            await self._read_on(index, replica)
        found = self._manager.committed(request, self._knows, since_ms=self._since_ms())
        return CommittedResponse(0, grouped(found))

    def _since_ms(self) -> int | None:
        """Return since when a commit counts that has no tombstone; None: it counts for ever."""
        if self._replicas.me.variant.expiry is Expiry.CACHED:
            return None
        return self._manager.oldest_ms(self._replicas.now_ms())

    async def _may_answer(self, replica: Replica | None) -> bool:
        if replica is None or not self._replicas.leads(replica):
            return False
        if self._replicas.me.variant.offset_fetches is OffsetFetches.AT_ONCE:
            return True
        return await is_confirmed(self._replicas, replica, CONFIRMED_WITHIN_MS)

    # --- expiry ------------------------------------------------------------------------

    async def expire_from_time_to_time(self) -> None:
        """Let commits expire as long as the process lives."""
        while True:
            await sleep(self._settings.expiry_check_ms)
            for index in tuple(self._led):
                await self._expire(index)

    async def _expire(self, index: int) -> None:
        """Append the tombstones of the commits of a partition that have expired."""
        replica = self._replicas.by_partition.get(_partition(index))
        if replica is None or not self._replicas.leads(replica):
            return
        if self._follows_log:
            self._take_over()
            if index in self._led:
                await self._read_on(index, replica)
        changes = self._expired(index, replica)
        if not changes:
            return
        numbers = [await Draw(NUMBER_BITS) for _ in changes]

        def tombstones(_: int, epoch: int) -> list[Record]:
            # Chosen once nothing else changes the log: none may follow a newer commit.
            nonlocal changes
            still = self._expired(index, replica)
            changes = {key: None for key in changes if key in still}
            return [
                Record(epoch, number, encode([message_of(key, None)]))
                for number, key in zip(numbers, changes, strict=False)
            ]

        appended = await append_records(
            self._replicas, _partition(index), tombstones, acks=0, timeout_ms=0
        )
        if appended.error is not ErrorCode.NONE or not changes:
            return
        if not self._follows_log:
            self._manager.note(index, appended.offset, changes)
        await emit(
            EventKind.OFFSETS_EXPIRED,
            topic=OFFSETS_TOPIC,
            partition=str(index),
            offsets=[[key.group, key.topic, str(key.partition)] for key in changes],
        )

    def _expired(self, index: int, replica: Replica) -> Changes:
        """Return the tombstones of what has expired, as the variant sees it."""
        is_cached = self._replicas.me.variant.expiry is Expiry.CACHED
        now = self._replicas.now_ms()
        expired = self._manager.expired(index, now, while_it_loads=is_cached)
        if is_cached or not expired:
            return expired
        newer = _keys_in(replica.log[self._led[index].next_offset :])
        return {key: None for key in expired if key not in newer}

    def _knows(self, topic: str, partition: int) -> bool:
        return Partition(topic, str(partition)) in self._replicas.states


def _partition(index: int) -> Partition:
    return Partition(OFFSETS_TOPIC, str(index))


def _keys_in(found: Iterable[Record]) -> frozenset[OffsetKey]:
    return frozenset(
        read_record(message)[0]
        for record in found
        for message in messages_in(message_set_of(record))
    )


def _note(led: Led, found: Iterable[Record]) -> None:
    for record in found:
        for message in messages_in(message_set_of(record)):
            led.cache.note(led.next_offset, *read_record(message))
        led.next_offset += 1


def _refused(request: CommittedRequestV1, error: PartitionError) -> CommittedResponse:
    topics = flat(request.topics)
    return CommittedResponse(
        0, grouped((topic, no_offset(one.partition, error)) for topic, one in topics)
    )
