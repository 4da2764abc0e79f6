"""Which brokers replicate which partition.

The algorithm is that of Kafka 0.8. Brokers stand in a ring, by their ids. Partition p is led by
the broker at p + start. Its other replicas follow it in the ring, after a gap; the gap (*shift*)
grows by one whenever the leaders have gone round once, so that the followers of a broker's
partitions are spread over the others. `start` and `shift` are random in a cluster and arguments
here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from watchkeeper.model.admin.plan import BadRequest, Refused

Assignment = dict[int, tuple[int, ...]]
"""Partition -> replicas, the preferred leader first."""


class Growth(StrEnum):
    """How the partitions that are added to a topic are placed."""

    CONTINUED = "continued"
    """As if the topic had been created with all of them."""
    SHIPPED = "shipped"
    """As the tool of 0.8 does: from the place whose *position* is the *id* of a broker."""


def place(
    brokers: Iterable[int],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first: int = 0,
) -> Assignment:
    """Place this many partitions, numbered from `first`."""
    ring = sorted(brokers)
    _check_counts(len(ring), partitions, replication_factor)
    placed: Assignment = {}
    for index in range(first, first + partitions):
        if index > 0 and index % len(ring) == 0:
            shift += 1
        head = (index + start) % len(ring)
        followers = (
            ring[_follower(head, shift, number, len(ring))]
            for number in range(replication_factor - 1)
        )
        placed[index] = (ring[head], *followers)
    return placed


def _follower(head: int, shift: int, number: int, size: int) -> int:
    """The position of a follower: never that of the head, and another for each number."""
    return (head + 1 + (shift + number) % (size - 1)) % size


def _check_counts(brokers: int, partitions: int, replication_factor: int) -> None:
    if partitions < 1:
        raise BadRequest(f"{partitions} partitions are requested; request at least 1")
    if replication_factor < 1:
        raise BadRequest(f"the replication factor is {replication_factor}; it is at least 1")
    if replication_factor > brokers:
        raise Refused(
            f"the replication factor is {replication_factor}, and the brokers to place replicas "
            f"on are {brokers}; lower it, or start more brokers"
        )


def grow(
    brokers: Iterable[int], existing: Mapping[int, Sequence[int]], more: int, how: Growth
) -> Assignment:
    """Place partitions that are added to those of a topic, with the replication factor of its
    first one.

    Shipped, an id is used as a position: with the brokers 10, 20 and 30, a first partition led by
    broker 10 makes the new ones begin at position 10 mod 3, wherever the old ones ended.
    """
    ring = sorted(brokers)
    many = len(existing)
    pattern = existing[min(existing)]
    if how is Growth.SHIPPED:
        start = shift = pattern[0]
    else:
        start, shift = _begun_at(ring, pattern, min(existing))
        shift += max(many - 1, 0) // max(len(ring), 1)
    return place(ring, more, len(pattern), start=start, shift=shift, first=many)


def _begun_at(ring: Sequence[int], pattern: Sequence[int], index: int) -> tuple[int, int]:
    """The start and the shift by which `place` gives a partition these replicas.

    A broker that has gone counts as the next one in the ring.
    """
    size = max(len(ring), 1)
    head = bisect_left(ring, pattern[0]) % size
    start = (head - index) % size
    if len(pattern) < 2 or size < 2:
        return start, start
    second = bisect_left(ring, pattern[1]) % size
    return start, (second - head - 1) % size


def replace(
    assigned: Mapping[str, Sequence[int]], off: Collection[int], brokers: Iterable[int]
) -> dict[str, tuple[int, ...]]:
    """Return the partitions that have a replica on `off`, each with other brokers in its place.

    The rest of a partition stays where it is, also its order. The broker with the fewest replicas
    takes one over; of several, that with the lowest id.
    """
    heirs = sorted({*brokers} - {*off})
    load = Counter(broker for replicas in assigned.values() for broker in replicas)
    changed: dict[str, tuple[int, ...]] = {}
    for name, replicas in assigned.items():
        if {*off}.isdisjoint(replicas):
            continue
        after = list(replicas)
        for at, broker in enumerate(replicas):
            if broker in off:
                free = [heir for heir in heirs if heir not in after]
                if not free:
                    raise Refused(
                        f"{name} is on {', '.join(map(str, replicas))}, and no other registered "
                        "broker is left to take it over; start one more, or lower its "
                        "replication factor by --file"
                    )
                after[at] = min(free, key=lambda heir: (load[heir], heir))
                load[after[at]] += 1
        changed[name] = tuple(after)
    return changed
