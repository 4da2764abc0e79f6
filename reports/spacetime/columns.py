"""A diagram in few bytes: columns of small numbers, and each word once.

A table of rows repeats the names of its fields and most of their values. Here each field is one
column; what grows from row to row is written as differences; and texts are numbers of words. The
page's script makes rows of it again (`spacetime-data.js`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from watchkeeper.model.trace.trace import Event
from watchkeeper.reports.spacetime.items import Item

QUOTE = '"'
"""Details are cut into words here: a path that many events name is then one word."""
_ENCODER = msgspec.json.Encoder(order="deterministic")


class Words:
    """Texts, each once, by their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """Return all texts, in the order of their numbers."""
        return list(self._numbers)


def encoded(items: Sequence[Item], number: Mapping[str, int]) -> dict[str, Any]:
    """Encode items and their events; `number` has the number of each lane."""
    words = Words()
    events = {event.seq: event for item in items for event in item.events}
    ordered = [events[seq] for seq in sorted(events)]
    details: dict[bytes, int] = {}
    shown = _events(ordered, words, details)
    return {
        "events": shown,
        "details": [_words_of(detail, words) for detail in details],
        "items": _items(items, number, words),
        "words": words.all(),
    }


def _events(
    events: Sequence[Event], words: Words, details: dict[bytes, int]
) -> dict[str, list[int]]:
    places = ("/".join(filter(None, (event.topic, event.partition))) for event in events)
    found = (_ENCODER.encode(event.detail) for event in events)
    return {
        "seq": differences(event.seq for event in events),
        "us": differences(event.t_us for event in events),
        "node": [words.number(event.node) for event in events],
        "kind": [words.number(event.kind) for event in events],
        "session": [event.session for event in events],
        "zxid": [event.zxid for event in events],
        "place": [words.number(place) for place in places],
        "detail": [details.setdefault(detail, len(details)) for detail in found],
    }


def _words_of(detail: bytes, words: Words) -> list[int]:
    return [words.number(part) for part in detail.decode().split(QUOTE)]


def _items(
    items: Sequence[Item], number: Mapping[str, int], words: Words
) -> dict[str, list[Any]]:
    return {
        "kind": [words.number(item.kind) for item in items],
        "for": [words.number(item.category) for item in items],
        "label": [words.number(item.label) for item in items],
        "tone": [words.number(item.tone) for item in items],
        "node": [number.get(item.node, -1) for item in items],
        "server": [number.get(item.server, -1) for item in items],
        "from": differences(item.start_us for item in items),
        "to": [_after(item.end_us, item) for item in items],
        "at": [_after(item.at_server_us, item) for item in items],
        "events": [differences(event.seq for event in item.events) for item in items],
    }


def _after(at_us: int | None, item: Item) -> int | None:
    return None if at_us is None else at_us - item.start_us


def differences(numbers: Iterable[int]) -> list[int]:
    """Return the first number, and then by how much each is greater than the one before."""
    return [other - one for one, other in pairwise((0, *numbers))]
