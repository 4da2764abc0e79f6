"""Who gets which partition, dealt as Kafka's sources deal: slowly, and one partition at a time.

It shares nothing with `model.group.assignment`, which is held against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Place = tuple[str, str]
"""A topic and the name of a partition."""
Dealt = dict[str, set[Place]]
"""Stream -> its partitions."""


def dealt(
    assignor: str, partitions: Mapping[str, Sequence[str]], streams: Mapping[str, Sequence[str]]
) -> Dealt:
    """Deal the partitions of each topic to its streams; both are in their order.

    `roundrobin` and `roundrobin_11` deal alike where every topic has the same streams, and
    Kafka 0.8.2 refuses to deal where not.
    """
    if assignor in ("roundrobin", "roundrobin_11"):
        return _in_turn(partitions, streams)
    found: Dealt = {}
    for topic, names in partitions.items():
        for at, stream in enumerate(streams[topic]):
            first, end = _slice(assignor, len(names), len(streams[topic]), at)
            found.setdefault(stream, set()).update((topic, name) for name in names[first:end])
    return found


def _slice(assignor: str, partitions: int, streams: int, at: int) -> tuple[int, int]:
    each, extra = divmod(partitions, streams)
    if assignor == "range_floor":
        return at * each, (at + 1) * each
    if assignor == "range_ceil":
        each += extra > 0
        return at * each, (at + 1) * each
    first = sum(each + (before < extra) for before in range(at))
    return first, first + each + (at < extra)


def _in_turn(
    partitions: Mapping[str, Sequence[str]], streams: Mapping[str, Sequence[str]]
) -> Dealt:
    """Deal in the order of hashes; a stream that does not want a topic loses its turn."""
    places = [(topic, name) for topic, names in partitions.items() for name in names]
    turns = sorted({stream for topic in partitions for stream in streams[topic]})
    found: Dealt = {stream: set() for stream in turns}
    at = 0
    for topic, name in sorted(places, key=lambda place: java_hash(f"[{place[0]},{place[1]}]")):
        if not streams[topic]:
            continue
        while turns[at % len(turns)] not in streams[topic]:
            at += 1
        found[turns[at % len(turns)]].add((topic, name))
        at += 1
    return found


def java_hash(text: str) -> int:
    """The hash of an ASCII text in Java, as a signed number of 32 bits."""
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) % 2**32
    return value - 2**32 if value >= 2**31 else value
