"""The faults that `hardened` is tested with: one row each, with every verb of the timeline."""

from __future__ import annotations

from typing import Any

Timeline = list[dict[str, Any]]

LEADER = "zookeeper/leader"
FOLLOWER = "zookeeper/follower"
"""Roles: which server leads depends on the seed."""


def _once(verb: str, target: str, **options: Any) -> Timeline:
    return [{"at": "6s", verb: target, **_words(options)}]


def _lost(what: str, node: str, purpose: str, **options: Any) -> Timeline:
    return [{"on": {"node": node, "purpose": purpose}, "lose": what, **options}]


def _then(first: Timeline, at: str, verb: str, target: str, **options: Any) -> Timeline:
    return [*first, {"at": at, verb: target, **_words(options)}]


def _words(options: dict[str, Any]) -> dict[str, Any]:
    return {name.rstrip("_"): value for name, value in options.items()}


MEMBERS: dict[str, Timeline] = {
    "a consumer is killed": _once("crash", "group/1"),
    "a consumer is killed and restarts under its id": _then(
        _once("crash", "group/1"), "6500ms", "restart", "group/1"
    ),
    "a consumer is killed and restarts under a new id": _then(
        _once("crash", "group/1"), "6500ms", "restart", "group/1", as_="new id"
    ),
    "a consumer's machine is lost": _once("crash_host", "group/1"),
    "a consumer leaves": _once("leave", "group/1"),
    "a consumer leaves and starts again": _then(
        _once("leave", "group/1"), "9s", "start", "group/1"
    ),
    "a consumer is paused longer than its session timeout": _once("pause", "group/1", for_="5s"),
    "a consumer is paused for a moment": _once("pause", "group/1", for_="800ms"),
    "a consumer with a wrong clock registers again": _then(
        [{"at": "3s", "skew": "group/1", "by": "1h"}], "6s", "expire", "group/1"
    ),
    "killed between two steps of a rebalance": [
        {"on": {"node": "group/2", "purpose": "claim", "when": "after_reply"}, "crash": "group/2"}
    ],
}

SESSIONS: dict[str, Timeline] = {
    "a session expires and its client learns of it at once": _once("expire", "group/1"),
    "a session expires and its client learns of it later": _once(
        "expire", "group/1", unknown="4s"
    ),
    "a session outlives its program": _once("abandon", "group/1", for_="4s"),
    "a connection breaks": _once("disconnect", "group/1", for_="300ms"),
    "a broker's session expires": _once("expire", "broker/1"),
    "a broker's connection breaks": _once("disconnect", "broker/1", for_="300ms"),
}

MESSAGES: dict[str, Timeline] = {
    "the reply to a registration is lost": _lost("reply", "group/2", "register"),
    "the reply to a claim is lost": _lost("reply", "group/2", "claim"),
    "the reply to a release is lost": _lost("reply", "group/0", "release"),
    "the reply to a commit is lost": _lost("reply", "group/1", "commit"),
    "a claim is lost": _lost("request", "group/2", "claim"),
    "a claim is lost and takes effect later": _lost(
        "request", "group/2", "claim", lands_after="400ms"
    ),
    "a release is lost and takes effect later": _lost(
        "request", "group/0", "release", lands_after="400ms"
    ),
    "a commit is lost and takes effect later": _lost(
        "request", "group/1", "commit", lands_after="400ms"
    ),
}

LINKS: dict[str, Timeline] = {
    "a consumer is cut off from ZooKeeper": _once("partition", "group/1", for_="5s"),
    "a consumer cannot send to ZooKeeper": _once(
        "partition", "group/1", direction="to", for_="5s"
    ),
    "a consumer cannot receive from ZooKeeper": _once(
        "partition", "group/1", direction="from", for_="5s"
    ),
    "a consumer is cut off from the brokers": _once(
        "partition", "group/1", from_="brokers", for_="5s"
    ),
    "a broker is cut off from ZooKeeper": _once("partition", "broker/1", for_="5s"),
    "messages to and from a consumer take longer": [
        {"at": "500ms", "delay": "group/1", "by": "80ms", "for": "8s"}
    ],
    "messages to and from a broker take longer": [
        {"at": "500ms", "delay": "broker/1", "by": "80ms", "for": "8s"}
    ],
}

