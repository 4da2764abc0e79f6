"""States with the same future are merged: the search finds the same with fewer of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from watchkeeper.checker.replication.partition import (
    Bounds,
    Fault,
    LeaderAndIsr,
    Partition,
    Replica,
    Steps,
    initial,
)
from watchkeeper.checker.replication.representatives import Representatives
from watchkeeper.checker.replication.search import PROPERTIES, ReplicationSystem, search_steps
from watchkeeper.checker.search.search import Search, SearchOptions
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.truncation import RULES, TruncationRule
from watchkeeper.model.replication.variants import HARDENED, KAFKA_08, ReplicationVariant

TWO = Bounds(replicas=2, log=1, records=1, epochs=2)
THREE = Bounds(replicas=3, log=1, records=1, epochs=1)
LARGER = Bounds(replicas=3, log=1, records=1, epochs=2)
FAULTS = [frozenset[Fault](), *(frozenset({fault}) for fault in Fault)]
VARIANTS = (KAFKA_08, HARDENED)
ALL = frozenset({0, 1, 2})
ISR = {name: PROPERTIES[name] for name in ("strong ISR", "weak ISR")}


def under(rule: TruncationRule) -> ReplicationVariant:
    """Return 0.8.2.2 with another truncation rule."""
    return replace(KAFKA_08, truncation=rule)


def named(one: ReplicationVariant | frozenset[Fault]) -> str:
    """Return the name of a parameter."""
    if isinstance(one, ReplicationVariant):
        return f"{one.name}-{one.truncation.name}"
    return "-".join(fault.name for fault in one) or "no fault"


def seen(steps: Steps, *, merges: bool) -> set[Partition]:
    """Return every state that a search sees."""
    system = ReplicationSystem(steps, {}, merges=merges)
    searched = Search(system, SearchOptions(reduces=False, keeps_edges=False)).run()
    assert searched.is_complete
    return set(system.states.values)


def same_classes(steps: Steps) -> tuple[int, int]:
    """Check the classes of a whole search; return the states with and without merging."""
    every, merged = seen(steps, merges=False), seen(steps, merges=True)
    representatives = Representatives(steps)
    assert {representatives.of(state) for state in every} == merged
    return len(merged), len(every)


def nearest(steps: Steps, *, merges: bool) -> dict[str, int]:
    """Violated property -> the number of steps to its nearest violation."""
    found = search_steps(steps, ISR, merges=merges).counterexamples
    return {name: len(path) for name, path in found.items()}


@pytest.mark.parametrize("faults", FAULTS, ids=named)
@pytest.mark.parametrize("bounds", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_a_merged_search_sees_every_class_and_no_other(
    variant: ReplicationVariant, bounds: Bounds, faults: frozenset[Fault]
) -> None:
    """The representatives of all reachable states are the states that a merged search sees."""
    steps = Steps(variant, bounds._replace(faults=faults))

    merged, every = same_classes(steps)

    assert merged < every / 1.8
    assert nearest(steps, merges=True) == nearest(steps, merges=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "faults"),
    [
        *((variant, faults) for variant in VARIANTS for faults in FAULTS),
        *((under(rule), faults) for rule in RULES[1:4] for faults in FAULTS[:2]),
    ],
    ids=named,
)
def test_more_epochs_and_every_rule(
    variant: ReplicationVariant, faults: frozenset[Fault]
) -> None:
    """Requests of several epochs are late, lost and taken again."""
    steps = Steps(variant, LARGER._replace(faults=faults))

    merged, every = same_classes(steps)

    assert merged < every / 5
    assert nearest(steps, merges=True) == nearest(steps, merges=False)


@pytest.mark.slow
@pytest.mark.parametrize("faults", FAULTS, ids=named)
@pytest.mark.parametrize("variant", VARIANTS, ids=named)
def test_two_records(variant: ReplicationVariant, faults: frozenset[Fault]) -> None:
    """Records that were appended in one order or the other are merged, too."""
    bounds = TWO._replace(log=2, records=2, faults=faults)

    merged, every = same_classes(Steps(variant, bounds))

    assert merged < every / 2


@pytest.mark.slow
def test_several_faults_together() -> None:
    """Three faults, each once, of a process without memory."""
    faults = frozenset({Fault.CRASH, Fault.REPLY, Fault.DEPOSED})

    same_classes(Steps(HARDENED, LARGER._replace(epochs=1, faults=faults)))


def test_a_merge_too_many_is_noticed() -> None:
    """Without requests that are still of use, the search misses states."""

    class Forgets(Representatives):
        def of(self, state: Partition) -> Partition:
            return super().of(state._replace(sent=frozenset()))

    steps = Steps(HARDENED, THREE)
    system = ReplicationSystem(steps, {})
    system.represented_by = Forgets(steps).of
    Search(system, SearchOptions(reduces=False, keeps_edges=False)).run()

    missed = {Forgets(steps).of(state) for state in seen(steps, merges=False)}
    assert missed > set(system.states.values)


def test_a_run_along_representatives_is_a_run() -> None:
    """The sentences of a merged counterexample lead from the first state to a violation."""
    steps = Steps(KAFKA_08, LARGER)
    path = search_steps(steps, ISR, merges=True).counterexamples["strong ISR"]

    state = initial(LARGER.replicas)
    for sentence in path:
        [state] = [step.after for step in steps.of(state) if step.text == sentence]
    assert not ISR["strong ISR"](state)


# --- what is merged ------------------------------------------------------------------------


def partition(*, sent: frozenset[LeaderAndIsr] = frozenset()) -> Partition:
    """Return three replicas in epoch 1: 0 leads, the others follow, and all logs differ."""
    cell = LeaderAndIsr(1, 0, ALL)
    replicas = tuple(
        Replica(tuple(Record(1, number) for number in range(end)), 0, cell) for end in (2, 1, 0)
    )
    return Partition(replicas, cell, sent, 2)


def permuted(state: Partition, order: tuple[int, ...]) -> Partition:
    """Return the state with other numbers of the replicas; `order` is new number -> old."""

    def named(cell: LeaderAndIsr) -> LeaderAndIsr:
        leader = NO_LEADER if cell.leader == NO_LEADER else order.index(cell.leader)
        return LeaderAndIsr(cell.epoch, leader, frozenset(map(order.index, cell.isr)))

    replicas = tuple(
        state.replicas[old]._replace(believes=named(state.replicas[old].believes))
        for old in order
    )
    return state._replace(
        replicas=replicas, cell=named(state.cell), sent=frozenset(map(named, state.sent))
    )


def test_replicas_are_interchangeable() -> None:
    """All six orders of three replicas have one representative."""
    representatives = Representatives(Steps(HARDENED, LARGER))
    state = partition(sent=frozenset({LeaderAndIsr(1, 0, ALL), LeaderAndIsr(0, 2, ALL)}))

    found = {representatives.of(permuted(state, order)) for order in permutations(range(3))}

    assert len(found) == 1


def test_records_are_interchangeable() -> None:
    """A log of the records 1 and 0 is one of 0 and 1, but not one with a record twice."""
    representatives = Representatives(Steps(HARDENED, LARGER))
    first, second, third = (replica.log for replica in partition().replicas)
    swapped = tuple(Record(1, 1 - record.number) for record in first)
    logs = [(first, second, third), (swapped, swapped[:1], third), (first, swapped[:1], third)]
    states = [
        partition()._replace(
            replicas=tuple(
                replica._replace(log=log)
                for replica, log in zip(partition().replicas, each, strict=True)
            )
        )
        for each in logs
    ]

    same, as_well, other = map(representatives.of, states)
    assert same == as_well != other


def test_what_a_follower_remembers_of_the_isr_is_dead() -> None:
    """Only a leader reads it."""
    representatives = Representatives(Steps(HARDENED, LARGER))
    state = partition()

    def remembers(number: int) -> Partition:
        replica = state.replicas[number]
        believes = replica.believes._replace(isr=frozenset({0, 1}))
        return representatives.of(state.with_replica(number, replica._replace(believes=believes)))

    assert remembers(1) == representatives.of(state) != remembers(0)


@pytest.mark.parametrize(
    ("variant", "left", "epoch", "is_kept"),
    [
        (HARDENED, Fault.CRASH, 0, False),
        (HARDENED, Fault.CRASH, 1, True),
        (KAFKA_08, Fault.REPLY, 0, False),
        (KAFKA_08, Fault.REPLY, 1, False),
        (KAFKA_08, Fault.CRASH, 0, True),
    ],
)
def test_a_request_is_kept_while_it_can_be_taken(
    variant: ReplicationVariant, left: Fault, epoch: int, *, is_kept: bool
) -> None:
    """A process of 0.8 that restarts takes any; one of `hardened` that of ZooKeeper's epoch."""
    representatives = Representatives(Steps(variant, LARGER))
    state = partition(sent=frozenset({LeaderAndIsr(epoch, 0, ALL)}))

    kept = representatives.of(state._replace(left=frozenset({left}))).sent

    assert bool(kept) == is_kept


def test_the_search_by_kip_320_forgets_requests_of_a_leader_that_went_on() -> None:
    """No follower finds it in that epoch again; by the rule of 0.8 a follower does not look."""
    state = partition(sent=frozenset({LeaderAndIsr(0, 0, ALL)}))
    behind = state.with_replica(
        1, state.replicas[1]._replace(believes=LeaderAndIsr(-1, NO_LEADER, frozenset()))
    )

    kept = {
        variant.name: len(Representatives(Steps(variant, LARGER)).of(behind).sent)
        for variant in VARIANTS
    }

    assert kept == {"kafka_08": 1, "hardened": 0}
