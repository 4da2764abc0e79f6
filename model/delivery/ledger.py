"""The ledger of messages: how many were lost, and how many handed on twice.

Theory of operation
Every message has an identity for its whole life: its producer and its number there. The
ledger records these moments: the producer's application learns the outcome (*sent*), a broker
appends the message (*stored*), a member of a group hands it to the application (*consumed*),
and the group commits an offset (*committed*). A message that was accepted and never stored
was lost before the log. A stored message that lies before the position of the group and was
never consumed was skipped. A message behind that position is not lost but unread. A broker
whose host has crashed may find fewer messages in its logs (*opened*); the rest is in no log.

Numbers form ranges, so a ledger of millions of messages holds a few thousand of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.delivery.counts import DeliveryCounts, Numbers, Share
from watchkeeper.model.delivery.interval_set import IntervalSet

Outcome = Literal["accepted", "refused", "unknown"]
"""The outcome that a producer's application learns; unknown if the request may have been served.
"""


class MessageRange(NamedTuple):
    """Consecutive messages of one producer in a log.

    `at` and `to` are offsets: of the first message, and past the last. All messages between them
    have one size, unless they are `one_entry`, a compressed set: a reader that stops inside it
    has read none of them.
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
        """One past the number of the last message that lies before an offset."""
        if offset >= self.to:
            return self.end
        if offset <= self.at or self.one_entry:
            return self.first
        return self.first + (offset - self.at) * self.size // (self.to - self.at)

    def precedes(self, other: MessageRange) -> bool:
        """Whether the other range directly follows, so that both can be merged."""
        return (
            (self.producer, self.end, self.to) == (other.producer, other.first, other.at)
            and not (self.one_entry or other.one_entry)
            and (self.to - self.at) * other.size == (other.to - other.at) * self.size
        )


class Messages:
    """A set of messages: the numbers of each producer."""

    __slots__ = ("of",)

    def __init__(self, of: Iterable[tuple[str, IntervalSet]] = ()) -> None:
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
            numbers = self.of[producer] = IntervalSet()
        return numbers.add(first, end)

    def add_all(self, other: Messages) -> None:
        """Add the messages of another set."""
        for producer, numbers in other.of.items():
            for first, end in numbers:
                self.add(producer, first, end)

    def without(self, *others: Messages) -> Messages:
        """The messages that are in none of the others."""
        left = self
        for other in others:
            left = Messages(
                (producer, numbers.without(other.of.get(producer, _NONE)))
                for producer, numbers in left.of.items()
            )
        return left


_NONE = IntervalSet()
NO_MESSAGES: Mapping[str, Messages] = {}


def _by_producer(sets: Iterable[Messages]) -> Numbers:
    """How many messages each producer has in these sets."""
    return _added({name: messages.size for name, messages in each.of.items()} for each in sets)


def _added(numbers: Iterable[Mapping[str, int]]) -> Numbers:
    found: dict[str, int] = {}
    for counts in numbers:
        for producer, number in counts.items():
            found[producer] = found.get(producer, 0) + number
    return tuple(sorted((name, number) for name, number in found.items() if number))


@dataclass(slots=True)
class Place:
    """The position of a group in one partition."""

    begun_at: int = 0
    """Messages before this offset are not due to the group."""
    reached: int = 0
    """The offset consumed or committed, whichever is greater."""
    duplicated: int = 0
    is_begun: bool = False


