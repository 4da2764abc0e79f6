"""A snapshot of the registry as brokers, topics, groups, members and claims.

Both layouts are read, also side by side, since clusters are upgraded one process at a time. A
znode that does not parse is skipped and recorded with its path.

One partition may have two names. If a topic is registered in the 0.8 layout, a claim under
`broker-partition` (as clients wrote them that put the leader into the name) means the numbered
partition; unless that broker has registered such a partition in the 0.7 layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.snapshot import Snapshot
from watchkeeper.model.group.variants import Unit
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload, BrokerInfo, Layout
from watchkeeper.model.registry.payloads import PartitionState, TopicAssignment
from watchkeeper.model.registry.subscription import Subscription, decode_consumer
from watchkeeper.model.registry.topic_filter import BadFilter, topic_filter

MOST_PARTITIONS = 100_000
"""A broker with more partitions of one topic is taken for a typing error."""
MOST_STREAMS = 10_000
"""Likewise a consumer with more streams of one topic."""


@dataclass(slots=True)
class Topic:
    """A topic as it is registered, in either layout or in both."""

    name: str
    counts: dict[int, int] = field(default_factory=dict)
    """0.7: broker -> how many partitions it has."""
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """0.8: partition -> the brokers that replicate it."""
    leaders: dict[int, int] = field(default_factory=dict)
    """0.8: partition -> the broker that leads it."""
    unclear: str = ""
    """The reason why its partitions are unknown; empty if they are known."""

    @property
    def layout(self) -> Layout:
        """The layout by which its partitions are sorted: 0.8 where all are numbered."""
        return "0.7" if self.counts else "0.8"

    @property
    def is_mixed(self) -> bool:
        """Whether it is registered in both layouts."""
        return bool(self.counts and self.replicas)

    def partitions(self) -> list[Partition]:
        """All its partitions, each under one name."""
        found = [Partition(self.name, str(index)) for index in sorted(self.replicas)]
        for broker, count in sorted(self.counts.items()):
            found += [paths.partition_07(self.name, broker, index) for index in range(count)]
        return [path for path in found if self.canonical(path) == path]

    def canonical(self, partition: Partition) -> Partition:
        """The canonical name of a partition, for any name of a claim."""
        broker, index = _parts(partition)
        if broker is None or index not in self.replicas:
            return partition
        is_numbered = index >= self.counts.get(broker, 0)
        if is_numbered or self.leaders.get(index, -1) == broker:
            return Partition(self.name, str(index))
        return partition

    def broker_of(self, partition: Partition) -> int | None:
        """The broker that serves a partition; None if it is unknown."""
        broker, index = _parts(partition)
        if broker is not None:
            return broker
        if index in self.leaders:
            return self.leaders[index] if self.leaders[index] >= 0 else None
        return next(iter(self.replicas.get(index, ())), None)


def _parts(partition: Partition) -> tuple[int | None, int]:
    """The broker in a partition's name, if any, and the number; -1 for none."""
    broker, dash, index = partition.name.rpartition("-")
    if not index.isdecimal() or (dash and not broker.isdecimal()):
        return None, -1
    return int(broker) if dash else None, int(index)


@dataclass(frozen=True, slots=True)
class Registered:
    """A member by its registration."""

    name: str
    session: int
    wanted: dict[str, int]
    """Topic -> streams; filters are expanded."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An owner znode."""

    path: str
    partition: Partition
    """By its canonical name."""
    holder: str
    """The data of the znode; empty if it is not text."""
    session: int
    member: str | None
    """The member that the data names, if its id is registered."""
    is_alive: bool
    """Whether the znode belongs to the session of that member."""
    is_alias: bool = False
    """Whether it was made under another name of the partition."""


@dataclass(slots=True)
class Group:
    """A group as it is registered."""

    name: str
    members: dict[str, Registered] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    offsets: dict[Partition, int] = field(default_factory=dict)
    """By the names under which they are stored."""
    unclear: list[str] = field(default_factory=list)
    """The reasons why the target assignment of a group cannot be computed."""
    unit: Unit = Unit.STREAM


@dataclass(slots=True)
class RegistryView:
    """Everything that is registered."""

    brokers: dict[int, BrokerInfo] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    bad: list[tuple[str, str]] = field(default_factory=list)
    """Path, and the problem of its data."""


def take(snapshot: Snapshot) -> RegistryView:
    """Read a snapshot."""
    census = RegistryView()
    _take_brokers(snapshot, census)
    for name in snapshot.children(paths.TOPICS):
        census.topics[name] = _topic(snapshot, census, name)
    for name in snapshot.children(paths.GROUPS):
        census.groups[name] = _group(snapshot, census, name)
    return census


