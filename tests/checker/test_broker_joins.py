"""Brokers that join while members run: new ones, and a second one under an id that is in use."""

from __future__ import annotations

import pytest

from tests.support.checker.clusters import searched, small, violated
from watchkeeper.check.replay import replay_sim
from watchkeeper.checker.counterexample.explanation import counterexample_of
from watchkeeper.checker.search.liveness import judge, violation_of
from watchkeeper.model.counterexample.counterexample import Schedule
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.plan.bounds import Bounds, of_timeline
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.at_quiescence import COVER
from watchkeeper.scenarios import from_text, load

IN_USE = """
name: in-use
about: a second broker has the id of the first
clusters:
  main:
    zookeeper: {{servers: 1}}
    brokers: [{{id: 7, host: one.example}}, {{id: 7, name: second, host: {host}}}]
    layout: "{layout}"
    topics: {{clicks: {{{partitions}}}}}
groups: {{billing: {{consumers: 1, streams: {{clicks: 1}}}}}}
"""
JOIN = {"broker_join": 1}


def in_use(variant: str, host: str = "other.example") -> Plan:
    """A plan with two brokers of one id; on one host, they have one address too."""
    layout = "0.8" if variant == "kafka_08" else "0.7"
    partitions = "partitions: 1" if layout == "0.8" else "partitions_per_broker: 1"
    text = IN_USE.format(host=host, layout=layout, partitions=partitions)
    return from_text("in-use.yaml", text).plan(variant)


@pytest.mark.parametrize("reduces", [True, False])
@pytest.mark.parametrize("variant", ["hardened", "kafka_08", "kafka_07", "documented"])
def test_a_second_broker_under_an_id_in_use_disturbs_nothing(
    variant: str, *, reduces: bool
) -> None:
    """It detects the conflict and ends, in every interleaving with the members."""
    system, search, found = searched(in_use(variant), JOIN, begin="settled", reduces=reduces)

    assert (found.stopped, violated(found)) == ("", [])
    assert violation_of(judge(search)) is None
    phases = {
        system.values(search.state(number))["broker/second"].phase
        for number in range(len(search.good.values))
    }
    assert phases == {"absent", "running", "over"}


@pytest.mark.parametrize("variant", ["hardened", "kafka_07"])
def test_a_second_process_of_one_broker_is_another_process(variant: str) -> None:
    """`hardened` waits until the session of the first has ended; `kafka_07` compares starts."""
    plan = in_use(variant, "one.example")

    _, search, found = searched(plan, {**JOIN, "broker_crash": 1}, begin="settled")

    assert (found.stopped, violated(found)) == ("", [])
    assert violation_of(judge(search)) is None


def test_the_pages_take_the_registration_of_another_process_for_their_own() -> None:
    """Its session ends, and the broker that serves is registered nowhere.

    The simulation reaches the same violation by the same steps.
    """
    plan, faults = in_use("documented", "one.example"), {**JOIN, "broker_crash": 1}
    system, search, found = searched(plan, faults, begin="settled")
    violation = next(one for one in found.violations if one.what == COVER.name)
    bounds = Bounds(faults, begin="settled")

    told = counterexample_of(system, search, violation)

    violates, steps = told.violates, tuple(step.scheduled for step in told.steps)
    starts = [step.node for step in steps if step.does is StepKind.START]
    assert starts == ["broker/second"]
    replayed = replay_sim(plan, bounds, Schedule(violates, steps, ()))
    assert (replayed.conforms, replayed.reached) == (True, True), replayed.text


@pytest.mark.parametrize("begin", ["fresh", "settled"])
def test_hardened_finds_the_partitions_of_a_new_broker(begin: str) -> None:
    system, _, found = searched(small(brokers=2, partitions=1), JOIN, begin=begin)

    assert [member.name for member in system.members if not member.starts_first] == ["broker/1"]
    assert (found.stopped, violated(found)) == ("", [])


def test_bounds_of_a_timeline_let_late_brokers_join() -> None:
    for name in ("broker-id-conflict", "broker-added"):
        assert of_timeline(load(name).plan()).bounds.faults["broker_join"] == 1
    assert "broker_join" not in of_timeline(load("broker-crash").plan()).bounds.faults
