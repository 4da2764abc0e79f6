"""Steps 1 to 3 of the hardened variant in two round trips.

The first batch reads names: the members of the group, the brokers of each topic, and the
own claims. The second batch reads the data of each name. Every read but that of the claims
sets a watch, and a missing znode is watched for its creation. So every change after a read
fires a watch, and the member rebalances again. A member that vanishes between the two
batches is left out: the watch on the names has fired by then.

What was read is kept in `ConsumerState.known` until its watch fires, and is not read again. A
member that joins a group of N costs each of them two reads, the names and the one registration
that is new, where N registrations would make reads grow with N squared. Names alone would not
do: a consumer that restarts under its configured id can be gone and back between two reads of
the names, with another subscription. The watch on its old registration has fired then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.actor.errors import Failure, NoNode, Unimplemented
from watchkeeper.model.actor.operations import (
    Exists,
    GetChildren,
    GetData,
    GetEphemerals,
    Operation,
    Pipelined,
)
from watchkeeper.model.group.reads import choose_topics, partitions_07, partitions_08
from watchkeeper.model.group.state import Attempt, PartitionList
from watchkeeper.model.registry import paths as registry
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.subscription import Subscription, decode_consumer
from watchkeeper.model.registry.topic_filter import BadFilter, topic_filter

Answers = dict[str, Any]
"""Path -> names of children, or data; a missing znode has no entry."""

_NO_REGISTRATIONS: Mapping[str, GetData] = MappingProxyType({})


async def read_in_batches(attempt: Attempt) -> None:
    """Steps 2 and 3: read the group, its topics and the own claims."""
    me = attempt.me
    if not me.subscription.is_filter:
        choose_topics(attempt, me.subscription)
    names = await _read(attempt, [*_name_reads(attempt), *_topic_reads(attempt)])
    if me.subscription.is_filter:
        attempt.all_topics = tuple(sorted(names.get(registry.TOPICS, ())))
        choose_topics(attempt, me.subscription)
        attempt.update(topics=attempt.topics)
        names |= await _read(attempt, _topic_reads(attempt))
    members = tuple(names.get(registry.members(me.group), ()))
    registrations = _reads_of_registrations(me.group, members)
    if registry.member(me.group, attempt.state.consumer_id) not in registrations:
        attempt.lose_registration()
        return
    reads = _data_reads(attempt, names)
    data = await _read(attempt, reads, registrations=registrations)
    # Step 3: CG. A member that vanished since the names were read has no data.
    payloads = tuple(map(data.get, registrations))
    attempt.members, has_filter = _usable_members(tuple(registrations), payloads)
    _take_partitions(attempt, names, data)
    if attempt.all_topics is None and has_filter:
        topics = await _read(attempt, [GetChildren(registry.TOPICS, True, "read partitions")])
        attempt.all_topics = tuple(sorted(topics.get(registry.TOPICS, ())))
    await _take_claims(attempt, names.get(registry.owners(me.group)))


def _name_reads(attempt: Attempt) -> Iterable[Operation[Any]]:
    """Yield the reads of the members, the own claims, and the topics if there is a filter."""
    yield GetChildren(registry.members(attempt.me.group), True, "read members")
    yield GetEphemerals(registry.owners(attempt.me.group), "read claims")
    if attempt.me.subscription.is_filter:
        yield GetChildren(registry.TOPICS, True, "read partitions")


def _topic_reads(attempt: Attempt) -> list[Operation[Any]]:
    """Return the reads of the topics: brokers in layout 0.7, replicas in layout 0.8."""
    paths = [registry.topic(topic) for topic in attempt.topics]
    if attempt.me.layout == "0.7":
        return [GetChildren(path, True, "read partitions") for path in paths]
    return [GetData(path, True, "read partitions") for path in paths]


@lru_cache(maxsize=64)
def _reads_of_registrations(group: str, names: tuple[str, ...]) -> Mapping[str, GetData]:
    """Return path -> read of each member's registration, in the order of their names.

    All members of a group see the same names: where many of them live in one process, as in a
    simulation, these are sorted once. So it is with the other cached functions of this module.
    """
    paths = [registry.member(group, name) for name in sorted(names)]
    return {path: GetData(path, True, "read members") for path in paths}


def _data_reads(attempt: Attempt, names: Answers) -> list[Operation[Any]]:
    """Return the reads of the second batch beside those of the registrations."""
    reads: list[Operation[Any]] = []
    if attempt.me.layout == "0.8":
        return reads
    brokers: dict[str, None] = {}
    for topic in attempt.topics:
        above = registry.topic(topic)
        for broker in names.get(above, ()):
            path = registry.topic_broker(topic, registry.broker_id_of(above, broker))
            reads.append(GetData(path, True, "read partitions"))
            brokers[broker] = None
    reads.extend(
        GetData(registry.broker(int(broker)), True, "read brokers") for broker in brokers
    )
    return reads


async def _read(
    attempt: Attempt,
    reads: Iterable[Operation[Any]],
    *,
    registrations: Mapping[str, GetData] = _NO_REGISTRATIONS,
) -> Answers:
    """Read in one batch what is not known, and watch missing znodes for their creation.

    Registrations come first. A missing one needs no such watch: the watch on the list of
    members reports its creation.
    """
    known = attempt.state.known
    found: Answers = {path: known[path] for path in registrations if path in known}
    unknown: list[Operation[Any]] = [
        read for path, read in registrations.items() if path not in found
    ]
    for read in reads:
        if read.path in known and getattr(read, "watch", False):
            found[read.path] = known[read.path]
        else:
            unknown.append(read)
    if not unknown:
        return found
    watched: Answers = {}
    missing: list[Operation[Any]] = []
    answers = await attempt.requests(Pipelined(tuple(unknown)))
    for read, answer in zip(unknown, answers, strict=True):
        if type(answer) is not Failure:
            # All but some ten of these read data under a watch.
            if type(read) is GetData:
                (watched if read.watch else found)[read.path] = answer.data
            else:
                (watched if getattr(read, "watch", False) else found)[read.path] = answer
        elif answer.kind is NoNode:
            if getattr(read, "watch", False) and read.path not in registrations:
                missing.append(Exists(read.path, True, read.purpose))
        elif answer.kind is not Unimplemented:
            raise answer.error()
    found.update(watched)
    attempt.update(known=known.update(watched))
    if missing:
        # The watch was set after the read. A znode created in between fires nothing, so the
        # attempt fails here and the next one reads it.
        created = await attempt.requests(Pipelined(tuple(missing)))
        if any(answer is not None for answer in created):
            attempt.stopped = "something came into being while it was looked for"
    return found


@lru_cache(maxsize=64)
def _usable_members(
    paths: tuple[str, ...], payloads: tuple[bytes | None, ...]
) -> tuple[tuple[tuple[str, Subscription], ...], bool]:
    """Return the members with their subscriptions, and whether one of them is a filter.

    A member whose registration cannot be used wants nothing.
    """
    wanted = zip(paths, map(_usable, paths, payloads), strict=True)
    members = tuple(
        [(path.rpartition("/")[2], usable) for path, usable in wanted if usable is not None]
    )
    return members, any(usable.is_filter for _, usable in members)


@lru_cache(maxsize=65_536)
def _usable(path: str, data: bytes | None) -> Subscription | None:
    """Return the subscription in a registration; None if it cannot be used."""
    try:
        wanted = decode_consumer(path, data)
        if wanted.is_filter:
            topic_filter(wanted).check()
    except (BadPayload, BadFilter):
        return None
    return wanted


def _take_partitions(attempt: Attempt, names: Answers, data: Answers) -> None:
    """Step 2: PT, and the addresses of its brokers."""
    for topic in attempt.topics:
        listed = names.get(registry.topic(topic))
        if listed is None:
            continue
        if attempt.me.layout == "0.8":
            attempt.partitions[topic] = PartitionList(tuple(partitions_08(topic, listed)))
            continue
        counts: list[tuple[str, bytes | None]] = []
        for broker in listed:
            path = registry.topic_broker(topic, int(broker))
            if path in data:
                counts.append((broker, data[path]))
            path = registry.broker(int(broker))
            if path in data:
                address = registry.decode_broker(path, data[path]).address
                attempt.addresses[int(broker)] = address
        attempt.partitions[topic] = _partitions_of_brokers(topic, tuple(counts))


@lru_cache(maxsize=64)
def _partitions_of_brokers(
    topic: str, counts: tuple[tuple[str, bytes | None], ...]
) -> PartitionList:
    """Return the partitions of a topic on all brokers, by the counts that these registered."""
    return PartitionList(
        tuple(
            [
                partition
                for broker, count in counts
                for partition in partitions_07(topic, broker, count)
            ]
        )
    )


# --- the own claims --------------------------------------------------------------------


async def _take_claims(attempt: Attempt, paths: tuple[str, ...] | None) -> None:
    """Take the claims that belong to the current session."""
    if paths is None:
        paths = tuple(await _owners_that_are_mine(attempt))
    parsed = [registry.parse_owner(path) for path in paths]
    group = attempt.me.group
    attempt.claimed = tuple(
        [entry[1] for entry in parsed if entry is not None and entry[0] == group]
    )
    attempt.update(owned=attempt.claimed)


async def _owners_that_are_mine(attempt: Attempt) -> list[str]:
    """Find the own claims by reading every owner: old servers cannot list ephemerals."""
    group = attempt.me.group
    above = registry.owners(group)
    topics = await _listed(attempt, [above])
    claimed = await _listed(attempt, [f"{above}/{topic}" for topic in topics.get(above, ())])
    paths = [
        registry.owner(group, Partition(above.rpartition("/")[2], name))
        for above, names in claimed.items()
        for name in names
    ]
    reads = tuple(Exists(path, False, "read claims") for path in paths)
    seen = await attempt.requests(Pipelined(reads)) if reads else ()
    return [
        path for path, claim in zip(paths, seen, strict=True) if claim is not None and claim.mine
    ]


async def _listed(attempt: Attempt, paths: list[str]) -> Answers:
    reads: list[Operation[Any]] = [GetChildren(path, False, "read claims") for path in paths]
    return await _read(attempt, reads)
