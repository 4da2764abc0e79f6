"""Two members with one configured id, in the simulation and in every interleaving."""

from __future__ import annotations

import pytest

from tests.support.checker.clusters import searched, small, violated
from tests.support.checker.schedules import counterexample
from watchkeeper import simulate
from watchkeeper.check.replay import replay_sim
from watchkeeper.checker.search.liveness import judge, violation_of
from watchkeeper.model.counterexample.counterexample import Schedule
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.at_quiescence import COVER
from watchkeeper.model.properties.ownership import SINGLE, TRUTHFUL
from watchkeeper.scenarios import from_text, load

SHARED = """
name: shared
about: two members of a group have one id
clusters: {main: {zookeeper: {servers: 1}, brokers: 1,
                  topics: {clicks: {partitions_per_broker: 2}}}}
groups:
  billing:
    consumers: [{host: worker.example}, {host: worker.example}]
    streams: {clicks: 1}
    config: {consumer.id: worker}
"""
TAKEN_OVER = sorted([COVER.name, SINGLE.name, TRUTHFUL.name])


def shared(variant: str) -> Plan:
    return from_text("shared.yaml", SHARED).plan(variant)


@pytest.mark.parametrize("variant", ["hardened", "kafka_08", "documented"])
@pytest.mark.parametrize("reduces", [True, False])
def test_a_member_without_its_id_is_no_member(variant: str, *, reduces: bool) -> None:
    """It waits, tries again or ends; the group is at rest without it, and judged."""
    _, search, found = searched(shared(variant), reduces=reduces)

    assert (found.stopped, violated(found)) == ("", [])
    assert violation_of(judge(search)) is None
    assert found.exercised.at_rest > 0


@pytest.mark.parametrize("reduces", [True, False])
def test_the_second_member_takes_over_when_the_first_is_gone(*, reduces: bool) -> None:
    _, search, found = searched(shared("hardened"), {"crash": 1, "restart": 1}, reduces=reduces)

    assert (found.stopped, violated(found)) == ("", [])
    assert judge(search).is_inevitable


def test_kafka_07_takes_equal_data_for_its_own_registration() -> None:
    """The simulation reaches the same violation by the same steps."""
    plan, bounds = shared("kafka_07"), Bounds()
    _, _, found = searched(plan)
    assert violated(found) == TAKEN_OVER

    violates, steps = counterexample(plan, bounds)

    replayed = replay_sim(plan, bounds, Schedule(violates, steps, ()))
    assert (replayed.conforms, replayed.reached) == (True, True), replayed.text


def test_a_restarted_member_of_kafka_08_does_not_wait_for_its_old_session_for_ever() -> None:
    """Its attempts to register do not keep the old session from its end."""
    plan = small("kafka_08", layout="0.8", consumers=1)

    _, search, found = searched(plan, {"crash": 1, "restart": 1})

    assert violated(found) == []
    assert judge(search).is_inevitable


@pytest.mark.parametrize("variant", ["hardened", "kafka_08"])
def test_a_group_is_at_rest_while_a_member_tries_to_register(variant: str) -> None:
    """The run ends before the first member does: the second never gets its id."""
    text = load("consumer-id-shared").text.replace("  - {at: 14s, crash: billing/0}\n", "")
    before_crash = text[: text.index("sometimes:")]

    result = simulate(from_text("consumer-id-shared.yaml", before_crash), variant=variant)

    assert result.holds, str(result)


def test_one_id_on_two_hosts_is_two_ids_where_the_host_is_a_part_of_it() -> None:
    text = SHARED.replace("[{host: worker.example}, {host: worker.example}]", "2")

    assert from_text("two.yaml", text).plan("documented").shared_ids() == {}
    assert len(from_text("two.yaml", text).plan("hardened").shared_ids()) == 2