@dataclass(slots=True)
class Ledger:
    """The record of every message."""

    accepted: dict[str, Messages] = field(default_factory=dict)
    """Topic -> messages accepted by producers."""
    refused: dict[str, Messages] = field(default_factory=dict)
    """Topic -> messages refused to their applications."""
    logs: dict[Partition, list[MessageRange]] = field(default_factory=dict)
    """Partition -> the messages in its log, in order."""
    seen: dict[tuple[str, str], Messages] = field(default_factory=dict)
    """(Group, topic) -> the messages that any member has consumed."""
    again: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """(Group, topic) -> producer -> how many of its messages the group had had before."""
    goes_on: set[str] = field(default_factory=set)
    """Groups that take over from others: every message is due to them."""
    places: dict[tuple[str, Partition], Place] = field(default_factory=dict)

    # --- what happens --------------------------------------------------------------------

    def send(self, topic: str, producer: str, first: int, end: int, outcome: Outcome) -> None:
        """Record the outcome of messages that an application sent."""
        if outcome != "unknown":
            messages = self.accepted if outcome == "accepted" else self.refused
            messages.setdefault(topic, Messages()).add(producer, first, end)

    def store(self, partition: Partition, message_range: MessageRange) -> None:
        """A broker has appended messages."""
        log = self.logs.setdefault(partition, [])
        if log and log[-1].precedes(message_range):
            log[-1] = log[-1]._replace(end=message_range.end, to=message_range.to)
        else:
            log.append(message_range)

    def cut(self, partition: Partition, end: int) -> None:
        """Record the end of a log: messages behind it are no longer in it."""
        log = self.logs.get(partition, [])
        while log and log[-1].to > end:
            message_range = log.pop()
            kept = message_range.before(end)
            if kept > message_range.first:
                log.append(message_range._replace(end=kept, to=end))

    def begin(self, group: str, partition: Partition, at: int) -> None:
        """Record the start of a group without a position: earlier messages are not due."""
        place = self.place(group, partition)
        if not place.is_begun:
            place.is_begun = True
            place.begun_at = 0 if group in self.goes_on else at
            place.reached = at

    def consume(self, group: str, partition: Partition, message_range: MessageRange) -> int:
        """Record messages handed to an application; return how many of them are repeats."""
        again = message_range.size - self.have(group, partition.topic, message_range)
        if again:
            of = self.again.setdefault((group, partition.topic), {})
            of[message_range.producer] = of.get(message_range.producer, 0) + again
        place = self.place(group, partition)
        place.is_begun = True
        place.duplicated += again
        place.reached = max(place.reached, message_range.to)
        return again

    def have(self, group: str, topic: str, message_range: MessageRange) -> int:
        """Record messages that a group has had, on any cluster; return how many are new."""
        seen = self.seen.get((group, topic))
        if seen is None:
            seen = self.seen[group, topic] = Messages()
        return seen.add(message_range.producer, message_range.first, message_range.end)

    def first_new(self, group: str, topic: str, message_range: MessageRange) -> int | None:
        """The first of these messages that the group has not had; None if it had them all."""
        numbers = self._seen(group, topic).of.get(message_range.producer, _NONE)
        gaps = numbers.missing(message_range.first, message_range.end)
        return gaps[0][0] if gaps else None

    def commit(self, group: str, partition: Partition, offset: int) -> None:
        """Record a commit: the group will not read messages before the offset again."""
        place = self.place(group, partition)
        place.is_begun = True
        place.reached = max(place.reached, offset)

    def place(self, group: str, partition: Partition) -> Place:
        """The position of a group in a partition."""
        place = self.places.get((group, partition))
        if place is None:
            place = self.places[group, partition] = Place()
        return place

    # --- what came of it -----------------------------------------------------------------

    def account(
        self, group: str, topics: Iterable[str], coming: Mapping[str, Messages] = NO_MESSAGES
    ) -> DeliveryCounts:
        """The counts of these topics in this group.

        `coming` maps each topic to messages on other clusters that are still to be mirrored.
        """
        names = sorted(set(topics))
        stored = [self._stored(name) for name in names]
        seen = [self._seen(group, name) for name in names]
        accepted = [self.accepted.get(name, Messages()) for name in names]
        refused = [self.refused.get(name, Messages()) for name in names]
        absent = [
            messages.without(*others)
            for messages, *others in zip(accepted, stored, seen, strict=True)
        ]
        never = [
            messages.without(coming.get(name, Messages()))
            for name, messages in zip(names, absent, strict=True)
        ]
        in_logs = sum(
            message_range.size
            for place, log in self.logs.items()
            if place.topic in names
            for message_range in log
        )
        skipped = [messages for name in names for messages in self._skipped(group, name).values()]
        return DeliveryCounts(
            group=group,
            accepted=sum(messages.size for messages in accepted),
            refused=sum(
                messages.without(other).size
                for messages, other in zip(refused, accepted, strict=True)
            ),
            never_stored=sum(messages.size for messages in never),
            stored_twice=in_logs - sum(messages.size for messages in stored),
            consumed=sum(messages.size for messages in seen),
            shares=tuple(share for name in names for share in self._shares(group, name)),
            coming=sum(messages.size for messages in absent)
            - sum(messages.size for messages in never),
            lost_of=_by_producer([*never, *skipped]),
            repeated_of=_added(self.again.get((group, name), {}) for name in names),
        )

    def unread(self, group: str, topic: str) -> Messages:
        """The messages of a topic behind the positions of a group."""
        found = Messages()
        for partition in sorted(place for place in self.logs if place.topic == topic):
            found.add_all(self._parted(group, partition)[1])
        return found

    def _stored(self, topic: str) -> Messages:
        """The messages of a topic in any log."""
        ranges = (
            message_range
            for place, log in self.logs.items()
            if place.topic == topic
            for message_range in log
        )
        stored = Messages()
        for producer, first, end, *_ in sorted(ranges):  # in order, adding takes no time
            stored.add(producer, first, end)
        return stored

    def _seen(self, group: str, topic: str) -> Messages:
        return self.seen.get((group, topic), Messages())

    def _skipped(self, group: str, topic: str) -> dict[Partition, Messages]:
        """Partition -> the messages of a topic that a group has skipped.

        A message that was stored in two partitions is not lost while it can still be read in one
        of them.
        """
        logs = [place for place in sorted(self.logs) if place.topic == topic]
        parted = {place: self._parted(group, place) for place in logs}
        readable = [later for _, later in parted.values()]
        seen = self._seen(group, topic)
        return {place: past.without(seen, *readable) for place, (past, _) in parted.items()}

    def _shares(self, group: str, topic: str) -> list[Share]:
        """The counts of each partition of a topic."""
        seen = self._seen(group, topic)
        return [
            Share(
                partition,
                stored=sum(message_range.size for message_range in self.logs[partition]),
                skipped=skipped.size,
                duplicated=self.place(group, partition).duplicated,
                unread=self._parted(group, partition)[1].without(seen).size,
            )
            for partition, skipped in self._skipped(group, topic).items()
        ]

    def _parted(self, group: str, partition: Partition) -> tuple[Messages, Messages]:
        """The messages due before the position of a group, and those behind it."""
        place = self.place(group, partition)
        past, later = Messages(), Messages()
        for message_range in self.logs[partition]:
            due = message_range.before(place.begun_at)
            reached = max(due, message_range.before(place.reached))
            past.add(message_range.producer, due, reached)
            later.add(message_range.producer, reached, message_range.end)
        return past, later
