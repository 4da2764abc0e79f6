"""The asynchronous way to a broker: a queue, and a thread that sends what is in it together.

The thread sends when a batch is full, or when so much time has passed since it sent last.
A batch that cannot be sent is dropped, and the application never learns of it.

Whoever closes raises a flag first, and then puts a marker into the queue: what was put
before the marker is sent, and after the flag nothing is put any more. The other way round
a message could come between the two, and would lie behind the marker for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from model.asks import now_ms, tell
from model.calls import CallError
from model.clients.errors import ClientError, QueueClosed, QueueFull
from model.clients.hooks import EventHandler, Hooks
from model.clients.outgoing import Encoder, Outgoing
from model.clients.producer_settings import ProducerSettings
from model.clients.sending import Sender
from model.log.errors import LogError
from model.threads import Start, put, take


class Marker(Enum):
    """What stands in a queue and is no message."""

    CLOSE = "close"


class BatchingSender:
    """What sends to one broker, some time later and several messages together."""

    def __init__(
        self,
        name: str,
        sender: Sender,
        settings: ProducerSettings,
        *,
        encode: Encoder,
        hooks: Hooks,
        handler: EventHandler,
    ) -> None:
        self.name = name
        self.sender = sender
        self.settings = settings
        self.encode = encode
        self.hooks = hooks
        self.handler = handler
        self.is_closed = False
        self.is_done = False
        self.dropped = 0
        """How many messages could not be sent and were given up."""
        self._batch: list[Outgoing] = []
        self._held = 0
        self._sent_ms = 0
        """When a batch was sent last."""

    @property
    def address(self) -> str:
        """Where its broker listens."""
        return self.sender.address

    async def start(self) -> None:
        """Let the thread run."""
        await self.hooks.start()
        await Start(self.name, self.run)

    # --- in the threads of the application -------------------------------------------------

    async def send(self, item: Outgoing) -> None:
        """Put messages into the queue; `QueueFull` if there is no room in time."""
        if self.is_closed:
            raise QueueClosed(self.name)
        item = await self.hooks.before_enqueue(item)
        was_added = await self._enqueue(item)
        await self.hooks.after_enqueue(item, was_added=was_added)
        if not was_added:
            raise QueueFull(self.name, f"{self.settings.queue_messages} messages wait already")

    async def _enqueue(self, item: Outgoing) -> bool:
        if self.is_closed:
            raise QueueClosed(self.name)
        timeout_ms = self.settings.enqueue_timeout_ms
        return await put(
            self.name,
            item,
            self.settings.queue_messages,
            size=item.size,
            timeout_ms=None if timeout_ms < 0 else timeout_ms,
        )

    async def close(self) -> None:
        """Send what is in the queue, and nothing after it; answered when that is done."""
        if not self.is_closed:
            self.is_closed = True
            await self._put_marker()
        while not self.is_done:
            await take(self._done)
        await put(self._done, True, 1, timeout_ms=0)

    async def retire(self) -> None:
        """Close without waiting for it: the broker is gone, and others go on sending."""
        await Start(f"{self.name} closes", self.close)

    async def _put_marker(self) -> None:
        await put(self.name, Marker.CLOSE, self.settings.queue_messages)

    @property
    def _done(self) -> str:
        return f"{self.name} is done"

    # --- in the thread that sends ----------------------------------------------------------

    async def run(self) -> None:
        """Send batch after batch until the marker comes."""
        self._sent_ms = await now_ms()
        while True:
            item = await take(self.name, timeout_ms=await self._patience_ms())
            if item is Marker.CLOSE:
                break
            for one in await self.hooks.after_dequeuing(item):
                await self._add(one)
            if item is None:
                await self._send_batch()
        await self._finish()
        await self.hooks.close()
        await self.sender.close()
        self.is_done = True
        await put(self._done, True, 1, timeout_ms=0)

    async def _patience_ms(self) -> int:
        """How long the batch may still wait for more."""
        return max(0, self._sent_ms + self.settings.queue_time_ms - await now_ms())

    async def _add(self, item: Outgoing) -> None:
        """Add messages to the batch; send it whenever it is full."""
        most = self.settings.batch_messages
        while self._held + item.size >= most:
            head, item = item.split(most - self._held)
            self._batch.append(head)
            await self._send_batch()
        if item.size:
            self._batch.append(item)
            self._held += item.size

    async def _finish(self) -> None:
        """The marker has come: send what is left."""
        self._batch += await self.hooks.last_batch()
        await self._send_batch()

    async def _send_batch(self) -> None:
        batch, self._batch, self._held = self._batch, [], 0
        self._sent_ms = await now_ms()
        if not batch:
            return
        try:
            await self._handle(await self.hooks.before_sending(batch))
        except (CallError, LogError, ClientError) as error:
            number = sum(one.size for one in batch)
            self.dropped += number
            await tell("send fails", why=str(error), dropped=number)

    async def _handle(self, batch: Sequence[Outgoing]) -> None:
        await self.handler.handle(batch, self.sender, self.encode)
