"""The bounds of a search of every interleaving: faults of each kind, sizes of groups.

A scenario states them under `bounds:`; otherwise they follow from its timeline: one unit for
each fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from watchkeeper.model.plan.faults import Action
from watchkeeper.model.plan.plan import ClusterPlan, GroupPlan, Plan, ProcessPlan, TopicPlan
from watchkeeper.model.plan.roles import role_of
from watchkeeper.model.trace.trace import mix_in_words


class FaultKind(StrEnum):
    """The faults that a search may inject into a process."""

    CRASH = "crash"
    ABANDON = "abandon"
    RESTART = "restart"
    JOIN = "join"
    LEAVE = "leave"
    EXPIRE = "expire"
    DISCONNECT = "disconnect"
    LOST_REQUEST = "lost_request"
    LOST_REPLY = "lost_reply"
    LATE_REQUEST = "late_request"
    CREATE_TOPIC = "create_topic"
    ADD_PARTITIONS = "add_partitions"
    DELETE_TOPIC = "delete_topic"


TOPIC_CHANGES = (FaultKind.CREATE_TOPIC, FaultKind.ADD_PARTITIONS, FaultKind.DELETE_TOPIC)
"""The changes of topics: no faults, but they need not come either."""
FAULTS = tuple(kind for kind in FaultKind if kind not in TOPIC_CHANGES)
"""The faults of a consumer."""
BROKER_FAULTS = (
    FaultKind.CRASH,
    FaultKind.RESTART,
    FaultKind.JOIN,
    FaultKind.EXPIRE,
    FaultKind.DISCONNECT,
    FaultKind.LEAVE,
    FaultKind.LOST_REQUEST,
    FaultKind.LOST_REPLY,
    FaultKind.LATE_REQUEST,
)
BROKER_JOIN = f"broker_{FaultKind.JOIN}"
"""A broker starts: one that is new, or a second one under an id that is in use."""
KINDS = (
    *(kind.value for kind in FAULTS),
    *(f"broker_{kind}" for kind in BROKER_FAULTS),
    *(kind.value for kind in TOPIC_CHANGES),
)
"""The names of everything that a budget can hold: the faults of consumers, those of brokers,
and the changes of topics."""

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
    """The total number of faults; None for the sum of all kinds."""
    messages: int = 0
    """How many there are in each partition, to be read and committed."""
    begin: Begin = "fresh"
    """Whether consumers start during the search, or are at rest before it."""
    consumers: int | None = None
    """Consumers of each group; None for all."""
    partitions: int | None = None
    """Partitions of all topics together; None for all."""
    brokers: int | None = None
    """Brokers of the cluster; None for all."""

    def of_process(self, *, is_broker: bool) -> frozenset[FaultKind]:
        """Return the faults that a process may suffer."""
        prefix = "broker_" if is_broker else ""
        return frozenset(kind for kind in FAULTS if self.faults.get(f"{prefix}{kind}", 0) > 0)

    @property
    def changes_topics(self) -> bool:
        """Whether topics are created, grown or deleted during the search."""
        return any(self.faults.get(kind, 0) > 0 for kind in TOPIC_CHANGES)


@dataclass(frozen=True, slots=True)
class FromTimeline:
    """The bounds that follow from a timeline, and the entries that no search can model."""

    bounds: Bounds
    left_out: tuple[str, ...]


KIND_OF_VERB = {
    "crash": FaultKind.CRASH,
    "crash_host": FaultKind.CRASH,
    "abandon": FaultKind.ABANDON,
    "restart": FaultKind.RESTART,
    "start": FaultKind.JOIN,
    "leave": FaultKind.LEAVE,
    "expire": FaultKind.EXPIRE,
    "disconnect": FaultKind.DISCONNECT,
    "partition": FaultKind.DISCONNECT,
    "pause": FaultKind.EXPIRE,
    **{kind.value: kind for kind in TOPIC_CHANGES},
}
"""Verb of a timeline -> fault of a search; a pause may cost the session, and is a delay
otherwise."""
DELAYS = frozenset({"delay", "skew", "produce", "lag"})
"""Verbs that every search includes, or that do not affect the order of events."""


def of_timeline(plan: Plan) -> FromTimeline:
    """One unit for each fault of a plan's timeline, and a small cluster."""
    brokers = {broker.node for cluster in plan.clusters for broker in cluster.brokers}
    consumers = {member.node for _, member in plan.consumers()}
    faults: dict[str, int] = {}
    left_out = []
    for action in _by_member(plan):
        fault = _kind(action)
        kind = "" if fault is None else fault.value
        role = role_of(action.target)
        if kind and (action.target in brokers or (role is not None and role.target == "broker")):
            kind = f"broker_{kind}"
        elif fault not in TOPIC_CHANGES and action.verb.name != "lose":
            kind = kind if action.target in consumers else ""
        if kind in KINDS:
            faults[kind] = faults.get(kind, 0) + 1
        elif action.verb.name not in DELAYS:
            left_out.append(action.label)
    late = sum(len(late_brokers(cluster)) for cluster in plan.clusters)
    if late:
        faults[BROKER_JOIN] = max(faults.get(BROKER_JOIN, 0), late)
    bounds = Bounds(
        faults,
        min(sum(faults.values()), SMALL_TOGETHER),
        # Without a message there is no commit by hand, and so no fault during one.
        messages=int(any(group.is_committed_by_hand for group in plan.groups)),
        consumers=SMALL_CONSUMERS,
        partitions=SMALL_PARTITIONS,
    )
    return FromTimeline(bounds, tuple(left_out))


