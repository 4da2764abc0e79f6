"""How a hardened member looks at everything at once: steps 1 to 3 in two round trips.

First it asks, in one batch, for the names: the members of the group, the brokers of each
topic, and its own claims. Then, in a second batch, for what stands behind each name. Every
read leaves a watch where a change could matter, and what is missing is watched for its
creation, so that whatever changes after it was read wakes the member again. A member that
vanished between the two batches is left out: the watch on the names has fired by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from model import registry
from model.asks import Partition
from model.errors import Failure, NoNode, Unimplemented
from model.member import Attempt
from model.operations import (
    Exists,
    GetChildren,
    GetData,
    GetEphemerals,
    Operation,
    Pipelined,
)
from model.registry import BadPayload
from model.subscriptions import decode_consumer
from model.views import choose_topics, partitions_07, partitions_08

Answers = dict[str, Any]
"""Path -> what was read there; a path that is missing is not in it."""


async def look(attempt: Attempt) -> None:
    """Steps 2 and 3: read the group, its topics and my own claims."""
    me = attempt.me
    if not me.subscription.is_filter:
        choose_topics(attempt, me.subscription)
    names = await _read(attempt, [*_name_reads(attempt), *_topic_reads(attempt)])
    if me.subscription.is_filter:
        attempt.all_topics = tuple(sorted(names.get(registry.TOPICS, ())))
        choose_topics(attempt, me.subscription)
        attempt.remember(topics=attempt.topics)
        names |= await _read(attempt, _topic_reads(attempt))
    members = sorted(names.get(registry.members(me.group), ()))
    if attempt.memory.consumer_id not in members:
        attempt.lose_registration()
        return
    data = await _read(attempt, _data_reads(attempt, members, names))
    _take_members(attempt, members, data)
    _take_partitions(attempt, names, data)
    if attempt.all_topics is None and any(wanted.is_filter for _, wanted in attempt.members):
        topics = await _read(attempt, [GetChildren(registry.TOPICS, True, "read partitions")])
        attempt.all_topics = tuple(sorted(topics.get(registry.TOPICS, ())))
    await _take_claims(attempt, names.get(registry.owners(me.group)))


def _name_reads(attempt: Attempt) -> Iterable[Operation[Any]]:
    """The members; my own claims; the topics, if a filter has to choose among them."""
    watch = attempt.me.variant.flaw != "watches after it has read"
    yield GetChildren(registry.members(attempt.me.group), watch, "read members")
    yield GetEphemerals(registry.owners(attempt.me.group), "read claims")
    if attempt.me.subscription.is_filter:
        yield GetChildren(registry.TOPICS, True, "read partitions")


def _topic_reads(attempt: Attempt) -> list[Operation[Any]]:
    """What says where the partitions of a topic are found."""
    paths = [registry.topic(topic) for topic in attempt.topics]
    watch = attempt.me.variant.flaw != "nothing tells of new partitions"
    if attempt.me.layout == "0.7":
        return [GetChildren(path, watch, "read partitions") for path in paths]
    return [GetData(path, watch, "read partitions") for path in paths]


def _data_reads(attempt: Attempt, members: list[str], names: Answers) -> list[Operation[Any]]:
    """What stands behind the names. A registration never changes, so it needs no watch."""
    group = attempt.me.group
    reads: list[Operation[Any]] = [
        GetData(registry.member(group, name), False, "read members") for name in members
    ]
    if attempt.me.layout == "0.8":
        return reads
    brokers: dict[str, None] = {}
    for topic in attempt.topics:
        for broker in names.get(registry.topic(topic), ()):
            path = registry.topic_broker(topic, int(broker))
            reads.append(GetData(path, True, "read partitions"))
            brokers[broker] = None
    reads.extend(
        GetData(registry.broker(int(broker)), True, "read brokers") for broker in brokers
    )
    return reads


async def _read(attempt: Attempt, reads: list[Operation[Any]]) -> Answers:
    """Ask for all of these at once, and watch for what is missing."""
    if not reads:
        return {}
    found: Answers = {}
    missing: list[Operation[Any]] = []
    answers = await attempt.requests(Pipelined(tuple(reads)))
    for read, answer in zip(reads, answers, strict=True):
        if type(answer) is not Failure:
            found[read.path] = answer
        elif answer.kind is NoNode:
            if getattr(read, "watch", False):
                missing.append(Exists(read.path, True, read.purpose))
        elif answer.kind is not Unimplemented:
            raise answer.error()
    if missing:
        there = await attempt.requests(Pipelined(tuple(missing)))
        if any(one is not None for one in there):
            attempt.stopped = "something came into being while it was looked for"
    return found


def _take_members(attempt: Attempt, members: list[str], data: Answers) -> None:
    """Step 3: CG. Who cannot be understood is taken to want nothing."""
    for name in members:
        path = registry.member(attempt.me.group, name)
        if path in data:
            try:
                wanted = decode_consumer(path, data[path].data)
            except BadPayload:
                continue
            attempt.members.append((name, wanted))


def _take_partitions(attempt: Attempt, names: Answers, data: Answers) -> None:
    """Step 2: PT, and where its brokers listen."""
    for topic in attempt.topics:
        listed = names.get(registry.topic(topic))
        if listed is None:
            continue
        if attempt.me.layout == "0.8":
            attempt.partitions[topic] = partitions_08(topic, listed.data)
            continue
        found = attempt.partitions[topic] = []
        for broker in listed:
            count = data.get(registry.topic_broker(topic, int(broker)))
            if count is not None:
                found.extend(partitions_07(topic, broker, count.data))
            path = registry.broker(int(broker))
            if path in data:
                address = registry.decode_broker(path, data[path].data).address
                attempt.addresses[int(broker)] = address


# --- my own claims ---------------------------------------------------------------------


async def _take_claims(attempt: Attempt, paths: tuple[str, ...] | None) -> None:
    """Which claims belong to the session I have now."""
    if paths is None:
        paths = tuple(await _owners_that_are_mine(attempt))
    parsed = [registry.parse_owner(path) for path in paths]
    group = attempt.me.group
    attempt.held = tuple(one[1] for one in parsed if one is not None and one[0] == group)
    attempt.remember(owned=attempt.held)


async def _owners_that_are_mine(attempt: Attempt) -> list[str]:
    """The same by reading every owner, for servers that cannot list ephemerals."""
    group = attempt.me.group
    above = registry.owners(group)
    topics = await _listed(attempt, [above])
    claimed = await _listed(attempt, [f"{above}/{topic}" for topic in topics.get(above, ())])
    paths = [
        registry.owner(group, Partition(above.rpartition("/")[2], name))
        for above, names in claimed.items()
        for name in names
    ]
    looks = tuple(Exists(path, False, "read claims") for path in paths)
    seen = await attempt.requests(Pipelined(looks)) if looks else ()
    return [path for path, one in zip(paths, seen, strict=True) if one is not None and one.mine]


async def _listed(attempt: Attempt, paths: list[str]) -> Answers:
    reads: list[Operation[Any]] = [GetChildren(path, False, "read claims") for path in paths]
    return await _read(attempt, reads)
