"""What a rebalance reads, one request after the other, and what it makes of it.

Steps 1 to 7 of the pages, as everybody did them who wrote them down or shipped them:
`look` has another way to read, and shares what is made of it.

The reads are separate requests, so what they show together need not have been true at
any one moment. That is sound as long as a watch that was left earlier fires for whatever
changed in between, and the rebalance is then made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

from model import registry
from model.asks import Partition, tell
from model.assignment import TopicView, share, topic_view
from model.errors import NoNode
from model.filters import topic_filter
from model.member import Attempt, Consumer, id_path, stream_ids, stream_number
from model.operations import GetChildren, GetData, Purpose
from model.payloads import TopicAssignment
from model.subscriptions import Subscription, decode_consumer


async def read_self(attempt: Attempt) -> None:
    """Read the own registration, which says what I want; it may be gone."""
    path = id_path(attempt.me, attempt.memory)
    seen = await attempt.requests(GetData(path, False, "read self"))
    attempt.subscription = decode_consumer(path, seen.data)


async def read_brokers(attempt: Attempt) -> None:
    """Read where the brokers listen; in the 0.8 layout only the shipped consumer cares."""
    if attempt.me.layout == "0.8" and not attempt.me.variant.is_shipped:
        return
    for name in await _children(attempt, registry.BROKER_IDS, "read brokers"):
        path = registry.broker(int(name))
        seen = await attempt.requests(GetData(path, False, "read brokers"))
        attempt.addresses[int(name)] = registry.decode_broker(path, seen.data).address


async def read_members(attempt: Attempt) -> None:
    """Step 3: CG, all consumers of the group and what each wants."""
    group = attempt.me.group
    for name in sorted(await _children(attempt, registry.members(group), "read members")):
        path = registry.member(group, name)
        seen = await attempt.requests(GetData(path, False, "read members"))
        attempt.members.append((name, decode_consumer(path, seen.data)))
    if any(subscription.is_filter for _, subscription in attempt.members):
        await _read_all_topics(attempt)


async def read_partitions(attempt: Attempt) -> None:
    """Steps 1 and 2: for each topic T that I want, PT, all partitions producing it."""
    wanted = attempt.subscription or attempt.me.subscription
    if wanted.is_filter:
        await _read_all_topics(attempt)
    choose_topics(attempt, wanted)
    read = _read_topic_07 if attempt.me.layout == "0.7" else _read_topic_08
    for topic in attempt.topics:
        attempt.partitions[topic] = await read(attempt, topic)


def choose_topics(attempt: Attempt, wanted: Subscription) -> None:
    """Step 1: the topics that are rebalanced now."""
    topics = topics_of(attempt.me, wanted, attempt.all_topics or ())
    only = attempt.only_topic
    attempt.topics = topics if only is None else tuple(one for one in topics if one == only)


async def _read_all_topics(attempt: Attempt) -> None:
    if attempt.all_topics is None:
        listed = await _children(attempt, registry.TOPICS, "read partitions")
        attempt.all_topics = tuple(sorted(listed))


def topics_of(me: Consumer, subscription: Subscription, listed: Iterable[str]) -> tuple[str, ...]:
    """The topics a subscription wants, in order, given all that there are."""
    if not subscription.is_filter:
        return tuple(sorted(name for name, _ in subscription.streams))
    allowed = topic_filter(subscription)
    hide = me.settings.exclude_internal_topics
    return tuple(name for name in sorted(listed) if allowed.allows(name, exclude_internal=hide))


async def _read_topic_07(attempt: Attempt, topic: str) -> list[Partition]:
    found: list[Partition] = []
    for name in await _children(attempt, registry.topic(topic), "read partitions"):
        path = registry.topic_broker(topic, int(name))
        seen = await attempt.requests(GetData(path, False, "read partitions"))
        found.extend(partitions_07(topic, name, seen.data))
    return found


@lru_cache(maxsize=4096)
def partitions_07(topic: str, broker: str, data: bytes | None) -> tuple[Partition, ...]:
    """The partitions of a topic that a broker has, by what it registered under the topic."""
    count = registry.decode_number(registry.topic_broker(topic, int(broker)), data)
    return tuple(registry.partition_07(topic, int(broker), index) for index in range(count))


async def _read_topic_08(attempt: Attempt, topic: str) -> list[Partition]:
    try:
        seen = await attempt.requests(GetData(registry.topic(topic), False, "read partitions"))
    except NoNode:
        return []
    return partitions_08(topic, seen.data)


def partitions_08(topic: str, data: bytes | None) -> list[Partition]:
    """The partitions of a topic, by what is registered of it."""
    replicas = TopicAssignment.decode(registry.topic(topic), data).replicas
    return [Partition(topic, str(index)) for index, _ in replicas]


async def _children(attempt: Attempt, path: str, purpose: Purpose) -> tuple[str, ...]:
    try:
        return await attempt.requests(GetChildren(path, False, purpose))
    except NoNode:
        return ()


# --- what is made of it ----------------------------------------------------------------


async def assign_shares(attempt: Attempt) -> None:
    """Steps 4 to 7: sort PT and CG, find my place, and take what falls to it."""
    me = attempt.me
    members = [(name, _streams_by_topic(attempt, wanted)) for name, wanted in attempt.members]
    attempt.view = tuple(
        topic_view(
            topic, attempt.partitions.get(topic, ()), _streams_of(me, topic, members), me.layout
        )
        for topic in attempt.topics
    )
    await take_share(attempt)


async def take_share(attempt: Attempt) -> None:
    """Steps 6 and 7: what falls to me by what I have seen."""
    me = attempt.me
    consumer_id = attempt.memory.consumer_id
    unit = me.variant.unit
    mine = [wanted for name, wanted in attempt.members if name == consumer_id]
    counts = [count for wanted in mine for count in _streams_by_topic(attempt, wanted).values()]
    most = max(counts, default=0)
    shares = share(me.assignor, attempt.view, stream_ids(unit, consumer_id, most))
    attempt.wanted = tuple(
        (partition, stream_number(unit, consumer_id, stream))
        for stream, partitions in shares.items()
        for partition in partitions
    )
    plans = {topic.topic: digests(me.assignor, topic) for topic in attempt.view}
    await tell("assigned", plans=plans)


def _streams_by_topic(attempt: Attempt, subscription: Subscription) -> dict[str, int]:
    """How many streams of each topic a member has; every member expands filters itself."""
    if not subscription.is_filter:
        return dict(subscription.streams)
    names = topics_of(attempt.me, subscription, attempt.all_topics or ())
    return dict.fromkeys(names, subscription.filter_streams)


def _streams_of(
    me: Consumer, topic: str, members: Sequence[tuple[str, dict[str, int]]]
) -> list[str]:
    """CG: everybody's streams of a topic, or, as the pages count, everybody."""
    unit = me.variant.unit
    return [
        stream
        for consumer, counts in members
        if topic in counts
        for stream in stream_ids(unit, consumer, counts[topic])
    ]


@lru_cache(maxsize=256)
def digests(assignor: str, topic: TopicView) -> tuple[str, str]:
    """What was seen of a topic, and what was decided from it, each as a short hash.

    The first does not depend on the order in which things were seen; the second does,
    since an assignment is made by order.
    """
    names = [partition.name for partition in topic.partitions]
    streams = list(topic.streams)
    decided = f"{assignor}{names}{streams}"
    return _digest(f"{sorted(names)}{sorted(streams)}"), _digest(decided)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=6).hexdigest()
