"""Every interleaving of two brokers that elect a controller, with a fault or two."""

from __future__ import annotations

import pytest

from watchkeeper.checker.control_plane.brokers import search
from watchkeeper.model.actor.retry import Requests
from watchkeeper.model.controller import controller, election
from watchkeeper.model.controller.controller import ControllerState
from watchkeeper.model.controller.election import NO_CONTROLLER, Elected
from watchkeeper.model.controller.state_machines.reign import ControllerSettings
from watchkeeper.model.controller.state_machines.variants import HARDENED, KAFKA_08


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {"crash": 1},
        {"disconnect": 1},
        {"lost_request": 1},
        {"lost_reply": 1},
        {"late_request": 1},
        pytest.param({"crash": 1, "lost_reply": 1}, marks=pytest.mark.slow),
    ],
    ids=" and ".join,
)
def test_hardened_holds(faults: dict[str, int]) -> None:
    found = search(HARDENED, faults)
    assert found.holds, found


@pytest.mark.slow
@pytest.mark.parametrize("faults", [{"expire": 1}, {"crash": 1, "restart": 1}], ids=" and ".join)
def test_hardened_holds_through_new_sessions(faults: dict[str, int]) -> None:
    found = search(HARDENED, faults)
    assert found.holds, found


def test_kafka_08_holds_without_a_fault() -> None:
    found = search(KAFKA_08, {})
    assert found.holds, found


def test_kafka_08_forgets_a_broker_that_is_in_the_list_and_cannot_be_read() -> None:
    """KAFKA-3085: it is neither new nor dead nor alive, and its partitions stay with it."""
    found = search(KAFKA_08, {"crash": 1})
    assert found.violated == "live leaders"
    assert "get /brokers/ids/1 -> NoNode" in str(found)


def test_kafka_08_names_a_controller_that_does_not_act() -> None:
    """KAFKA-4229: it is elected in a new session, and notified of that session afterwards."""
    found = search(KAFKA_08, {"expire": 1}, at_rest=("acting controller",))
    assert found.violated == "acting controller"


@pytest.mark.slow
def test_kafka_08_writes_after_its_successor_has_read() -> None:
    """The successor remembers another state than the registry has."""
    found = search(KAFKA_08, {"expire": 1}, at_rest=("known state",))
    assert found.violated == "known state"


async def _reads_once(me: ControllerSettings, requests: Requests) -> Elected:
    """The election of `hardened` that does not look again where the winner has gone."""
    if await election.controller_in_registry(requests) != NO_CONTROLLER:
        return Elected(await election.controller_in_registry(requests))
    return await election._elect_in_one_multi(me, requests)


def test_an_election_that_does_not_look_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two reads the winner dies, and the second read takes its notification away."""

    async def elect(
        me: ControllerSettings, requests: Requests, state: ControllerState, topic: str
    ) -> ControllerState:
        elected = await _reads_once(me, requests)
        return ControllerState(state.due, elected.broker, elected.context)

    monkeypatch.setitem(controller._TASKS, controller.Task.ELECT, elect)  # type: ignore[attr-defined]
    monkeypatch.setattr(controller, "_elect", elect)
    assert search(HARDENED, {"crash": 1}).violated == "acting controller"


def test_a_broker_that_only_notes_its_own_name_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply to its election is lost; it finds itself named, and does not act."""
    monkeypatch.setattr(controller, "_is_settled", lambda me, state, present: True)
    found = search(HARDENED, {"crash": 1, "lost_reply": 1})
    assert found.violated == "acting controller"
