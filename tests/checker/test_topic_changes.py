"""Topics that are created, grown and deleted while members run, in every interleaving."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.support.checker.clusters import searched, small, violated
from tests.support.checker.schedules import counterexample
from watchkeeper.check.replay import replay_sim
from watchkeeper.checker.search.liveness import judge, violation_of
from watchkeeper.model.counterexample.counterexample import Schedule
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.plan.bounds import TOPIC_CHANGES, Bounds
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.at_quiescence import COVER
from watchkeeper.scenarios import from_text

Layout = Literal["0.7", "0.8"]


@pytest.mark.parametrize("layout", ["0.7", "0.8"])
@pytest.mark.parametrize("change", TOPIC_CHANGES)
@pytest.mark.parametrize("begin", ["fresh", "settled"])
def test_hardened_follows_every_change(layout: Layout, change: str, begin: str) -> None:
    plan = small(layout=layout, partitions=1 if layout == "0.7" else 2)

    _, search, found = searched(plan, {change: 1}, begin=begin)

    assert (found.stopped, violated(found)) == ("", [])
    assert violation_of(judge(search)) is None
    assert found.exercised.at_rest > 0, "a group came to rest with partitions"


@pytest.mark.parametrize(
    ("variant", "layout", "change"),
    [("kafka_07", "0.7", "add_partitions"), ("kafka_08", "0.8", "add_partitions")],
)
def test_new_partitions_that_members_do_not_watch_stay_without_owner(
    variant: str, layout: Layout, change: str
) -> None:
    """The simulation reaches the same violation by the same steps."""
    plan, bounds = small(variant, layout=layout), Bounds({change: 1}, begin="settled")

    violates, steps = counterexample(plan, bounds)

    assert violates == COVER.name
    assert StepKind.CHANGE_TOPIC in {step.does for step in steps}
    replayed = replay_sim(plan, bounds, Schedule(violates, steps, ()))
    assert (replayed.conforms, replayed.reached) == (True, True), replayed.text


def test_a_created_topic_does_not_exist_before() -> None:
    """Without the order there is nothing to fetch; with it, members fetch the topic."""
    _, _, found = searched(small(), {"create_topic": 1}, begin="settled")

    assert 0 < found.exercised.at_rest < found.terminal_states


def test_a_restarted_broker_keeps_the_partitions_that_were_added() -> None:
    faults = {"add_partitions": 1, "broker_crash": 1, "broker_restart": 1}

    _, _, found = searched(small(partitions=1), faults, begin="settled")

    assert (found.stopped, violated(found)) == ("", [])


FILTER = """
name: created
about: a filter subscribes to a topic that does not exist yet
clusters: {main: {zookeeper: {servers: 1}, brokers: 1,
                  topics: {clicks: {partitions_per_broker: 1}}}}
groups: {billing: {cluster: main, consumers: 2, filter: {white_list: ".*", streams: 1}}}
timeline: [{at: 1s, create_topic: views, partitions_per_broker: 1}]
"""


def filtered(variant: str) -> Plan:
    return from_text("created.yaml", FILTER).plan(variant)


def test_the_topic_is_that_of_the_timeline() -> None:
    system, _, found = searched(filtered("hardened"), {"create_topic": 1}, begin="settled")

    assert [topic.name for topic in system.topic_changes.initial_topics] == ["clicks"]
    assert (found.stopped, violated(found)) == ("", [])
    assert any("views" in path for tree in system.service.trees for path in tree.nodes)
