"""Brokers that replicate: leaders, followers, ISRs, and what administrators request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from watchkeeper import Result, simulate
from watchkeeper.model.properties.control_plane.replication import KEPT
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.scenarios import ScenarioError

VARIANTS = ("kafka_08", "hardened")
LOAD = {"at": "2s", "produce": "clicks", "rate": "20/s", "acks": "all", "for": "2s"}


BACKOFF = {"controlled_shutdown_backoff": "1s"}


def cluster(
    *timeline: dict[str, Any],
    brokers: int = 3,
    partitions: int = 1,
    replicas: int = 2,
    unclean: bool = False,
    settle: str = "10s",
    **replication: Any,
) -> dict[str, Any]:
    """Return a scenario of brokers that replicate one topic; broker 0 starts last."""
    listed = [{"id": 0, "starts": "500ms"}, *({"id": number} for number in range(1, brokers))]
    return {
        "name": "replicated",
        "about": "replicas",
        "clusters": {
            "main": {
                "zookeeper": {"servers": 1},
                "brokers": listed,
                "layout": "0.8",
                "leaders": "controller",
                "unclean_leader_election": unclean,
                "session_timeout": "1s",
                "replication": {"lag_time": "1s", "leader_rebalance": "never", **replication},
                "topics": {"clicks": {"partitions": partitions, "replicas": replicas}},
            }
        },
        "groups": {},
        "timeline": list(timeline),
        "settle": settle,
    }


def run(scenario: dict[str, Any], variant: str = "hardened", seed: int = 1) -> Result:
    """Simulate a scenario, in which nothing may be violated."""
    result = simulate(scenario, variant=variant, seed=seed)
    assert result.judgement.violated() == []
    return result


def states(result: Result, topic: str = "clicks", partition: str = "0") -> list[dict[str, Any]]:
    """Return every state of a partition that was written, in order."""
    path = f"/brokers/topics/{topic}/partitions/{partition}/state"
    return [
        json.loads(change[3])
        for event in result.trace.of_kind(EventKind.APPLIED)
        for change in event.detail["did"]
        if change[1] == path and change[0] != "deleted"
    ]


def details(result: Result, kind: EventKind, node: str = "") -> list[dict[str, Any]]:
    """Return the details of all events of a kind, of one process if it is named."""
    return [
        dict(event.detail)
        for event in result.trace.of_kind(kind)
        if not node or event.node == node
    ]


# --- leaders and ISRs ------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_follower_leaves_the_isr_and_comes_back(variant: str) -> None:
    result = run(
        cluster(LOAD, {"at": "6s", "crash": "broker/1"}, {"at": "10s", "start": "broker/1"}),
        variant,
    )

    assert [sorted(state["isr"]) for state in states(result)][-1] == [0, 1]
    assert [0] in [state["isr"] for state in states(result)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_leader_epochs_over_two_bounces(variant: str) -> None:
    """As LeaderElectionTest of Kafka: each election raises the epoch, and so do other writes."""
    timeline = [
        {"at": "4s", "crash": "broker/0"},
        {"at": "8s", "start": "broker/0"},
        {"at": "12s", "crash": "broker/1"},
    ]
    result = run(cluster(*timeline), variant)

    led = details(result, EventKind.BECAME_LEADER)
    assert [row["epoch"] for row in led] == sorted({row["epoch"] for row in led})
    assert [state["leader"] for state in states(result)][-1] == 0
    epochs = [state["leader_epoch"] for state in states(result)]
    assert epochs == sorted(epochs)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("unclean", [True, False])
def test_unclean_elections(variant: str, unclean: bool) -> None:
    """As UncleanLeaderElectionTest of Kafka: with it the second message is lost, else not."""
    timeline = [
        LOAD,
        {"at": "5s", "crash": "broker/1"},
        {"at": "8s", "produce": "clicks", "rate": "10/s", "acks": "all", "for": "1s"},
        {"at": "10s", "crash": "broker/0"},
        {"at": "13s", "start": "broker/1"},
        {"at": "16s", "start": "broker/0"},
    ]
    result = simulate(cluster(*timeline, unclean=unclean), variant=variant, seed=1)

    elected = details(result, EventKind.UNCLEAN_ELECTION)
    assert bool(elected) is unclean
    assert result.judgement.finding(KEPT.name).verdict.value == "holds"
    ends = {row["partition"]: row["end"] for row in details(result, EventKind.BECAME_LEADER)}
    confirmed = sum(len(row["numbers"]) for row in details(result, EventKind.ACKNOWLEDGED))
    assert (ends["0"] < confirmed) is unclean


@pytest.mark.parametrize("variant", VARIANTS)
def test_too_few_replicas_in_sync_refuse_messages(variant: str) -> None:
    """A producer that waits for the leader alone is served all the same."""
    timeline = [
        LOAD,
        {"at": "5s", "crash": "broker/1"},
        {"at": "8s", "produce": "clicks", "rate": "10/s", "acks": "all", "for": "1s"},
        {"at": "11s", "produce": "clicks", "rate": "10/s", "acks": "leader", "for": "1s"},
    ]
    result = run(cluster(*timeline, min_insync_replicas=2), variant)

    assert {row["acks"] for row in details(result, EventKind.NOT_ACKNOWLEDGED)} == {-1}
    assert 1 in {row["acks"] for row in details(result, EventKind.ACKNOWLEDGED)}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_checkpoint_has_the_high_watermark_after_a_shutdown(variant: str) -> None:
    """As LogRecoveryTest and HighwatermarkPersistenceTest of Kafka."""
    timeline = [LOAD, {"at": "8s", "leave": "broker/1"}, {"at": "10s", "start": "broker/1"}]
    result = run(cluster(*timeline), variant)

    [opened] = details(result, EventKind.REPLICA_OPENED, "broker/1")
    assert opened["high_watermark"] == opened["end"] > 0


# --- what administrators request -------------------------------------------------------


def requested(at: str, path: str, **payload: Any) -> dict[str, Any]:
    """Return the entry of a timeline that writes a request."""
    return {"at": at, "write_znode": path, "data": json.dumps({"version": 1, **payload})}


def moved(at: str, targets: list[int]) -> dict[str, Any]:
    """Return the request to move the partition to these brokers."""
    row = {"topic": "clicks", "partition": 0, "replicas": targets}
    return requested(at, "/admin/reassign_partitions", partitions=[row])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("targets", [[0, 2], [1, 2], [2, 3], [1, 0]])
def test_a_partition_moves(variant: str, targets: list[int]) -> None:
    """As AdminTest of Kafka: the targets, no other replica in the ISR, and no other log."""
    result = run(cluster(LOAD, moved("6s", targets), brokers=4), variant)

    last = states(result)[-1]
    assert sorted(last["isr"]) == sorted(targets)
    assert last["leader"] in targets
    gone = {event.node for event in result.trace.of_kind(EventKind.REPLICA_DELETED)}
    assert gone == {f"broker/{number}" for number in {0, 1} - set(targets)}
    [done] = details(result, EventKind.REASSIGNED)
    assert done["replicas"] == targets


STEPS = [(nth, when) for nth in (1, 2, 3) for when in ("before", "after_reply")]


@pytest.mark.parametrize(("nth", "when"), STEPS)
def test_a_move_goes_on_after_a_crash_in_each_step(nth: int, when: str) -> None:
    """The three writes of a move: two of the assignment, and the end of the request."""
    step = {"node": "controller", "purpose": "reassign", "nth": nth, "when": when}
    timeline = [
        LOAD,
        moved("6s", [2, 3]),
        {"on": step, "crash": "controller"},
        {"at": "12s", "restart": "controller"},
    ]
    for seed in range(3):
        result = run(cluster(*timeline, brokers=4), seed=seed)
        assert sorted(states(result)[-1]["isr"]) == [2, 3]


def test_a_request_that_cannot_be_read() -> None:
    """The shipped controller leaves it; `hardened` deletes it and says why."""
    path = "/admin/reassign_partitions"
    broken = {"at": "5s", "write_znode": path, "data": '{"version":1,"parti'}
    again = moved("8s", [2, 3])
    result = run(cluster(LOAD, broken, again, brokers=4))

    [refused] = details(result, EventKind.REQUEST_UNREADABLE)
    assert refused["path"] == path
    assert len(details(result, EventKind.REASSIGNED)) == 1

    shipped = simulate(cluster(LOAD, broken, brokers=4), variant="kafka_08", seed=1)
    assert shipped.judgement.violated() == ["requests are carried out"]


def test_a_move_to_an_unknown_broker_harms_nothing() -> None:
    result = run(cluster(LOAD, moved("6s", [2, 9]), moved("8s", [2, 3]), brokers=4))

    failed = details(result, EventKind.TRANSITION_FAILED)
    assert failed[0]["why"] == "the brokers [9] are not alive"
    assert len(details(result, EventKind.REASSIGNED)) == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_controlled_shutdown_leaves_nothing_led(variant: str) -> None:
    """As AdminTest of Kafka: of three replicas, one after the other leaves."""
    timeline = [LOAD, {"at": "6s", "leave": "broker/0"}, {"at": "8s", "leave": "broker/1"}]
    result = run(cluster(*timeline, replicas=3), variant)

    done = details(result, EventKind.SHUT_DOWN)
    assert [(row["is_clean"], row["led"]) for row in done] == [(True, []), (True, [])]
    assert [state["leader"] for state in states(result)][-1] == 2


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("replication", "waits_s"), [({}, 10), (BACKOFF, 2)])
def test_the_last_in_sync_cannot_hand_over(
    variant: str, replication: dict[str, str], waits_s: float
) -> None:
    """It tries three times, waits in between, and leaves all the same."""
    timeline = [
        {"at": "4s", "crash": "broker/1"},
        {"at": "8s", "leave": "broker/0"},
        {"at": "25s", "start": "broker/0"},
    ]
    result = run(cluster(*timeline, **replication), variant)

    [done] = [event for event in result.trace if event.kind == EventKind.SHUT_DOWN]
    assert (done.detail["is_clean"], done.detail["led"]) == (False, ["clicks/0"])
    assert done.t_us / 1e6 - 8 == pytest.approx(waits_s, abs=0.5)


def test_a_pause_between_tries_that_are_not_made_is_refused() -> None:
    with pytest.raises(ScenarioError, match="has no effect with `controlled_shutdown: false`"):
        run(cluster(controlled_shutdown=False, **BACKOFF), "hardened")


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_topic_is_deleted_with_its_replicas(variant: str) -> None:
    timeline = [LOAD, {"at": "8s", "write_znode": "/admin/delete_topics/clicks", "data": ""}]
    result = run(cluster(*timeline, partitions=2, replicas=3), variant)

    assert len(details(result, EventKind.REPLICA_DELETED)) == 6
    assert len(details(result, EventKind.TOPIC_DELETED)) == 1


def test_deletion_of_an_unknown_topic_removes_the_request() -> None:
    path = "/admin/delete_topics/unknown"
    result = run(cluster({"at": "5s", "write_znode": path, "data": ""}))
    assert result.judgement.finding("requests are carried out").verdict.value == "holds"


# --- roles and what is refused ---------------------------------------------------------


def test_a_timeline_names_the_leader_of_a_partition() -> None:
    crash = {"at": "5s", "crash": "leader of clicks/0"}
    back = {"at": "8s", "restart": "leader of clicks/0"}
    result = run(cluster(LOAD, crash, back))

    [struck] = result.effects[1:2]
    assert struck.target == "broker/0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"crash": "leader of clicks"}, "expected `leader of TOPIC/NUMBER`"),
        ({"crash": "leader of unknown/0"}, "is not a"),
        ({"start": "leader of clicks/0"}, "runs already"),
    ],
)
def test_a_leader_that_cannot_be_is_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        simulate(cluster({"at": "5s", **change}))


def test_replication_needs_a_controller() -> None:
    scenario = cluster()
    scenario["clusters"]["main"]["leaders"] = "administrator"
    del scenario["clusters"]["main"]["unclean_leader_election"]
    with pytest.raises(ScenarioError, match="has no effect without `leaders: controller`"):
        simulate(scenario)


# --- consumers -------------------------------------------------------------------------


def test_brokers_fetch_as_in_0_8() -> None:
    """Messages, leaders and followers come to the same, whichever layout fetches have."""
    leaves = {"at": "3s", "leave": "broker/1"}
    found = [
        ends(run(cluster(LOAD, leaves, partitions=2, fetches=layout), "kafka_08"))
        for layout in ("with epochs", "as in 0.8")
    ]
    assert found[0] == found[1] != {}


def test_fetches_without_epochs_are_refused_where_epochs_are_needed() -> None:
    with pytest.raises(ScenarioError, match="the variant hardened needs them to cut logs"):
        run(cluster(fetches="as in 0.8"), "hardened")


def ends(result: Result) -> dict[tuple[str, str, str], int]:
    """Return the last end of each log that a broker has appended to."""
    return {
        (event.node, event.topic, event.partition): event.detail["start"]
        + len(event.detail["records"])
        for event in result.trace
        if event.kind == EventKind.APPENDED
    }
