"""What a broker does with a request: the five of Kafka 0.7, over its logs.

Rules
  - What is fetched is not read here. The answer to a fetch names parts of files, and the
    driver hands them to the connection (`Reply.wire`) without looking into them.
  - Whoever appends to a log, or deletes of it, holds that log's lock: a queue with room for
    one. So drivers may serve any number of requests at once.
  - Produce requests for one partition that come one after the other are checked and appended
    together, as if each came alone. Where one is refused those after it are dropped.
  - A produce request has no response. One that is refused raises, and the driver closes the
    connection: no other answer can tell a producer of 0.7 that something is wrong. The other
    parts of a multiproduce are appended all the same.
  - After a `StorageError` nobody knows what is on the disk. It is raised through here, and
    the process has to end (KAFKA-540); it starts again with recovery.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from model.answers import Order, Ordered
from model.log.checking import checked_together
from model.log.contents import Contents, size_of
from model.log.errors import NO_ERROR, LogError
from model.log.log import Appended, Log, View
from model.log.logs import Logs
from model.log.message_set import Checked
from model.log.requests import (
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
from model.log.segments import Segment
from model.threads import Remind, Take, below, put

T = TypeVar("T")

TOGETHER_BYTES = 128 * 1024
TOGETHER = 64
"""More than that, in bytes or in requests, is not looked at together: others wait."""

Fetch = FetchRequest | MultiFetchRequest
Stored = Callable[[str, int, Contents, Appended], None]
"""Told of what was appended: topic, partition, what it was, and where it is."""


class Fetched(NamedTuple):
    """What a fetch gives: a part of a file, or the code of what went wrong."""

    view: View | None
    error_code: int = NO_ERROR

    @property
    def size_bytes(self) -> int:
        """How much there is to be sent."""
        return self.view.size_bytes if self.view is not None else 0


class Reply(NamedTuple):
    """The answer to a fetch or a multifetch, not read yet."""

    parts: tuple[Fetched, ...]
    is_multi: bool

    def wire(self) -> Iterator[bytes | View]:
        """What goes over the connection, one after the other."""
        if self.is_multi:
            yield multifetch_head(part.size_bytes for part in self.parts)
        for part in self.parts:
            yield fetch_head(part.size_bytes, part.error_code)
            if part.view is not None and part.view.size_bytes:
                yield part.view

    def response(
        self, contents: Callable[[View], Contents]
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
"""What a request is answered with; None where there is no response."""


Work = Callable[[], Coroutine[Any, Any, Served]]
"""What is left of a request that was looked at."""


class _Prepared(NamedTuple):
    """What is to be appended to a partition, and what is wrong with what comes after it."""

    topic: str
    partition: int
    sets: list[Checked]
    refusal: LogError | None


class Serving:
    """A broker at work: requests in any number, and what is due from time to time."""

    def __init__(self, logs: Logs, stored: Stored | None = None) -> None:
        self.logs = logs
        self.stored = stored
        self._serve: dict[type[Request], Callable[[Any], Coroutine[Any, Any, Served]]] = {
            FetchRequest: self._find,
            MultiFetchRequest: self._find,
            OffsetsRequest: self._offsets,
        }

    async def answer(self, request: Request) -> Served:
        """Do what a request asks for; a `LogError` closes the connection that it came over."""
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
            parts = tuple(self._prepared((one,)) for one in first.produces)
            return 1, partial(self._produce, parts)
        return 1, partial(self._serve[type(first)], first)

    # --- appending ---------------------------------------------------------------------

    def _prepared(self, produces: Sequence[ProduceRequest]) -> _Prepared:
        topic, partition = produces[0].topic, produces[0].partition
        settings = self.logs.settings.of(topic)
        sets, refusal = checked_together(settings, [one.messages for one in produces])
        return _Prepared(topic, partition, sets, refusal)

    async def _produce(self, parts: Sequence[_Prepared]) -> None:
        refusal: LogError | None = None
        for one in parts:
            try:
                await self._append(one)
            except LogError as error:
                refusal = refusal or error
        if refusal is not None:
            raise refusal

    async def _append(self, one: _Prepared) -> None:
        partition = one.partition
        if partition == ANY_PARTITION:
            partition = await below(self.logs.settings.of(one.topic).partitions)
        log = await self._log_of(one.topic, partition)
        sets = one.sets
        while sets:
            some = await self._locked(log, partial(log.append_some, sets))
            self._tell(one.topic, partition, sets[: len(some)], some)
            sets = sets[len(some) :]
        if one.refusal is not None:
            raise one.refusal

    def _tell(
        self, topic: str, partition: int, sets: Sequence[Checked], several: Sequence[Appended]
    ) -> None:
        if self.stored is None:
            return
        for whole, appended in zip(sets, several, strict=True):
            if appended.message_count:
                self.stored(topic, partition, whole.contents, appended)

    async def _log_of(self, topic: str, partition: int) -> Log:
        """The log of a partition; a topic that is new is announced."""
        log = self.logs.get(topic, partition)
        if log is not None:
            return log
        is_new = topic not in self.logs.topics
        log = await _alone("create", partial(self.logs.get_or_create, topic, partition))
        if is_new:
            count = self.logs.settings.of(topic).partitions
            await Remind(Ordered(Order.CREATE_TOPIC, topic, count))
        return log

    # --- reading -----------------------------------------------------------------------

    def find(self, request: Fetch) -> Reply:
        """Say where that is which is to be fetched; nothing has to be waited for."""
        if isinstance(request, FetchRequest):
            return Reply((self._fetch(request),), is_multi=False)
        return Reply(tuple(map(self._fetch, request.fetches)), is_multi=True)

    async def _find(self, request: Fetch) -> Reply:
        return self.find(request)

    def _fetch(self, one: FetchRequest) -> Fetched:
        """A part of a file; nothing, without an error, where nothing was ever appended."""
        try:
            log = self.logs.get(one.topic, one.partition)
            return Fetched(log.view(one.offset, max(one.max_bytes, 0)) if log else None)
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

    # --- from time to time -------------------------------------------------------------

    async def flush_due(self) -> None:
        """Flush what was not flushed for as long as its settings say."""
        await self.logs.flush_due()

    async def delete_old(self) -> tuple[Segment, ...]:
        """Delete what is too old or too much."""
        deleted: list[Segment] = []
        for log in self.logs.all():
            deleted += await self._locked(log, partial(self.logs.delete_old_of, log))
        return tuple(deleted)

    async def _locked(self, log: Log, work: Callable[[], Awaitable[T]]) -> T:
        return await _alone(log.folder, work)


def _together(first: ProduceRequest, others: Iterator[Request]) -> list[ProduceRequest]:
    """What is produced to one partition by requests that follow one another, up to a size."""
    found, size_bytes = [first], size_of(first.messages)
    if first.partition == ANY_PARTITION or size_bytes > TOGETHER_BYTES:
        return found
    for one in others:
        if not isinstance(one, ProduceRequest):
            break
        size_bytes += size_of(one.messages)
        is_same = (one.topic, one.partition) == (first.topic, first.partition)
        if not is_same or size_bytes > TOGETHER_BYTES:
            break
        found.append(one)
        if len(found) == TOGETHER:
            break
    return found


async def _alone(what: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do something while nobody else does anything under the same name."""
    lock = f"lock/{what}"
    await put(lock, True, 1)
    try:
        done = await work()
    except Exception:  # not where the process ends: nothing can be asked any more then
        await Take(lock)
        raise
    await Take(lock)
    return done
