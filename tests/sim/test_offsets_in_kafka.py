"""Groups that keep their offsets in Kafka: members, coordinators, and what is judged of them."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper import Result, simulate
from watchkeeper.model.properties.group_offsets import FOUND, GOES_ON, GROUP_OFFSETS, NOT_MISSING
from watchkeeper.model.properties.verdicts import Property, Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import ScenarioError

OFFSETS = "leader of __consumer_offsets/0"
LOAD = {"at": "2s", "produce": "clicks", "rate": "50/s", "acks": "all", "for": "8s"}
IN_KAFKA = {
    "offsets.storage": "kafka",
    "dual.commit.enabled": False,
    "auto.offset.reset": "smallest",
    "auto.commit.interval.ms": 500,
    "zookeeper.session.timeout.ms": 2000,
}


def scenario(
    *timeline: dict[str, Any],
    settle: str = "12s",
    config: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a scenario of a group that keeps its offsets in Kafka."""
    return {
        "name": "offsets-in-kafka",
        "about": "a group",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1},
                "brokers": 3,
                "layout": "0.8",
                "leaders": "controller",
                "unclean_leader_election": False,
                "session_timeout": "1s",
                "replication": {
                    "min_insync_replicas": 2,
                    "lag_time": "1s",
                    "offsets_topic": {"partitions": 1},
                },
                "topics": {"clicks": {"partitions": 2, "replicas": 3}},
            }
        },
        "groups": {
            "billing": {
                "consumers": 2,
                "streams": {"clicks": 1},
                "config": {**IN_KAFKA, **(config or {})},
                **more,
            }
        },
        "timeline": [LOAD, *timeline],
        "settle": settle,
    }


def verdict(result: Result, claim: Property) -> Verdict:
    """Return the verdict on a property."""
    return result.judgement.finding(claim.name).verdict


def details(result: Result, kind: EventKind) -> list[dict[str, Any]]:
    """Return the details of all events of a kind."""
    return [dict(event.detail) for event in result.trace.of_kind(kind)]


# --- commits and fetches ---------------------------------------------------------------


def test_offsets_are_committed_and_found_in_kafka_alone() -> None:
    """The member that stays goes on where the other one stopped; ZooKeeper has no offset."""
    result = simulate(scenario({"at": "6s", "leave": "billing/1"}), seed=1)
    assert result.judgement.violated() == []
    assert verdict(result, FOUND) is verdict(result, GOES_ON) is Verdict.HOLDS
    written = [
        change[1]
        for event in result.trace.of_kind(EventKind.APPLIED)
        for change in event.detail["did"]
    ]
    assert not any("/offsets/" in path for path in written)


def test_dual_commits_go_to_both_and_the_greater_is_read() -> None:
    """An operator sets ZooKeeper's offset back: a member begins at Kafka's."""
    path = "/consumers/billing/offsets/clicks/1"
    back = {"at": "11s", "write_znode": path, "data": "3"}
    timeline = ({"at": "10500ms", "crash": "billing/1"}, back)
    result = simulate(scenario(*timeline, config={"dual.commit.enabled": True}), seed=1)
    assert result.judgement.violated() == []
    [begun] = [
        event.detail["at"]
        for event in result.trace.of_kind(EventKind.FETCHING)
        if event.node == "billing/0"
        and event.partition == "1"
        and event.detail["does"] == "begins"
        and event.t_us > 10_500_000
    ]
    assert begun > 3


def test_kafka_08_copies_no_offset_that_it_began_at() -> None:
    """With dual commit, ZooKeeper's offset stays behind until a message arrives (KAFKA-987)."""
    both = {"offsets.storage": "kafka", "dual.commit.enabled": True}
    timeline = (
        {"at": "12s", "leave": "billing/0"},
        {"at": "13s", "leave": "billing/1"},
        {"at": "15s", "start": "billing/2"},
    )
    members = [{"id": "a"}, {"id": "b"}, {"id": "c", "starts": "never", "config": both}]
    for variant, copies in (("kafka_08", False), ("hardened", True)):
        result = simulate(scenario(*timeline, consumers=members), variant=variant, seed=1)
        offsets = {
            change[1]
            for event in result.trace.of_kind(EventKind.APPLIED)
            for change in event.detail["did"]
            if change[1].startswith("/consumers/billing/offsets/clicks/")
        }
        assert bool(offsets) is copies, variant


def test_a_commit_waits_for_the_replicas() -> None:
    """With too few of them the coordinator refuses it, and the member goes on trying."""
    cut = {"at": "5s", "partition": OFFSETS, "from": "brokers", "for": "4s"}
    result = simulate(scenario(cut, settle="20s"), seed=1)
    assert result.judgement.violated() == []
    refused = [each["why"] for each in details(result, EventKind.COMMIT_REFUSED)]
    assert any("NOT_ENOUGH_REPLICAS" in why or "no response" in why for why in refused), refused
    assert details(result, EventKind.OFFSET_COMMIT_ANSWERED)[-1]["accepted"]


