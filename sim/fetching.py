"""What a driver needs of the fetching side of a member, of whichever kind it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from simpy.events import Event

from model.asks import Fetch, Partition, Positions


class Fetching(Protocol):
    """The fetching side of a member, which its program tells what to fetch."""

    def fetch_exactly(self, fetches: Iterable[Fetch]) -> Event | None:
        """Fetch these and no others; an event that happens when the others are quiet."""

    def known_positions(self) -> Positions:
        """Where I stand, as far as I know."""

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget where I stood."""