def _take_brokers(snapshot: Snapshot, census: RegistryView) -> None:
    for name in snapshot.children(paths.BROKER_IDS):
        path = f"{paths.BROKER_IDS}/{name}"
        if not name.isdecimal():
            census.bad.append((path, f"{path} is named by no number, as a broker's id has to be"))
            continue
        try:
            census.brokers[int(name)] = paths.decode_broker(path, snapshot.data(path))
        except BadPayload as error:
            census.bad.append((path, str(error)))


def _topic(snapshot: Snapshot, census: RegistryView, name: str) -> Topic:
    topic = Topic(name)
    path = paths.topic(name)
    try:
        for child in snapshot.children(path):
            if child.isdecimal():
                counted = f"{path}/{child}"
                topic.counts[int(child)] = _count(counted, snapshot.data(counted))
        data = snapshot.data(path)
        if data and (not topic.counts or b"partitions" in data):
            topic.replicas = dict(TopicAssignment.decode(path, data).replicas)
    except BadPayload as error:
        topic.unclear = str(error)
        census.bad.append((error.path, str(error)))
    for child in snapshot.children(paths.partitions(name)):
        state = paths.partition_state(Partition(name, child))
        if child.isdecimal() and state in snapshot.nodes:
            try:
                seen = PartitionState.decode(state, snapshot.data(state))
                topic.leaders[int(child)] = seen.leader
            except BadPayload as error:
                census.bad.append((state, str(error)))
    return topic


def _count(path: str, data: bytes | None) -> int:
    number = paths.decode_number(path, data)
    if not 0 <= number <= MOST_PARTITIONS:
        raise BadPayload(path, data, f"a number of partitions from 0 to {MOST_PARTITIONS}")
    return number


def _group(snapshot: Snapshot, census: RegistryView, name: str) -> Group:
    group = Group(name)
    for child in snapshot.children(paths.members(name)):
        path = paths.member(name, child)
        wanted: dict[str, int] = {}
        try:
            wanted = _streams(census, decode_consumer(path, snapshot.data(path)))
        except BadPayload as error:
            census.bad.append((path, str(error)))
            group.unclear.append(f"what {child} wants is not known")
        except BadFilter as error:
            group.unclear.append(f"what {child} wants is not known: {error}")
        if max(wanted.values(), default=0) > MOST_STREAMS:
            group.unclear.append(f"{child} wants more than {MOST_STREAMS} streams of a topic")
            wanted = {}
        group.members[child] = Registered(child, snapshot.nodes[path].session, wanted)
    wanted_topics = {topic for member in group.members.values() for topic in member.wanted}
    for topic in sorted(wanted_topics & set(census.topics)):
        if census.topics[topic].unclear:
            group.unclear.append(f"which partitions {topic} has is not known")
    for topic in snapshot.children(paths.owners(name)):
        above = paths.topic_owners(name, topic)
        for child in snapshot.children(above):
            _take_claim(snapshot, census, group, Partition(topic, child))
    by_stream = any(claim.holder != claim.member for claim in group.claims if claim.member)
    if not by_stream and any(claim.member for claim in group.claims):
        group.unit = Unit.CONSUMER
    _take_offsets(snapshot, census, group)
    return group


def _streams(census: RegistryView, subscription: Subscription) -> dict[str, int]:
    """Topic -> streams; a filter takes every topic that it allows."""
    if not subscription.is_filter:
        return dict(subscription.streams)
    allowed = topic_filter(subscription)
    return {name: subscription.filter_streams for name in census.topics if allowed.allows(name)}


def _take_claim(
    snapshot: Snapshot, census: RegistryView, group: Group, partition: Partition
) -> None:
    path = paths.owner(group.name, partition)
    node = snapshot.nodes[path]
    try:
        holder = paths.decode_text(path, node.data)
    except BadPayload as error:
        census.bad.append((path, str(error)))
        holder = ""
    topic = census.topics.get(partition.topic)
    counted = partition if topic is None else topic.canonical(partition)
    named = [name for name in _named_by(holder) if name in group.members]
    mine = [name for name in named if group.members[name].session == node.session]
    group.claims.append(
        Claim(
            path=path,
            partition=counted,
            holder=holder,
            session=node.session,
            member=next(iter([*mine, *named]), None),
            is_alive=bool(mine) and node.session != 0,
            is_alias=counted != partition,
        )
    )


def _named_by(holder: str) -> list[str]:
    """The ids that an owner znode may name: it holds a consumer's id or that of a thread."""
    consumer, dash, thread = holder.rpartition("-")
    return [consumer, holder] if dash and thread.isdecimal() else [holder]


def _take_offsets(snapshot: Snapshot, census: RegistryView, group: Group) -> None:
    above = paths.offsets(group.name)
    for topic in snapshot.children(above):
        for child in snapshot.children(f"{above}/{topic}"):
            partition = Partition(topic, child)
            path = paths.offset(group.name, partition)
            try:
                group.offsets[partition] = paths.decode_number(path, snapshot.data(path))
            except BadPayload as error:
                census.bad.append((path, str(error)))
