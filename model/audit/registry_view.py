"""What a snapshot of the registry says: brokers, topics, groups, members and claims.

Both layouts are understood, also side by side, since clusters are upgraded one process at
a time. What does not parse is passed over, and put down with its path.

One partition may have two names. Where a topic is registered in the 0.8 way, a claim under
`broker-partition` (as clients wrote them that put the leader into the name) means the
numbered partition; unless that broker has registered such a partition in the 0.7 way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from model import registry
from model.asks import Partition
from model.filters import BadFilter, topic_filter
from model.payloads import PartitionState, TopicAssignment
from model.registry import BadPayload, BrokerInfo, Layout
from model.snapshot import Snapshot
from model.subscriptions import Subscription, decode_consumer

MOST_PARTITIONS = 100_000
"""A broker with more partitions of one topic is taken for a slip of the pen."""
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
    """Why its partitions are not known, if they are not."""

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
            found += [registry.partition_07(self.name, broker, index) for index in range(count)]
        return [one for one in found if self.canonical(one) == one]

    def canonical(self, partition: Partition) -> Partition:
        """The name under which a partition is counted, whatever name it was claimed under."""
        broker, index = _parts(partition)
        if broker is None or index not in self.replicas:
            return partition
        is_numbered = index >= self.counts.get(broker, 0)
        if is_numbered or self.leaders.get(index, -1) == broker:
            return Partition(self.name, str(index))
        return partition

    def broker_of(self, partition: Partition) -> int | None:
        """The broker that serves a partition; None where nothing says which."""
        broker, index = _parts(partition)
        if broker is not None:
            return broker
        if index in self.leaders:
            return self.leaders[index] if self.leaders[index] >= 0 else None
        return next(iter(self.replicas.get(index, ())), None)


def _parts(partition: Partition) -> tuple[int | None, int]:
    """The broker in a partition's name, if there is one, and the number; -1 for none."""
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
    """By the one name under which it is counted."""
    holder: str
    """What the znode holds; empty where that is no text."""
    session: int
    member: str | None
    """Whom it names, if there is a registration of that id."""
    is_alive: bool
    """Whether it belongs to the session of whom it names."""
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
    """What keeps anyone from computing what the group should look like."""
    unit: str = "stream"


@dataclass(slots=True)
class Census:
    """Everything that is registered."""

    brokers: dict[int, BrokerInfo] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    bad: list[tuple[str, str]] = field(default_factory=list)
    """Path, and what is wrong with what it holds."""


def take(snapshot: Snapshot) -> Census:
    """Read a snapshot."""
    census = Census()
    _take_brokers(snapshot, census)
    for name in snapshot.children(registry.TOPICS):
        census.topics[name] = _topic(snapshot, census, name)
    for name in snapshot.children(registry.GROUPS):
        census.groups[name] = _group(snapshot, census, name)
    return census


def _take_brokers(snapshot: Snapshot, census: Census) -> None:
    for name in snapshot.children(registry.BROKER_IDS):
        path = f"{registry.BROKER_IDS}/{name}"
        if not name.isdecimal():
            census.bad.append((path, f"{path} is named by no number, as a broker's id has to be"))
            continue
        try:
            census.brokers[int(name)] = registry.decode_broker(path, snapshot.data(path))
        except BadPayload as error:
            census.bad.append((path, str(error)))


def _topic(snapshot: Snapshot, census: Census, name: str) -> Topic:
    topic = Topic(name)
    path = registry.topic(name)
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
    for child in snapshot.children(registry.partitions(name)):
        state = registry.partition_state(Partition(name, child))
        if child.isdecimal() and state in snapshot.nodes:
            try:
                seen = PartitionState.decode(state, snapshot.data(state))
                topic.leaders[int(child)] = seen.leader
            except BadPayload as error:
                census.bad.append((state, str(error)))
    return topic


def _count(path: str, data: bytes | None) -> int:
    number = registry.decode_number(path, data)
    if not 0 <= number <= MOST_PARTITIONS:
        raise BadPayload(path, data, f"a number of partitions from 0 to {MOST_PARTITIONS}")
    return number


def _group(snapshot: Snapshot, census: Census, name: str) -> Group:
    group = Group(name)
    for child in snapshot.children(registry.members(name)):
        path = registry.member(name, child)
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
    wanted_topics = {topic for one in group.members.values() for topic in one.wanted}
    for topic in sorted(wanted_topics & set(census.topics)):
        if census.topics[topic].unclear:
            group.unclear.append(f"which partitions {topic} has is not known")
    for topic in snapshot.children(registry.owners(name)):
        above = registry.topic_owners(name, topic)
        for child in snapshot.children(above):
            _take_claim(snapshot, census, group, Partition(topic, child))
    by_stream = any(one.holder != one.member for one in group.claims if one.member)
    if not by_stream and any(one.member for one in group.claims):
        group.unit = "consumer"
    _take_offsets(snapshot, census, group)
    return group


def _streams(census: Census, subscription: Subscription) -> dict[str, int]:
    """Topic -> streams; a filter takes every topic that it allows."""
    if not subscription.is_filter:
        return dict(subscription.streams)
    allowed = topic_filter(subscription)
    return {name: subscription.filter_streams for name in census.topics if allowed.allows(name)}


def _take_claim(snapshot: Snapshot, census: Census, group: Group, partition: Partition) -> None:
    path = registry.owner(group.name, partition)
    node = snapshot.nodes[path]
    try:
        holder = registry.decode_text(path, node.data)
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


def _take_offsets(snapshot: Snapshot, census: Census, group: Group) -> None:
    above = registry.offsets(group.name)
    for topic in snapshot.children(above):
        for child in snapshot.children(f"{above}/{topic}"):
            partition = Partition(topic, child)
            path = registry.offset(group.name, partition)
            try:
                group.offsets[partition] = registry.decode_number(path, snapshot.data(path))
            except BadPayload as error:
                census.bad.append((path, str(error)))
