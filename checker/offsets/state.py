"""The state of a group, and of the two brokers that coordinate it in turn.

The group commits offsets of one partition; its commits are numbered in the order in which they
are sent. The log of each broker has the records of the offsets topic: a commit, or a tombstone.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import NamedTuple

from watchkeeper.model.offset_manager.cache import OffsetCache
from watchkeeper.model.offset_manager.records import CommittedOffset, OffsetKey

NOT = -1
"""The epoch of a broker that leads or follows nothing."""
TOMBSTONE = 0
"""The number of a record that removes an offset; commits are numbered from 1."""
NOTHING = 0
"""What a coordinator answers that has no offset."""


class Fault(Enum):
    """A fault that a search may let strike once."""

    CRASH = "the coordinator crashes"
    MOVED = "the coordinator hands over in good order"
    DEPOSED = "another coordinator is elected, and the old one does not know"
    REPLY = "the reply to a commit is lost"
    LATE = "a commit arrives after its member has given up"
    MEMBER = "a member crashes while it commits"
    EXPIRY = "the retention of offsets passes"


class Entry(NamedTuple):
    """An offset in a cache: the number of its commit, and where that is in the log."""

    number: int
    at: int
    is_old: bool = False
    """Whether it was appended before the retention passed."""


class Record(NamedTuple):
    """A record of the offsets topic."""

    epoch: int
    number: int
    is_old: bool = False


class Cell(NamedTuple):
    """What ZooKeeper has of the partition of the offsets topic."""

    epoch: int
    leader: int
    isr: frozenset[int]


class Broker(NamedTuple):
    """What a broker holds."""

    log: tuple[Record, ...] = ()
    high_watermark: int = 0
    leads: int = NOT
    """The epoch in which it believes to lead."""
    follows: int = NOT
    isr: frozenset[int] = frozenset()
    """Of a leader, as it knows it."""
    seen: int = NOT
    """The end of the other one's log, as a leader knows it from a fetch."""
    start: int = 0
    """The end of the log when it began to lead."""
    cache: Entry | None = None
    read: int = 0
    """The offset up to which its cache was loaded."""
    is_loaded: bool = False
    is_alive: bool = True
    has_asked: bool = False
    """Whether a follower waits for the response to its fetch."""

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return len(self.log)


class Commit(NamedTuple):
    """A commit that a member waits for."""

    number: int
    broker: int
    at: int
    epoch: int


class Fetch(NamedTuple):
    """A fetch of the offset that a member waits for."""

    broker: int
    acked: tuple[tuple[int, int], ...]
    """What had been acknowledged when it was sent."""
    expired: int
    """How many commits had been acknowledged when a fetch was sent that found them expired."""
    is_confirmed: bool = False
    """Whether the ISR has confirmed since then that the broker leads."""


class Group(NamedTuple):
    """The state of all."""

    brokers: tuple[Broker, Broker]
    cell: Cell
    members: tuple[Commit | Fetch | None, ...]
    """Member -> the request that it waits for."""
    sent: int = 0
    acked: tuple[tuple[int, int], ...] = ()
    """Each commit that was acknowledged, and how many had been sent by then."""
    horizon: int = 0
    """The commits up to this one are older than the retention."""
    expired: int = 0
    """How many commits had been acknowledged when a fetch was sent that found them expired."""
    late: int = 0
    """The commit that will arrive late; 0 for none."""
    left: frozenset[Fault] = frozenset()
    """The faults that may still strike."""
    violation: str = ""

    def with_broker(self, number: int, broker: Broker) -> Group:
        """Return the state with another value of one broker."""
        brokers = (broker, self.brokers[1]) if number == 0 else (self.brokers[0], broker)
        return self._replace(brokers=brokers)

    def with_member(self, member: int, waits: Commit | Fetch | None) -> Group:
        """Return the state with another request of one member."""
        rest = self.members
        return self._replace(members=(*rest[:member], waits, *rest[member + 1 :]))


class Step(NamedTuple):
    """A step: a sentence, and the state after it."""

    text: str
    after: Group


KEY = OffsetKey("group", "topic", 0)


@cache
def noted(entry: Entry | None, record: Entry) -> Entry | None:
    """Return what a cache has after a record, by the rule of the cache of a broker."""
    cache = OffsetCache()
    for each in (entry, record):
        if each is not None:
            committed = CommittedOffset(each.number, "", 0)
            cache.note(each.at, KEY, None if each.number == TOMBSTONE else committed)
    kept = cache.get(KEY)
    if kept is None:
        return None
    return record if kept.offset == record.number else entry
