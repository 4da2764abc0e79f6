"""What an application does that is told to send messages at a rate.

It sends what is due in batches, whether or not the producer keeps up: what could not be sent
in time is sent later. Each message has a number of its own; after every batch the application
says what it was told of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from model.asks import now_ms, sleep, tell
from model.calls import CallError, Disconnected, TimedOut
from model.clients.errors import ClientError
from model.clients.outgoing import Messages
from model.clients.producer import Data, Producer
from model.delivery import Outcome
from model.log.errors import LogError
from model.threads import below

MESSAGES_TOGETHER = 200
"""How many are sent at once at most."""
LONGEST_PAUSE_MS = 100
"""How long an application waits at most for a batch to fill."""

Make = Callable[[int, int], Messages]
"""Makes so many messages, numbered from the first of them on."""


class Sending:
    """An application that sends messages of one topic at a rate."""

    def __init__(
        self,
        producer: Producer,
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
        """Gives so many numbers that no message has had; the first of them."""
        self.keys = keys
        self.is_on = True
        self.sent = 0
        """How many messages were accepted."""

    async def run(self) -> None:
        """Send until it is switched off."""
        began_ms, given = await now_ms(), 0
        pause_ms = self._pause_ms()
        while self.is_on:
            due = self.rate_per_1000_s * (await now_ms() - began_ms) // 1_000_000 - given
            count = min(due, MESSAGES_TOGETHER)
            given += count
            if count <= 0 or not await self._send(count):
                await sleep(pause_ms)

    def _pause_ms(self) -> int:
        fills_ms = MESSAGES_TOGETHER * 1_000_000 // max(self.rate_per_1000_s, 1)
        return max(1, min(fills_ms, LONGEST_PAUSE_MS))

    async def _send(self, count: int) -> bool:
        """Send a batch; whether the producer took it."""
        first = self.numbers(count)
        key = str(await below(self.keys)) if self.keys else None
        outcome: Outcome = "accepted"
        more: dict[str, Any] = {} if key is None else {"key": key}
        try:
            await self.producer.send(Data(self.topic, self.make(first, count), key))
            self.sent += count
        except (Disconnected, TimedOut) as error:
            outcome, more = "unknown", {**more, "why": str(error)}
        except (CallError, ClientError, LogError) as error:
            outcome, more = "refused", {**more, "why": str(error)}
        await tell(
            "sent",
            topic=self.topic,
            producer=self.producer.name,
            first=first,
            end=first + count,
            outcome=outcome,
            **more,
        )
        return outcome == "accepted"
