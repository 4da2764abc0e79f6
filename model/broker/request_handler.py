"""The request handler of a broker: the five requests of Kafka 0.7, over its logs.

Rules
  - Messages are not read here. The answer to a fetch names parts of files, and the driver
    passes them to the connection (`Reply.wire`) without reading them.
  - Appends and deletions hold the lock of the log: a queue with room for one item. So
    drivers may serve any number of requests at once.
  - Successive produce requests for one partition are checked and appended together, with
    the result of one by one. If one is refused, those after it are dropped.
  - A produce request has no response. One that is refused raises, and the driver closes the
    connection: a producer of 0.7 can learn of an error in no other way. The other
    parts of a multiproduce are appended all the same.
  - After a `StorageError` the contents of the disk are unknown. It is raised through here,
    and the process has to end (KAFKA-540); it starts again with recovery.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from watchkeeper.model.actor.events import Command, CommandKind
from watchkeeper.model.actor.tasks import Decompress, Remind, below
from watchkeeper.model.broker.upkeep import Upkeep, alone
from watchkeeper.model.log.folder_names import partition_of
from watchkeeper.model.log.format.contents import Contents, size_of, wrappers_in
from watchkeeper.model.log.format.errors import NO_ERROR, LogError
from watchkeeper.model.log.format.message_set_07 import CheckedSet
from watchkeeper.model.log.format.requests import (
    ANY_PARTITION,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    Request,
    fetch_head,
    multifetch_head,
)
from watchkeeper.model.log.log import AppendResult, FileView, Log
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.validation import check_sets_for_log

TOGETHER_BYTES = 128 * 1024
TOGETHER = 64
"""More than that, in bytes or in requests, is not looked at together: others wait."""

Fetch = FetchRequest | MultiFetchRequest
Stored = Callable[[str, int, Contents, AppendResult], None]
"""Called after an append: topic, partition, contents, and position in the log."""
Deleted = Callable[[str, int], None]
"""Called after the log of a deleted topic is gone: topic and partition."""


class Fetched(NamedTuple):
    """What a fetch gives: a part of a file, or the code of what went wrong."""

    view: FileView | None
    error_code: int = NO_ERROR

    @property
    def size_bytes(self) -> int:
        """The size of what is sent."""
        return self.view.size_bytes if self.view is not None else 0


class Reply(NamedTuple):
    """The answer to a fetch or a multifetch, not read yet."""

    parts: tuple[Fetched, ...]
    is_multi: bool

    def wire(self) -> Iterator[bytes | FileView]:
        """Yield the bytes and file parts of the response, in order."""
        if self.is_multi:
            yield multifetch_head(part.size_bytes for part in self.parts)
        for part in self.parts:
            yield fetch_head(part.size_bytes, part.error_code)
            if part.view is not None and part.view.size_bytes:
                yield part.view

    def response(
        self, contents: Callable[[FileView], Contents]
    ) -> FetchResponse | MultiFetchResponse:
        """The response as a value, for those who can look at the files."""
        parts = tuple(
            FetchResponse(
                contents(part.view) if part.view is not None and part.size_bytes else b"",
                part.error_code,
            )
            for part in self.parts
        )
        return MultiFetchResponse(parts) if self.is_multi else parts[0]


Served = Reply | OffsetsResponse | None
"""The answer to a request; None if it has no response."""


Work = Callable[[], Coroutine[Any, Any, Served]]
"""The rest of a request that is prepared."""


class _Prepared(NamedTuple):
    """What is to be appended to a partition, and what is wrong with what comes after it."""

    topic: str
    partition: int
    sets: list[CheckedSet]
    refusal: LogError | None


class Serving(Upkeep[Log]):
    """A broker at work: requests in any number, and what is due from time to time."""

    def __init__(
        self, logs: LogManager, stored: Stored | None = None, deleted: Deleted | None = None
    ) -> None:
        super().__init__(logs)
        self.stored = stored
        self.deleted = deleted
        self._to_announce: dict[str, None] = {}
        """Deleted topics: a message may create the first log of one before its last is gone."""
        self._retired: dict[tuple[str, int], None] = {}
        """The logs of deleted topics that are still there: topic, partition."""
        self._serve: dict[type[Request], Callable[[Any], Coroutine[Any, Any, Served]]] = {
            FetchRequest: self._find,
            MultiFetchRequest: self._find,
            OffsetsRequest: self._offsets,
        }

    async def answer(self, request: Request) -> Served:
        """Serve a request; a `LogError` closes the connection that it came over."""
        return await self.prepare(request)()

    def prepare(self, request: Request) -> Work:
        """Do of a request what can be done before it is its turn; what is left of it."""
        return self.prepare_next(iter((request,)))[1]

    def prepare_next(self, requests: Iterator[Request]) -> tuple[int, Work]:
        """The same for the first request, and for those that are better done together with it.

        Answered with how many they are, and with what is left of them.
        """
        first = next(requests)
        if isinstance(first, ProduceRequest):
            produces = _together(first, requests)
            return len(produces), partial(self._produce, (self._prepared(produces),))
        if isinstance(first, MultiProduceRequest):
            parts = tuple(self._prepared((produce,)) for produce in first.produces)
            return 1, partial(self._produce, parts)
        return 1, partial(self._serve[type(first)], first)

    # --- appending ---------------------------------------------------------------------

    def _prepared(self, produces: Sequence[ProduceRequest]) -> _Prepared:
        topic, partition = produces[0].topic, produces[0].partition
        settings = self.logs.settings.of(topic)
        sets, refusal = check_sets_for_log(settings, [produce.messages for produce in produces])
        return _Prepared(topic, partition, sets, refusal)

    async def _produce(self, parts: Sequence[_Prepared]) -> None:
        refusal: LogError | None = None
        for prepared in parts:
            try:
                await self._append(prepared)
            except LogError as error:
                refusal = refusal or error
        if refusal is not None:
            raise refusal

    async def _append(self, prepared: _Prepared) -> None:
        partition = prepared.partition
        if partition == ANY_PARTITION:
            partition = await below(self.logs.settings.of(prepared.topic).partitions)
        log = await self._log_of(prepared.topic, partition)
        sets = prepared.sets
        if self.logs.settings.of(prepared.topic).checks_compressed:
            await _decompress(sets)
        while sets:
            some = await self.locked(log, partial(log.append_sets, sets))
            self._tell(prepared.topic, partition, sets[: len(some)], some)
            sets = sets[len(some) :]
        if prepared.refusal is not None:
            raise prepared.refusal

    def _tell(
        self,
        topic: str,
        partition: int,
        sets: Sequence[CheckedSet],
        several: Sequence[AppendResult],
    ) -> None:
        if self.stored is None:
            return
        for message_set, appended in zip(sets, several, strict=True):
            if appended.message_count:
                self.stored(topic, partition, message_set.contents, appended)

    async def _log_of(self, topic: str, partition: int) -> Log:
        """The log of a partition; a topic that is new is announced."""
        log = self.logs.get(topic, partition)
        if log is not None:
            return log
        is_new = topic not in self.logs.topics
        log = await alone("create", partial(self.logs.get_or_create, topic, partition))
        # The topic may have been deleted while this waited, and another log of it not yet.
        if is_new or topic in self._to_announce:
            self._to_announce.pop(topic, None)
            count = self.logs.settings.of(topic).partitions
            await Remind(Command(CommandKind.CREATE_TOPIC, topic, count))
        return log

    # --- reading -----------------------------------------------------------------------

    def find(self, request: Fetch) -> Reply:
        """Say where that is which is to be fetched; nothing has to be waited for."""
        if isinstance(request, FetchRequest):
            return Reply((self._fetch(request),), is_multi=False)
        return Reply(tuple(map(self._fetch, request.fetches)), is_multi=True)

    async def _find(self, request: Fetch) -> Reply:
        return self.find(request)

    def _fetch(self, request: FetchRequest) -> Fetched:
        """A part of a file; nothing, without an error, where nothing was ever appended."""
        try:
            log = self.logs.get(request.topic, request.partition)
            return Fetched(log.view(request.offset, max(request.max_bytes, 0)) if log else None)
        except LogError as error:
            return Fetched(None, error.code)

    async def _offsets(self, request: OffsetsRequest) -> OffsetsResponse:
        try:
            offsets = await self.logs.offsets_before(
                request.topic, request.partition, request.time_ms, max(request.max_offsets, 0)
            )
        except LogError as error:
            return OffsetsResponse(error_code=error.code)
        return OffsetsResponse(tuple(offsets))

    # --- topics ------------------------------------------------------------------------

    async def delete_topic(self, topic: str) -> None:
        """Delete the logs of a topic. A later message creates it anew, from offset 0."""
        # A log that is being created belongs to the topic as it was, and is deleted with it.
        await alone("create", partial(self._retire, topic))
        for log in self.logs.all():
            key = partition_of(log.folder)
            if key is not None and key in self._retired:
                await self.locked(log, partial(self._delete, *key))

    async def _retire(self, topic: str) -> None:
        """Let a topic be new from now on; its logs are there until they are deleted."""
        self.logs.set_partitions(topic, None)
        self._to_announce[topic] = None
        keys = [partition_of(log.folder) for log in self.logs.all()]
        self._retired |= {key: None for key in keys if key is not None and key[0] == topic}

    def is_retired(self, topic: str, partition: int) -> bool:
        """Whether a log is still there although its topic was deleted."""
        return (topic, partition) in self._retired

    async def _delete(self, topic: str, partition: int) -> None:
        if not self.is_retired(topic, partition):
            return  # another deletion of the topic was faster
        await self.logs.delete(topic, partition)
        del self._retired[topic, partition]
        if self.deleted is not None:
            self.deleted(topic, partition)


def _together(first: ProduceRequest, others: Iterator[Request]) -> list[ProduceRequest]:
    """What is produced to one partition by requests that follow one another, up to a size."""
    found, size_bytes = [first], size_of(first.messages)
    if first.partition == ANY_PARTITION or size_bytes > TOGETHER_BYTES:
        return found
    for request in others:
        if not isinstance(request, ProduceRequest):
            break
        size_bytes += size_of(request.messages)
        is_same = (request.topic, request.partition) == (first.topic, first.partition)
        if not is_same or size_bytes > TOGETHER_BYTES:
            break
        found.append(request)
        if len(found) == TOGETHER:
            break
    return found


async def _decompress(sets: Iterable[CheckedSet]) -> None:
    """Take the time to open the wrappers of a simulation; real ones were opened already."""
    for message_set in sets:
        for wrapper in wrappers_in(message_set.contents):
            await Decompress(wrapper.codec, wrapper.plain_bytes)
