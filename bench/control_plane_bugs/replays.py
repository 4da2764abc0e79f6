"""Short timelines in which one bug each shows, where no shipped scenario has what it takes."""

from __future__ import annotations

import json
from typing import Any

from bench.control_plane_bugs.mutant import Scenario

ALL = {"produce": "clicks", "rate": "50/s", "acks": "all"}
ELECTION = "/admin/preferred_replica_election"


def cluster(
    *timeline: dict[str, Any],
    brokers: int | list[dict[str, Any]] = 3,
    partitions: int = 1,
    replicas: int = 2,
    settle: str = "10s",
    more: tuple[str, ...] = (),
    group: dict[str, Any] | None = None,
    **replication: Any,
) -> Scenario:
    """Return a scenario of one topic; a group reads it if `group` says how."""
    main = {
        "zookeeper": {"servers": 1},
        "brokers": brokers,
        "layout": "0.8",
        "leaders": "controller",
        "unclean_leader_election": False,
        "session_timeout": "2s",
        "replication": {"lag_time": "1s", "leader_rebalance": "never", **replication},
        "topics": {
            "clicks": {"partitions": partitions, "replicas": replicas},
            **{topic: {"partitions": 1, "replicas": 2} for topic in more},
        },
    }
    reading = {"consumers": 1, "streams": {"clicks": 1}, **(group or {})}
    return {
        "name": "replay",
        "about": "a replay",
        "clusters": {"main": main},
        "groups": {} if group is None else {"billing": reading},
        "timeline": list(timeline),
        "settle": settle,
    }


def requested(at: str, path: str, **payload: Any) -> dict[str, Any]:
    """Return the entry of a timeline that writes a request."""
    return {"at": at, "write_znode": path, "data": json.dumps({"version": 1, **payload})}


