"""The controller with the znodes of the design pages: the state of a partition is ephemeral."""

from __future__ import annotations

import pytest

from tests.sim.test_controller import cluster, last, states, verdict
from watchkeeper import Result, simulate
from watchkeeper.model.properties.control_plane.controllers import EPOCHS
from watchkeeper.model.properties.control_plane.replication import KEPT
from watchkeeper.model.properties.verdicts import Verdict

STATE = "/brokers/topics/clicks/partitions/0/state"


def ended_with(result: Result) -> list[str]:
    """Return the sessions with which the state of the first partition has ended."""
    return [
        event.session
        for event in result.trace
        for change in event.detail.get("did", ())
        if event.kind.startswith("session") and change[1] == STATE
    ]


def test_states_live_as_long_as_the_session_of_their_controller() -> None:
    """The next controller finds none, and begins with the assignment: the old epochs are lost."""
    scenario = cluster({"at": "3s", "crash": "controller"})
    result = simulate(scenario, variant="documented")
    assert len(ended_with(result)) == 1
    assert [one["leader_epoch"] for one in states(result)] == [0, 0]
    assert last(result) == (1, [1], 0, 2)
    assert verdict(result, EPOCHS.name) is Verdict.VIOLATED


def test_a_controller_that_lives_keeps_the_states() -> None:
    """The death of another broker is handled as 0.8.2.2 does it."""
    scenario = cluster({"at": "3s", "crash": "broker/1"}, brokers=4)
    documented = simulate(scenario, variant="documented")
    assert ended_with(documented) == []
    assert states(documented) == states(simulate(scenario, variant="kafka_08"))
    assert verdict(documented, EPOCHS.name) is not Verdict.VIOLATED


@pytest.mark.parametrize(("variant", "expected"), [("documented", True), ("kafka_08", False)])
def test_a_replica_without_the_messages_leads(variant: str, expected: bool) -> None:
    """A new state has every live replica in its ISR, and the first one leads, whatever it has."""
    result = simulate("partition-moves-controller-crashes", variant=variant, seed=1)
    assert (verdict(result, KEPT.name) is Verdict.VIOLATED) is expected
