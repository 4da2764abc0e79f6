"""How many messages, and bytes, passed each point of their way, a second.

The points are these. An application gives messages to its producer (*produced*); it is told
that they are accepted (*acknowledged*: a broker of 0.7 says nothing, so nobody knows more); a
broker appends them (*stored*); an application is handed them (*consumed*).

A message has as many bytes as it takes in a log. Of one that came into no log that is not
known; it counts as much as the others of its topic do on average.
"""

from __future__ import annotations

from typing import NamedTuple

from model.delivery import Lot
from model.trace import Event, Trace
from reports.numbered import Numbered

POINTS = ("produced", "acknowledged", "stored", "consumed")


class Flow(NamedTuple):
    """What passed one point in each stretch of time."""

    messages: tuple[int, ...]
    size_bytes: tuple[int, ...]


class _Sizes:
    """How many bytes messages take."""

    def __init__(self, trace: Trace) -> None:
        self.of: Numbered[float] = Numbered()
        self._sums: dict[str, tuple[int, int]] = {}
        for event in trace.of_kind("stored"):
            for lot in (Lot(*one) for one in event.detail["lots"]):
                self.of.add(lot.producer, lot.first, lot.end, (lot.to - lot.at) / lot.size)
                count, size = self._sums.get(event.topic, (0, 0))
                self._sums[event.topic] = (count + lot.size, size + lot.to - lot.at)

    def of_sent(self, event: Event) -> int:
        """What messages take that were sent."""
        detail = event.detail
        unknown: int = detail["end"] - detail["first"]
        size = 0.0
        for count, each in self.of.parts(detail["producer"], detail["first"], detail["end"]):
            unknown -= count
            size += count * each
        count, total = self._sums.get(event.topic, (1, 0))
        return round(size + unknown * total / count)


def flows(trace: Trace, width_us: int) -> dict[str, Flow]:
    """Point -> what passed it, in each stretch of so many microseconds."""
    stretches = trace.end_us // width_us + 1
    sums = {point: ([0] * stretches, [0] * stretches) for point in POINTS}
    sizes = _Sizes(trace)
    for event in trace.of_kind("sent", "stored", "consumed"):
        at = event.t_us // width_us
        for point, count, size in _passed(event, sizes):
            messages, size_bytes = sums[point]
            messages[at] += count
            size_bytes[at] += size
    return {point: Flow(tuple(one), tuple(other)) for point, (one, other) in sums.items()}


def _passed(event: Event, sizes: _Sizes) -> list[tuple[str, int, int]]:
    """Which points how much passed by an event."""
    if event.kind != "sent":
        lots = [Lot(*one) for one in event.detail["lots"]]
        count, size = sum(lot.size for lot in lots), sum(lot.to - lot.at for lot in lots)
        return [(event.kind, count, size)]
    count = event.detail["end"] - event.detail["first"]
    size = sizes.of_sent(event)
    is_accepted = event.detail["outcome"] == "accepted"
    points = ("produced", "acknowledged") if is_accepted else ("produced",)
    return [(point, count, size) for point in points]
