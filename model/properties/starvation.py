"""Judges of how long messages wait: in a log that its owner does not read, and in a producer.

A member may own a partition and read nothing of it: its fetcher has ended, a message is
larger than its fetch size, its stream receives nothing. Ownership and the messages handed on
are then correct; the only fault is that no message arrives.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.delivery.interval_set import IntervalSet
from watchkeeper.model.delivery.ledger import MessageRange
from watchkeeper.model.properties.delivery import partition_of, ranges_of
from watchkeeper.model.properties.ownership import First
from watchkeeper.model.properties.verdicts import Finding, Property, Subject, duration, seconds
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

STARVATION = Property(
    "no starvation",
    "always",
    "the stream of a partition that is claimed, served and not read to its end receives messages "
    "within a bounded time",
    exercise="a claimed partition in which there is something to read",
)
PUNCTUAL = Property(
    "punctual sending",
    "always",
    "an accepted message is stored within a bounded time, or never",
    exercise="a message that is accepted and stored",
)


@dataclass(slots=True)
class _Owned:
    """A partition of a group, and since when a message of it waits."""

    is_claimed: bool = False
    owner: str = ""
    stream: int = 0
    """The last fetcher, and the stream it fetches for."""
    reached: int = 0
    """The position of that stream, or of the streams before it."""
    since_us: int | None = None


class StarvationJudge:
    """Watches whether every partition that is owned moves on."""

    KINDS: ClassVar = frozenset(
        {
            EventKind.APPLIED,
            EventKind.SESSION_EXPIRED,
            EventKind.SESSION_CLOSED,
            EventKind.STORED,
            EventKind.CONSUMED,
            EventKind.FETCHING,
            EventKind.HOSTING,
            EventKind.OFFSET_RESET,
            EventKind.LOG_OPENED,
        }
    )

    def __init__(self, bound_us: int) -> None:
        self.bound_us = bound_us
        self.first = First()
        self.longest_us = 0
        self.waits = 0
        self._owned: dict[tuple[str, Partition], _Owned] = {}
        self._ends: dict[Partition, int] = {}
        self._servers: dict[Partition, dict[str, None]] = {}
        """The brokers that serve a partition; a missing key means that none has reported it."""
        self._handlers: dict[str, Callable[[Event], None]] = {
            EventKind.APPLIED: self._changed,
            EventKind.SESSION_EXPIRED: self._changed,
            EventKind.SESSION_CLOSED: self._changed,
            EventKind.STORED: self._stored,
            EventKind.CONSUMED: self._consumed,
            EventKind.FETCHING: self._fetching,
            EventKind.HOSTING: self._hosting,
            EventKind.OFFSET_RESET: self._reset,
            EventKind.LOG_OPENED: self._opened,
        }

    def take(self, event: Event) -> None:
        """Process an event of one of these kinds."""
        self._handlers[event.kind](event)

    def _changed(self, event: Event) -> None:
        """A claim may have been created or deleted."""
        for change in event.detail["did"]:
            claim = paths.parse_owner(change[1])
            if claim is not None:
                group, partition = claim
                owned = self._owned.setdefault(claim, _Owned())
                owned.is_claimed = change[0] != "deleted"
                self._end_wait(event.t_us, group, partition)
                self._look(event.t_us, group, partition)

    def _stored(self, event: Event) -> None:
        partition = partition_of(event)
        known = self._ends.get(partition, 0)
        self._ends[partition] = max(
            (message_range.to for message_range in ranges_of(event)), default=known
        )
        self._look_at_all(event.t_us, partition)

    def _opened(self, event: Event) -> None:
        """Messages behind that end are no longer in the log, so none of them waits."""
        partition = partition_of(event)
        self._ends[partition] = event.detail["end"]
        self._look_at_all(event.t_us, partition)

    def _hosting(self, event: Event) -> None:
        partition = partition_of(event)
        servers = self._servers.setdefault(partition, {})
        if event.detail["does"] == "begins":
            servers[event.node] = None
        else:
            servers.pop(event.node, None)
        self._look_at_all(event.t_us, partition)

    def _consumed(self, event: Event) -> None:
        partition = partition_of(event)
        owned = self._of(event, partition)
        if (event.node, event.detail["stream"]) == (owned.owner, owned.stream):
            owned.reached = max(
                (owned.reached, *(message_range.to for message_range in ranges_of(event)))
            )
            self._end_wait(event.t_us, event.group, partition)
        self._look(event.t_us, event.group, partition)

    def _fetching(self, event: Event) -> None:
        partition = partition_of(event)
        owned = self._of(event, partition)
        if event.detail["does"] == "begins":
            self._end_wait(event.t_us, event.group, partition)
            owned.owner, owned.stream = event.node, event.detail["stream"]
            owned.reached = max(owned.reached, event.detail["at"] or 0)
        self._look(event.t_us, event.group, partition)

    def _reset(self, event: Event) -> None:
        partition = partition_of(event)
        self._of(event, partition).reached = event.detail["to"]
        self._look(event.t_us, event.group, partition)

    def _of(self, event: Event, partition: Partition) -> _Owned:
        return self._owned.setdefault((event.group, partition), _Owned())

    # --- waits -------------------------------------------------------------------------

    def _look_at_all(self, now_us: int, partition: Partition) -> None:
        for group, owned in list(self._owned):
            if owned == partition:
                self._look(now_us, group, owned)

    def _look(self, now_us: int, group: str, partition: Partition) -> None:
        """Check whether a message of a partition waits now."""
        owned = self._owned[group, partition]
        is_waiting = (
            owned.is_claimed
            and self._is_served(partition)
            and owned.reached < self._ends.get(partition, 0)
        )
        if not is_waiting:
            self._end_wait(now_us, group, partition)
        elif owned.since_us is None:
            owned.since_us = now_us
            self.waits += 1

    def _is_served(self, partition: Partition) -> bool:
        """Whether a broker serves the partition: reported, or shown by messages in it."""
        return bool(self._servers.get(partition, {"": None}))

    def _end_wait(self, now_us: int, group: str, partition: Partition) -> None:
        owned = self._owned[group, partition]
        if owned.since_us is None:
            return
        lasted, owned.since_us = now_us - owned.since_us, None
        self.longest_us = max(self.longest_us, lasted)
        if lasted > self.bound_us:
            self.first.note(
                now_us - lasted + self.bound_us,
                "a stream is handed nothing although there is more to read",
                f"from {seconds(now_us - lasted)} to {seconds(now_us)} {group} had a claim on "
                f"{partition}, of which there was more to read, and stream {owned.stream} of "
                f"{owned.owner or 'no member'} was handed nothing",
                Subject((owned.owner,) if owned.owner else (), group, (partition,)),
            )

    def finding(self, end_us: int) -> Finding:
        """The finding on starvation."""
        for group, partition in list(self._owned):
            self._end_wait(end_us, group, partition)
        return self.first.finding(
            STARVATION,
            f"the longest wait for something unread was {duration(self.longest_us)}",
            self.waits,
        )


class PunctualityJudge:
    """Judges how long producers keep the messages they have accepted."""

    KINDS: ClassVar = frozenset({EventKind.SENT, EventKind.STORED})

    def __init__(self, bound_us: int) -> None:
        self.bound_us = bound_us
        self.first = First()
        self.longest_us = 0
        self._waiting: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        """(Topic, producer) -> accepted messages in order: from, to, and when that was."""
        self._known: dict[tuple[str, str], IntervalSet] = {}
        """(Topic, producer) -> the numbers of stored messages."""
        self.stored = 0

    def take(self, event: Event) -> None:
        """Process an event of one of these kinds."""
        if event.kind == EventKind.SENT:
            self._sent(event)
        else:
            self._stored(event)

    def _sent(self, event: Event) -> None:
        """Some messages may be stored before the application learns that they were accepted."""
        if event.detail["outcome"] == "accepted":
            key = (event.topic, event.detail["producer"])
            first, end = event.detail["first"], event.detail["end"]
            missing = self._known.setdefault(key, IntervalSet()).missing(first, end)
            self.stored += end - first - sum(to - at for at, to in missing)
            waiting = self._waiting.setdefault(key, [])
            for at, to in missing:
                insort(waiting, (at, to, event.t_us))

    def _stored(self, event: Event) -> None:
        for message_range in ranges_of(event):
            key = (event.topic, message_range.producer)
            self._known.setdefault(key, IntervalSet()).add(message_range.first, message_range.end)
            waiting = self._waiting.get(key, [])
            low, high = (
                bisect_left(waiting, (message_range.first,)),
                bisect_left(waiting, (message_range.end,)),
            )
            if low and waiting[low - 1][1] > message_range.first:
                low -= 1
            left: list[tuple[int, int, int]] = []
            for at, to, accepted_us in waiting[low:high]:
                self._arrived(
                    event,
                    message_range,
                    max(at, message_range.first),
                    min(to, message_range.end),
                    accepted_us,
                )
                kept = (
                    (at, message_range.first, accepted_us),
                    (message_range.end, to, accepted_us),
                )
                left.extend(interval for interval in kept if interval[0] < interval[1])
            waiting[low:high] = left

    def _arrived(
        self, event: Event, message_range: MessageRange, first: int, end: int, accepted_us: int
    ) -> None:
        lasted = event.t_us - accepted_us
        self.stored += end - first
        self.longest_us = max(self.longest_us, lasted)
        if lasted > self.bound_us:
            self.first.note(
                accepted_us + self.bound_us,
                "a message is stored too late",
                f"message {first} of {message_range.producer} was accepted at "
                f"{seconds(accepted_us)} and stored at {seconds(event.t_us)}, "
                f"{duration(lasted)} later",
                Subject((event.node,), partitions=(partition_of(event),)),
            )

    def finding(self) -> Finding:
        """The finding on punctual sending."""
        return self.first.finding(
            PUNCTUAL,
            f"the longest time from accepted to stored was {duration(self.longest_us)}",
            self.stored,
        )
