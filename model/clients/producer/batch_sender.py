"""The asynchronous sender: a queue, and a task that sends its messages in batches.

The task sends when a batch is full (`batch.size`), or when `queue.time` has passed since the
last batch. A batch that cannot be sent is dropped, and the application is not notified.

To close, set the flag `is_closed` first, and then put a marker into the queue. The messages
before the marker are sent, and after the flag no message is queued. In the other order a
message could be queued between the two steps, and would stay behind the marker for ever
(KAFKA-116).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from watchkeeper.model.actor.effects import emit, now_ms
from watchkeeper.model.actor.rpc import CallError
from watchkeeper.model.actor.tasks import Start, put, take
from watchkeeper.model.clients.errors import ClientError, QueueClosed, QueueFull
from watchkeeper.model.clients.producer.interceptors import EventHandler, Hooks
from watchkeeper.model.clients.producer.record_batch import Encoder, RecordBatch
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.trace.kinds import EventKind


class Marker(Enum):
    """Items of a queue other than messages."""

    CLOSE = "close"


class QueueSettings(Protocol):
    """The settings of a queue, of a producer of either release."""

    @property
    def queue_time_ms(self) -> int:
        """How long messages are collected."""

    @property
    def queue_messages(self) -> int:
        """The largest number of queued messages."""

    @property
    def enqueue_timeout_ms(self) -> int:
        """How long a message waits for room; negative: for ever."""

    @property
    def batch_messages(self) -> int:
        """The largest number of messages in a batch."""


class QueuedSender(Protocol):
    """What is behind a queue: the connection to a broker, or to several."""

    address: str

    async def await_served(self) -> None:
        """Wait until what was sent is served."""

    async def close(self) -> None:
        """Close the connections."""


class BatchSender:
    """Sends to one broker, with a delay and in batches."""

    def __init__(
        self,
        name: str,
        sender: QueuedSender,
        settings: QueueSettings,
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
        """The number of messages that could not be sent and were dropped."""
        self._batch: list[RecordBatch] = []
        self._batch_size = 0
        self._sent_ms = 0
        """The time of the last batch."""

    @property
    def address(self) -> str:
        """Where the broker listens; queued messages go to its present address."""
        return self.sender.address

    @address.setter
    def address(self, address: str) -> None:
        self.sender.address = address

    async def start(self) -> None:
        """Start the sending task."""
        await self.hooks.start()
        await Start(self.name, self.run)

    # --- in the tasks of the application ---------------------------------------------------

    async def send(self, item: RecordBatch) -> None:
        """Queue messages; raise `QueueFull` without room in time, `QueueClosed` after close."""
        if self.is_closed:
            raise QueueClosed(self.name)
        item = await self.hooks.before_enqueue(item)
        was_added = await self._enqueue(item)
        await self.hooks.after_enqueue(item, was_added=was_added)
        if not was_added:
            raise QueueFull(self.name, f"{self.settings.queue_messages} messages wait already")

    async def _enqueue(self, item: RecordBatch) -> bool:
        # Checked again: the hook before may have waited, and `close` may have run meanwhile.
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
        """Send what is queued, accept no more, and wait until that is done."""
        if not self.is_closed:
            self.is_closed = True
            await self._put_marker()
        while not self.is_done:
            await take(self._done)
        await put(self._done, True, 1, timeout_ms=0)

    async def _put_marker(self) -> None:
        await put(self.name, Marker.CLOSE, self.settings.queue_messages)

    @property
    def _done(self) -> str:
        return f"{self.name} is done"

    # --- in the sending task ---------------------------------------------------------------

    async def run(self) -> None:
        """Send one batch after the other until the marker arrives."""
        self._sent_ms = await now_ms()
        while True:
            item = await take(self.name, timeout_ms=await self._remaining_ms())
            if item is Marker.CLOSE:
                break
            for dequeued in await self.hooks.after_dequeuing(item):
                await self._add(dequeued)
            if item is None:
                await self._send_batch()
        await self._finish()
        await self.hooks.close()
        await self.sender.await_served()
        await self.sender.close()
        self.is_done = True
        await put(self._done, True, 1, timeout_ms=0)

    async def _remaining_ms(self) -> int:
        """Return how long the batch may wait for more messages (KAFKA-138)."""
        return max(0, self._sent_ms + self.settings.queue_time_ms - await now_ms())

    async def _add(self, item: RecordBatch) -> None:
        """Add messages to the batch, and send it each time it is full."""
        most = self.settings.batch_messages
        while self._batch_size + item.size >= most:
            head, item = item.split(most - self._batch_size)
            self._batch.append(head)
            await self._send_batch()
        if item.size:
            self._batch.append(item)
            self._batch_size += item.size

    async def _finish(self) -> None:
        """Send the last, incomplete batch (KAFKA-567)."""
        self._batch += await self.hooks.last_batch()
        await self._send_batch()

    async def _send_batch(self) -> None:
        batch, self._batch, self._batch_size = self._batch, [], 0
        self._sent_ms = await now_ms()
        if not batch:
            return
        try:
            await self._handle(await self.hooks.before_sending(batch))
        except (CallError, LogError, ClientError) as error:
            number = sum(item.size for item in batch)
            self.dropped += number
            await emit(EventKind.SEND_FAILED, why=str(error), dropped=number)

    async def _handle(self, batch: Sequence[RecordBatch]) -> None:
        await self.handler.handle(batch, self.sender, self.encode)
