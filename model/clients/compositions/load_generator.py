"""An application that sends messages at a constant rate.

It sends the messages that are due in batches. If the producer does not keep up, they are sent
later. Each message has a unique number; after each batch the application reports its outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from watchkeeper.model.actor.effects import emit, now_ms, sleep
from watchkeeper.model.actor.rpc import CallError, Disconnected, TimedOut
from watchkeeper.model.actor.tasks import below
from watchkeeper.model.clients.errors import ClientError
from watchkeeper.model.clients.producer.producer import Producer, ProducerData
from watchkeeper.model.clients.producer.record_batch import Messages
from watchkeeper.model.clients_08.errors import FailedToSendMessage
from watchkeeper.model.clients_08.producer import Producer08
from watchkeeper.model.delivery.ledger import Outcome
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.trace.kinds import EventKind

MESSAGES_TOGETHER = 200
"""The largest number of messages in one `send`."""
LONGEST_PAUSE_MS = 100
"""The longest wait for a batch to fill."""

Make = Callable[[int, int], Messages]
"""Makes messages, by the number of the first one and their count."""


class LoadGenerator:
    """An application that sends messages of one topic at a rate.

    `rate_per_1000_s` is in messages per 1000 seconds; with `keys`, each batch gets one of so
    many keys.
    """

    def __init__(
        self,
        producer: Producer | Producer08,
        topic: str,
        rate_per_1000_s: int,
        *,
        make: Make,
        numbers: Callable[[int], int],
        keys: int = 0,
    ) -> None:
        self.producer = producer
        self.topic = topic
        self.rate_per_1000_s = rate_per_1000_s
        self.make = make
        self.numbers = numbers
        """Reserves unused message numbers, by their count; returns the first of them."""
        self.keys = keys
        self.is_running = True
        self.sent = 0
        """The number of accepted messages."""

    async def run(self) -> None:
        """Send until `is_running` is False."""
        began_ms, given = await now_ms(), 0
        pause_ms = self._pause_ms()
        while self.is_running:
            due = self.rate_per_1000_s * (await now_ms() - began_ms) // 1_000_000 - given
            count = min(due, MESSAGES_TOGETHER)
            given += count
            if count <= 0 or not await self._send(count):
                await sleep(pause_ms)

    def _pause_ms(self) -> int:
        fills_ms = MESSAGES_TOGETHER * 1_000_000 // max(self.rate_per_1000_s, 1)
        return max(1, min(fills_ms, LONGEST_PAUSE_MS))

    async def _send(self, count: int) -> bool:
        """Send a batch; return whether the producer accepted it."""
        first = self.numbers(count)
        key = str(await below(self.keys)) if self.keys else None
        outcome: Outcome = "accepted"
        more: dict[str, Any] = {} if key is None else {"key": key}
        try:
            await self.producer.send(ProducerData(self.topic, self.make(first, count), key))
            self.sent += count
        except (Disconnected, TimedOut, FailedToSendMessage) as error:
            outcome, more = "unknown", {**more, "why": str(error)}
        except (CallError, ClientError, LogError) as error:
            outcome, more = "refused", {**more, "why": str(error)}
        await emit(
            EventKind.SENT,
            topic=self.topic,
            producer=self.producer.name,
            first=first,
            end=first + count,
            outcome=outcome,
            **more,
        )
        return outcome == "accepted"
