"""The metadata of a producer: a program that discovers brokers and topics in ZooKeeper.

The program has a session of its own. Three kinds of child watches cover four changes:

    a new broker comes up, a broker goes down         /brokers/ids
    a new topic is registered                         /brokers/topics
    a broker registers for an existing topic          /brokers/topics/[topic]

A notification only marks a path as stale. The mark stays in the state until the path was read
again, so a lost connection loses no change. After each change of the table the program posts
it, and the tasks of the producer read it there. The number of partitions is read when a broker
registers for a topic. A broker that raises this number later causes none of the four changes;
Kafka 0.7 did not notice it either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from watchkeeper.model.actor.effects import close_session, connected, new_session, next_event
from watchkeeper.model.actor.errors import ConnectionLoss, Failure, NoNode, SessionExpired
from watchkeeper.model.actor.events import LEAVE, Fired, Notification, SessionEvent
from watchkeeper.model.actor.operations import GetChildren, GetData, Pipelined, ZooKeeper
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.retry import Direct
from watchkeeper.model.actor.tasks import Post
from watchkeeper.model.group.registration import set_child_watch
from watchkeeper.model.registry import paths as registry

BROKERS = "brokers"
"""The name of the posted table."""


class BrokerPartition(NamedTuple):
    """A partition of a topic: its broker, and its number there."""

    broker: int
    partition: int


Counts = tuple[tuple[int, int], ...]
"""(broker id, number of partitions) for one topic, in the order of ids."""


class BrokerTable(Struct, frozen=True):
    """The live brokers, and their numbers of partitions of each topic."""

    brokers: tuple[tuple[int, str], ...] = ()
    """(id, address), in the order of ids."""
    topics: tuple[tuple[str, Counts], ...] = ()

    def partitions_of(self, topic: str) -> tuple[BrokerPartition, ...]:
        """Return the partitions of a topic, by broker and number.

        For a topic without a live broker, each live broker counts with partition 0: the first
        message creates it.
        """
        alive = dict(self.brokers)
        counts = dict(self.topics).get(topic, ())
        found = tuple(
            BrokerPartition(broker, index)
            for broker, count in sorted(counts)
            if broker in alive
            for index in range(count)
        )
        return found or tuple(BrokerPartition(broker, 0) for broker in sorted(alive))

    def address(self, broker: int) -> str | None:
        """Return the address of a broker; None if it is not alive."""
        return dict(self.brokers).get(broker)


@dataclass(frozen=True, slots=True)
class MetadataSettings:
    """The configuration of the program."""

    resends_watches: bool = False
    """Whether its client sets watches again by itself after a reconnect."""


class MetadataState(Struct, frozen=True):
    """The state between two turns."""

    table: BrokerTable = BrokerTable()
    stale: tuple[str, ...] = (registry.BROKER_IDS, registry.TOPICS)
    """The paths to read again."""
    has_session: bool = False
    is_posted: bool = False


def metadata_program(me: MetadataSettings | None = None) -> Program:
    """Return the program that maintains the broker table of a producer."""
    return Program(turn, me or MetadataSettings(), MetadataState())


async def turn(
    zk: ZooKeeper, me: MetadataSettings, state: MetadataState
) -> MetadataState | Ended:
    """Take one turn: get a session, read one stale path, post, or wait for an event."""
    try:
        return await _turn(me, state)
    except ConnectionLoss:
        try:
            await connected()
        except SessionExpired:
            return await _after_expiry(state)
        return _all_stale(state)
    except SessionExpired:
        return await _after_expiry(state)


async def _turn(me: MetadataSettings, state: MetadataState) -> MetadataState | Ended:
    if not state.has_session:
        await new_session()
        return replace(state, has_session=True)
    if state.stale:
        return await _read_again(state)
    if not state.is_posted:
        await Post(BROKERS, state.table)
        return replace(state, is_posted=True)
    return await _take(me, state, await next_event())


async def _after_expiry(state: MetadataState) -> MetadataState:
    """Read everything again: the watches are gone, and changes may have been missed."""
    await new_session()
    return _all_stale(state)


def _all_stale(state: MetadataState) -> MetadataState:
    topics = [registry.topic(name) for name, _ in state.table.topics]
    return replace(state, stale=(registry.BROKER_IDS, registry.TOPICS, *topics))


async def _take(
    me: MetadataSettings, state: MetadataState, notification: Notification | None
) -> MetadataState | Ended:
    """Take a notification: mark the paths to read again."""
    if isinstance(notification, Fired):
        return replace(state, stale=(notification.path,))
    if notification is SessionEvent.EXPIRED:
        return await _after_expiry(state)
    if notification is SessionEvent.CONNECTED and not me.resends_watches:
        return _all_stale(state)
    if notification == LEAVE:
        await close_session()
        return Ended("left")
    return state


# --- reading ---------------------------------------------------------------------------


async def _read_again(state: MetadataState) -> MetadataState:
    """Read one stale path, and set a watch on it."""
    path, *others = state.stale
    table = state.table
    if path == registry.BROKER_IDS:
        table = replace(table, brokers=await _read_brokers())
    elif path == registry.TOPICS:
        listed = await set_child_watch(Direct(), path, "watch topics")
        known = dict(table.topics)
        new = sorted(name for name in listed if name not in known)
        others = [*others, *(registry.topic(name) for name in new)]
        table = _with_topics(table, {name: known.get(name, ()) for name in listed})
    else:
        name = path.rpartition("/")[2]
        table = _with_topics(table, dict(table.topics) | {name: await _read_counts(path)})
    stale = tuple(dict.fromkeys(others))
    is_posted = state.is_posted and table == state.table
    return replace(state, table=table, stale=stale, is_posted=is_posted)


def _with_topics(table: BrokerTable, topics: dict[str, Counts]) -> BrokerTable:
    return replace(table, topics=tuple(sorted(topics.items())))


async def _read_brokers() -> tuple[tuple[int, str], ...]:
    """Read the address of each broker, without those that went away since the listing."""
    listed = await set_child_watch(Direct(), registry.BROKER_IDS, "watch brokers")
    return await _addresses(listed)


async def _addresses(listed: Iterable[str]) -> tuple[tuple[int, str], ...]:
    ids = sorted(int(name) for name in listed)
    found = []
    for broker, data in zip(ids, await _data_of(map(registry.broker, ids)), strict=True):
        if data is not None:
            address = registry.decode_broker(registry.broker(broker), data).address
            found.append((broker, address))
    return tuple(found)


async def _read_counts(path: str) -> Counts:
    """Read the partitions of a topic for each broker, and watch for more registrations."""
    listed = await set_child_watch(Direct(), path, "watch topics")
    return await _counts(path, listed)


async def _counts(path: str, listed: Iterable[str]) -> Counts:
    names = sorted(listed, key=int)
    paths = [f"{path}/{name}" for name in names]
    return tuple(
        (int(name), registry.decode_number(child, data))
        for name, child, data in zip(names, paths, await _data_of(paths), strict=True)
        if data is not None
    )


async def _data_of(paths: Iterable[str]) -> list[bytes | None]:
    """Read the data of znodes in one pipeline; None for a deleted one."""
    reads = tuple(GetData(path, False, "read brokers") for path in paths)
    if not reads:
        return []
    answers = await Pipelined(reads)
    failed = [
        answer for answer in answers if type(answer) is Failure and answer.kind is not NoNode
    ]
    if failed:
        raise failed[0].error()
    return [None if type(answer) is Failure else answer.data or b"" for answer in answers]


async def read_table(topic: str) -> BrokerTable:
    """Read the brokers and one topic now, without setting a watch.

    For a producer that cannot wait for the notification of a change.
    """
    counts: Counts = ()
    try:
        brokers = await _addresses(await GetChildren(registry.BROKER_IDS, False, "read brokers"))
    except NoNode:
        return BrokerTable()
    path = registry.topic(topic)
    try:
        counts = await _counts(path, await GetChildren(path, False, "read partitions"))
    except NoNode:
        counts = ()
    return BrokerTable(brokers, ((topic, counts),))
