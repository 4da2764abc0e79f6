"""Which actions of a plan a live world cannot perform, and why."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.plan.faults import Action
from watchkeeper.model.plan.plan import Plan
from watchkeeper.real.faults.faults import HANDLERS

LACKING = {
    "disk_slow": "the disk of one broker on this machine cannot be slowed down",
    "disk_full": "the disk of one broker on this machine cannot be filled",
    "lag": "a follower falls behind when its leader's messages come late, and "
    "the servers talk to one another past the proxy",
}
"""Verb -> why it cannot be done live."""
BY_HAND = frozenset({"unregister", "delete_znode", "write_znode"})
"""Verbs whose writes differ from those of members only in the log of the servers."""


def lacking(plan: Plan, *, is_existing: bool = False) -> Iterator[str]:
    """The actions of a plan that cannot be done live, one sentence each.

    `is_existing`: the ZooKeeper is external, so its servers must not be stopped.
    """
    for action in plan.timeline:
        why = _why_not(plan, action)
        if is_existing and not why and "zookeeper" in action.target:
            why = "the servers of a ZooKeeper that runs already are not ours to stop"
        if is_existing and not why and action.verb.name in BY_HAND:
            why = "a ZooKeeper that runs already does not say who has written"
        if why:
            yield f"timeline[{action.number}]: `{action.label}` cannot be done live: {why}"


def _why_not(plan: Plan, action: Action) -> str:
    if action.verb.name not in HANDLERS:
        return LACKING.get(action.verb.name, "no world can do it")
    is_server = "zookeeper" in action.target
    if action.verb.name == "partition" and is_server:
        return "the servers talk to one another past the proxy"
    if action.verb.name == "partition" and action.option("from", "zookeeper") != "zookeeper":
        return "only what passes between a member and ZooKeeper can be held up"
    return ""
