"""Who a message is: its producer and its number there, on its whole way.

A message of a series bears its identity by itself. A real one bears it in its payload, if
that was made here; of any other message nothing is known, and it is not accounted for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from model.delivery import Lot
from model.log import pieces
from model.log.contents import Contents, Series
from model.log.entries import messages_in
from model.log.message_set import Delivered

_IDENTITY = re.compile(rb"([^/]+)/(\d+)/.*", re.DOTALL)
FILLER = b"."


def payload_of(producer: str, number: int, size_bytes: int) -> bytes:
    """A payload that says whose message it is, and the how manieth; filled up to a size."""
    assert "/" not in producer, "a producer's name ends at the first slash"
    return f"{producer}/{number}/".encode().ljust(size_bytes, FILLER)


def identity_of(payload: bytes) -> tuple[str, int] | None:
    """The producer and the number of a message; None if its payload does not say."""
    found = _IDENTITY.fullmatch(payload)
    return None if found is None else (found[1].decode(errors="replace"), int(found[2]))


def lots_in(contents: Contents, at_offset: int) -> list[Lot]:
    """The messages of contents that begin at an offset, as far as they say who they are."""
    if isinstance(contents, bytes):
        return merged(_lots_in_bytes(contents, at_offset))
    return [
        lot_of_series(run.series, run.first, run.count, at_offset + run.begin)
        for run in pieces.runs(contents, at_offset)
    ]


def lot_of_series(series: Series, skipped: int, count: int, at_offset: int) -> Lot:
    """So many messages of a series after the first few, of which the first lies at an offset."""
    first = series.first + skipped
    end = at_offset + count * series.entry_bytes
    return Lot(series.producer, first, first + count, at_offset, end)


def _lots_in_bytes(contents: bytes, at_offset: int) -> Iterator[Lot]:
    """A lot a message; those of one wrapper share its place."""
    for offset, group in groupby(messages_in(contents, at_offset), _offset):
        messages = list(group)
        to = messages[-1].next_offset
        for message in messages:
            assert isinstance(message.payload, bytes), "bytes hold payloads"
            identity = identity_of(message.payload)
            if identity is not None:
                producer, number = identity
                yield Lot(producer, number, number + 1, offset, to, len(messages) > 1)


def _offset(message: Delivered) -> int:
    return message.offset


def merged(lots: Iterable[Lot]) -> list[Lot]:
    """The same with what follows one another put together."""
    found: list[Lot] = []
    for lot in lots:
        last = found[-1] if found else None
        if last is not None and last.precedes(lot):
            found[-1] = last._replace(end=lot.end, to=lot.to)
        elif last is not None and _shares_entry(last, lot):
            found[-1] = last._replace(end=lot.end)
        else:
            found.append(lot)
    return found


def _shares_entry(one: Lot, other: Lot) -> bool:
    return (
        one.one_entry
        and other.one_entry
        and (one.producer, one.end, one.at) == (other.producer, other.first, other.at)
    )
