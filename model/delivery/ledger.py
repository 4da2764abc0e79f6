"""What became of every message: how many were lost, and how many handed on twice.

Theory of operation
  Every message has an identity that it keeps on its whole way: its producer, and its number
  there. The ledger is told of these moments: the producer's application learns what became of
  a message (*sent*), a broker appends it (*stored*), a member of a group hands it to the
  application (*consumed*), and the group says how far it has come (*committed*). What was
  accepted and never stored was lost before the log. What was stored, lies before the place
  that the group has reached and was never consumed, was skipped. What lies behind that place
  is not lost but unread. A broker whose host has ended may find less in its logs than there
  was (*opened*); what was in them is then in no log.

  Numbers come in ranges, so a ledger of millions of messages holds some thousand of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from model.accounts import Account, Numbers, Share
from model.asks import Partition
from model.ranges import Ranges

Outcome = Literal["accepted", "refused", "unknown"]
"""What a producer's application was told: unknown where a request may have been served."""


class Lot(NamedTuple):
    """Messages of one producer that lie one behind the other in a log.

    `at` and `to` are offsets: of the first of them, and of what follows the last. In between
    they are all of one size, unless they are `one_entry`, a compressed set: whoever stops
    within that has read none of them.
    """

    producer: str
    first: int
    end: int
    at: int
    to: int
    one_entry: bool = False

    @property
    def size(self) -> int:
        """How many they are."""
        return self.end - self.first

    def before(self, offset: int) -> int:
        """One past the number of the last of them that lies before an offset."""
        if offset >= self.to:
            return self.end
        if offset <= self.at or self.one_entry:
            return self.first
        return self.first + (offset - self.at) * self.size // (self.to - self.at)

    def precedes(self, other: Lot) -> bool:
        """Whether the other is what comes next, so that both are like one."""
        return (
            (self.producer, self.end, self.to) == (other.producer, other.first, other.at)
            and not (self.one_entry or other.one_entry)
            and (self.to - self.at) * other.size == (other.to - other.at) * self.size
        )


class Messages:
    """A set of messages: the numbers of each producer."""

    __slots__ = ("of",)

    def __init__(self, of: Iterable[tuple[str, Ranges]] = ()) -> None:
        self.of = dict(of)
        """Producer -> the numbers of its messages."""

    @property
    def size(self) -> int:
        """How many there are."""
        return sum(numbers.size for numbers in self.of.values())

    def add(self, producer: str, first: int, end: int) -> int:
        """Add messages; how many of them are new."""
        numbers = self.of.get(producer)
        if numbers is None:
            numbers = self.of[producer] = Ranges()
        return numbers.add(first, end)

    def add_all(self, other: Messages) -> None:
        """Add the messages of another set."""
        for producer, numbers in other.of.items():
            for first, end in numbers:
                self.add(producer, first, end)

    def without(self, *others: Messages) -> Messages:
        """Those that are in none of the others."""
        left = self
        for other in others:
            left = Messages(
                (producer, numbers.without(other.of.get(producer, _NONE)))
                for producer, numbers in left.of.items()
            )
        return left


_NONE = Ranges()
NO_MESSAGES: Mapping[str, Messages] = {}


def _by_producer(sets: Iterable[Messages]) -> Numbers:
    """How many messages each producer has in these sets."""
    return _added({name: one.size for name, one in each.of.items()} for each in sets)


def _added(numbers: Iterable[Mapping[str, int]]) -> Numbers:
    found: dict[str, int] = {}
    for one in numbers:
        for producer, number in one.items():
            found[producer] = found.get(producer, 0) + number
    return tuple(sorted((name, number) for name, number in found.items() if number))


@dataclass(slots=True)
class Place:
    """How a group stands in one partition."""

    begun_at: int = 0
    """What lies before is not due to it."""
    reached: int = 0
    """How far it has consumed, or committed, whichever is more."""
    duplicated: int = 0
    is_begun: bool = False


