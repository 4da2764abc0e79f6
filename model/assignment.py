"""Who gets which partition: pure functions from one view of the group to an assignment.

Every member computes the assignment for itself, from what it has read. Members agree
because the function is the same, the view is sorted, and nothing else enters. The unit
that partitions are dealt to is the *stream* (a thread of a consumer), so a consumer with
two streams counts twice; the pages of 0.7 count consumers, and there a consumer's id
stands in for its only stream.

  range        Kafka's: shares differ by at most one, the first streams have the extra
  range_floor  the pages to the letter: i*N .. (i+1)*N-1, N = partitions / streams rounded
               down. What does not divide is left to nobody.
  range_ceil   the same with N rounded up. The last streams may get nothing while others
               hold two.
  roundrobin   Kafka 0.8.2: all partitions of all topics in the order of a Java hash,
               dealt in turn; every topic must have the same streams
  roundrobin_11  Kafka 1.1: the same, but a stream that does not want a topic is skipped
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import Literal, get_args

from msgspec import Struct

from model.asks import Partition
from model.registry import Layout

Assignor = Literal["range", "range_floor", "range_ceil", "roundrobin", "roundrobin_11"]
ASSIGNORS: tuple[Assignor, ...] = get_args(Assignor)


class UnequalSubscriptions(ValueError):
    """Round robin as shipped in 0.8.2 wants every topic to have the same streams."""


class TopicView(Struct, frozen=True):
    """What a member read of one topic: its partitions and the streams that want it, sorted."""

    topic: str
    partitions: tuple[Partition, ...]
    streams: tuple[str, ...]


View = tuple[TopicView, ...]
"""What a member read of all topics, in order of topic."""

Assignment = dict[str, tuple[Partition, ...]]
"""Stream -> its partitions. Streams that get nothing are there, with nothing."""


def topic_view(
    topic: str, partitions: Iterable[Partition], streams: Iterable[str], layout: Layout
) -> TopicView:
    """Sort what was read of a topic: steps 4 and 5 of the pages.

    Partitions of 0.7 sort as the strings `broker-partition`, which keeps those of one
    broker together; partitions of 0.8 sort as numbers, which does not.
    """
    return TopicView(topic, sort_partitions(partitions, layout), tuple(sorted(streams)))


def sort_partitions(partitions: Iterable[Partition], layout: Layout) -> tuple[Partition, ...]:
    """Sort partitions the way their layout does."""
    if layout == "0.7":
        return tuple(sorted(partitions))
    return tuple(sorted(partitions, key=_numeric))


def _numeric(partition: Partition) -> tuple[str, int]:
    return partition.topic, int(partition.name)


def assign(assignor: Assignor, view: View) -> Assignment:
    """Compute everybody's share.

    Raises UnequalSubscriptions for `roundrobin` where topics have different streams.
    """
    shares: dict[str, list[Sequence[Partition]]] = {
        stream: [] for topic in view for stream in topic.streams
    }
    if assignor in _SLICES:
        slice_of = _SLICES[assignor]
        for topic in view:
            for position, stream in enumerate(topic.streams):
                first, end = slice_of(len(topic.partitions), len(topic.streams), position)
                shares[stream].append(topic.partitions[first:end])
    else:
        for stream, dealt in _DEALS[assignor](view).items():
            shares[stream].append(dealt)
    return {
        stream: tuple(partition for part in parts for partition in part)
        for stream, parts in shares.items()
    }


def share(assignor: Assignor, view: View, mine: Sequence[str]) -> Assignment:
    """Compute the share of some streams only; the same as in `assign`, but cheaper."""
    if assignor not in _SLICES:
        everybody = assign(assignor, view)
        return {stream: everybody.get(stream, ()) for stream in mine}
    slice_of = _SLICES[assignor]
    shares: dict[str, list[Partition]] = {stream: [] for stream in mine}
    for topic in view:
        for stream in mine:
            position = bisect_left(topic.streams, stream)
            if position < len(topic.streams) and topic.streams[position] == stream:
                first, end = slice_of(len(topic.partitions), len(topic.streams), position)
                shares[stream].extend(topic.partitions[first:end])
    return {stream: tuple(parts) for stream, parts in shares.items()}


def _range(partitions: int, streams: int, position: int) -> tuple[int, int]:
    each, extra = divmod(partitions, streams)
    first = each * position + min(position, extra)
    return first, first + each + (1 if position < extra else 0)


def _range_floor(partitions: int, streams: int, position: int) -> tuple[int, int]:
    each = partitions // streams
    return position * each, (position + 1) * each


def _range_ceil(partitions: int, streams: int, position: int) -> tuple[int, int]:
    each = -(-partitions // streams)
    return position * each, min((position + 1) * each, partitions)


_SLICES: dict[str, Callable[[int, int, int], tuple[int, int]]] = {
    "range": _range,
    "range_floor": _range_floor,
    "range_ceil": _range_ceil,
}
"""(partitions, streams, position) -> first and end of the slice that position gets."""


# --- round robin -----------------------------------------------------------------------


def _deal_to_all(view: View) -> dict[str, list[Partition]]:
    streams = view[0].streams if view else ()
    for topic in view:
        if topic.streams != streams:
            raise UnequalSubscriptions(
                f"round robin needs the same streams on every topic, but {view[0].topic} has "
                f"{', '.join(streams) or 'none'} and {topic.topic} has "
                f"{', '.join(topic.streams) or 'none'}"
            )
    if not streams:
        return {}
    ordered = hash_order(view)
    return {stream: ordered[position :: len(streams)] for position, stream in enumerate(streams)}


def _deal_and_skip(view: View) -> dict[str, list[Partition]]:
    wanted = {topic.topic: frozenset(topic.streams) for topic in view}
    streams = sorted(frozenset().union(*wanted.values()))
    dealt: dict[str, list[Partition]] = {stream: [] for stream in streams}
    turns = cycle(streams)
    for partition in hash_order(view):
        if wanted[partition.topic]:
            taker = next(stream for stream in turns if stream in wanted[partition.topic])
            dealt[taker].append(partition)
    return dealt


_DEALS: dict[str, Callable[[View], dict[str, list[Partition]]]] = {
    "roundrobin": _deal_to_all,
    "roundrobin_11": _deal_and_skip,
}


def hash_order(view: View) -> list[Partition]:
    """All partitions by the Java hash of the text `[topic,partition]`, as a signed number.

    Kafka leaves equal hashes (topics `Aa` and `BB` have them) in the order of a hash map,
    which is no order; here they keep the order of topic and partition.
    """
    keyed: list[tuple[int, Partition]] = []
    for topic in view:
        keyed.extend(zip(_hashes(topic), topic.partitions, strict=True))
    keyed.sort(key=_first)
    return [partition for _, partition in keyed]


def _first(pair: tuple[int, Partition]) -> int:
    return pair[0]


def _hashes(view: TopicView) -> list[int]:
    """The hash of each partition's text, built from that of the text less its last digit."""
    known: dict[str, int] = {"": _extend(0, f"[{view.topic},")}
    hashes: list[int] = []
    for partition in view.partitions:
        name = partition.name
        body = known.get(name)
        if body is None:
            shorter = known.get(name[:-1])
            if shorter is None:
                shorter = known[name[:-1]] = _extend(known[""], name[:-1])
            body = known[name] = (31 * shorter + ord(name[-1])) & 0xFFFFFFFF
        value = (31 * body + 93) & 0xFFFFFFFF  # 93 is the closing bracket
        hashes.append(value - (1 << 32) if value >= 1 << 31 else value)
    return hashes


def _extend(value: int, text: str) -> int:
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value
