"""The request handler of a broker of 0.8 that does not replicate, over its logs.

Rules
  - Messages of a fetch are not read here: the answer names parts of files, and the driver passes
    them to the connection.
  - An error concerns one partition, and is a code in the response. A produce request with acks 0
    has no response, so that an error closes its connection.
  - What was appended can be read at once; nothing waits for a flush. `acks` 1 and -1 mean the
    same with one replica. More than one can never be reached, and times out.
  - A fetch without enough messages waits for an append, or for its time to be over.
  - After a `StorageError` the process has to end, as with 0.7.

Kafka 0.8.2.2: KafkaApis, ReplicaManager.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import now_ms
from watchkeeper.model.admin.validation import LEGAL
from watchkeeper.model.broker.upkeep import Upkeep, alone
from watchkeeper.model.broker_08 import group_offsets
from watchkeeper.model.broker_08.cluster import Cluster
from watchkeeper.model.broker_08.error_codes import code_of, raise_first
from watchkeeper.model.broker_08.group_coordinator import GroupCoordinator
from watchkeeper.model.broker_08.metadata import answer_metadata
from watchkeeper.model.broker_08.waiting_fetches import WaitingFetches, wait_at
from watchkeeper.model.log.base_log import FileView
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.frames import WireStruct
from watchkeeper.model.log.format.requests import Response
from watchkeeper.model.log.format.requests_08 import (
    OffsetsRequest,
    OffsetsResponse,
    PartitionError,
    PartitionOffsets,
    PartitionTime,
    RequestHeader,
    TopicOffsets,
)
from watchkeeper.model.log.log_manager import Logs
from watchkeeper.model.log_08.checks import CheckedSet, check_set
from watchkeeper.model.log_08.log import KeyedLog
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, OffsetSettings
from watchkeeper.model.replication.settings import AutoCreation
from watchkeeper.model.wire_08.by_topic import OfTopic, flat, grouped
from watchkeeper.model.wire_08.fetch import (
    UNKNOWN_OFFSET,
    FetchRequest,
    FetchResponse,
    PartitionFetch,
    PartitionFetched,
    heads,
)
from watchkeeper.model.wire_08.group_offsets import (
    CommitRequest,
    CommitRequestV1,
    CommitResponse,
    CommittedRequest,
    CommittedRequestV1,
    CommittedResponse,
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
)
from watchkeeper.model.wire_08.metadata import MetadataRequest, MetadataResponse
from watchkeeper.model.wire_08.produce import (
    ALL_IN_SYNC,
    NO_RESPONSE,
    PartitionAppended,
    PartitionMessages,
    ProduceRequest,
    ProduceResponse,
)

ONE_REPLICA = 1
MOST_READ_BYTES = 1024 * 1024
"""Of a compacted log in one fetch, unless a message may be larger."""


@dataclass(frozen=True, slots=True)
class HandlerSettings:
    """The settings of a broker that concern requests."""

    creates_topics: bool = True
    """`auto.create.topics.enable`."""
    has_registry: bool = True
    """Whether there is a ZooKeeper for the offsets of groups."""
    offsets: OffsetSettings = field(default_factory=OffsetSettings)
    """Those of the offset manager."""


class FoundPart(NamedTuple):
    """What a fetch gives of a partition: a part of a file, or an error."""

    partition: int
    error_code: int
    high_watermark: int
    messages: FileView | bytes = b""

    @property
    def size_bytes(self) -> int:
        """The size of the messages."""
        if isinstance(self.messages, bytes):
            return len(self.messages)
        return self.messages.size_bytes


class Found(NamedTuple):
    """The answer to a fetch, whose messages are not read yet."""

    correlation_id: int
    topics: tuple[OfTopic[FoundPart], ...]

    def wire(self) -> Iterator[bytes | FileView]:
        """Yield the bytes and file parts of the response, in order."""
        parts: list[FoundPart | None] = [part for _, part in flat(self.topics)]
        parts = parts or [None]
        for head, part in zip(heads(self.correlation_id, self.topics), parts, strict=True):
            yield head
            if part is not None and part.size_bytes:
                yield part.messages

    def is_enough(self, min_bytes: int) -> bool:
        """Whether nothing is to be waited for: enough messages, or an error."""
        parts = [part for _, part in flat(self.topics)]
        has_error = any(part.error_code for part in parts)
        return has_error or sum(part.size_bytes for part in parts) >= min_bytes

    def response(self, contents: Callable[[FileView], bytes]) -> FetchResponse:
        """The response as a value, for those who can look at the files."""
        return FetchResponse(
            self.correlation_id,
            grouped(
                (
                    topic,
                    PartitionFetched(
                        part.partition,
                        part.error_code,
                        part.high_watermark,
                        part.messages
                        if isinstance(part.messages, bytes)
                        else contents(part.messages),
                    ),
                )
                for topic, part in flat(self.topics)
            ),
        )


class Late(NamedTuple):
    """A response that is to be sent later; what the request was about is done."""

    response: Response
    delay_ms: int


Answer = Response | Found | Late | None
"""The answer to a request; None if it has no response."""
Checked = tuple[str, int, CheckedSet | LogError]
"""Topic, partition, and the messages to append, or what is wrong with them."""


class Serving08(Upkeep[KeyedLog]):
    """A broker at work: requests in any number, and what is due from time to time."""

    def __init__(
        self,
        logs: Logs[KeyedLog],
        broker: int,
        cluster: Cluster,
        settings: HandlerSettings | None = None,
    ) -> None:
        """`broker` is the id of this broker in the cluster."""
        super().__init__(logs)
        self.broker = broker
        self.cluster = cluster
        self.settings = settings or HandlerSettings()
        self.coordinator = GroupCoordinator(broker, cluster, self, self.settings.offsets)
        self._waiting = WaitingFetches()
        self._handlers: Mapping[
            type[WireStruct], Callable[[RequestHeader, Any], Coroutine[Any, Any, Answer]]
        ] = {
            ProduceRequest: self._produce,
            FetchRequest: self._fetch,
            OffsetsRequest: self._offsets,
            MetadataRequest: self._metadata,
            CommitRequest: self._commit,
            CommitRequestV1: self._commit_to_log,
            CommittedRequest: self._committed,
            CommittedRequestV1: self._committed_in_log,
            ConsumerMetadataRequest: self._coordinator,
        }

    async def answer(self, header: RequestHeader, request: WireStruct) -> Answer:
        """Serve a request; a `LogError` closes the connection that it came over."""
        return await self._handlers[type(request)](header, request)

    def _error_at(self, topic: str, partition: int) -> PartitionError:
        return self.cluster.view.error_at(self.broker, topic, partition)

    # --- appending ---------------------------------------------------------------------

    async def _produce(
        self, header: RequestHeader, request: ProduceRequest
    ) -> ProduceResponse | Late | None:
        if request.acks < ALL_IN_SYNC:
            error = PartitionError.INVALID_REQUIRED_ACKS
            parts = [
                (topic, PartitionAppended(one.partition, error))
                for topic, one in flat(request.topics)
            ]
            return ProduceResponse(header.correlation_id, grouped(parts))
        parts = [(topic, await self._append(topic, one)) for topic, one in flat(request.topics)]
        if request.acks == NO_RESPONSE:
            raise_first(parts)
            return None
        if request.acks > ONE_REPLICA:
            late = grouped((topic, _timed_out(one)) for topic, one in parts)
            response = ProduceResponse(header.correlation_id, late)
            return Late(response, max(request.timeout_ms, 0))
        return ProduceResponse(header.correlation_id, grouped(parts))

    async def _append(self, topic: str, one: PartitionMessages) -> PartitionAppended:
        if topic == OFFSETS_TOPIC:
            # Only the coordinator writes there: whatever else a client wrote, it would load.
            return PartitionAppended(one.partition, PartitionError.INVALID_TOPIC)
        error = self._error_at(topic, one.partition)
        if error is not PartitionError.NONE:
            return PartitionAppended(one.partition, error)
        largest_bytes = self.logs.settings.of(topic).largest_payload_bytes
        try:
            checked = check_set(one.messages, largest_entry_bytes=largest_bytes)
            log = await self.log_of(topic, one.partition)
            appended = await self.locked(log, partial(log.append_set, checked))
        except LogError as refused:
            return PartitionAppended(one.partition, code_of(refused))
        await self.appended(topic, one.partition)
        return PartitionAppended(one.partition, offset=appended.offset)

    async def appended(self, topic: str, partition: int) -> None:
        """Wake up the fetches that wait for messages of a partition."""
        await self._waiting.wake((topic, partition))

    def existing_log(self, topic: str, partition: int) -> KeyedLog | None:
        """Return the log of a partition; None if nothing was ever appended."""
        return self.logs.get(topic, partition)

    async def log_of(self, topic: str, partition: int) -> KeyedLog:
        """Return the log of a partition, and create it first if there is none."""
        log = self.logs.get(topic, partition)
        if log is not None:
            return log
        return await alone("create", partial(self.logs.get_or_create, topic, partition))

    # --- reading -----------------------------------------------------------------------

    async def _fetch(self, header: RequestHeader, request: FetchRequest) -> Found:
        found = await self.find(header, request)
        if found.is_enough(request.min_bytes) or request.max_wait_ms <= 0:
            return found
        deadline_ms = await now_ms() + request.max_wait_ms
        places = ((topic, one.partition) for topic, one in flat(request.topics))
        with self._waiting.waiting(places) as name:
            while True:
                found = await self.find(header, request)
                left_ms = deadline_ms - await now_ms()
                if found.is_enough(request.min_bytes) or left_ms <= 0:
                    return found
                await wait_at(name, left_ms)

    async def find(self, header: RequestHeader, request: FetchRequest) -> Found:
        """Say where that is which is to be fetched; nothing is waited for but the index."""
        return Found(
            header.correlation_id,
            grouped(
                [(topic, await self._find(topic, one)) for topic, one in flat(request.topics)]
            ),
        )

    async def _find(self, topic: str, one: PartitionFetch) -> FoundPart:
        error = self._error_at(topic, one.partition)
        if error is not PartitionError.NONE:
            return FoundPart(one.partition, error, UNKNOWN_OFFSET)
        try:
            log = self.logs.get(topic, one.partition)
            if log is None:
                return _of_no_log(one)
            messages = await self._messages(log, one.offset, max(one.max_bytes, 0))
        except LogError as refused:
            return FoundPart(one.partition, code_of(refused), UNKNOWN_OFFSET)
        return FoundPart(one.partition, PartitionError.NONE, log.high_watermark, messages)

    async def _messages(self, log: KeyedLog, offset: int, size_bytes: int) -> FileView | bytes:
        """Find messages; those of a compacted log are read, because no view of it lasts."""
        if not log.is_compacted:
            return await log.find(offset, size_bytes)
        most_bytes = max(log.settings.largest_payload_bytes, MOST_READ_BYTES)
        return await self.read(log, offset, min(size_bytes, most_bytes))

    async def read(self, log: KeyedLog, offset: int, size_bytes: int) -> bytes:
        """Read messages under the lock of a log."""
        return await self.locked(log, partial(log.read, offset, size_bytes))

    async def _offsets(self, header: RequestHeader, request: OffsetsRequest) -> OffsetsResponse:
        topics = [
            TopicOffsets(
                each.topic,
                tuple([await self._offsets_of(each.topic, one) for one in each.partitions]),
            )
            for each in request.topics
        ]
        return OffsetsResponse(header.correlation_id, tuple(topics))

    async def _offsets_of(self, topic: str, one: PartitionTime) -> PartitionOffsets:
        error = self._error_at(topic, one.partition)
        if error is not PartitionError.NONE:
            return PartitionOffsets(one.partition, error)
        try:
            offsets = await self.logs.offsets_before(
                topic, one.partition, one.time_ms, max(one.max_offsets, 0)
            )
        except LogError as refused:
            return PartitionOffsets(one.partition, code_of(refused))
        return PartitionOffsets(one.partition, offsets=tuple(offsets))

    # --- the cluster -------------------------------------------------------------------

    async def _metadata(
        self, header: RequestHeader, request: MetadataRequest
    ) -> MetadataResponse:
        await self.cluster.refresh()
        for topic in dict.fromkeys(request.topics):
            if topic not in self.cluster.view.topics and self._may_create(topic):
                await self.cluster.create(topic, self._creation_of(topic))
        await self.coordinator.follow()
        view = self.cluster.view
        topics = request.topics or tuple(sorted(view.topics))
        response = answer_metadata(
            view, topics, header.correlation_id, creates=self.settings.creates_topics
        )
        return _with_invalid_names(response)

    async def refresh(self) -> None:
        """Look at the cluster, and coordinate the groups that it gives to this broker."""
        await self.cluster.refresh()
        await self.coordinator.follow()

    def _may_create(self, topic: str) -> bool:
        if topic == OFFSETS_TOPIC:
            return True
        return self.settings.creates_topics and _is_valid(topic)

    def _creation_of(self, topic: str) -> AutoCreation | None:
        return self.settings.offsets.creation if topic == OFFSETS_TOPIC else None

    # --- the offsets of groups ---------------------------------------------------------

    async def _commit(self, header: RequestHeader, request: CommitRequest) -> CommitResponse:
        if not self.settings.has_registry:
            refused = group_offsets.refused_commit(request, PartitionError.UNKNOWN)
            return CommitResponse(header.correlation_id, refused)
        done = await group_offsets.commit(
            request, self.cluster.view, self.settings.offsets.largest_metadata
        )
        return CommitResponse(header.correlation_id, done)

    async def _committed(
        self, header: RequestHeader, request: CommittedRequest
    ) -> CommittedResponse:
        if not self.settings.has_registry:
            refused = group_offsets.refused_fetch(request, PartitionError.UNKNOWN)
            return CommittedResponse(header.correlation_id, refused)
        return CommittedResponse(header.correlation_id, await group_offsets.committed(request))

    async def _commit_to_log(
        self, header: RequestHeader, request: CommitRequestV1
    ) -> CommitResponse:
        return CommitResponse(header.correlation_id, await self.coordinator.commit(request))

    async def _committed_in_log(
        self, header: RequestHeader, request: CommittedRequestV1
    ) -> CommittedResponse:
        return CommittedResponse(header.correlation_id, self.coordinator.committed(request))

    async def _coordinator(
        self, header: RequestHeader, request: ConsumerMetadataRequest
    ) -> ConsumerMetadataResponse:
        found = await self.coordinator.coordinator_of(request.group, header.correlation_id)
        await self.coordinator.follow()
        return found


def _of_no_log(one: PartitionFetch) -> FoundPart:
    """A partition to which nothing was ever appended has the offset 0, and no other."""
    if one.offset:
        error = PartitionError.OFFSET_OUT_OF_RANGE
        return FoundPart(one.partition, error, UNKNOWN_OFFSET)
    return FoundPart(one.partition, PartitionError.NONE, 0)


def _timed_out(one: PartitionAppended) -> PartitionAppended:
    if one.error_code != PartitionError.NONE:
        return one
    return PartitionAppended(one.partition, PartitionError.REQUEST_TIMED_OUT, one.offset)


def _is_valid(topic: str) -> bool:
    return LEGAL.fullmatch(topic) is not None and topic not in (".", "..")


def _with_invalid_names(response: MetadataResponse) -> MetadataResponse:
    """Give topics that cannot exist the error that says so."""
    topics = tuple(
        topic
        if _is_valid(topic.topic)
        else type(topic)(PartitionError.INVALID_TOPIC, topic.topic)
        for topic in response.topics
    )
    return MetadataResponse(response.correlation_id, response.brokers, topics)
