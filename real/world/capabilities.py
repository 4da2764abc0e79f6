"""What of a plan a live world cannot do, and why."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.model.plan.faults import Action
from watchkeeper.model.plan.plan import Plan
from watchkeeper.real.faults.faults import HANDLERS
from watchkeeper.real.zookeepers.implementation import Implementation

LACKING = {
    "disk_slow": "the disk of one broker on this machine cannot be slowed down",
    "disk_full": "the disk of one broker on this machine cannot be filled",
}
"""Verb -> why it cannot be done live."""
PAST_THE_PROXY = (
    "Apache's servers talk to one another past the proxy; --zookeeper python can do it"
)
"""Why no fault reaches what passes between Apache's servers."""
BETWEEN_OTHERS = (
    "only what passes between a member and ZooKeeper can be held up, or between brokers that "
    "replicate"
)
"""Why no fault reaches what passes between other processes."""
BY_HAND = frozenset({"unregister", "delete_znode", "write_znode"})
"""Verbs whose writes differ from those of members only in the log of the servers."""


def lacking(
    plan: Plan, zookeeper: Implementation | None = Implementation.PYTHON
) -> Iterator[str]:
    """What of a plan cannot be done live, one sentence each.

    `zookeeper` is None for an external one, whose servers must not be stopped.
    """
    for action in plan.timeline:
        why = _why_not(plan, action, zookeeper)
        if why:
            yield f"timeline[{action.number}]: `{action.label}` cannot be done live: {why}"


def _why_not(plan: Plan, action: Action, zookeeper: Implementation | None) -> str:
    verb = action.verb.name
    if verb not in HANDLERS:
        return LACKING.get(verb, "no world can do it")
    if "zookeeper" in action.target:
        return _why_not_to_servers(action, zookeeper)
    between_others = verb == "partition" and action.option("from", "zookeeper") != "zookeeper"
    if between_others and not (plan.replicates and plan.brokers_against(action)):
        return BETWEEN_OTHERS
    if zookeeper is None and verb in BY_HAND:
        return "a ZooKeeper that runs already does not say who has written"
    return ""


def _why_not_to_servers(action: Action, zookeeper: Implementation | None) -> str:
    """Why an action on servers of a ZooKeeper cannot be done."""
    if zookeeper is None:
        return "the servers of a ZooKeeper that runs already are not ours to stop"
    if action.verb.name not in ("lag", "partition"):
        return ""
    if zookeeper is Implementation.JAVA:
        return PAST_THE_PROXY
    other = str(action.option("from", "zookeeper"))
    if "zookeeper" not in other:
        return "a server can be cut off from the other servers alone"
    if "/" in other:
        return "a server is cut off from all others, and not from one of them"
    if action.option("direction", "both") != "both":
        return "servers are cut off from one another in both directions, and not in one"
    return ""
