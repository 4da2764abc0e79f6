"""Writes the events of a consumer's fetcher to a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients.consumer.positions import FetchPosition
from watchkeeper.model.trace.kinds import EventKind

Write = Callable[[str, dict[str, Any], Partition | None], None]
"""Writes an event to a trace: its kind, its detail, and the partition that it concerns."""


class TraceListener:
    """The listener of a consumer whose world writes a trace."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def on_fetching(self, position: FetchPosition, does: str) -> None:
        """The fetcher begins or ceases to fetch a partition."""
        at = position.consumed_offset if position.consumed_offset is not None else -1
        self._write(
            EventKind.FETCHING,
            {"does": does, "at": at, "stream": position.stream},
            position.partition,
        )

    def on_failure(self, address: str, times: int) -> None:
        """A broker has failed to answer."""
        self._write(EventKind.FETCH_FAILED, {"from": address, "times": times}, None)

    def on_reset(self, position: FetchPosition, offset: int, why: str) -> None:
        """A position was moved to the beginning or the end of its log."""
        self._write(EventKind.OFFSET_RESET, {"to": offset, "why": why}, position.partition)

    def on_delivery(self, position: FetchPosition, delivery: Delivery) -> None:
        """Messages were delivered to the application."""
        identity = delivery.message_range
        ranges = [list(identity)] if identity is not None else []
        self._write(
            EventKind.CONSUMED, {"ranges": ranges, "stream": position.stream}, delivery.partition
        )
