"""Placement: Kafka's own table, and what holds for every cluster."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scenarios.payload_samples import steady
from watchkeeper.model.admin.placement import Growth, grow, place, replace
from watchkeeper.model.admin.plan import BadRequest, Refused

TABLE = {
    **{0: (0, 1, 2), 1: (1, 2, 3), 2: (2, 3, 4), 3: (3, 4, 0), 4: (4, 0, 1)},
    **{5: (0, 2, 3), 6: (1, 3, 4), 7: (2, 4, 0), 8: (3, 0, 1), 9: (4, 1, 2)},
}
"""The table of Kafka's own test: 5 brokers, 3 replicas, start and shift 0."""

rings = st.sets(st.integers(0, 1000), min_size=1, max_size=9)
numbers = st.integers(0, 20)
clusters = rings.flatmap(
    lambda ring: st.tuples(st.just(ring), st.integers(1, len(ring)), numbers, numbers)
)
"""Brokers, replication factor, start and shift."""


def test_the_table_of_kafkas_own_test() -> None:
    assert place(range(5), 10, 3, start=0, shift=0) == TABLE


@given(clusters, st.integers(1, 40))
@steady
def test_a_partition_has_no_broker_twice_and_leaders_are_balanced(
    cluster: tuple[set[int], int, int, int], partitions: int
) -> None:
    """Leaders differ by one at most; each partition has as many brokers as requested."""
    ring, factor, start, shift = cluster

    placed = place(ring, partitions, factor, start=start, shift=shift)

    assert list(placed) == list(range(partitions))
    assert {len(replicas) for replicas in placed.values()} == {factor}
    assert all(len({*replicas}) == factor for replicas in placed.values())
    assert all({*replicas} <= ring for replicas in placed.values())
    leads = Counter(replicas[0] for replicas in placed.values())
    assert max(leads.values()) - min(leads[broker] for broker in ring) <= 1


@given(clusters, st.integers(1, 5))
@steady
def test_replicas_are_balanced_after_whole_rounds(
    cluster: tuple[set[int], int, int, int], rounds: int
) -> None:
    ring, factor, start, shift = cluster

    placed = place(ring, rounds * len(ring), factor, start=start, shift=shift)

    held = Counter(broker for replicas in placed.values() for broker in replicas)
    assert set(held.values()) == {rounds * factor}


def test_brokers_stand_in_the_ring_by_their_ids() -> None:
    """Not by their order in the argument, and not by the spelling of their numbers."""
    assert place([30, 9, 100], 3, 1, start=0, shift=0) == {0: (9,), 1: (30,), 2: (100,)}


@pytest.mark.parametrize(
    ("partitions", "factor", "error", "message"),
    [
        (0, 1, BadRequest, "0 partitions are requested; request at least 1"),
        (1, 0, BadRequest, "the replication factor is 0; it is at least 1"),
        (
            *(1, 4, Refused),
            "the replication factor is 4, and the brokers to place replicas on are 3; lower it, "
            "or start more brokers",
        ),
    ],
)
def test_counts_that_no_placement_has_are_refused(
    partitions: int, factor: int, error: type[Refused], message: str
) -> None:
    with pytest.raises(error) as refused:
        place([1, 2, 3], partitions, factor, start=0, shift=0)
    assert (str(refused.value), type(refused.value)) == (message, error)


# --- partitions that are added ---------------------------------------------------------


@given(clusters, st.integers(1, 25), st.integers(1, 25))
@steady
def test_a_topic_that_grows_is_placed_as_if_it_had_been_created_so(
    cluster: tuple[set[int], int, int, int], before: int, more: int
) -> None:
    """So its leaders are balanced over old and new partitions together."""
    ring, factor, start, shift = cluster
    old = place(ring, before, factor, start=start, shift=shift)

    new = grow(ring, old, more, Growth.CONTINUED)

    assert old | new == place(ring, before + more, factor, start=start, shift=shift)


def test_the_shipped_tool_takes_an_id_for_a_position() -> None:
    """Brokers 10, 20, 30: after three balanced partitions the new one is not led by broker 10."""
    old = place([10, 20, 30], 3, 2, start=0, shift=0)
    assert [replicas[0] for replicas in old.values()] == [10, 20, 30]

    assert grow([10, 20, 30], old, 1, Growth.SHIPPED) == {3: (20, 10)}
    assert grow([10, 20, 30], old, 1, Growth.CONTINUED) == {3: (10, 30)}


def test_the_shipped_tool_may_leave_leaders_unbalanced() -> None:
    """Two partitions led by 10 and 20 grow by one: shipped, broker 10 leads two, and 30 none."""
    old = place([10, 20, 30], 2, 1, start=0, shift=0)

    assert grow([10, 20, 30], old, 1, Growth.SHIPPED) == {2: (10,)}
    assert grow([10, 20, 30], old, 1, Growth.CONTINUED) == {2: (30,)}


@given(rings, rings, st.integers(1, 10), st.integers(1, 10), st.sampled_from(list(Growth)))
@steady
def test_partitions_are_added_also_when_the_brokers_are_others(
    then: set[int], now: set[int], before: int, more: int, how: Growth
) -> None:
    """The old partitions may be on brokers that have gone; the new ones are on those there."""
    factor = min(len(then), len(now), 3)
    old = place(then, before, factor, start=1, shift=2)

    new = grow(now, old, more, how)

    assert list(new) == list(range(before, before + more))
    assert all(len({*replicas}) == factor for replicas in new.values())
    assert all({*replicas} <= now for replicas in new.values())


def test_more_replicas_than_brokers_are_left_is_refused() -> None:
    with pytest.raises(Refused, match="the replication factor is 3, and the brokers"):
        grow([1, 2], {0: (1, 2, 3)}, 1, Growth.CONTINUED)


# --- brokers that are replaced ---------------------------------------------------------


@given(clusters, st.integers(1, 20), st.data())
@steady
def test_a_replaced_broker_has_nothing_and_the_rest_stays(
    cluster: tuple[set[int], int, int, int], partitions: int, data: st.DataObject
) -> None:
    """Only partitions of the broker change, and in them only its place."""
    ring, factor, start, shift = cluster
    off = data.draw(st.sampled_from(sorted(ring)))
    placed = place(ring, partitions, factor, start=start, shift=shift)
    assigned = {str(index): replicas for index, replicas in placed.items()}

    if factor == len(ring):
        if any(off in replicas for replicas in assigned.values()):
            with pytest.raises(Refused, match="no other registered broker is left"):
                replace(assigned, {off}, ring)
        return
    changed = replace(assigned, {off}, ring)

    assert set(changed) == {name for name, held in assigned.items() if off in held}
    for name, after in changed.items():
        assert len({*after}) == factor
        assert off not in after
        assert [(a, b) for a, b in zip(assigned[name], after, strict=True) if a != b] == [
            (off, after[assigned[name].index(off)])
        ]


def test_the_broker_with_the_fewest_replicas_takes_over() -> None:
    assigned = {"a": (1, 2), "b": (1, 3), "c": (2, 4), "d": (1, 2)}

    assert replace(assigned, {1}, [1, 2, 3, 4, 5]) == {"a": (5, 2), "b": (4, 3), "d": (3, 2)}
