"""The log of a partition at its broker, and its cuts into ranges of offsets.

In 0.7 an offset is a position in bytes, and a range starts where a segment does or an earlier
load has ended: only there an entry is known to begin. In 0.8 a range may start at any message.
How large messages are is measured on those that come first.
"""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct

from watchkeeper.pipeline.kafkalog.brokers.addresses import Brokers
from watchkeeper.pipeline.kafkalog.scan.splits import Cut, LogRange


class BrokerLog(Struct, frozen=True):
    """The log of one partition, as its broker answers for it."""

    topic: str
    broker: int
    """In 0.8 the leader at that moment."""
    partition: int
    format: str
    start: int
    end: int
    """The first offset, and the one after the last readable message."""
    boundaries: tuple[int, ...]
    """0.7: where segments start, ascending."""
    address: str
    brokers: Brokers
    """Where the cluster is; in 0.8 any of them knows the leader."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} of broker {self.broker}"

    @property
    def name(self) -> str:
        """Its unique name among the logs; in 0.8 it is the same after the leader has moved."""
        name = f"{self.topic}-{self.partition}"
        return f"{self.broker}/{name}" if self.format == "0.7" else name


class BrokerSplit(LogRange, frozen=True):
    """A range of a log at a broker."""

    address: str
    brokers: Brokers
    about_bytes: int
    """Its size in 0.7, about its size in 0.8."""

    @property
    def where(self) -> str:
        """The address of the broker."""
        return self.address

    @property
    def size_bytes(self) -> int:
        """About how much is read."""
        return self.about_bytes


def range_of(log: BrokerLog, low: int, high: int, about_bytes: int = 0) -> BrokerSplit:
    """One range of a log."""
    return BrokerSplit(
        topic=log.topic,
        broker=log.broker,
        partition=log.partition,
        format=log.format,
        from_offset=low,
        to_offset=high,
        address=log.address,
        brokers=log.brokers,
        about_bytes=about_bytes,
    )


def cut_at_segments(
    log: BrokerLog, low: int, high: int, *, split_bytes: int, are_boundaries: bool
) -> Cut:
    """Cut a log of 0.7 where segments start.

    Unless entries are known to start and end at the offsets, the cut goes from the start of a
    segment to the end of one.
    """
    known = sorted({log.start, *log.boundaries, log.end})
    if not are_boundaries:
        low = max((at for at in known if at <= low), default=low)
        high = min((at for at in known if at >= high), default=high)
    if low >= high:
        return Cut([], min(low, log.end), 0)
    marks = [low]
    inner = [at for at in known if low < at < high]
    for at, following in pairwise((*inner, high)):
        if following - marks[-1] > split_bytes:
            marks.append(at)
    marks.append(high)
    splits = [range_of(log, begin, end, end - begin) for begin, end in pairwise(marks)]
    return Cut(splits, high, 0)


def cut_at_messages(
    log: BrokerLog, low: int, high: int, *, split_bytes: int, message_bytes: float
) -> Cut:
    """Cut a log of 0.8 into ranges of equally many messages, which have about that size."""
    if low >= high:
        return Cut([], min(low, log.end), 0)
    step = max(int(split_bytes / message_bytes), 1)
    marks = [*range(low, high, step), high]
    splits = [
        range_of(log, begin, end, round((end - begin) * message_bytes))
        for begin, end in pairwise(marks)
    ]
    return Cut(splits, high, 0)
