"""How a producer learns which brokers there are, and which topics they have.

It is a program with a session of its own. Four things that may happen are watched, by three
kinds of watches on children:

    a new broker comes up, a broker goes down         /brokers/ids
    a new topic is registered                         /brokers/topics
    a broker registers for an existing topic          /brokers/topics/[topic]

A note only marks what is to be read again; the mark is in the memory until the reading has
succeeded, so that a lost connection loses nothing. Whenever the table has changed it is
posted, and the threads of the producer take it from there. How many partitions a broker has
of a topic is read when the broker registers for it; that a broker raises that number later
is not among the four, and in 0.7 it was not noticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from model import registry
from model.answers import LEAVE, Fired, Note, SessionNote
from model.asks import close_session, connected, new_session, next_note
from model.errors import ConnectionLoss, Failure, NoNode, SessionExpired
from model.joining import leave_child_watch
from model.operations import GetChildren, GetData, Pipelined, ZooKeeper
from model.program import Ended, Program
from model.requests import Direct
from model.threads import Post

BROKERS = "brokers"
"""The name under which the table is posted."""


class Place(NamedTuple):
    """A partition of a topic: which broker has it, and its number there."""

    broker: int
    partition: int


Counts = tuple[tuple[int, int], ...]
"""Broker -> how many partitions of a topic it has, in order."""


class BrokerTable(Struct, frozen=True):
    """Which brokers are alive, and how many partitions of each topic they have."""

    brokers: tuple[tuple[int, str], ...] = ()
    """Each with where it listens, in order."""
    topics: tuple[tuple[str, Counts], ...] = ()

    def places(self, topic: str) -> tuple[Place, ...]:
        """The partitions of a topic, by broker and number.

        Of a topic that nobody has, each broker that is alive has partition 0: the first
        message makes it.
        """
        alive = dict(self.brokers)
        counts = dict(self.topics).get(topic, ())
        found = tuple(
            Place(broker, index)
            for broker, count in sorted(counts)
            if broker in alive
            for index in range(count)
        )
        return found or tuple(Place(broker, 0) for broker in sorted(alive))

    def address(self, broker: int) -> str | None:
        """Where a broker listens; None if it is not alive."""
        return dict(self.brokers).get(broker)


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the program is told when it starts."""

    resends_watches: bool = False
    """Whether its client leaves watches again by itself when the connection is back."""


class Memory(Struct, frozen=True):
    """What it knows from one turn to the next."""

    table: BrokerTable = BrokerTable()
    stale: tuple[str, ...] = (registry.BROKER_IDS, registry.TOPICS)
    """The paths that are to be read again."""
    has_session: bool = False
    is_posted: bool = False


def discovery(me: Discovery | None = None) -> Program:
    """The program that keeps a producer's table of brokers."""
    return Program(turn, me or Discovery(), Memory())


async def turn(zk: ZooKeeper, me: Discovery, memory: Memory) -> Memory | Ended:
    """Take one turn."""
    try:
        return await _turn(me, memory)
    except ConnectionLoss:
        try:
            await connected()
        except SessionExpired:
            return await _after_expiry(memory)
        return _all_stale(memory)
    except SessionExpired:
        return await _after_expiry(memory)


async def _turn(me: Discovery, memory: Memory) -> Memory | Ended:
    if not memory.has_session:
        await new_session()
        return replace(memory, has_session=True)
    if memory.stale:
        return await _read_again(memory)
    if not memory.is_posted:
        await Post(BROKERS, memory.table)
        return replace(memory, is_posted=True)
    return await _take(me, memory, await next_note())


async def _after_expiry(memory: Memory) -> Memory:
    """Every watch is gone, and whatever happened meanwhile: read everything again."""
    await new_session()
    return _all_stale(memory)


def _all_stale(memory: Memory) -> Memory:
    topics = [registry.topic(name) for name, _ in memory.table.topics]
    return replace(memory, stale=(registry.BROKER_IDS, registry.TOPICS, *topics))


async def _take(me: Discovery, memory: Memory, note: Note | None) -> Memory | Ended:
    """Take a note: mark what is to be read again."""
    if isinstance(note, Fired):
        return replace(memory, stale=(note.path,))
    if note is SessionNote.EXPIRED:
        return await _after_expiry(memory)
    if note is SessionNote.CONNECTED and not me.resends_watches:
        return _all_stale(memory)
    if note == LEAVE:
        await close_session()
        return Ended("left")
    return memory


# --- reading ---------------------------------------------------------------------------


async def _read_again(memory: Memory) -> Memory:
    """Read one of the paths that may have changed, and leave a watch on it."""
    path, *others = memory.stale
    table = memory.table
    if path == registry.BROKER_IDS:
        table = replace(table, brokers=await _read_brokers())
    elif path == registry.TOPICS:
        listed = await leave_child_watch(Direct(), path, "watch topics")
        known = dict(table.topics)
        new = sorted(name for name in listed if name not in known)
        others = [*others, *(registry.topic(name) for name in new)]
        table = _with_topics(table, {name: known.get(name, ()) for name in listed})
    else:
        name = path.rpartition("/")[2]
        table = _with_topics(table, dict(table.topics) | {name: await _read_counts(path)})
    stale = tuple(dict.fromkeys(others))
    is_posted = memory.is_posted and table == memory.table
    return replace(memory, table=table, stale=stale, is_posted=is_posted)


def _with_topics(table: BrokerTable, topics: dict[str, Counts]) -> BrokerTable:
    return replace(table, topics=tuple(sorted(topics.items())))


async def _read_brokers() -> tuple[tuple[int, str], ...]:
    """Where each broker listens; one that has gone since it was listed is left out."""
    listed = await leave_child_watch(Direct(), registry.BROKER_IDS, "watch brokers")
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
    """How many partitions of a topic each broker has, with a watch on who registers for it."""
    listed = await leave_child_watch(Direct(), path, "watch topics")
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
    """What stands in these znodes; None for one that is gone."""
    reads = tuple(GetData(path, False, "read brokers") for path in paths)
    if not reads:
        return []
    answers = await Pipelined(reads)
    failed = [one for one in answers if type(one) is Failure and one.kind is not NoNode]
    if failed:
        raise failed[0].error()
    return [None if type(one) is Failure else one.data or b"" for one in answers]


async def read_table(topic: str) -> BrokerTable:
    """Read the brokers and one topic now, without leaving a watch.

    For a producer that cannot wait until a watch has told of a change.
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
