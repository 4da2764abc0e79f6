"""What a search of every interleaving may try: how many faults of which kind, how large a group.

A scenario says it under `bounds:`; where it does not, its timeline does: one unit for each
fault of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from model.faults import Action
from model.plan import ClusterPlan, GroupPlan, Plan, TopicPlan

FAULTS = (
    "crash",
    "restart",
    "join",
    "leave",
    "expire",
    "disconnect",
    "lost_request",
    "lost_reply",
    "ghost",
)
"""What may befall a consumer."""
BROKER_FAULTS = ("crash", "restart", "expire", "disconnect", "leave", "lost_reply")
KINDS = (*FAULTS, *(f"broker_{name}" for name in BROKER_FAULTS))
"""Everything that a budget can hold, by name: what befalls consumers, and brokers."""

Begin = Literal["fresh", "settled"]

SMALL_CONSUMERS = 2
SMALL_PARTITIONS = 4
SMALL_TOGETHER = 2


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bound of a search."""

    faults: Mapping[str, int] = field(default_factory=dict)
    """Kind of fault -> how many there may be."""
    together: int | None = None
    """How many in all; None for all that are given."""
    messages: int = 0
    """How many there are in each partition, to be read and committed."""
    begin: Begin = "fresh"
    """Whether consumers start while it is looked, or have come to rest before."""
    consumers: int | None = None
    """How many of each group; None for all."""
    partitions: int | None = None
    """How many of all topics together; None for all."""

    def of_process(self, *, is_broker: bool) -> frozenset[str]:
        """The faults that may befall a process."""
        prefix = "broker_" if is_broker else ""
        return frozenset(name for name in FAULTS if self.faults.get(f"{prefix}{name}", 0) > 0)


@dataclass(frozen=True, slots=True)
class FromTimeline:
    """Bounds that a timeline suggests, and what of it no search can do."""

    bounds: Bounds
    left_out: tuple[str, ...]


KIND_OF_VERB = {
    "crash": "crash",
    "crash_host": "crash",
    "restart": "restart",
    "start": "join",
    "leave": "leave",
    "expire": "expire",
    "disconnect": "disconnect",
    "partition": "disconnect",
    "pause": "expire",
}
"""What an action of a timeline comes to; a pause may cost the session, and is a delay else."""
DELAYS = frozenset({"delay", "skew", "produce", "lag"})
"""What is in every search anyhow, or has nothing to do with the order of things."""


def of_timeline(plan: Plan) -> FromTimeline:
    """One unit for each fault of a plan's timeline, and a small cluster."""
    brokers = {broker.node for cluster in plan.clusters for broker in cluster.brokers}
    consumers = {member.node for _, member in plan.consumers()}
    faults: dict[str, int] = {}
    left_out = []
    for action in plan.timeline:
        kind = _kind(action)
        if kind and action.target in brokers:
            kind = f"broker_{kind}"
        elif kind and action.target not in consumers and action.verb.name != "lose":
            kind = ""
        if kind in KINDS:
            faults[kind] = faults.get(kind, 0) + 1
        elif action.verb.name not in DELAYS:
            left_out.append(action.label)
    bounds = Bounds(
        faults,
        min(sum(faults.values()), SMALL_TOGETHER),
        consumers=SMALL_CONSUMERS,
        partitions=SMALL_PARTITIONS,
    )
    return FromTimeline(bounds, tuple(left_out))


def _kind(action: Action) -> str:
    if action.verb.name != "lose":
        return KIND_OF_VERB.get(action.verb.name, "")
    if action.target == "reply":
        return "lost_reply"
    return "ghost" if action.option("lands_after") is not None else "lost_request"


def shrunk(plan: Plan, bounds: Bounds) -> Plan:
    """A plan with no more consumers and partitions than the bounds allow."""
    groups = tuple(_fewer_consumers(group, bounds.consumers) for group in plan.groups)
    clusters = tuple(_fewer_partitions(cluster, bounds.partitions) for cluster in plan.clusters)
    return replace(plan, groups=groups, clusters=clusters)


def _fewer_consumers(group: GroupPlan, most: int | None) -> GroupPlan:
    return group if most is None else replace(group, consumers=group.consumers[:most])


def _fewer_partitions(cluster: ClusterPlan, most: int | None) -> ClusterPlan:
    """Take partitions away, from the topic and the broker that has most, but never the last."""
    topics = list(cluster.topics)
    while most is not None and sum(one.size for one in topics) > most:
        at = max(range(len(topics)), key=lambda one: topics[one].size)
        if topics[at].size <= 1:
            break
        topics[at] = _one_less(topics[at])
    return replace(cluster, topics=tuple(topics))


def _one_less(topic: TopicPlan) -> TopicPlan:
    if not topic.by_broker:
        return replace(topic, replicas=topic.replicas[:-1])
    most = max(topic.by_broker, key=lambda pair: pair[1])
    fewer = tuple(
        (broker, count - 1 if (broker, count) == most else count)
        for broker, count in topic.by_broker
    )
    return replace(
        topic,
        by_broker=tuple(pair for pair in fewer if pair[1] > 0),
        replicas=topic.replicas[:-1],
    )
