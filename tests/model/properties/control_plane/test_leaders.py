"""Who leads at rest: runs that hold, runs that do not, and runs that say nothing."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from bench.control_plane_bugs.bugs_of_08 import ONLY_REPLICA_ON_THE_CONTROLLER
from bench.control_plane_bugs.mutant import Scenario, nothing

from watchkeeper import simulate
from watchkeeper.model.controller import controller, preferred
from watchkeeper.model.properties.control_plane.leaders import NO_DEAD_LEADERS, PREFERRED
from watchkeeper.model.properties.verdicts import Finding, Property, Verdict


def finding(scenario: str | Scenario, claim: Property, variant: str = "hardened") -> Finding:
    """Return what a run says of a property."""
    result = simulate(scenario, variant=variant, seed=1)
    [found] = [each for each in result.findings if each.claim is claim]
    return found


@pytest.mark.parametrize("variant", ["kafka_08", "hardened"])
@pytest.mark.parametrize("name", ["leaders-balanced", "preferred-leader-dead"])
def test_preferred_replicas_lead(name: str, variant: str) -> None:
    """After a calm, and after a request."""
    assert finding(name, PREFERRED, variant).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("name", "where", "what", "shape"),
    [
        (
            "leaders-balanced",
            controller,
            "rebalance_leaders",
            "a preferred replica that does not lead",
        ),
        (
            "preferred-leader-dead",
            preferred,
            "elect_preferred",
            "a preferred replica that does not lead",
        ),
        (
            "preferred-leader-dead",
            preferred,
            "_delete_request",
            "a preferred election that is left",
        ),
    ],
    ids=["never looks", "does not elect", "leaves the request"],
)
def test_a_controller_that_does_not_care_is_found(
    name: str, where: object, what: str, shape: str
) -> None:
    with patch.object(where, what, nothing):
        found = finding(name, PREFERRED)
    assert found.verdict is Verdict.VIOLATED
    assert found.shape == shape


def test_a_run_in_which_no_controller_looks_says_nothing() -> None:
    """The scenario has no request, and ends before a controller looks by itself."""
    assert finding("partition-moves", PREFERRED).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("variant", "verdict"), [("kafka_08", Verdict.VIOLATED), ("hardened", Verdict.HOLDS)]
)
def test_a_dead_leader_is_found(variant: str, verdict: Verdict) -> None:
    found = finding(ONLY_REPLICA_ON_THE_CONTROLLER, NO_DEAD_LEADERS, variant)
    assert found.verdict is verdict


def test_a_run_in_which_each_partition_can_be_led_says_nothing_of_dead_leaders() -> None:
    assert finding("partition-moves", NO_DEAD_LEADERS).verdict is Verdict.UNKNOWN
