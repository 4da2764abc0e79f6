"""The connections of a producer: one sender for each broker.

A broker of 0.7 does not answer a produce request. A request counts as sent once it was handed
to the connection; a connection that has died unnoticed accepts it, and the messages are lost.
The only certain failure is a connection that cannot be made. The sender retries it for
`connect.timeout.ms`, with pauses that grow tenfold.

Messages of one task to one broker keep their order. Two things would break it, and Kafka 0.7
does both (`compositions/kafka_07`):

    two connections     A broker serves its connections side by side. So a connection is only
                        renewed when the broker has served all that was sent over it. A broker
                        answers the requests of a connection in order: the response to an
                        offsets request says so.
    two senders         A broker has one sender as long as the producer lives. If it comes
                        back, be it at another address, the sender goes on there.

One case is left: a request that the connection does not take within `socket.timeout.ms`. The
next one goes over a new connection, and the broker may serve it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from watchkeeper.model.actor.effects import now_ms, sleep
from watchkeeper.model.actor.rpc import Call, CallError, HangUp, Unreachable
from watchkeeper.model.clients.errors import QueueClosed, UnavailableProducer
from watchkeeper.model.clients.producer.settings import ProducerSettings
from watchkeeper.model.log.format.requests import (
    LATEST,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
)

FIRST_PAUSE_MS = 1
PAUSE_FACTOR = 10
LONGEST_PAUSE_MS = 60_000

Request = ProduceRequest | MultiProduceRequest


class Sender:
    """Sends requests to one broker, over one connection at a time."""

    def __init__(self, address: str, settings: ProducerSettings) -> None:
        self.address = address
        """Where the broker listens; it may change between two requests."""
        self.settings = settings
        self._connected_to = ""
        self._sent = 0
        """The number of messages sent over this connection."""
        self._topic = ""
        """A topic of the last request sent over it; empty when all is served."""
        self._since_ms: int | None = None

    async def send(self, request: Request, messages: int) -> None:
        """Send a request of `messages` messages, with up to `num.retries` retries.

        Raises the `CallError` of the last attempt.
        """
        for attempt in range(self.settings.retries + 1):
            try:
                await self._send(request)
                break
            except CallError:
                await self._hang_up()
                if attempt == self.settings.retries:
                    raise
        self._topic = _topic_of(request)
        await self._renew_in_time(messages)

    async def start(self) -> None:
        """Do nothing: the first request makes the connection."""

    async def close(self) -> None:
        """Close the connection."""
        await self._hang_up()

    async def _send(self, request: Request) -> None:
        """Send as soon as there is a connection; raise `Unreachable` when the time is up."""
        began_ms = await now_ms()
        pause_ms = FIRST_PAUSE_MS
        while True:
            if self._connected_to != self.address:
                await self._hang_up()
            self._connected_to = self.address
            try:
                await Call(
                    self.address,
                    request,
                    self.settings.socket_timeout_ms,
                    self.settings.buffer_bytes,
                )
                return
            except Unreachable:
                waited_ms = await now_ms() - began_ms
                if 0 <= self.settings.connect_timeout_ms < waited_ms + pause_ms:
                    raise
            await sleep(pause_ms)
            pause_ms = min(pause_ms * PAUSE_FACTOR, LONGEST_PAUSE_MS)

    async def _renew_in_time(self, messages: int) -> None:
        """Reconnect from time to time, so that a load balancer can choose another broker."""
        now = await now_ms()
        if self._since_ms is None:
            self._since_ms = now
        self._sent += messages
        is_old = now - self._since_ms >= self.settings.reconnect_ms
        if is_old or self._sent >= self.settings.reconnect_messages:
            await self.await_served()
            await self._hang_up()

    async def await_served(self) -> None:
        """Wait until the broker has served what this task has sent over the connection."""
        if not self._topic:
            return
        question = OffsetsRequest(self._topic, 0, LATEST, 1)
        # A connection that breaks has lost what was on its way: nothing is served any more.
        with suppress(CallError):
            await Call(self._connected_to, question, self.settings.socket_timeout_ms)

    async def _hang_up(self) -> None:
        if self._connected_to:
            await HangUp(self._connected_to)
        self._sent, self._topic, self._since_ms = 0, "", None


def _topic_of(request: Request) -> str:
    first = request.produces[0] if isinstance(request, MultiProduceRequest) else request
    return first.topic


class PooledSender(Protocol):
    """A sender as the pool manages it: a `Sender`, or a `BatchSender` in front of one."""

    address: str
    """Where the broker listens."""

    async def start(self) -> None:
        """Begin to send."""

    async def close(self) -> None:
        """Send what is queued, and close."""


S = TypeVar("S", bound=PooledSender)


class ConnectionPool(Generic[S]):
    """The senders of one producer, by broker id."""

    def __init__(self, make: Callable[[int, str], S]) -> None:
        self.make: Callable[[int, str], S] = make
        """Makes the sender for a broker id and an address."""
        self.senders: dict[int, S] = {}
        self.is_closed = False

    async def follow(self, brokers: Iterable[tuple[int, str]]) -> None:
        """Have a sender for each of these brokers (id, address), at this address.

        The sender of a broker that is gone stays: it may have messages in its queue, and the
        broker may come back. Raises `QueueClosed` if the pool is closed meanwhile.
        """
        for broker, address in brokers:
            # Checked at each turn: `close` may run while the lines below wait.
            if self.is_closed:
                raise QueueClosed("the pool")
            if broker in self.senders:
                self.senders[broker].address = address
            else:
                sender = self.senders[broker] = self.make(broker, address)
                await sender.start()

    def sender(self, broker: int) -> S:
        """Return the sender for a broker id; raise `UnavailableProducer` without one."""
        found = self.senders.get(broker)
        if found is None:
            raise UnavailableProducer(f"broker {broker}", f"there are {sorted(self.senders)}")
        return found

    async def close(self) -> None:
        """Send what is queued, close every connection, and make no more senders."""
        self.is_closed = True
        for sender in self.senders.values():
            await sender.close()
