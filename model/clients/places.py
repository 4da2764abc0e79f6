"""A partition as one member reads it: how far it has fetched, and how far handed on.

Between the two lies what waits in the queue of a stream. A rebalance ends a place: whatever
was fetched and not handed on is dropped, and whoever reads on begins where it was handed on.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from model.asks import Partition
from model.clients.chunks import Chunk, Handed


class Place:
    """Where a member stands in a partition, as long as it keeps it."""

    __slots__ = (
        "address",
        "at",
        "consumed",
        "fetched",
        "is_failed",
        "is_stopped",
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
        self.at: int | None = at if at >= 0 else None
        """Where the last message that was handed on begins, or where it is to begin."""
        self.fetched = at
        """Where to fetch next; below 0 as long as only a broker knows."""
        self.consumed: int | None = self.at
        """Where to go on; None as long as only a broker knows."""
        self.is_stopped = False
        self.is_failed = False
        """What comes next cannot be read: the application was told."""

    @property
    def index(self) -> int:
        """Its number at its broker, or, in layout 0.8, in its topic."""
        return int(self.partition.name.rpartition("-")[2])

    def begin_at(self, offset: int) -> None:
        """Go on there, whatever came before."""
        self.at = self.consumed = self.fetched = offset

    def hand_on(self, handed: Handed) -> None:
        """A message was handed to the application."""
        self.at, self.consumed = handed.offset, handed.next_offset


class Fetched(NamedTuple):
    """What stands in the queue of a stream: what a fetch brought, or what is wrong with it."""

    place: Place
    chunk: Chunk | Exception


class Journal(Protocol):
    """Where the fetching side of a consumer says what it does: its world writes the trace."""

    def fetching(self, place: Place, does: str) -> None:
        """A partition `begins` or `ceases` to be fetched."""

    def fails(self, address: str, times: int) -> None:
        """A broker did not answer, so many times running."""

    def reset(self, place: Place, offset: int, why: str) -> None:
        """A partition is read on at the beginning or the end of its log."""

    def handed_on(self, place: Place, handed: Handed) -> None:
        """An application was handed messages."""
