"""Every interleaving of clusters whose brokers elect a controller, with and without groups."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.checker.clusters import controlled, outcome_of, searched, violated
from watchkeeper.check import folder
from watchkeeper.check.battery import cells_of
from watchkeeper.check.browse import Browser
from watchkeeper.check.check import (
    WITHOUT_REPLICAS,
    bounds_of,
    claims_of,
    explore_scenario,
    explore_within,
)
from watchkeeper.check.replay import replay_sim
from watchkeeper.check.replay_file import replay
from watchkeeper.checker.cluster.control_plane import AT_REST, OF_WRITES
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.search.liveness import judge, violation_of
from watchkeeper.model.controller.state_machines import writes
from watchkeeper.model.controller.state_machines.writes import StateWrite
from watchkeeper.model.counterexample.counterexample import Counterexample
from watchkeeper.model.plan.bounds import Bounds, of_timeline, shrunk
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.control_plane.controllers import (
    ACTING,
    DEPOSED,
    EPOCHS,
    IN_SYNC,
    LED,
    ONE_CONTROLLER,
)
from watchkeeper.model.properties.ownership import OWN_NODES
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.scenarios import load

TOGETHER = [
    {"broker_crash": 1, "broker_restart": 1},
    {"broker_leave": 1},
    {"broker_expire": 2},
    {"broker_crash": 1, "broker_expire": 1},
    {"broker_crash": 1, "broker_lost_request": 1},
    {"broker_crash": 1, "broker_lost_reply": 1},
    {"broker_expire": 1, "broker_disconnect": 1},
    {"broker_expire": 1, "broker_late_request": 1},
]


def named(faults: dict[str, int]) -> str:
    return " and ".join(faults).replace("broker_", "")


@pytest.mark.parametrize("faults", TOGETHER, ids=named)
def test_hardened_holds_every_property_and_comes_to_rest(faults: dict[str, int]) -> None:
    _, search, found = searched(controlled("hardened"), faults, begin="settled")

    assert (found.stopped, violated(found)) == ("", [])
    assert found.exercised.at_rest > 0
    assert found.exercised.by_moves[DEPOSED.name] > 0
    live = judge(search)
    assert violation_of(live) is None
    assert live.is_inevitable


@pytest.mark.parametrize("variant", ["hardened", "kafka_08"])
def test_brokers_that_start_in_any_order_elect_one_controller(variant: str) -> None:
    _, search, found = searched(controlled(variant), begin="fresh")

    assert (found.stopped, violated(found)) == ("", [])
    assert found.progress.states > 5_000
    assert judge(search).is_inevitable


def test_a_broker_that_waits_for_its_earlier_session_is_no_circle() -> None:
    """0.8 tries to register again and again; the end of that session has to come."""
    faults = {"broker_crash": 1, "broker_restart": 1}
    _, search, found = searched(controlled("kafka_08"), faults, begin="settled")

    assert (found.stopped, violated(found)) == ("", [])
    assert violation_of(judge(search)) is None


# --- what is violated ------------------------------------------------------------------


CASES: dict[str, tuple[str, dict[str, int], str]] = {
    ONE_CONTROLLER.name: ("true", {"broker_crash": 1, "broker_lost_reply": 1}, "settled"),
    DEPOSED.name: ("false", {"broker_expire": 1, "broker_lost_reply": 1}, "settled"),
    IN_SYNC.name: ("true", {"broker_crash": 1, "broker_expire": 1}, "settled"),
    ACTING.name: ("false", {"broker_crash": 1, "broker_expire": 1}, "settled"),
    LED.name: ("true", {"broker_crash": 1, "broker_expire": 1}, "settled"),
}
"""Property -> whether unclean elections are allowed, the faults, and how the search begins."""


@cache
def nearest(name: str) -> tuple[Plan, Bounds, Counterexample]:
    """The nearest violation of a property by `kafka_08`."""
    unclean, faults, begin = CASES[name]
    plan = controlled("kafka_08", unclean=unclean)
    system, search, found = searched(plan, faults, begin=begin)
    violation = next(one for one in found.violations if one.what == name)
    told = counterexample_of(system, search, violation)
    return plan, Bounds(faults, begin="settled"), told


@pytest.mark.parametrize("name", CASES)
def test_kafka_08_violates_a_property_and_the_simulation_does_too(name: str) -> None:
    plan, bounds, told = nearest(name)

    replayed = replay_sim(plan, bounds, told.schedule)

    assert (replayed.conforms, replayed.reached) == (True, True), replayed.text


def test_a_counterexample_says_what_is_written() -> None:
    _, _, told = nearest(ONE_CONTROLLER.name)

    assert told.proof.startswith(f"in step {len(told.steps)}: broker/")
    assert told.proof.endswith(
        "signed the state of clicks/0 with epoch 1, which another broker has raised"
    )
    assert told.first_registry["controller epoch"] == "1"
    assert told.steps[-1].registry["controller epoch"] == "2"
    assert told.steps[-1].registry["clicks/0"].startswith("leader ")


def test_an_elected_broker_may_delete_the_election_of_another_one() -> None:
    """Its epoch exists already, so it gives up, and deletes `/controller` whose ever it is."""
    plan = controlled("kafka_08")
    system, search, found = searched(
        plan, {"broker_expire": 1}, begin="fresh", finds_all=False, reduces=False
    )
    told = counterexample_of(system, search, found.violations[0])

    assert told.violates == OWN_NODES.name
    replayed = replay_sim(plan, Bounds({"broker_expire": 1}), told.schedule)
    assert (replayed.conforms, replayed.reached) == (True, True), replayed.text


def test_a_leader_epoch_that_is_not_raised_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    raised = writes._next

    def next_state(*given: Any) -> StateWrite:
        write = raised(*given)
        return replace(write, state=replace(write.state, leader_epoch=0))

    monkeypatch.setattr(writes, "_next", next_state)
    _, _, found = searched(controlled(), {"broker_crash": 1}, begin="settled")

    assert violated(found) == [EPOCHS.name]


# --- reductions ------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["hardened", "kafka_08"])
@pytest.mark.parametrize(
    ("consumers", "faults"),
    [
        (0, {"broker_crash": 1, "broker_expire": 1}),
        (0, {"broker_expire": 1, "broker_late_request": 1}),
        (1, {"broker_crash": 1}),
        (1, {"expire": 1}),
        (2, {"broker_expire": 1}),
    ],
)
def test_reductions_change_no_verdict(
    variant: str, consumers: int, faults: dict[str, int]
) -> None:
    plan = controlled(variant, consumers=consumers)
    with_them, without = (
        outcome_of(*searched(plan, faults, begin="settled", reduces=reduces))
        for reduces in (True, False)
    )

    assert with_them == without
    assert with_them["complete"]


# --- plans -----------------------------------------------------------------------------


def test_a_role_of_a_timeline_is_a_fault_of_any_broker() -> None:
    suggested = of_timeline(load("controller-crash").plan())

    assert suggested.bounds.faults == {"broker_crash": 1, "broker_restart": 1}
    assert suggested.left_out == ()


def test_replicas_move_to_the_brokers_that_are_left() -> None:
    """A partition with one replica less would lose its ISR where the whole cluster does not."""
    whole = load("controller-crash").plan()
    [topic] = shrunk(whole, Bounds(brokers=2)).clusters[0].topics

    assert topic.replicas == ((0, (0, 1)), (1, (1, 0)), (2, (0, 1)))


def test_a_search_of_brokers_that_replicate_says_what_it_leaves_out() -> None:
    scenario = load("last-in-sync-crashes-unclean")
    plan = scenario.plan("hardened")
    bounds, remarks = bounds_of(scenario, plan)
    small = replace(bounds, begin="settled", brokers=2, partitions=1)

    found = explore_within(scenario, plan, small, remarks)

    assert WITHOUT_REPLICAS in found.remarks
    assert found.plan.clusters[0].replication is None
    assert found.searched.is_complete


def test_a_battery_of_brokers_alone_has_no_search_with_messages() -> None:
    cells, _ = cells_of(load("controller-crash").plan())

    assert {cell.bounds.messages for cell in cells} == {0}
    assert {"broker expiry", "broker late request"} <= {cell.row for cell in cells}
    assert cells[0].bounds.begin == "settled"


def test_the_properties_are_those_of_what_a_plan_has() -> None:
    names = [claim.name for claim in claims_of(controlled())]
    assert names == [
        OWN_NODES.name,
        *(claim.name for claim in (*OF_WRITES, *AT_REST)),
        "progress",
    ]
    assert set(names) < {claim.name for claim in claims_of(controlled(consumers=1))}


@pytest.mark.parametrize("variant", ["hardened", "kafka_08"])
def test_a_search_of_a_shipped_scenario_judges_every_property(variant: str) -> None:
    scenario = load("controller-crash")
    bounds = Bounds({"broker_crash": 1}, begin="settled", partitions=1, brokers=2)

    found = explore_within(scenario, scenario.plan(variant), bounds)

    assert found.verdict is Verdict.HOLDS, [str(finding) for finding in found.findings]


def test_the_file_of_a_counterexample_can_be_replayed(tmp_path: Path) -> None:
    """Its scenario has an action that waits for a step, and roles."""
    found = explore_scenario(load("controller-epoch-reply-lost"), "kafka_08")
    folder.write(Browser(found), tmp_path)

    [place] = tmp_path.rglob("counterexample.yaml")
    replayed = replay(place)

    assert (replayed.conforms, replayed.reached) == (True, True), replayed.text
