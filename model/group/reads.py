"""Steps 1 to 7 of the pages: the reads of a rebalance, one by one, and the assignment.

`pipelined_reads` is the hardened form of the reads; the assignment is the same.

The reads are separate requests, so their results together need not have been true at any
one moment. That is sound as long as a watch that was set before them fires for every change
in between: the member then rebalances again.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from watchkeeper.model.actor.effects import Partition, emit
from watchkeeper.model.actor.errors import NoNode
from watchkeeper.model.actor.operations import GetChildren, GetData, Purpose
from watchkeeper.model.actor.retry import Requests, read_or_none
from watchkeeper.model.group.assignment import TopicView, share, topic_view
from watchkeeper.model.group.state import (
    Attempt,
    PartitionList,
    id_path,
    stream_ids,
    stream_number,
)
from watchkeeper.model.group.variants import Unit
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import TopicAssignment
from watchkeeper.model.registry.subscription import Subscription, decode_consumer
from watchkeeper.model.registry.topic_filter import topic_filter
from watchkeeper.model.trace.kinds import EventKind


async def read_self(attempt: Attempt) -> None:
    """Read the subscription in the own registration; NoNode if it is gone."""
    path = id_path(attempt.me, attempt.state)
    seen = await attempt.requests(GetData(path, False, "read self"))
    attempt.subscription = decode_consumer(path, seen.data)


async def read_brokers(attempt: Attempt) -> None:
    """Read the addresses of the brokers; in the 0.8 layout only as shipped."""
    if attempt.me.layout == "0.8" and not attempt.me.variant.is_shipped:
        return
    for name in await _children(attempt, paths.BROKER_IDS, "read brokers"):
        number = paths.broker_id_of(paths.BROKER_IDS, name)
        path = paths.broker(number)
        seen = await attempt.requests(GetData(path, False, "read brokers"))
        attempt.addresses[number] = paths.decode_broker(path, seen.data).address


async def read_members(attempt: Attempt) -> None:
    """Step 3: CG, all consumers of the group and their subscriptions."""
    group = attempt.me.group
    members: list[tuple[str, Subscription]] = []
    for name in sorted(await _children(attempt, paths.members(group), "read members")):
        path = paths.member(group, name)
        seen = await attempt.requests(GetData(path, False, "read members"))
        members.append((name, decode_consumer(path, seen.data)))
    attempt.members = tuple(members)
    if any(subscription.is_filter for _, subscription in attempt.members):
        await _read_all_topics(attempt)


async def read_partitions(attempt: Attempt) -> None:
    """Steps 1 and 2: for each topic T of this member, PT, all partitions producing it."""
    wanted = attempt.subscription or attempt.me.subscription
    if wanted.is_filter:
        await _read_all_topics(attempt)
    choose_topics(attempt, wanted)
    read = _read_topic_07 if attempt.me.layout == "0.7" else _read_topic_08
    for topic in attempt.topics:
        attempt.partitions[topic] = PartitionList(tuple(await read(attempt, topic)))


def choose_topics(attempt: Attempt, wanted: Subscription) -> None:
    """Step 1: choose the topics of this attempt."""
    hides_internal = attempt.me.settings.exclude_internal_topics
    topics = topics_of(wanted, attempt.all_topics or (), hides_internal=hides_internal)
    only = attempt.only_topic
    attempt.topics = topics if only is None else tuple(topic for topic in topics if topic == only)


async def _read_all_topics(attempt: Attempt) -> None:
    if attempt.all_topics is None:
        listed = await _children(attempt, paths.TOPICS, "read partitions")
        attempt.all_topics = tuple(sorted(listed))


def topics_of(
    subscription: Subscription, listed: Iterable[str], *, hides_internal: bool
) -> tuple[str, ...]:
    """Return the topics of a subscription, sorted, out of all `listed` ones."""
    if not subscription.is_filter:
        return tuple(sorted(name for name, _ in subscription.streams))
    allowed = topic_filter(subscription)
    return tuple(
        name for name in sorted(listed) if allowed.allows(name, exclude_internal=hides_internal)
    )


async def _read_topic_07(attempt: Attempt, topic: str) -> list[Partition]:
    found: list[Partition] = []
    for name in await _children(attempt, paths.topic(topic), "read partitions"):
        path = paths.topic_broker(topic, paths.broker_id_of(paths.topic(topic), name))
        seen = await attempt.requests(GetData(path, False, "read partitions"))
        found.extend(partitions_07(topic, name, seen.data))
    return found


@lru_cache(maxsize=4096)
def partitions_07(topic: str, broker: str, data: bytes | None) -> tuple[Partition, ...]:
    """Return the partitions of a topic on a broker, by the count that it registered."""
    count = paths.decode_number(paths.topic_broker(topic, int(broker)), data)
    return tuple(paths.partition_07(topic, int(broker), index) for index in range(count))


async def _read_topic_08(attempt: Attempt, topic: str) -> list[Partition]:
    try:
        seen = await attempt.requests(GetData(paths.topic(topic), False, "read partitions"))
    except NoNode:
        return []
    return partitions_08(topic, seen.data)


def partitions_08(topic: str, data: bytes | None) -> list[Partition]:
    """Return the partitions of a topic, by its registration."""
    replicas = TopicAssignment.decode(paths.topic(topic), data).replicas
    return [Partition(topic, str(index)) for index, _ in replicas]


async def _children(attempt: Attempt, path: str, purpose: Purpose) -> tuple[str, ...]:
    try:
        return await attempt.requests(GetChildren(path, False, purpose))
    except NoNode:
        return ()


# --- the assignment --------------------------------------------------------------------


async def assign_shares(attempt: Attempt) -> None:
    """Steps 4 to 7: sort PT and CG, and compute the own share."""
    me = attempt.me
    streams = _streams_of_topics(
        me.variant.unit,
        attempt.topics,
        attempt.members,
        attempt.all_topics or (),
        me.settings.exclude_internal_topics,
    )
    none = PartitionList()
    attempt.view = tuple(
        [
            _sorted_view(topic, attempt.partitions.get(topic, none), of_topic, me.layout)
            for topic, of_topic in zip(attempt.topics, streams, strict=True)
        ]
    )
    await take_share(attempt)


async def take_share(attempt: Attempt) -> None:
    """Steps 6 and 7: compute the own share of `attempt.view`."""
    me = attempt.me
    consumer_id = attempt.state.consumer_id
    unit = me.variant.unit
    mine = [wanted for name, wanted in attempt.members if name == consumer_id]
    topics, hides_internal = attempt.all_topics or (), me.settings.exclude_internal_topics
    counts = [
        count
        for wanted in mine
        for count in _streams_by_topic(wanted, topics, hides_internal).values()
    ]
    most = max(counts, default=0)
    shares = share(me.assignor, attempt.view, stream_ids(unit, consumer_id, most))
    numbered = [
        (stream_number(unit, consumer_id, stream), partitions)
        for stream, partitions in shares.items()
    ]
    attempt.assigned = tuple(
        [(partition, number) for number, partitions in numbered for partition in partitions]
    )
    plans = {topic.topic: digests(me.assignor, topic) for topic in attempt.view}
    taken: dict[str, list[str]] = {topic: [] for topic in plans}
    for partition, _ in attempt.assigned:
        taken[partition.topic].append(partition.name)
    await emit(EventKind.ASSIGNED, plans=plans, shares=taken)


# Members of one group read the same and sort the same. Where many of them live in one process,
# as in a simulation, each of these is computed once for all of them.


@lru_cache(maxsize=64)
def _streams_of_topics(
    unit: Unit,
    topics: tuple[str, ...],
    members: tuple[tuple[str, Subscription], ...],
    all_topics: tuple[str, ...],
    hides_internal: bool,
) -> tuple[tuple[str, ...], ...]:
    """Return CG of each topic: its streams, or, as the pages count, its consumers."""
    counted = [
        (consumer, _streams_by_topic(wanted, all_topics, hides_internal))
        for consumer, wanted in members
    ]
    return tuple(
        tuple(
            stream
            for consumer, counts in counted
            if topic in counts
            for stream in stream_ids(unit, consumer, counts[topic])
        )
        for topic in topics
    )


def _streams_by_topic(
    wanted: Subscription, all_topics: tuple[str, ...], hides_internal: bool
) -> dict[str, int]:
    """Return topic -> number of streams of a member, with its filter expanded."""
    if not wanted.is_filter:
        return dict(wanted.streams)
    names = topics_of(wanted, all_topics, hides_internal=hides_internal)
    return dict.fromkeys(names, wanted.filter_streams)


@lru_cache(maxsize=64)
def _sorted_view(
    topic: str, read: PartitionList, streams: tuple[str, ...], layout: paths.Layout
) -> TopicView:
    """Sort what was read of a topic: steps 4 and 5."""
    return topic_view(topic, read.partitions, streams, layout)


@lru_cache(maxsize=256)
def digests(assignor: str, topic: TopicView) -> tuple[str, str]:
    """Return two short hashes: of the view of a topic, and of the decision made from it.

    The first ignores order; the second does not, since the assignment depends on it.
    """
    names = [partition.name for partition in topic.partitions]
    streams = list(topic.streams)
    decided = f"{assignor}{names}{streams}"
    return _digest(f"{sorted(names)}{sorted(streams)}"), _digest(decided)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=6).hexdigest()


async def broker_addresses(requests: Requests, purpose: Purpose) -> list[str]:
    """Return the addresses of the registered brokers, by their ids."""
    try:
        names = await requests(GetChildren(paths.BROKER_IDS, False, purpose))
    except NoNode:
        return []
    found: list[str] = []
    for number in sorted(paths.broker_id_of(paths.BROKER_IDS, name) for name in names):
        path = paths.broker(number)
        seen = await read_or_none(requests, GetData(path, False, purpose))
        if seen is not None:
            found.append(paths.decode_broker(path, seen.data).address)
    return found
