"""What a rebalance reads, and what it makes of it: steps 1 to 7 of the pages.

The reads are separate requests, so what they show together need not have been true at
any one moment. That is sound as long as every read that mattered left a watch, or is
made again after the watch that was left earlier has fired.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from immutables import Map

from model import registry
from model.asks import Partition, tell
from model.assignment import TopicView, share, topic_view
from model.errors import Failure, NoNode
from model.filters import topic_filter
from model.member import Consumer, Round, id_path, stream_ids, stream_number
from model.operations import Exists, GetChildren, GetData, Operation, Pipelined, Purpose
from model.payloads import TopicAssignment
from model.registry import BadPayload, Subscription


async def read_self(step: Round) -> Round:
    """Read the own registration, which says what I want; it may be gone."""
    path = id_path(step.me, step.memory)
    seen = await step.requests(GetData(path, purpose="read self"))
    return replace(step, subscription=registry.decode_consumer(path, seen.data))


async def read_brokers(step: Round) -> Round:
    """Read where the brokers listen; in the 0.8 layout only the shipped consumer cares."""
    if step.me.layout == "0.8" and not step.me.variant.is_shipped:
        return step
    ids = await _children(step, registry.BROKER_IDS, "read brokers")
    seen = await _read_all(step, [registry.broker(int(name)) for name in ids], "read brokers")
    addresses: Map[int, str] = Map()
    for name, answer in zip(ids, seen, strict=True):
        if answer is not None:
            info = registry.decode_broker(registry.broker(int(name)), answer)
            addresses = addresses.set(int(name), info.address)
    return replace(step, broker_addresses=addresses, has_brokers=bool(ids))


async def read_members(step: Round) -> Round:
    """Step 3: CG, all consumers of the group and what each wants."""
    path = registry.members(step.me.group)
    names = sorted(await _children(step, path, "read members"))
    if watches_reads(step.me) and step.memory.consumer_id not in names:
        lost = replace(step.memory, is_registered=False)
        return replace(step, memory=lost, stopped="the own registration is gone")
    paths = [registry.member(step.me.group, name) for name in names]
    seen = await _read_all(step, paths, "read members")
    members = tuple(
        (name, subscription)
        for name, path, answer in zip(names, paths, seen, strict=True)
        if answer is not None
        for subscription in _subscription(step.me, path, answer)
    )
    if any(subscription.is_filter for _, subscription in members):
        step = await _with_all_topics(step)
    return replace(step, members=members)


def _subscription(me: Consumer, path: str, data: bytes) -> Iterable[Subscription]:
    """What a member wants; one that cannot be read stops shipped members, not hardened ones."""
    try:
        yield registry.decode_consumer(path, data)
    except BadPayload:
        if not watches_reads(me):
            raise


async def read_partitions(step: Round) -> Round:
    """Steps 1 and 2: for each topic T that I want, PT, all partitions producing it."""
    wanted = step.subscription or step.me.subscription
    if wanted.is_filter:
        step = await _with_all_topics(step)
    topics = topics_of(step.me, wanted, step.all_topics or ())
    if step.only_topic is not None:
        topics = tuple(topic for topic in topics if topic == step.only_topic)
    read = _read_partitions_07 if step.me.layout == "0.7" else _read_partitions_08
    return replace(step, topics=topics, partitions=await read(step, topics))


async def _with_all_topics(step: Round) -> Round:
    if step.all_topics is not None:
        return step
    listed = await _children(step, registry.TOPICS, "read partitions")
    return replace(step, all_topics=tuple(sorted(listed)))


def topics_of(me: Consumer, subscription: Subscription, listed: Iterable[str]) -> tuple[str, ...]:
    """The topics a subscription wants, in order, given all that there are."""
    if not subscription.is_filter:
        return tuple(sorted(name for name, _ in subscription.streams))
    allowed = topic_filter(subscription)
    hide = me.settings.exclude_internal_topics
    return tuple(name for name in sorted(listed) if allowed.allows(name, exclude_internal=hide))


TopicPartitions = tuple[tuple[str, tuple[Partition, ...]], ...]


async def _read_partitions_07(step: Round, topics: tuple[str, ...]) -> TopicPartitions:
    found: list[tuple[str, tuple[Partition, ...]]] = []
    for topic in topics:
        brokers = await _children(step, registry.topic(topic), "read partitions")
        paths = [registry.topic_broker(topic, int(name)) for name in brokers]
        counts = await _read_all(step, paths, "read partitions")
        partitions = tuple(
            registry.partition_07(topic, int(name), index)
            for name, path, data in zip(brokers, paths, counts, strict=True)
            if data is not None
            for index in range(registry.decode_number(path, data))
        )
        found.append((topic, partitions))
    return tuple(found)


async def _read_partitions_08(step: Round, topics: tuple[str, ...]) -> TopicPartitions:
    paths = [registry.topic(topic) for topic in topics]
    read = await _read_all(step, paths, "read partitions")
    found: list[tuple[str, tuple[Partition, ...]]] = []
    for topic, path, data in zip(topics, paths, read, strict=True):
        replicas = () if data is None else TopicAssignment.decode(path, data).replicas
        found.append((topic, tuple(Partition(topic, str(index)) for index, _ in replicas)))
    return tuple(found)


async def assign_shares(step: Round) -> Round:
    """Steps 4 to 7: sort PT and CG, find my place, and take what falls to it."""
    partitions = dict(step.partitions)
    members = [(name, _streams_by_topic(step, wanted)) for name, wanted in step.members]
    view = tuple(
        topic_view(
            topic, partitions.get(topic, ()), _streams_of(step.me, topic, members), step.me.layout
        )
        for topic in step.topics
    )
    consumer_id = step.memory.consumer_id
    most = max(dict(members).get(consumer_id, {}).values(), default=0)
    shares = share(step.me.assignor, view, stream_ids(step.me, consumer_id, most))
    wanted = tuple(
        (partition, stream_number(step.me, consumer_id, stream))
        for stream, partitions_of_stream in shares.items()
        for partition in partitions_of_stream
    )
    await tell("assigned", plans={topic.topic: digests(step.me, topic) for topic in view})
    return replace(step, view=view, wanted=wanted)


def _streams_by_topic(step: Round, subscription: Subscription) -> dict[str, int]:
    """How many streams of each topic a member has; every member expands filters itself."""
    if not subscription.is_filter:
        return dict(subscription.streams)
    names = topics_of(step.me, subscription, step.all_topics or ())
    return dict.fromkeys(names, subscription.filter_streams)


def _streams_of(
    me: Consumer, topic: str, members: Sequence[tuple[str, dict[str, int]]]
) -> tuple[str, ...]:
    """CG: everybody's streams of a topic, or, as the pages count, everybody."""
    return tuple(
        stream
        for consumer, counts in members
        if topic in counts
        for stream in stream_ids(me, consumer, counts[topic])
    )