ENSEMBLE: dict[str, Timeline] = {
    "the leader of ZooKeeper is killed": _once("crash", LEADER),
    "the leader of ZooKeeper is paused": _once("pause", LEADER, for_="5s"),
    "the leader of ZooKeeper is cut off": _once("partition", LEADER, for_="5s"),
    "a follower is killed": _once("crash", FOLLOWER),
    "a follower is killed and restarts": _then(
        _once("crash", FOLLOWER), "9s", "restart", FOLLOWER
    ),
    "a follower is paused": _once("pause", FOLLOWER, for_="5s"),
    "a follower is cut off": _once("partition", FOLLOWER, for_="5s"),
    "a follower falls behind": [{"at": "500ms", "lag": FOLLOWER, "by": "700ms", "for": "8s"}],
    "ZooKeeper is restarted server by server": _once("rolling_restart", "zookeeper", each="2s"),
    "ZooKeeper has no quorum": _once("quorum_loss", "zookeeper", for_="6s"),
}

BROKERS: dict[str, Timeline] = {
    "a broker is killed and restarts": _then(
        _once("crash", "broker/1"), "11s", "restart", "broker/1"
    ),
    "a broker's machine is lost": _once("crash_host", "broker/1"),
    "a broker leaves and starts again": _then(
        _once("leave", "broker/1"), "11s", "start", "broker/1"
    ),
    "a broker is paused longer than its session timeout": _once("pause", "broker/1", for_="5s"),
    "a broker moves": _once("move", "broker/1", to="spare.example:9093"),
    "partitions are added": _once("add_partitions", "clicks", partitions_per_broker=3),
    "a topic is created": _once("create_topic", "views", partitions_per_broker=2),
    "a topic is deleted": _then(
        _once("create_topic", "views", partitions_per_broker=2), "12s", "delete_topic", "views"
    ),
    "another broker leads a partition": _once("move_leader", "clicks/0", to="broker/1"),
}

CREATED = {"create_topic": "views", "partitions_per_broker": 2}
ADMINISTRATOR: dict[str, Timeline] = {
    "the administrator is killed while a topic is created": [
        {"at": "7s", **CREATED},
        {"at": "7002ms", "crash": "administrator"},
        {"at": "9s", "restart": "administrator"},
    ],
    "the administrator leaves before a broker crashes": [
        *_once("leave", "administrator"),
        {"at": "7s", "crash": "broker/1"},
        {"at": "11s", "start": "administrator"},
    ],
    "the administrator loses its session while a topic is created": [
        *_once("disconnect", "administrator", for_="8s"),
        {"at": "7s", **CREATED},
    ],
}

STRANGER = "/consumers/group/ids/stranger"
OPERATOR: dict[str, Timeline] = {
    "an operator deletes a consumer's registration": _once("unregister", "group/1"),
    "an operator registers a consumer that cannot be read": _then(
        _once("write_znode", STRANGER, data="-"), "9s", "delete_znode", STRANGER
    ),
    "an operator makes a broker's registration unreadable": _once(
        "write_znode", "/brokers/ids/1", data="-", for_="4s"
    ),
}

FAULTS = {
    **MEMBERS,
    **SESSIONS,
    **MESSAGES,
    **LINKS,
    **ENSEMBLE,
    **BROKERS,
    **ADMINISTRATOR,
    **OPERATOR,
}

ONLY_08 = frozenset({"another broker leads a partition", *ADMINISTRATOR})
"""In the 0.7 layout the name of a partition contains its broker, and no administrator runs."""
BY_FILTER = frozenset(
    {
        "a topic is created",
        "a topic is deleted",
        "the administrator is killed while a topic is created",
        "the administrator loses its session while a topic is created",
    }
)
"""The group subscribes with a filter, so that a new topic concerns it."""
