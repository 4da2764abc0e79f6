"""What controllers send, and what brokers carry out: runs that hold and runs that do not."""

from __future__ import annotations

from bench.control_plane_bugs import replicas
from bench.control_plane_bugs.bugs_of_08 import TWO_SENDERS
from bench.control_plane_bugs.replays import LATE_METADATA

from watchkeeper import Result, simulate
from watchkeeper.model.properties.control_plane.requests import NONE_DEPOSED, ONE_SENDER
from watchkeeper.model.properties.verdicts import Property, Verdict


def verdict(result: Result, claim: Property) -> Verdict:
    """Return the verdict of a run on a property."""
    return result.judgement.finding(claim.name).verdict


def test_no_state_is_written_and_two_brokers_send_in_an_epoch() -> None:
    """Where *one controller an epoch* sees nothing: it judges the states that are written."""
    shipped = simulate(TWO_SENDERS, variant="kafka_08", seed=1)
    assert shipped.judgement.violated() == [ONE_SENDER.name]
    assert verdict(simulate(TWO_SENDERS, variant="hardened", seed=1), ONE_SENDER) is Verdict.HOLDS


def test_brokers_that_take_requests_of_deposed_controllers_are_found() -> None:
    [bug] = [each for each in replicas.BUGS if each.name == "KAFKA-532"]
    held = simulate(LATE_METADATA, variant="kafka_08", seed=1)
    with bug.apply():
        found = simulate(LATE_METADATA, variant="kafka_08", seed=1)
    assert verdict(held, NONE_DEPOSED) is Verdict.HOLDS
    assert verdict(found, NONE_DEPOSED) is Verdict.VIOLATED


def test_a_run_with_one_reign_says_nothing_of_deposed_controllers() -> None:
    result = simulate("partition-moves", variant="hardened", seed=1)
    assert verdict(result, ONE_SENDER) is Verdict.HOLDS
    assert verdict(result, NONE_DEPOSED) is Verdict.UNKNOWN
