"""The position of one member in a partition: how far it has fetched, and how far delivered.

The messages between the two offsets wait in the queue of a stream. A rebalance ends a
position: fetched messages that were not delivered are dropped, and the next owner resumes
after the last message that was delivered.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.chunks import Delivery, Messages


class FetchPosition:
    """The position of a member in a partition, for as long as the member owns it.

    Offsets are bytes in the log of the partition.
    """

    __slots__ = (
        "address",
        "consumed_offset",
        "fetch_offset",
        "is_failed",
        "is_stopped",
        "last_offset",
        "partition",
        "queue",
        "stream",
    )

    def __init__(
        self, partition: Partition, address: str, stream: int, queue: str, at: int
    ) -> None:
        self.partition = partition
        self.address = address
        self.stream = stream
        self.queue = queue
        self.last_offset: int | None = at if at >= 0 else None
        """The offset of the last delivered message, or the one to begin at."""
        self.fetch_offset = at
        """The next offset to fetch; negative until a broker has answered a request for it."""
        self.consumed_offset: int | None = self.last_offset
        """The offset to resume at and to commit; None until a broker has answered."""
        self.is_stopped = False
        self.is_failed = False
        """Whether the next message cannot be read; the application has received the error."""

    @property
    def index(self) -> int:
        """The number of the partition at its broker or, in layout 0.8, in its topic."""
        return int(self.partition.name.rpartition("-")[2])

    def reset_to(self, offset: int) -> None:
        """Move all offsets of the position to `offset`."""
        self.last_offset = self.consumed_offset = self.fetch_offset = offset

    def advance(self, delivery: Delivery) -> None:
        """Move the position behind a delivery."""
        self.last_offset, self.consumed_offset = delivery.offset, delivery.next_offset


class FetchedChunk(NamedTuple):
    """An item in the queue of a stream: a fetched chunk, or the error in its place."""

    position: FetchPosition
    chunk: Messages | Exception


class FetchListener(Protocol):
    """Receives the events of a fetcher; the world of the consumer writes them to its trace."""

    def on_fetching(self, position: FetchPosition, does: str) -> None:
        """The fetcher `begins` or `ceases` to fetch a partition."""

    def on_failure(self, address: str, times: int) -> None:
        """A broker has failed to answer `times` times in a row."""

    def on_reset(self, position: FetchPosition, offset: int, why: str) -> None:
        """A position was moved to the beginning or the end of its log."""

    def on_delivery(self, position: FetchPosition, delivery: Delivery) -> None:
        """Messages were delivered to the application."""
