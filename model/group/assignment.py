"""Who gets which partition: pure functions from one view of the group to an assignment.

Every member computes the assignment for itself, from what it has read. Members agree
because the function is the same, the view is sorted, and nothing else enters. The unit
that partitions are dealt to is the *stream* (a thread of a consumer), so a consumer with
two streams counts twice; the pages of 0.7 count consumers, and there a consumer's id
stands in for its only stream.

  range        Kafka's: shares differ by at most one, the first streams have the extra
  range_floor  the pages to the letter: i*N .. (i+1)*N-1, N = partitions / streams rounded
               down. The rest of the division has no owner.
  range_ceil   the same with N rounded up. The last streams may get nothing while others
               hold two.
  roundrobin   Kafka 0.8.2: all partitions of all topics in the order of a Java hash,
               dealt in turn; every topic must have the same streams
  roundrobin_11  Kafka 1.1: the same, but a stream that does not want a topic is skipped
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Literal, get_args

from msgspec import Struct

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry.paths import Layout
from watchkeeper.model.zookeeper.java_hash_order import string_hash

Assignor = Literal["range", "range_floor", "range_ceil", "roundrobin", "roundrobin_11"]
ASSIGNORS: tuple[Assignor, ...] = get_args(Assignor)


class UnequalSubscriptions(ValueError):
    """Round robin as shipped in 0.8.2 wants every topic to have the same streams."""


class TopicView(Struct, frozen=True, cache_hash=True):
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
    ordered = sorted(partitions, key=_name if layout == "0.7" else _number)
    ordered.sort(key=_topic)  # a stable sort keeps the order within each topic
    return tuple(ordered)


_topic = itemgetter(0)
_name = itemgetter(1)


def _number(partition: Partition) -> int:
    return int(partition.name)


def assign(assignor: Assignor, view: View) -> Assignment:
    """Compute the share of every member.

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
    return {stream: tuple(chain.from_iterable(parts)) for stream, parts in shares.items()}


def share(assignor: Assignor, view: View, mine: Sequence[str]) -> Assignment:
    """Compute the share of some streams only; the same as in `assign`, but cheaper."""
    if assignor not in _SLICES:
        of_all = assign(assignor, view)
        return {stream: of_all.get(stream, ()) for stream in mine}
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
    for topic in view:
        if topic.streams != view[0].streams:
            raise UnequalSubscriptions(
                f"round robin needs the same streams on every topic, but {view[0].topic} has "
                f"{', '.join(view[0].streams) or 'none'} and {topic.topic} has "
                f"{', '.join(topic.streams) or 'none'}"
            )
    return _deal_and_skip(view)


def _deal_and_skip(view: View) -> dict[str, list[Partition]]:
    """Deal in turn; who does not want a topic loses the turn.

    Within a run of partitions that the same streams want, turns repeat, so that a whole
    run is dealt by slices.
    """
    streams = sorted({stream for topic in view for stream in topic.streams})
    dealt: dict[str, list[Partition]] = {stream: [] for stream in streams}
    place = {stream: at for at, stream in enumerate(streams)}
    places = {topic.streams: [place[stream] for stream in topic.streams] for topic in view}
    turn = 0
    for takers, run in _runs(view):
        many = len(takers)
        first = bisect_left(places[takers], turn) % many
        for nth in range(min(many, len(run))):
            dealt[takers[(first + nth) % many]].extend(run[nth::many])
        turn = places[takers][(first + len(run) - 1) % many] + 1
    return dealt


def _runs(view: View) -> Iterator[tuple[tuple[str, ...], list[Partition]]]:
    """Partitions in the order of their hashes, cut where the streams that want them change."""
    takers = {topic.topic: topic.streams for topic in view if topic.streams}
    ordered = hash_order(tuple(topic for topic in view if topic.streams))
    if len(set(takers.values())) == 1:
        yield next(iter(takers.values())), ordered
        return
    for streams, run in groupby(ordered, key=lambda partition: takers[partition.topic]):
        yield streams, list(run)


_DEALS: dict[str, Callable[[View], dict[str, list[Partition]]]] = {
    "roundrobin": _deal_to_all,
    "roundrobin_11": _deal_and_skip,
}


def hash_order(view: View) -> list[Partition]:
    """All partitions by the Java hash of the text `[topic,partition]`, as a signed number.

    Kafka leaves equal hashes (topics `Aa` and `BB` have them) in the order of a hash map,
    which is no order; here they keep the order of topic and partition.
    """
    partitions = [partition for topic in view for partition in topic.partitions]
    hashes = [value for topic in view for value in _hashes(topic)]
    order = sorted(range(len(partitions)), key=hashes.__getitem__)
    return [partitions[at] for at in order]


TAIL = 3
"""Characters at the end of a partition's name that are hashed apart."""


def _hashes(topic: TopicView) -> list[int]:
    """The hash of each partition's text, plus 2**31: in the order of signed numbers.

    hash(head + tail) is hash(head) * 31**len(tail) + hash(tail), and of a million names
    there are some thousand heads and tails: each is hashed once. A name shorter than a
    tail has no head, and what is added for its tail makes up for the missing length.
    """
    begins = f"[{topic.topic},"
    shift = 31 ** (TAIL + len("]"))
    none = string_hash(begins) * shift
    heads = _Memo(lambda head: string_hash(begins + head) * shift + 2**31)
    tails = _Memo(lambda tail: string_hash(f"{begins}{tail}]") - none)
    return [
        (heads[name[:-TAIL]] + tails[name[-TAIL:]]) & 0xFFFFFFFF for _, name in topic.partitions
    ]


class _Memo(dict[str, int]):
    """A function of texts that remembers its values. Looking one up costs no call."""

    def __init__(self, function: Callable[[str], int]) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, text: str) -> int:
        value = self[text] = self.function(text)
        return value