@dataclass(slots=True)
class Ledger:
    """The way of every message."""

    accepted: dict[str, Messages] = field(default_factory=dict)
    """Topic -> what the applications of producers were promised."""
    refused: dict[str, Messages] = field(default_factory=dict)
    """Topic -> what applications were told that it is not sent."""
    logs: dict[Partition, list[Lot]] = field(default_factory=dict)
    """Partition -> what lies in it, in order."""
    seen: dict[tuple[str, str], Messages] = field(default_factory=dict)
    """(Group, topic) -> what any member of the group has consumed."""
    again: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """(Group, topic) -> producer -> how many of its messages the group had had before."""
    goes_on: set[str] = field(default_factory=set)
    """Groups to which all is due, wherever they begin: they go on with the work of others."""
    places: dict[tuple[str, Partition], Place] = field(default_factory=dict)

    # --- what happens --------------------------------------------------------------------

    def send(self, topic: str, producer: str, first: int, end: int, outcome: Outcome) -> None:
        """An application has learnt what became of messages that it sent."""
        if outcome != "unknown":
            told = self.accepted if outcome == "accepted" else self.refused
            told.setdefault(topic, Messages()).add(producer, first, end)

    def store(self, partition: Partition, lot: Lot) -> None:
        """A broker has appended messages."""
        log = self.logs.setdefault(partition, [])
        if log and log[-1].precedes(lot):
            log[-1] = log[-1]._replace(end=lot.end, to=lot.to)
        else:
            log.append(lot)

    def cut(self, partition: Partition, end: int) -> None:
        """A log was found to end there: what was behind that is in it no longer."""
        log = self.logs.get(partition, [])
        while log and log[-1].to > end:
            lot = log.pop()
            kept = lot.before(end)
            if kept > lot.first:
                log.append(lot._replace(end=kept, to=end))

    def begin(self, group: str, partition: Partition, at: int) -> None:
        """A group without a place in a partition begins there; what lies before is not due."""
        place = self.place(group, partition)
        if not place.is_begun:
            place.is_begun = True
            place.begun_at = 0 if group in self.goes_on else at
            place.reached = at

    def consume(self, group: str, partition: Partition, lot: Lot) -> int:
        """A member hands messages to its application; how many the group has had before."""
        again = lot.size - self.have(group, partition.topic, lot)
        if again:
            of = self.again.setdefault((group, partition.topic), {})
            of[lot.producer] = of.get(lot.producer, 0) + again
        place = self.place(group, partition)
        place.is_begun = True
        place.duplicated += again
        place.reached = max(place.reached, lot.to)
        return again

    def have(self, group: str, topic: str, lot: Lot) -> int:
        """A group has had messages, wherever that was; how many of them are new to it."""
        seen = self.seen.get((group, topic))
        if seen is None:
            seen = self.seen[group, topic] = Messages()
        return seen.add(lot.producer, lot.first, lot.end)

    def first_new(self, group: str, topic: str, lot: Lot) -> int | None:
        """The first of these messages that the group has not had; None if it had them all."""
        numbers = self._seen(group, topic).of.get(lot.producer, _NONE)
        gaps = numbers.missing(lot.first, lot.end)
        return gaps[0][0] if gaps else None

    def commit(self, group: str, partition: Partition, offset: int) -> None:
        """A group has said how far it has come: it means not to read again what lies before."""
        place = self.place(group, partition)
        place.is_begun = True
        place.reached = max(place.reached, offset)

    def place(self, group: str, partition: Partition) -> Place:
        """How a group stands in a partition."""
        place = self.places.get((group, partition))
        if place is None:
            place = self.places[group, partition] = Place()
        return place

    # --- what came of it -----------------------------------------------------------------

    def account(
        self, group: str, topics: Iterable[str], coming: Mapping[str, Messages] = NO_MESSAGES
    ) -> Account:
        """What became of the messages of these topics in this group.

        `coming` has, by topic, what lies on other clusters and is yet to be mirrored.
        """
        names = sorted(set(topics))
        stored = [self._stored(name) for name in names]
        seen = [self._seen(group, name) for name in names]
        accepted = [self.accepted.get(name, Messages()) for name in names]
        refused = [self.refused.get(name, Messages()) for name in names]
        absent = [
            one.without(*others) for one, *others in zip(accepted, stored, seen, strict=True)
        ]
        never = [
            one.without(coming.get(name, Messages()))
            for name, one in zip(names, absent, strict=True)
        ]
        in_logs = sum(
            lot.size for one, log in self.logs.items() if one.topic in names for lot in log
        )
        skipped = [one for name in names for one in self._skipped(group, name).values()]
        return Account(
            group=group,
            accepted=sum(one.size for one in accepted),
            refused=sum(
                one.without(other).size for one, other in zip(refused, accepted, strict=True)
            ),
            never_stored=sum(one.size for one in never),
            stored_twice=in_logs - sum(one.size for one in stored),
            consumed=sum(one.size for one in seen),
            shares=tuple(share for name in names for share in self._shares(group, name)),
            coming=sum(one.size for one in absent) - sum(one.size for one in never),
            lost_of=_by_producer([*never, *skipped]),
            repeated_of=_added(self.again.get((group, name), {}) for name in names),
        )

    def unread(self, group: str, topic: str) -> Messages:
        """What of a topic lies behind the places that a group has reached."""
        found = Messages()
        for partition in sorted(one for one in self.logs if one.topic == topic):
            found.add_all(self._parted(group, partition)[1])
        return found

    def _stored(self, topic: str) -> Messages:
        """What lies in any log of a topic."""
        lots = (lot for one, log in self.logs.items() if one.topic == topic for lot in log)
        stored = Messages()
        for producer, first, end, *_ in sorted(lots):  # in order, adding takes no time
            stored.add(producer, first, end)
        return stored

    def _seen(self, group: str, topic: str) -> Messages:
        return self.seen.get((group, topic), Messages())

    def _skipped(self, group: str, topic: str) -> dict[Partition, Messages]:
        """What a group has passed by in each partition of a topic.

        A message that was stored in two partitions is not lost as long as it can still be
        read in one of them.
        """
        logs = [one for one in sorted(self.logs) if one.topic == topic]
        parted = {one: self._parted(group, one) for one in logs}
        readable = [later for _, later in parted.values()]
        seen = self._seen(group, topic)
        return {one: past.without(seen, *readable) for one, (past, _) in parted.items()}

    def _shares(self, group: str, topic: str) -> list[Share]:
        """What became of the messages of each partition of a topic."""
        seen = self._seen(group, topic)
        return [
            Share(
                partition,
                stored=sum(lot.size for lot in self.logs[partition]),
                skipped=skipped.size,
                duplicated=self.place(group, partition).duplicated,
                unread=self._parted(group, partition)[1].without(seen).size,
            )
            for partition, skipped in self._skipped(group, topic).items()
        ]

    def _parted(self, group: str, partition: Partition) -> tuple[Messages, Messages]:
        """What is due before the place that a group has reached, and what lies behind it."""
        place = self.place(group, partition)
        past, later = Messages(), Messages()
        for lot in self.logs[partition]:
            due = lot.before(place.begun_at)
            reached = max(due, lot.before(place.reached))
            past.add(lot.producer, due, reached)
            later.add(lot.producer, reached, lot.end)
        return past, later