def _by_member(plan: Plan) -> Iterator[Action]:
    """The actions of a timeline, with a member in place of each process that members share.

    A crash and a start concern the whole process in a search, too. A pause may cost the session
    of each of its members.
    """
    for action in plan.timeline:
        members = plan.members_of(action.target)
        for member in members if action.verb.name == "pause" else members[:1]:
            yield replace(action, target=member)


def late_brokers(cluster: ClusterPlan) -> list[str]:
    """The brokers that start after the others, or under the id of an earlier one."""
    ids: set[int] = set()
    late = []
    for broker in cluster.brokers:
        if broker.starts_us != 0 or broker.broker_id in ids:
            late.append(broker.node)
        ids.add(broker.broker_id)
    return late


def _kind(action: Action) -> FaultKind | None:
    if action.verb.name == "abandon" and action.for_us:
        # The process ends after all, and then the session: a search has no clock, so that is
        # a crash whose session expires late.
        return FaultKind.CRASH
    if action.verb.name != "lose":
        return KIND_OF_VERB.get(action.verb.name)
    if action.target == "reply":
        return FaultKind.LOST_REPLY
    is_late = action.option("lands_after") is not None
    return FaultKind.LATE_REQUEST if is_late else FaultKind.LOST_REQUEST


def shrunk(plan: Plan, bounds: Bounds) -> Plan:
    """A plan with no more consumers and partitions than the bounds allow, and without replicas.

    A search is about requests to ZooKeeper: brokers send each other nothing in it.
    """
    groups = tuple(_fewer_consumers(group, bounds.consumers) for group in plan.groups)
    clusters = tuple(
        _fewer_partitions(_fewer_brokers(cluster, bounds.brokers), bounds.partitions)
        for cluster in plan.clusters
    )
    clusters = tuple(replace(cluster, replication=None) for cluster in clusters)
    small = replace(plan, groups=groups, clusters=clusters)
    return replace(small, processes=tuple(_processes_left(small)))


def _processes_left(plan: Plan) -> Iterator[ProcessPlan]:
    """The processes of a smaller plan in which several members are left."""
    left = {member.node for _, member in plan.consumers()}
    left |= {broker.node for cluster in plan.clusters for broker in cluster.brokers}
    for process in plan.processes:
        members = tuple(member for member in process.members if member in left)
        if len(members) > 1:
            yield replace(process, members=members)


def _fewer_consumers(group: GroupPlan, most: int | None) -> GroupPlan:
    """Keep so many consumers: the first of each variant before the second of any."""
    if most is None:
        return group
    seen: Counter[str] = Counter()
    ranks: dict[str, int] = {}
    for consumer in group.consumers:
        ranks[consumer.node] = seen[consumer.variant.name]
        seen[consumer.variant.name] += 1
    kept = {
        consumer.node
        for consumer in sorted(group.consumers, key=lambda consumer: ranks[consumer.node])[:most]
    }
    return replace(
        group, consumers=tuple(consumer for consumer in group.consumers if consumer.node in kept)
    )


def variants_in(plan: Plan) -> dict[str, int]:
    """The variants of a plan's consumers, each with their number."""
    return dict(Counter(member.variant.name for _, member in plan.consumers()))


def mix_of(plan: Plan) -> tuple[str, ...]:
    """The variants of a plan's consumers; empty where all of them are of the plan's own."""
    found = tuple(variants_in(plan))
    return () if plan.has_own_program or set(found) <= {plan.variant} else found


def variants_in_words(plan: Plan) -> str:
    """The variants of a plan's consumers; that of the plan where there are none."""
    return mix_in_words(mix_of(plan), plan.variant)


def _fewer_brokers(cluster: ClusterPlan, most: int | None) -> ClusterPlan:
    """Keep the first brokers; the partitions of a topic that lose theirs move to the first.

    Where brokers elect a controller, the replicas of a partition move to other brokers: an
    election is about how many there are.
    """
    brokers = cluster.brokers[:most]
    kept = {broker.broker_id: None for broker in brokers}
    if most is None or kept.keys() == {broker.broker_id for broker in cluster.brokers}:
        return cluster
    moves = cluster.controller is not None
    return replace(
        cluster,
        brokers=brokers,
        topics=tuple(_on_brokers(topic, tuple(kept), moves=moves) for topic in cluster.topics),
    )


def _on_brokers(topic: TopicPlan, kept: tuple[int, ...], *, moves: bool) -> TopicPlan:
    by_broker = tuple(pair for pair in topic.by_broker if pair[0] in kept)
    if topic.by_broker and not by_broker:
        by_broker = ((kept[0], topic.by_broker[0][1]),)
    replicas = tuple(
        (index, _replicas_on(kept, brokers, moves=moves)) for index, brokers in topic.replicas
    )
    return replace(topic, by_broker=by_broker, replicas=replicas)


def _replicas_on(
    kept: tuple[int, ...], replicas: tuple[int, ...], *, moves: bool
) -> tuple[int, ...]:
    left = tuple(broker for broker in replicas if broker in kept)
    others = tuple(broker for broker in kept if broker not in left)
    least = len(replicas) if moves else 1
    return (*left, *others[: max(least - len(left), 0)])


def _fewer_partitions(cluster: ClusterPlan, most: int | None) -> ClusterPlan:
    """Take partitions away, from the topic and the broker that has most, but never the last."""
    topics = list(cluster.topics)
    while most is not None and sum(topic.size for topic in topics) > most:
        at = max(range(len(topics)), key=lambda index: topics[index].size)
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