FAILOVER = {"delete_znode": "/controller"}
PREFERRED_AT_FAILOVER = cluster(
    {"at": "6s", "crash": "controller"},
    requested("6500ms", ELECTION, partitions=[{"topic": "clicks", "partition": 0}]),
    {"at": "12s", "restart": "controller"},
)
"""An administrator requests a preferred election while there is no controller."""
SAME_CONTROLLER_TWICE = cluster(
    *({"at": f"{at}s", **FAILOVER} for at in (4, 5, 6, 7, 8, 9)),
    {"at": "12s", "crash": "controller"},
    brokers=2,
)
"""The broker that was the controller last is sometimes the next one too; then it dies."""
CONTROLLER_EXPIRES = cluster({"at": "5s", "expire": "controller"}, settle="15s")
IDLE_CHANNEL = cluster({"at": "640s", "create_topic": "fresh", "partitions": 3})
"""No request is sent for ten minutes."""
FOLLOWER_CRASHES = cluster(
    {"at": "2s", **ALL, "for": "16s"},
    {"at": "6s", "crash": "broker/2"},
    {"at": "12s", "restart": "broker/2"},
    replicas=3,
)
DELETION_AT_FAILOVER = cluster(
    {"at": "4s", "pause": "broker/1", "for": "1s"},
    {"at": "4200ms", "write_znode": "/admin/delete_topics/clicks", "data": ""},
    {"at": "4800ms", **FAILOVER},
    replicas=3,
)
"""A broker has not answered when another reign begins."""
SECOND_REIGN = cluster(
    {"at": "4s", **FAILOVER},
    {"at": "6s", "crash": "broker/0"},
    {"at": "8s", **ALL, "for": "3s"},
    {"at": "12s", "restart": "broker/0"},
    replicas=3,
)
FORMER_CONTROLLER = cluster(
    {"at": "4s", **FAILOVER},
    {"at": "5s", **FAILOVER},
    {"at": "7s", "crash": "broker/0"},
    {"at": "12s", "restart": "broker/0"},
    replicas=3,
)
CHANGES = "/config/changes/config_change_{:010}"
TWO_NOTIFICATIONS = cluster(
    {"at": "4s", "pause": "broker/1", "for": "1s"},
    requested("4100ms", "/config/topics/views", config={"min.insync.replicas": "2"}),
    {"at": "4200ms", "write_znode": CHANGES.format(3), "data": '"gone"'},
    {"at": "4200ms", "write_znode": CHANGES.format(4), "data": '"views"'},
    replicas=3,
    more=("views",),
)
"""A broker looks at two changes at once; the first is of a topic that is gone."""
DROPPED_REPLICA_IS_LATE = cluster(
    requested(
        "5s",
        "/admin/reassign_partitions",
        partitions=[{"topic": "clicks", "partition": 0, "replicas": [0, 1, 3]}],
    ),
    {
        "on": {"node": "controller", "purpose": "reassign", "nth": 2, "when": "before"},
        "pause": "broker/2",
        "for": "700ms",
    },
    brokers=4,
    replicas=3,
    lag_time="10s",
)
"""A replica that moves away stands still while it is dropped."""
CRASHES_IN_TURN = cluster(
    {"at": "4s", **ALL, "for": "2s"},
    {"at": "8s", "crash": "broker/0"},
    {"at": "12s", "crash": "broker/1"},
    {"at": "16s", "restart": "broker/0"},
    {"at": "20s", "restart": "broker/1"},
    partitions=6,
)
"""Some partitions have no leader while others get another one."""
ALONE_IN_SYNC = cluster(
    {"at": "3s", **ALL, "for": "5s"},
    brokers=1,
    replicas=1,
    settle="45s",
    group={"config": {"auto.offset.reset": "smallest"}, "guarantee": "at least once"},
)
"""The leader has no follower."""
LEADERSHIP_MOVES = cluster(
    {"at": "2s", **ALL, "rate": "2000/s", "acks": "leader", "for": "12s"},
    {"at": "4s", "crash": "broker/0"},
    {"at": "7s", "restart": "broker/0"},
    requested("10s", ELECTION, partitions=[{"topic": "clicks", "partition": 0}]),
    replicas=3,
)
"""A leader gives way under a load."""
LEADER_AWAY = cluster(
    {"at": "3s", **ALL, "for": "12s"},
    {"at": "6s", "crash": "leader of clicks/0"},
    brokers=2,
    settle="45s",
    group={"config": {"auto.offset.reset": "smallest"}, "guarantee": "at least once"},
)
"""For a moment a partition has no leader."""
BACK_WITHOUT_LEADER = cluster(
    {"at": "2s", **ALL, "for": "4s"},
    {"at": "7s", "crash": "broker/0"},
    {"at": "7s", "crash": "broker/1"},
    {"at": "10s", "restart": "broker/1"},
    {"at": "18s", "crash": "broker/1"},
    {"at": "19s", "restart": "broker/0"},
    {"at": "24s", "restart": "broker/1"},
    brokers=2,
    partitions=2,
)
"""A replica comes back while its leader is away, and writes a checkpoint."""
FIRST_IS_3: list[dict[str, Any]] = [
    *({"id": number, "starts": "500ms"} for number in (0, 1, 2, 4)),
    {"id": 3},
]
"""Five brokers, of which broker 3 is the first controller."""
LATE_METADATA = cluster(
    {"at": "4s", "partition": "broker/3", "from": "broker/4", "for": "12s"},
    {"at": "5s", "crash": "broker/0"},
    {"at": "8s", "pause": "broker/3", "for": "7s"},
    {"at": "11s", "crash": "leader of clicks/0"},
    brokers=FIRST_IS_3,
    replicas=3,
    settle="20s",
)
"""What a controller has to say to one broker waits until it is the controller no more."""
CHECKPOINT_BEFORE_REQUESTS = cluster(
    {"at": "2s", **ALL, "for": "3s"},
    {"at": "6s", "crash": "broker/1"},
    {"at": "6s", "crash": "broker/3"},
    {"at": "9s", "partition": "broker/1", "from": "brokers", "for": "7s"},
    {"at": "9500ms", "restart": "broker/1"},
    {"at": "15500ms", "crash": "broker/1"},
    {"at": "15500ms", "crash": "controller"},
    {"at": "19s", "restart": "broker/1"},
    brokers=FIRST_IS_3,
    lag_time="60s",
)
"""A follower restarts, and dies before a controller has reached it; both controllers die too."""
PAUSED_BEFORE_IT_SIGNS = cluster(
    {"at": "5s", "crash": "broker/1"},
    {
        "on": {"node": "broker/0", "purpose": "read cluster", "nth": 27, "when": "before"},
        "pause": "broker/0",
        "for": "8s",
    },
    {"at": "8s", "restart": "broker/1"},
    {"at": "20s", "crash": "broker/2"},
    brokers=[{"id": 0}, {"id": 1, "starts": "500ms"}, {"id": 2, "starts": "500ms"}],
    partitions=2,
)
"""A controller stands still before a write, and goes on when it is deposed."""
STOPPED_BEFORE_IT_LEAVES = cluster(
    {"at": "2s", **ALL, "for": "4s"},
    {"at": "8s", "crash": "broker/1"},
    {"at": "11s", "restart": "broker/1"},
    {"at": "16s", "leave": "broker/1"},
    {"at": "19s", "restart": "broker/1"},
    replicas=3,
)
"""A broker that has opened its replicas leaves in good order: the controller stops them first."""
BACK_WHILE_ITS_LEADER_LEAVES = cluster(
    {"at": "2s", **ALL, "for": "2s"},
    {"at": "6s", "crash": "broker/1"},
    {"at": "10s", "leave": "broker/0"},
    {"at": "12s", "restart": "broker/1"},
    {"at": "24s", "restart": "broker/0"},
    brokers=FIRST_IS_3,
)
"""A follower is back between two attempts of its leader to hand over."""
