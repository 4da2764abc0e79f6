"""The thread that fetches from one broker, round after round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from model.calls import CallError
from model.clients.chunks import Chunk
from model.clients.places import Fetched, Place
from model.clients.simple import SimpleConsumer
from model.log.entries import valid_size
from model.log.errors import NO_ERROR, LogError, OffsetOutOfRange, error_of
from model.log.requests import EARLIEST, LATEST, FetchRequest, FetchResponse
from model.threads import put, take

if TYPE_CHECKING:
    from model.clients.fetching import Fetching


class BrokerFetcher:
    """Fetches all that a consumer has at one address."""

    def __init__(self, fetching: Fetching, address: str) -> None:
        self.fetching = fetching
        self.settings = fetching.me.settings
        self.address = address
        self.wakes = f"something new at {address}"
        """The queue by which it is woken from its pause."""
        self.is_over = False
        self.failures = 0
        """How often running the broker did not answer."""
        self._consumers: dict[str, SimpleConsumer] = {}

    async def run(self) -> None:
        """Fetch as long as there is something to fetch here."""
        while places := self.fetching.places_at(self.address):
            read = await self._tried(places)
            if self.is_over:
                break
            if not read:
                await take(self.wakes, timeout_ms=self.settings.fetch_backoff_ms)
        self.is_over = True
        for consumer in self._consumers.values():
            await consumer.close()

    async def _tried(self, places: Sequence[Place]) -> int:
        """Take a round; how much it brought, nothing if a broker did not answer."""
        try:
            read = sum([await self._round(*one) for one in self._by_address(places)])
        except CallError as error:
            self.failures += 1
            self.fetching.journal.fails(error.address, self.failures)
            self._failed()
            return 0
        self.failures = 0
        return read

    def _failed(self) -> None:
        """Something went wrong: whatever can be read is asked for again after a pause."""

    def _by_address(self, places: Sequence[Place]) -> list[tuple[SimpleConsumer, list[Place]]]:
        """Whom to ask for what; a place without an address is at whoever leads it now."""
        found: dict[str, list[Place]] = {}
        for place in places:
            address = place.address or self.fetching.find(place.partition)
            if address:
                found.setdefault(address, []).append(place)
        return [(self._consumer(address), group) for address, group in found.items()]

    def _consumer(self, address: str) -> SimpleConsumer:
        if address not in self._consumers:
            timeout_ms = self.settings.socket_timeout_ms
            self._consumers[address] = SimpleConsumer(address, timeout_ms=timeout_ms)
        return self._consumers[address]

    async def _round(self, consumer: SimpleConsumer, places: Sequence[Place]) -> int:
        """Ask a broker for all of these; how many bytes of whole messages came."""
        located = [place for place in places if await self._is_located(consumer, place)]
        if not located:
            return 0
        asked = [
            FetchRequest(one.partition.topic, one.index, one.fetched, self.settings.fetch_bytes)
            for one in located
        ]
        responses = await consumer.multifetch(asked)
        read = 0
        for place, response in zip(located, responses, strict=True):
            if not place.is_stopped:
                read += await self._take_in(consumer, place, response)
        return read

    # --- what came -----------------------------------------------------------------------

    async def _take_in(
        self, consumer: SimpleConsumer, place: Place, response: FetchResponse
    ) -> int:
        """Put what came into the queue of its stream; how much it is."""
        if response.error_code == OffsetOutOfRange.code:
            await self._reset(consumer, place, "out of range")
            return 0
        try:
            size_bytes = self._valid_size(place, response)
        except LogError as error:
            place.is_failed = True
            await put(place.queue, Fetched(place, error), self.settings.queued_chunks)
            self._failed()
            return 0
        if size_bytes:
            chunk = Chunk(place.partition, response.messages, place.fetched)
            await self._put(place, chunk, size_bytes)
        return size_bytes

    def _valid_size(self, place: Place, response: FetchResponse) -> int:
        """How much of what came are whole messages; an error if the first one is not whole.

        A message that is larger than what is fetched would otherwise be asked for again and
        again, and nobody would know why nothing comes.
        """
        if response.error_code != NO_ERROR:
            raise error_of(response.error_code)(f"{place.partition} at {self.address}")
        return valid_size(response.messages)

    async def _put(self, place: Place, chunk: Chunk, size_bytes: int) -> None:
        """Put a chunk into the queue, and only then go on behind it."""
        await put(place.queue, Fetched(place, chunk), self.settings.queued_chunks)
        place.fetched += size_bytes

    # --- where to begin ------------------------------------------------------------------

    async def _is_located(self, consumer: SimpleConsumer, place: Place) -> bool:
        """Whether it is known where to fetch; where no offset was committed a broker is asked."""
        if place.fetched >= 0:
            return True
        await self._reset(consumer, place, "no offset")
        return place.fetched >= 0 and not place.is_stopped

    async def _reset(self, consumer: SimpleConsumer, place: Place, why: str) -> None:
        """Go on at the beginning or the end of the log; later, if the broker does not say."""
        earliest = self.settings.auto_offset_reset == "smallest"
        try:
            [offset] = await consumer.offsets_before(
                place.partition.topic, place.index, EARLIEST if earliest else LATEST, 1
            )
        except LogError:
            return
        if not place.is_stopped:
            place.begin_at(offset)
            self.fetching.journal.reset(place, offset, why)
            await self._after_reset(place, offset)

    async def _after_reset(self, place: Place, offset: int) -> None:
        """A place was moved; it is committed when offsets are committed the next time."""
