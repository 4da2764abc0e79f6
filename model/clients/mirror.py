"""A mirror: a consumer of one cluster whose application is a producer to another.

Theory of operation
  What a mirror is handed it sends on as it is, so a message keeps its identity. When it may
  say that it is done with a message decides what a crash takes: its place in the source has
  to move on when the message has *arrived*, that is, when the producer has handed it to a
  connection. Then whatever commits the place, a timer, a rebalance, a departure, commits
  nothing that could still be lost with the process; what had arrived and was not committed
  is sent again. The other way, a place that moves on when the message is handed to the
  mirror, loses what waits in the producer's queue.

  What cannot be sent is tried again for ever, and nothing behind it counts as arrived.

  A message keeps its order behind the others of its partition, but the brokers of the target
  choose a partition of theirs for each request: between partitions there is no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model.asks import sleep, tell
from model.calls import CallError
from model.clients.chunks import Handed
from model.clients.connector import Connector
from model.clients.errors import ClientError, ConsumerTimeout
from model.clients.hooks import SendsTogether
from model.clients.outgoing import Encoder, Messages, Outgoing, as_it_is, size_of
from model.clients.places import Place
from model.clients.producer import Data, Plugins, Producer
from model.clients.sending import Sender
from model.clients.streams import Stream
from model.log.contents import Series
from model.log.errors import LogError
from model.plan import Forwarding

MOST_TOGETHER = 200
"""Messages of a simulated series that are sent on at once; of others it is one."""
TRIES_AGAIN_MS = 100


@dataclass(slots=True)
class _Under:
    """What was handed on and is under way."""

    place: Place
    handed: Handed
    messages: Messages
    missing: int
    """How many of them have not arrived."""

    def has(self, messages: Messages) -> bool:
        """Whether these are some of them."""
        mine = self.messages
        if isinstance(mine, Series) and isinstance(messages, Series):
            return mine.producer == messages.producer and (
                mine.first <= messages.first < mine.first + mine.count
            )
        if isinstance(mine, Series) or isinstance(messages, Series):
            return False
        return any(one is messages[0] for one in mine)


class Mirror:
    """The application of one process of a mirror."""

    def __init__(self, connector: Connector, forwarding: Forwarding, name: str) -> None:
        self.connector = connector
        self.waits = forwarding.commits == "after"
        self.together = SendsTogether(forwarding.settings)
        plugins = Plugins(encoder=as_it_is, handler=self)
        self.producer = Producer(forwarding.settings, plugins, name=name)
        self.is_async = forwarding.settings.type == "async"
        self._under_way: list[_Under] = []

    def streams(self, expression: str) -> list[Stream]:
        """The stream of all topics that are mirrored; its place moves on when it is told to."""
        streams = self.connector.create_message_streams_by_filter(expression, 1)
        for stream in streams:
            stream.waits_for_word = self.waits
        return streams

    async def handle_all(self, stream: Stream) -> None:
        """Send on whatever comes, until the stream is over."""
        while True:
            try:
                handed = await stream.next(MOST_TOGETHER)
            except ConsumerTimeout:
                continue
            except LogError as error:
                await tell("stream fails", why=str(error))
                continue
            if handed is None:
                return
            assert stream.latest is not None, "what was handed on is of a place"
            await self._forward(stream.latest, handed)

    async def _forward(self, place: Place, handed: Handed) -> None:
        payload = handed.payload
        messages: Messages = (payload,) if isinstance(payload, bytes) else payload
        self._under_way.append(_Under(place, handed, messages, size_of(messages)))
        while not await self._send(Data(handed.partition.topic, messages)):
            await sleep(TRIES_AGAIN_MS)
        if not self.is_async:
            await self._arrived(messages)

    async def _send(self, data: Data) -> bool:
        try:
            await self.producer.send(data)
        except (CallError, ClientError, LogError) as error:
            await tell("not mirrored", topic=data.topic, why=str(error))
            return False
        return True

    # --- where the producer is asynchronous, in the thread that sends ---------------------

    async def handle(self, batch: Sequence[Outgoing], sender: Sender, encode: Encoder) -> None:
        """Send a batch, however often it takes; then all of it has arrived."""
        while True:
            try:
                await self.together.handle(batch, sender, encode)
                break
            except (CallError, ClientError, LogError) as error:
                await tell("not mirrored", topic=batch[0].topic, why=str(error))
                await sleep(TRIES_AGAIN_MS)
        for one in batch:
            await self._arrived(one.messages)

    # --- what has arrived ------------------------------------------------------------------

    async def _arrived(self, messages: Messages) -> None:
        """Messages have arrived: places move on as far as everything before has."""
        under = next(one for one in self._under_way if one.missing and one.has(messages))
        under.missing -= size_of(messages)
        while self._under_way and not self._under_way[0].missing:
            await self._done(self._under_way.pop(0))

    async def _done(self, under: _Under) -> None:
        handed, partition = under.handed, under.handed.partition
        if self.waits:
            under.place.hand_on(handed)
        lots = [list(handed.lot)] if handed.lot is not None else []
        await tell("handled", topic=partition.topic, partition=partition.name, lots=lots)
