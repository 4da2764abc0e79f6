"""What an application does with its messages, and when its place is stored.

    as configured     from time to time, by the member itself
    before            before what was fetched is handled: at most once
    after             when it has been handled: at least once
    with the result   in one transaction with the result: exactly once

The application says what it has *handled*. Between being handed a message and having handled
it, it may crash.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from model.asks import sleep, tell
from model.clients.chunks import Handed
from model.clients.connector import Connector
from model.clients.errors import ConsumerTimeout
from model.clients.results import Keeping, Make, nothing
from model.clients.streams import Stream
from model.log.errors import LogError
from model.plan import Handling
from model.subscriptions import Subscription

TOGETHER_US = 100_000
"""An application handles what takes so long before it looks again."""
MOST_TOGETHER = 100_000


def streams_of(connector: Connector, wanted: Subscription) -> list[Stream]:
    """The streams that a member subscribes to, made by its connector."""
    if wanted.is_filter:
        return connector.create_message_streams_by_filter(
            wanted.expression, wanted.filter_streams, wanted.pattern
        )
    by_topic = connector.create_message_streams(dict(wanted.streams))
    return [stream for of_topic in by_topic.values() for stream in of_topic]


class Application:
    """The application of one member: a thread for each stream runs `handle_all`."""

    def __init__(
        self, connector: Connector, group: str, handling: Handling, make: Make = nothing
    ) -> None:
        """`make` is what it makes of messages, where that is stored with its place."""
        self.connector = connector
        self.handling = handling
        self.at_most = MOST_TOGETHER
        if handling.each_us:
            self.at_most = max(1, min(TOGETHER_US // handling.each_us, MOST_TOGETHER))
        self._owed_us = 0
        """Work that was shorter than a clock can tell."""
        self._keeping = Keeping(group, make)
        self._handle: Callable[[Handed], Awaitable[None]] = {
            "as configured": self._work,
            "before": self._commit_first,
            "after": self._commit_last,
            "with the result": self._store,
        }[handling.commits]

    async def handle_all(self, stream: Stream) -> None:
        """Handle whatever comes, until the stream is over."""
        while True:
            try:
                handed = await stream.next(self.at_most)
            except ConsumerTimeout:
                continue
            except LogError as error:
                await tell("stream fails", why=str(error))
                continue
            if handed is None:
                return
            await self._handle(handed)

    async def _work(self, handed: Handed) -> None:
        await self._spend_time(handed)
        await self._say_handled(handed)

    async def _commit_first(self, handed: Handed) -> None:
        await self.connector.commit_offsets()
        await self._work(handed)

    async def _commit_last(self, handed: Handed) -> None:
        await self._work(handed)
        await self.connector.commit_offsets()

    async def _store(self, handed: Handed) -> None:
        """Handle, and store the result if the group still stands where these messages begin."""
        await self._spend_time(handed)
        for stored in await self._keeping.take(handed):
            await self._say_handled(stored)

    async def _spend_time(self, handed: Handed) -> None:
        self._owed_us += self.handling.each_us * handed.size
        duration_ms, self._owed_us = divmod(self._owed_us, 1000)
        if duration_ms:
            await sleep(duration_ms)

    async def _say_handled(self, handed: Handed) -> None:
        lots = [list(handed.lot)] if handed.lot is not None else []
        partition = handed.partition
        await tell("handled", topic=partition.topic, partition=partition.name, lots=lots)