def digests(me: Consumer, topic: TopicView) -> list[str]:
    """What was seen of a topic, and what was decided from it, each as a short hash.

    The first does not depend on the order in which things were seen; the second does,
    since an assignment is made by order.
    """
    names = [partition.name for partition in topic.partitions]
    seen = f"{sorted(names)}{sorted(topic.streams)}"
    decided = f"{me.assignor}{names}{topic.streams}"
    return [_digest(seen), _digest(decided)]


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=6).hexdigest()


# --- reading ---------------------------------------------------------------------------


def watches_reads(me: Consumer) -> bool:
    """Whether every read of a rebalance leaves a watch, and bears what it finds missing."""
    return me.variant.watches == "all that was read"


async def _children(step: Round, path: str, purpose: Purpose) -> tuple[str, ...]:
    """List children; a path that is missing has none, and is watched for its creation."""
    watch = watches_reads(step.me)
    try:
        return await step.requests(GetChildren(path, watch, purpose))
    except NoNode:
        if watch and await step.requests(Exists(path, True, purpose)) is not None:
            return await _children(step, path, purpose)
        return ()


async def _read_all(step: Round, paths: Sequence[str], purpose: Purpose) -> list[bytes | None]:
    """Read many znodes. A missing one stops the shipped variants; others see None."""
    if step.me.variant.reads == "one by one":
        return [(await step.requests(GetData(path, False, purpose))).data for path in paths]
    if not paths:
        return []
    watch = purpose != "read members"
    reads: list[Operation[Any]] = [GetData(path, watch, purpose) for path in paths]
    answers = await step.requests(Pipelined(tuple(reads)))
    gone = [path for path, answer in zip(paths, answers, strict=True) if _is_gone(answer)]
    if watch and gone:
        await step.requests(Pipelined(tuple(Exists(path, True, purpose) for path in gone)))
    return [None if _is_gone(answer) else answer.data for answer in answers]


def _is_gone(answer: Any) -> bool:
    if type(answer) is not Failure:
        return False
    if answer.kind is not NoNode:
        raise answer.error()
    return True
