"""A connection to one broker, as producers use it.

In 0.7 a broker does not answer a produce request. So a request counts as sent when it has
been handed to the connection; one that died unnoticed takes it and it is gone. What is known
is only that a connection cannot be made: that is tried again for a while, with pauses that
grow tenfold.
"""

from __future__ import annotations

from model.asks import now_ms, sleep
from model.calls import Call, CallError, HangUp, Unreachable
from model.clients.producer_settings import ProducerSettings
from model.log.requests import MultiProduceRequest, ProduceRequest

FIRST_PAUSE_MS = 1
PAUSES_GROW = 10
LONGEST_PAUSE_MS = 60_000


class Sender:
    """What sends to one broker, as long as it listens at one address."""

    def __init__(self, address: str, settings: ProducerSettings) -> None:
        self.address = address
        self.settings = settings
        self._sent = 0
        """How many messages have gone over this connection."""
        self._since_ms: int | None = None

    async def send(self, request: ProduceRequest | MultiProduceRequest, messages: int) -> None:
        """Send a request that holds so many messages, again if it fails and that is set."""
        for attempt in range(self.settings.retries + 1):
            try:
                await self._send(request)
                break
            except CallError:
                await self._hang_up()
                if attempt == self.settings.retries:
                    raise
        await self._renew_in_time(messages)

    async def start(self) -> None:
        """There is nothing to start: the first request makes the connection."""

    async def close(self) -> None:
        """Give up the connection."""
        await self._hang_up()

    retire = close

    async def _send(self, request: ProduceRequest | MultiProduceRequest) -> None:
        """Send once there is a connection, or give up making one."""
        began_ms = await now_ms()
        pause_ms = FIRST_PAUSE_MS
        while True:
            try:
                await Call(self.address, request, self.settings.socket_timeout_ms)
                return
            except Unreachable:
                waited_ms = await now_ms() - began_ms
                if 0 <= self.settings.connect_timeout_ms < waited_ms + pause_ms:
                    raise
            await sleep(pause_ms)
            pause_ms = min(pause_ms * PAUSES_GROW, LONGEST_PAUSE_MS)

    async def _renew_in_time(self, messages: int) -> None:
        """Make the connection anew now and then, so that a balancer can choose another broker."""
        now = await now_ms()
        if self._since_ms is None:
            self._since_ms = now
        self._sent += messages
        is_old = now - self._since_ms >= self.settings.reconnect_ms
        if is_old or self._sent >= self.settings.reconnect_messages:
            await self._hang_up()

    async def _hang_up(self) -> None:
        await HangUp(self.address)
        self._sent, self._since_ms = 0, None