def test_offsets_survive_their_hosts() -> None:
    """Every broker loses its host after the commits are on disk, one after the other."""
    timeline = []
    for number in range(3):
        timeline.append({"at": f"{12 + 6 * number}s", "crash_host": f"broker/{number}"})
        timeline.append({"at": f"{14 + 6 * number}s", "restart": f"broker/{number}"})
    timeline.append({"at": "32s", "crash": "billing/1"})
    result = simulate(scenario(*timeline, settle="15s"), seed=1)
    assert verdict(result, FOUND) is verdict(result, GOES_ON) is Verdict.HOLDS


# --- coordinators ----------------------------------------------------------------------


def test_a_coordinator_that_is_cut_off_does_not_answer() -> None:
    """It cannot know that it leads, and says so, until the others are there again."""
    cut = {"at": "9900ms", "partition": OFFSETS, "from": "brokers", "for": "6s"}
    result = simulate(scenario(cut, {"at": "8s", "crash": "billing/1"}), seed=1)
    assert result.judgement.violated() == []
    answers = details(result, EventKind.OFFSET_FETCH_ANSWERED)
    assert any("NOT_COORDINATOR_FOR_CONSUMER" in each["errors"] for each in answers)
    assert answers[-1]["offsets"]
    assert not answers[-1]["errors"]


@pytest.mark.parametrize(("variant", "most"), [("kafka_08", 2), ("hardened", 3)])
def test_the_offsets_topic_has_the_replicas_that_are_configured(variant: str, most: int) -> None:
    """KAFKA-3959: 0.8.2.2 creates it with as many as there are brokers then."""
    fields = scenario()
    fields["clusters"]["main"]["brokers"] = [{"id": 0}, {"id": 1}, {"id": 2, "starts": "6s"}]
    result = simulate(fields, variant=variant, seed=1)
    made = [
        len(replicas)
        for each in details(result, EventKind.TOPIC_AUTO_CREATED)
        for replicas in each.get("replicas", ())
    ]
    assert made == [most]


# --- what is violated ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "variant", "violated"),
    [
        ("coordinator-crash-first-commit", "kafka_08", {NOT_MISSING, GOES_ON}),
        ("coordinator-crash-first-commit", "hardened", set()),
        ("coordinator-deposed", "kafka_08", {FOUND, GOES_ON}),
        ("coordinator-deposed", "hardened", set()),
        ("commits-by-leader-alone", "hardened", {FOUND, GOES_ON}),
        ("offsets-roll-back-as-worded", "hardened", {GOES_ON}),
    ],
)
def test_each_property_is_violated_by_a_shipped_scenario(
    name: str, variant: str, violated: set[Property]
) -> None:
    """And by no other cause: the rest of the run is as expected."""
    result = simulate(name, variant=variant, seed=3)
    assert result.met
    found = {claim.name for claim in (FOUND, NOT_MISSING, GOES_ON)} & {
        *result.judgement.violated()
    }
    assert found == {claim.name for claim in violated}


def test_without_offsets_in_kafka_nothing_is_judged_of_them() -> None:
    """The three properties are about groups of which a member keeps offsets there."""
    fields = scenario()
    fields["groups"]["billing"]["config"] = {}
    del fields["clusters"]["main"]["replication"]["offsets_topic"]  # without effect then
    names = {finding.claim.name for finding in simulate(fields, seed=1).findings}
    assert names.isdisjoint(claim.name for claim in GROUP_OFFSETS)


# --- what is refused -------------------------------------------------------------------


REFUSED = [
    ({"clusters.main.replication": None}, "expected `replication` in cluster main"),
    ({"config": {"offsets.storage": "zookeper"}}, "expected one of zookeeper, kafka"),
    ({"config": {"dual.commit.enabled": "yes"}}, "expected true or false"),
    (
        {"only": {"offsets.channel.backoff.ms": 10}},
        "has no effect without `offsets.storage: kafka`; leave it out",
    ),
]


@pytest.mark.parametrize(("change", "why"), REFUSED)
def test_settings_that_cannot_be_meant_are_refused(change: dict[str, Any], why: str) -> None:
    """Each with a sentence."""
    fields = scenario(config=change.get("config"))
    if "only" in change:
        fields["groups"]["billing"]["config"] = change["only"]
    if "clusters.main.replication" in change:
        del fields["clusters"]["main"]["replication"]
        fields["timeline"] = []
    with pytest.raises(ScenarioError) as refused:
        simulate(fields)
    assert why in str(refused.value)
