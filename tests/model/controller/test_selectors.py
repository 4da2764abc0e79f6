"""Who leads next: the four leader selectors, as tables of cases."""

from __future__ import annotations

import pytest

from watchkeeper.model.controller.state_machines.selectors import (
    Choice,
    NoLeader,
    NotNeeded,
    when_offline,
    when_preferred,
    when_reassigned,
    when_shutting_down,
)
from watchkeeper.model.registry.payloads import PartitionState


def state(leader: int, *isr: int) -> PartitionState:
    return PartitionState(leader, isr, leader_epoch=4, controller_epoch=2)


@pytest.mark.parametrize(
    ("replicas", "isr", "live", "choice"),
    [
        ((1, 2, 3), (3, 2), (2, 3), Choice(2, (3, 2))),  # the order of the assignment decides
        ((1, 2, 3), (1, 2, 3), (2, 3), Choice(2, (2, 3))),  # the dead leave the ISR
        ((1, 2), (1,), (1, 2), Choice(1, (1,))),  # the leader may come back
        ((1, 2), (1,), (2,), Choice(2, (2,), is_clean=False)),
        ((1, 2, 3), (), (2, 3), Choice(2, (2,), is_clean=False)),
    ],
)
def test_an_offline_partition(
    replicas: tuple[int, ...], isr: tuple[int, ...], live: tuple[int, ...], choice: Choice
) -> None:
    assert when_offline(replicas, state(1, *isr), live, allows_unclean=True) == choice


def test_without_unclean_elections_only_the_isr_may_lead() -> None:
    with pytest.raises(NoLeader, match=r"no replica of the ISR \[1\] is alive"):
        when_offline((1, 2), state(1, 1), (2,), allows_unclean=False)


def test_no_replica_is_alive() -> None:
    with pytest.raises(NoLeader, match=r"no replica of \[1, 2\] is alive"):
        when_offline((1, 2), state(1, 1, 2), (3,), allows_unclean=True)


def test_a_reassigned_partition() -> None:
    """The first target that is alive and in sync leads; the ISR stays."""
    assert when_reassigned((4, 5), state(1, 1, 5, 4), (1, 5)) == Choice(5, (1, 5, 4))
    with pytest.raises(NoLeader):
        when_reassigned((4, 5), state(1, 1, 4), (1, 5))


def test_the_preferred_replica() -> None:
    assert when_preferred((1, 2), state(2, 2, 1), (1, 2)) == Choice(1, (2, 1))
    with pytest.raises(NotNeeded):
        when_preferred((1, 2), state(1, 2, 1), (1, 2))
    with pytest.raises(NoLeader, match="dead or not in the ISR"):
        when_preferred((1, 2), state(2, 2), (1, 2))
    with pytest.raises(NoLeader, match="dead or not in the ISR"):
        when_preferred((1, 2), state(2, 2, 1), (2,))


def test_a_broker_that_shuts_down() -> None:
    """The head of the rest of the ISR leads, dead or alive."""
    assert when_shutting_down(state(1, 1, 3, 2), (1,)) == Choice(3, (3, 2))
    with pytest.raises(NoLeader):
        when_shutting_down(state(1, 1), (1,))
