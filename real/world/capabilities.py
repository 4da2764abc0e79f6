"""What a live world can do, and why it cannot do the rest."""

from __future__ import annotations

from collections.abc import Iterator

from model.faults import Action
from model.plan import Plan
from real.nemesis import DEEDS

LACKING = {
    "disk_slow": "nobody can slow down the disk of one broker on this machine",
    "disk_full": "nobody can fill the disk of one broker on this machine",
    "lag": "a follower falls behind when its leader's messages come late, and "
    "the servers talk to one another past the proxy",
}
"""Verb -> why it cannot be done for real."""


def lacking(plan: Plan, *, is_existing: bool = False) -> Iterator[str]:
    """What of a plan cannot be done for real, a sentence each.

    `is_existing` says that the ZooKeeper runs already and is not ours to stop.
    """
    for action in plan.timeline:
        why = _why_not(plan, action)
        if is_existing and not why and "zookeeper" in action.target:
            why = "the servers of a ZooKeeper that runs already are not ours to stop"
        if why:
            yield f"timeline[{action.number}]: `{action.label}` cannot be done live: {why}"


def _why_not(plan: Plan, action: Action) -> str:
    if action.verb.name not in DEEDS:
        return LACKING.get(action.verb.name, "no world can do it")
    is_server = "zookeeper" in action.target
    if action.verb.name == "partition" and is_server:
        return "the servers talk to one another past the proxy"
    if action.verb.name == "partition" and action.option("from", "zookeeper") != "zookeeper":
        return "only what passes between a member and ZooKeeper can be held up"
    return ""
