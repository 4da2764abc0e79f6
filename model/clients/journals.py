"""What the fetching side of a consumer does, as the events of a trace tell it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from model.asks import Partition
from model.clients.chunks import Handed
from model.clients.places import Place

Write = Callable[[str, dict[str, Any], Partition | None], None]
"""Writes an event into a trace: its kind, its detail, and which partition it is about."""


class TraceJournal:
    """The journal of a consumer whose world writes a trace."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def fetching(self, place: Place, does: str) -> None:
        """A partition begins or ceases to be fetched."""
        at = place.consumed if place.consumed is not None else -1
        self._write("fetching", {"does": does, "at": at, "stream": place.stream}, place.partition)

    def fails(self, address: str, times: int) -> None:
        """A broker did not answer."""
        self._write("fetch fails", {"from": address, "times": times}, None)

    def reset(self, place: Place, offset: int, why: str) -> None:
        """A partition is read on at the beginning or the end of its log."""
        self._write("offset reset", {"to": offset, "why": why}, place.partition)

    def handed_on(self, place: Place, handed: Handed) -> None:
        """An application was handed messages."""
        lots = [list(handed.lot)] if handed.lot is not None else []
        self._write("consumed", {"lots": lots, "stream": place.stream}, handed.partition)
