"""What brokers that replicate read beside assignments: settings, notifications, an id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sim.test_replication import LOAD, VARIANTS, cluster, details, moved, run, states
from tests.support.virtual_members import ran_in_virtual_time
from watchkeeper import Result, simulate
from watchkeeper.model.properties.control_plane.brokers import ONE_ID, SETTINGS
from watchkeeper.model.trace.kinds import EventKind


def settings(at: str, topic: str = "clicks", **values: str) -> dict[str, Any]:
    """Return the entry of a timeline that writes the settings of a topic."""
    config = {key.replace("_", "."): value for key, value in values.items()}
    data = json.dumps({"version": 1, "config": config})
    return {"at": at, "write_znode": f"/config/topics/{topic}", "data": data}


def notified(at: str, number: int, topic: str = "clicks") -> dict[str, Any]:
    """Return the entry that tells brokers of it."""
    path = f"/config/changes/config_change_{number:010d}"
    return {"at": at, "write_znode": path, "data": json.dumps(topic)}


def applied(variant: str, *timeline: dict[str, Any]) -> dict[str, list[dict[str, str]]]:
    """Return the settings that each broker has followed, in order."""
    result = run(cluster(LOAD, *timeline), variant)
    found: dict[str, list[dict[str, str]]] = {}
    for event in result.trace.of_kind(EventKind.SETTINGS_APPLIED):
        found.setdefault(event.node, []).append(event.detail["settings"])
    return found


TWO = {"min.insync.replicas": "2"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_brokers_follow_a_change_once_they_are_notified(variant: str) -> None:
    """All of them, whether they have replicas of the topic or not."""
    change = settings("5s", min_insync_replicas="2")
    assert applied(variant, change, notified("6s", 0)) == {
        f"broker/{number}": [TWO] for number in range(3)
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_broker_that_was_away_reads_the_settings(variant: str) -> None:
    """A process that starts reads what there is."""
    timeline = [
        {"at": "5s", "crash": "broker/1"},
        settings("6s", min_insync_replicas="2"),
        notified("7s", 0),
        settings("8s", min_insync_replicas="1"),
        notified("9s", 1),
        {"at": "10s", "start": "broker/1"},
    ]
    one = {"min.insync.replicas": "1"}
    assert applied(variant, *timeline)["broker/1"] == [one]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_topic_may_demand_more_replicas_than_its_brokers(variant: str) -> None:
    """And fewer, once its settings are removed."""
    timeline = [
        settings("4s", min_insync_replicas="2"),
        notified("4100ms", 0),
        {"at": "5s", "crash": "broker/1"},
        {"at": "8s", "produce": "clicks", "rate": "10/s", "acks": "all", "for": "1s"},
        settings("11s"),
        notified("11100ms", 1),
        {"at": "12s", "produce": "clicks", "rate": "10/s", "acks": "all", "for": "1s"},
    ]
    result = run(cluster(LOAD, *timeline), variant)
    refused = [event.t_us for event in result.trace.of_kind(EventKind.NOT_ACKNOWLEDGED)]
    confirmed = [event.t_us for event in result.trace.of_kind(EventKind.ACKNOWLEDGED)]
    assert refused
    assert all(8_000_000 < at_us < 11_000_000 for at_us in refused)
    assert max(confirmed) > 12_000_000


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("unclean", ["true", "false"])
def test_a_topic_decides_whether_an_election_may_be_unclean(variant: str, unclean: str) -> None:
    """Against its brokers; the controller reads the setting when it matters."""
    timeline = [
        LOAD,
        {
            "at": "3s",
            "write_znode": "/config/topics/clicks",
            "data": json.dumps(
                {"version": 1, "config": {"unclean.leader.election.enable": unclean}}
            ),
        },
        {"at": "5s", "crash": "broker/1"},
        {"at": "9s", "crash": "broker/0"},
        {"at": "12s", "start": "broker/1"},
    ]
    result = simulate(cluster(*timeline, unclean=unclean == "false"), variant=variant, seed=1)
    assert bool(details(result, EventKind.UNCLEAN_ELECTION)) is (unclean == "true")
    assert states(result)[-1]["leader"] == (1 if unclean == "true" else -1)
    assert "live leaders" not in result.judgement.violated()


def test_settings_without_a_notification_are_found() -> None:
    """The property is violated where a broker follows other settings than the registry has."""
    hidden = [settings("5s", min_insync_replicas="2")]
    result = simulate(cluster(LOAD, *hidden), variant="kafka_08", seed=1)
    assert result.judgement.violated() == [SETTINGS.name]


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_cannot_be_read_is_said(variant: str) -> None:
    """The brokers go on with the settings that they know."""
    timeline = [
        settings("4s", min_insync_replicas="2"),
        notified("4500ms", 0),
        {"at": "5s", "write_znode": "/config/topics/clicks", "data": '{"version":1,"conf'},
        notified("6s", 1),
        {"at": "7s", "write_znode": "/config/changes/config_change_0000000002", "data": '"cli'},
    ]
    result = run(cluster(LOAD, *timeline), variant)
    refused = details(result, EventKind.SETTINGS_REFUSED, "broker/0")
    assert ["/config/topics/clicks" in row["why"] for row in refused][:1] == [True]
    assert any("config_change_0000000002" in row["why"] for row in refused)
    assert details(result, EventKind.SETTINGS_APPLIED, "broker/0") == [{"settings": TWO}]


def changes_at_end(result: Result) -> list[str]:
    """Return the notifications that are left."""
    left: dict[str, None] = {}
    for event in result.trace.of_kind(EventKind.APPLIED):
        for what, path, *_ in event.detail["did"]:
            if path.startswith("/config/changes/"):
                left.pop(path, None)
                left |= {} if what == "deleted" else {path: None}
    return [path.rpartition("_")[2].lstrip("0") or "0" for path in left]


FIFTEEN_MINUTES = [
    settings("4s", min_insync_replicas="2"),
    notified("5s", 0),
    notified("600s", 1),
    notified("906s", 2),
]
"""The first change is older than a quarter of an hour at the third one, the second is not."""


@pytest.mark.parametrize("variant", VARIANTS)
def test_old_notifications_are_purged_with_the_next_change(variant: str) -> None:
    """Not before, and none that is younger."""
    result = run(cluster(*FIFTEEN_MINUTES), variant)
    assert changes_at_end(result) == ["1", "2"]
    deleting = {
        event.t_us // 1_000_000
        for event in result.trace.of_kind(EventKind.APPLIED)
        if event.detail["did"][0][:2] == ["deleted", "/config/changes/config_change_0000000000"]
    }
    assert deleting == {906}


@pytest.mark.slow
def test_live_brokers_purge_old_notifications() -> None:
    """By the same program, with the sockets and files of live brokers, in virtual time."""
    assert changes_at_end(ran_in_virtual_time(cluster(*FIFTEEN_MINUTES))) == ["1", "2"]


@pytest.mark.parametrize(
    ("variant", "violated"), [("kafka_08", [SETTINGS.name]), ("hardened", [])]
)
def test_what_was_purged_before_a_broker_came_to_it(variant: str, violated: list[str]) -> None:
    """Others purge the second change while a broker is cut off, and the third one is not its."""
    timeline = [
        {"at": "4s", "partition": "broker/1", "from": "zookeeper", "for": "910s"},
        settings("5s", min_insync_replicas="2"),
        notified("6s", 0),
        notified("909s", 1, topic="views"),
    ]
    result = simulate(cluster(*timeline), variant=variant, seed=1)
    assert changes_at_end(result) == ["1"]
    assert result.judgement.violated() == violated


def test_all_brokers_know_one_id() -> None:
    """One of them has created it; processes that start later read it."""
    timeline = [{"at": "5s", "crash": "broker/1"}, {"at": "8s", "start": "broker/1"}]
    result = run(cluster(LOAD, *timeline))
    ids = [event.detail["id"] for event in result.trace.of_kind(EventKind.CLUSTER_ID)]
    assert len(ids) == 4
    assert len(set(ids)) == 1
    assert len(ids[0]) == 22


@pytest.mark.parametrize("other", ["short", "x" * 22])
def test_another_id_is_found(other: str) -> None:
    """It was changed by hand."""
    data = json.dumps({"version": "1", "id": other})
    timeline = [
        {"at": "4s", "write_znode": "/cluster/id", "data": data},
        {"at": "5s", "crash": "broker/1"},
        {"at": "8s", "start": "broker/1"},
    ]
    result = simulate(cluster(LOAD, *timeline), variant="hardened", seed=1)
    assert result.judgement.violated() == [ONE_ID.name]


def test_kafka_08_has_no_id() -> None:
    result = run(cluster(LOAD), "kafka_08")
    assert list(result.trace.of_kind(EventKind.CLUSTER_ID)) == []


CUT = '{"version":1,"par'


@pytest.mark.parametrize(
    "path",
    [
        "/admin/reassign_partitions",
        "/admin/preferred_replica_election",
        "/admin/delete_topics/unknown",
        "/config/topics/clicks",
        "/config/changes/config_change_0000000000",
        "/config/changes/other",
        "/brokers/topics/other",
        "/brokers/ids/9",
        "/brokers/ids/nine",
        "/cluster/id",
    ],
)
def test_a_znode_that_is_cut_in_half_harms_nothing_else(path: str) -> None:
    """`hardened` goes on: a broker dies, a partition moves, a broker comes back."""
    timeline = [
        LOAD,
        {"at": "5s", "write_znode": path, "data": CUT},
        {"at": "6s", "crash": "broker/0"},
        moved("9s", [1, 2]),
        {"at": "12s", "start": "broker/0"},
    ]
    result = run(cluster(*timeline, brokers=4))
    assert sorted(states(result)[-1]["isr"]) == [1, 2]
    assert len(details(result, EventKind.REASSIGNED)) == 1
