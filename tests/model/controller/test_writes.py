"""The writes of states as values, and the tables of transitions."""

from __future__ import annotations

import pytest

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.controller.state_machines import partitions, replicas
from watchkeeper.model.controller.state_machines.selectors import Choice
from watchkeeper.model.controller.state_machines.states import PartitionStatus, ReplicaStatus
from watchkeeper.model.controller.state_machines.variants import LastInSync
from watchkeeper.model.controller.state_machines.writes import (
    StateWrite,
    elected,
    first_state,
    without_replica,
)
from watchkeeper.model.registry.payloads import PartitionState
from watchkeeper.model.replication.registry import Leadership

P = Partition("clicks", "0")


def before(leader: int, *isr: int) -> Leadership:
    return Leadership(PartitionState(leader, isr, leader_epoch=4, controller_epoch=2), 7)


def after(leader: int, *isr: int) -> StateWrite:
    return StateWrite(P, PartitionState(leader, isr, leader_epoch=5, controller_epoch=3), 7)


def test_the_first_state_has_the_live_replicas_in_sync() -> None:
    write = first_state(P, (3, 1, 2), (1, 2), epoch=6)
    assert write == StateWrite(P, PartitionState(1, (1, 2), 0, 6), None)
    assert first_state(P, (3,), (1, 2), epoch=6) is None


def test_an_election_raises_the_leader_epoch_and_is_signed() -> None:
    assert elected(P, before(1, 1, 2), Choice(2, (2,)), epoch=3) == after(2, 2)


@pytest.mark.parametrize(
    ("broker", "leader", "isr", "last", "unclean", "expected"),
    [
        (2, 1, (1, 2), LastInSync.KEPT, True, after(1, 1)),
        (1, 1, (1, 2), LastInSync.KEPT, True, after(-1, 2)),
        (3, 1, (1, 2), LastInSync.KEPT, True, None),
        (1, 1, (1,), LastInSync.KEPT, True, after(-1, 1)),
        (1, 1, (1,), LastInSync.KEPT_IF_CLEAN, False, after(-1, 1)),
        (1, 1, (1,), LastInSync.KEPT_IF_CLEAN, True, after(-1)),
        (1, -1, (1,), LastInSync.KEPT, True, None),
    ],
)
def test_a_dead_replica_leaves_the_isr(
    broker: int,
    leader: int,
    isr: tuple[int, ...],
    last: LastInSync,
    unclean: bool,
    expected: StateWrite | None,
) -> None:
    """The last one stays, but as shipped only where no unclean election is allowed."""
    found = without_replica(P, broker, before(leader, *isr), 3, last, allows_unclean=unclean)
    assert found == expected


def test_the_legal_transitions_are_those_of_kafka() -> None:
    """PartitionStateMachine and ReplicaStateMachine of Kafka 0.8.2.2."""
    new, online, offline = PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE
    none = PartitionStatus.NON_EXISTENT
    assert {to: set(found) for to, found in partitions.TRANSITIONS.items()} == {
        new: {none},
        online: {new, online, offline},
        offline: {new, online, offline},
        none: {offline},
    }
    ineligible = ReplicaStatus.DELETION_INELIGIBLE
    assert {to: set(found) for to, found in replicas.TRANSITIONS.items()} == {
        ReplicaStatus.NEW: {ReplicaStatus.NON_EXISTENT},
        ReplicaStatus.ONLINE: {
            ReplicaStatus.NEW,
            ReplicaStatus.ONLINE,
            ReplicaStatus.OFFLINE,
            ineligible,
        },
        ReplicaStatus.OFFLINE: {
            ReplicaStatus.NEW,
            ReplicaStatus.ONLINE,
            ReplicaStatus.OFFLINE,
            ineligible,
        },
        ReplicaStatus.DELETION_STARTED: {ReplicaStatus.OFFLINE},
        ReplicaStatus.DELETION_SUCCESSFUL: {ReplicaStatus.DELETION_STARTED},
        ineligible: {ReplicaStatus.DELETION_STARTED},
        ReplicaStatus.NON_EXISTENT: {ReplicaStatus.DELETION_SUCCESSFUL},
    }
