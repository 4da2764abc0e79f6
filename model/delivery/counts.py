"""The fate of a group's messages, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition


class Share(NamedTuple):
    """The counts of one partition in one group."""

    partition: Partition
    stored: int
    skipped: int
    duplicated: int
    unread: int


Numbers = tuple[tuple[str, int], ...]
"""Producer -> how many of its messages, where there are any."""


@dataclass(frozen=True, slots=True)
class DeliveryCounts:
    """The counts of some topics in one group."""

    group: str
    accepted: int
    refused: int
    """Not accepted, at no attempt."""
    never_stored: int
    """Accepted from the application, in no log, and never consumed."""
    stored_twice: int
    consumed: int
    """Different messages."""
    shares: tuple[Share, ...]
    coming: int = 0
    """Accepted on another cluster, and not yet passed by its mirrors."""
    lost_of: Numbers = ()
    repeated_of: Numbers = ()

    @property
    def skipped(self) -> int:
        """Stored, passed by and never consumed."""
        return sum(share.skipped for share in self.shares)

    @property
    def lost(self) -> int:
        """Accepted or stored, and will not be consumed any more."""
        return self.never_stored + self.skipped

    @property
    def duplicated(self) -> int:
        """Messages handed on again, counted each time."""
        return sum(share.duplicated for share in self.shares)

    @property
    def unread(self) -> int:
        """Stored behind the place that the group has reached."""
        return sum(share.unread for share in self.shares)
