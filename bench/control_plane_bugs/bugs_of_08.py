"""Bugs that 0.8.2.2 has, in short timelines: `kafka_08` violates a property in each of them.

Those that a shipped scenario shows are in the documentation; here are the others, and timelines
in which later bugs would show if 0.8.2.2 had them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bench.control_plane_bugs.mutant import Scenario
from bench.control_plane_bugs.replays import ALL, ELECTION, FIRST_IS_3, cluster, requested

REASSIGNMENT = "/admin/reassign_partitions"


class BugOf08(NamedTuple):
    """A bug that 0.8.2.2 has, and a timeline that shows it."""

    name: str
    says: str
    violated: str
    """A property."""
    scenario: Scenario


class LaterBug(NamedTuple):
    """A bug of a later version, and the timeline that would show it."""

    name: str
    why_not: str
    """Why 0.8.2.2 does not have it, or violates nothing by it."""
    scenario: Scenario


def with_unclean_elections(scenario: Scenario) -> Scenario:
    """Return a scenario in which they are allowed, as is the default of 0.8.2.2."""
    scenario["clusters"]["main"]["unclean_leader_election"] = True
    return scenario


def late(broker: str, at: str, duration: str) -> dict[str, Any]:
    """Return the entry of a timeline by which each message of a broker takes 100 ms longer."""
    return {"at": at, "delay": broker, "by": "100ms", "for": duration}


ONE_LARGE_BATCH = with_unclean_elections(
    cluster(
        {"at": "2s", **ALL, "rate": "20/s", "acks": "leader", "for": "12s"},
        late("broker/1", "3500ms", "3s"),
        late("broker/2", "3500ms", "3s"),
        {"at": "4s", **ALL, "rate": "50000/s", "acks": "leader", "for": "150ms"},
        {"at": "4800ms", "crash": "broker/0"},
        {"at": "14s", "restart": "broker/0"},
        brokers=FIRST_IS_3,
        replicas=3,
    )
)
"""A leader takes five thousand messages at once, and dies before the followers have them all."""
WRITTEN_BY_A_DEPOSED_CONTROLLER = cluster(
    {"at": "2s", **ALL, "rate": "20/s", "for": "16s"},
    {"at": "5s", "crash": "broker/2"},
    {
        "on": {"node": "broker/3", "purpose": "write state", "when": "before"},
        "pause": "broker/3",
        "for": "8s",
    },
    {"at": "24s", "restart": "broker/2"},
    brokers=FIRST_IS_3,
    replicas=3,
    lag_time="10s",
    settle="25s",
)
"""A deposed controller writes a state of which no other process learns."""
DEPOSED_AND_ELECTED_AGAIN = cluster(
    {"at": "2s", **ALL, "rate": "20/s", "for": "10s"},
    {"at": "2050ms", **ALL, "rate": "20/s", "for": "10s"},
    {"at": "5s", "pause": "broker/1", "for": "500ms"},
    {"at": "5300ms", "expire": "broker/0"},
    {"at": "6s", **ALL, "rate": "20/s", "acks": "leader", "for": "6s"},
    requested("8s", ELECTION, partitions=[{"topic": "clicks", "partition": 0}]),
    brokers=[{"id": 0, "starts": "500ms"}, {"id": 1, "starts": "500ms"}, {"id": 2}],
    lag_time="5s",
)
"""A leader is deposed while a producer waits, and leads again before that one gives up."""
ALWAYS_A_LITTLE_BEHIND = with_unclean_elections(
    cluster(
        {"at": "2s", **ALL, "rate": "200/s", "acks": "leader", "for": "18s"},
        {"at": "4s", "crash": "broker/1"},
        late("broker/1", "4s", "16s"),
        {"at": "7s", "restart": "broker/1"},
        {"at": "14080ms", "crash": "broker/0"},
        {"at": "22s", "restart": "broker/0"},
        brokers=[{"id": 2}, {"id": 0, "starts": "500ms"}, {"id": 1, "starts": "500ms"}],
        lag_time="2s",
    )
)
"""A follower is back, and something has been appended before each of its fetches."""
TWO_SENDERS = cluster(
    {"at": "4s", "expire": "broker/0"},
    {"on": {"node": "broker/1", "purpose": "raise epoch", "when": "before"}, "lose": "reply"},
    {"at": "20s", "crash": "broker/2"},
    brokers=[{"id": 0}, {"id": 1, "starts": "500ms"}, {"id": 2, "starts": "500ms"}],
    partitions=2,
)
"""The reply to a controller that raises the epoch is lost."""
ONLY_REPLICA_ON_THE_CONTROLLER = cluster(
    {"at": "5s", "crash": "controller"},
    {"at": "14s", "restart": "controller"},
    partitions=3,
    replicas=1,
)
"""A partition has one replica, which dies with the controller."""
UNKNOWN_TOPIC_AT_FAILOVER = cluster(
    {"at": "6s", "crash": "controller"},
    {"at": "6500ms", "write_znode": "/admin/delete_topics/gone", "data": ""},
    {"at": "10s", "restart": "controller"},
    {"at": "14s", "write_znode": "/admin/delete_topics/clicks", "data": ""},
    brokers=[{"id": 0}, {"id": 1, "starts": "500ms"}, {"id": 2, "starts": "500ms"}],
)
"""A new controller finds a request to delete a topic that is gone."""

STATE_GOES_FIRST = cluster(
    {"at": "6s", "crash": "broker/1"},
    {"at": "9s", "write_znode": "/admin/delete_topics/clicks", "data": ""},
    {"at": "10s", "delete_znode": "/brokers/topics/clicks/partitions/0/state"},
    {"at": "12s", "restart": "broker/1"},
    brokers=[{"id": 2}, {"id": 0, "starts": "500ms"}, {"id": 1, "starts": "500ms"}],
    partitions=2,
)
"""A topic is to be deleted, and one of its states is gone already."""

BUGS_OF_08 = (
    BugOf08(
        "KAFKA-1546",
        "a batch of more than replica.lag.max.messages throws every follower out of the ISR",
        "committed never changes",
        ONE_LARGE_BATCH,
    ),
    BugOf08(
        "KAFKA-2729",
        "a leader that remembers an old version of the state never changes the ISR again",
        "replicas catch up",
        WRITTEN_BY_A_DEPOSED_CONTROLLER,
    ),
    BugOf08(
        "KAFKA-2960",
        "a leader confirms what it has cut off to a producer that waits",
        "confirmed is kept",
        DEPOSED_AND_ELECTED_AGAIN,
    ),
    BugOf08(
        "KAFKA-3143",
        "a controller lets brokers lead that are dead when it takes over",
        "no dead leaders",
        ONLY_REPLICA_ON_THE_CONTROLLER,
    ),
    BugOf08(
        "KAFKA-4485",
        "a follower that is always a little behind never joins the ISR again",
        "committed never changes",
        ALWAYS_A_LITTLE_BEHIND,
    ),
    BugOf08(
        "two senders",
        "a controller sends requests with the epoch of its predecessor",
        "one sender an epoch",
        TWO_SENDERS,
    ),
    BugOf08(
        "unknown topic",
        "a request to delete a topic that is gone ends all deletions of the next reign",
        "requests are carried out",
        UNKNOWN_TOPIC_AT_FAILOVER,
    ),
)
LATER_BUGS = (
    LaterBug(
        "KAFKA-2721",
        "a leader that forgets how far its followers are learns it with their next fetch",
        cluster(
            {"at": "2s", **ALL, "rate": "200/s", "for": "8s"},
            *({"at": f"{at}ms", "expire": "broker/2"} for at in (4000, 5500, 7000)),
            brokers=FIRST_IS_3,
            replicas=3,
        ),
    ),
    LaterBug(
        "KAFKA-3916",
        "a request is sent again, over a new connection, before the next one",
        cluster(
            {"at": "2s", **ALL, "rate": "20/s", "for": "14s"},
            {"at": "4s", "partition": "broker/3", "from": "broker/1", "for": "4s"},
            {"at": "4500ms", "create_topic": "fresh", "partitions": 3},
            {"at": "5s", "crash": "broker/0"},
            {"at": "10s", "restart": "broker/0"},
            brokers=FIRST_IS_3,
            partitions=4,
            settle="20s",
        ),
    ),
    LaterBug(
        "KAFKA-4443",
        "a request to follow has the addresses of the leaders in it",
        cluster(
            {"at": "2s", **ALL, "rate": "20/s", "for": "14s"},
            {"at": "5s", "crash": "broker/3"},
            {"at": "5s", "crash": "broker/0"},
            brokers=FIRST_IS_3,
            partitions=4,
            settle="20s",
        ),
    ),
    LaterBug(
        "KAFKA-6193",
        "a controller takes a partition out of the request that it reads again",
        cluster(
            requested(
                "5s",
                REASSIGNMENT,
                partitions=[
                    {"topic": "clicks", "partition": 0, "replicas": [0, 1]},
                    {"topic": "clicks", "partition": 1, "replicas": [3, 0]},
                ],
            ),
            brokers=4,
            partitions=2,
        ),
    ),
)
