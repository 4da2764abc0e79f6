"""The throughput of messages and bytes at each point of their way, per second.

The points: an application gives messages to its producer (*produced*); the producer
acknowledges them (*acknowledged*: a broker of 0.7 sends no response, so nothing more is known);
a broker appends them (*stored*); an application receives them (*consumed*).

The size of a message is its size in a log: the difference of its offsets in 0.7, and what the
broker says where an offset counts messages. A message that reached no log counts with the
average of its topic.
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.message_ranges import Numbered

POINTS = ("produced", "acknowledged", "stored", "consumed")


class Flow(NamedTuple):
    """The throughput at one point, in each time slot."""

    messages: tuple[int, ...]
    size_bytes: tuple[int, ...]


class _Sizes:
    """The sizes of messages in bytes."""

    def __init__(self, trace: Trace) -> None:
        self.of: Numbered[float] = Numbered()
        self._sums: dict[str, tuple[int, int]] = {}
        self._entry_bytes: dict[str, int] = {}
        """Topic -> the size of each message, where an offset counts messages."""
        for event in trace.of_kind(EventKind.STORED):
            if "entry_bytes" in event.detail:
                self._entry_bytes[event.topic] = event.detail["entry_bytes"]
            for stored in (MessageRange(*row) for row in event.detail["ranges"]):
                size_bytes = self.of_range(event.topic, stored)
                each = size_bytes / stored.size
                self.of.add(stored.producer, stored.first, stored.end, each)
                count, size = self._sums.get(event.topic, (0, 0))
                self._sums[event.topic] = (count + stored.size, size + size_bytes)

    def of_range(self, topic: str, stored: MessageRange) -> int:
        """The size of messages that are in a log."""
        each = self._entry_bytes.get(topic)
        return stored.to - stored.at if each is None else stored.size * each

    def of_sent(self, event: Event) -> int:
        """The size of sent messages."""
        detail = event.detail
        unknown: int = detail["end"] - detail["first"]
        size = 0.0
        for count, each in self.of.parts(detail["producer"], detail["first"], detail["end"]):
            unknown -= count
            size += count * each
        count, total = self._sums.get(event.topic, (1, 0))
        return round(size + unknown * total / count)


def flows(trace: Trace, width_us: int) -> dict[str, Flow]:
    """Point -> its throughput, in time slots of so many microseconds."""
    slots = trace.end_us // width_us + 1
    sums = {point: ([0] * slots, [0] * slots) for point in POINTS}
    sizes = _Sizes(trace)
    for event in trace.of_kind(EventKind.SENT, EventKind.STORED, EventKind.CONSUMED):
        at = event.t_us // width_us
        for point, count, size in _passed(event, sizes):
            messages, size_bytes = sums[point]
            messages[at] += count
            size_bytes[at] += size
    return {
        point: Flow(tuple(counts), tuple(sizes_bytes))
        for point, (counts, sizes_bytes) in sums.items()
    }


def _passed(event: Event, sizes: _Sizes) -> list[tuple[str, int, int]]:
    """Return the points that messages passed with an event, with their number and bytes."""
    if event.kind != EventKind.SENT:
        ranges = [MessageRange(*row) for row in event.detail["ranges"]]
        count = sum(stored.size for stored in ranges)
        size = sum(sizes.of_range(event.topic, stored) for stored in ranges)
        return [(event.kind, count, size)]
    count = event.detail["end"] - event.detail["first"]
    size = sizes.of_sent(event)
    is_accepted = event.detail["outcome"] == "accepted"
    points = ("produced", "acknowledged") if is_accepted else ("produced",)
    return [(point, count, size) for point in points]
