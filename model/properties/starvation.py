"""Judges of how long messages wait: in a log whose owner hands nothing on, and on their way.

A member may own a partition and read nothing of it: its fetcher has ended, one message is
larger than what it fetches, its stream gets nothing. Ownership is in order then, and so is
all that was handed on. What is wrong is only that nothing comes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from model import registry
from model.asks import Partition
from model.delivered import lots_of, partition_of
from model.delivery import Lot
from model.ownership import First
from model.ranges import Ranges
from model.trace import Event
from model.verdicts import Finding, Property, duration, seconds

STARVATION = Property(
    "no starvation",
    "always",
    "of a partition that is claimed, served and not read to its end, the stream that it is "
    "assigned to is handed something within a bounded time",
)
PUNCTUAL = Property(
    "punctual sending",
    "always",
    "a message that was accepted is stored within a bounded time, or never",
)


@dataclass(slots=True)
class _Owned:
    """A partition of a group, and since when somebody waits for something of it."""

    is_claimed: bool = False
    owner: str = ""
    stream: int = 0
    """Who fetched it last, and for which of its streams."""
    reached: int = 0
    """How far that stream was handed it, or those before it."""
    since_us: int | None = None


class StarvationJudge:
    """Watches whether every partition that is owned moves on."""

    KINDS: ClassVar = frozenset(
        {
            "applied",
            "session expired",
            "session closed",
            "stored",
            "consumed",
            "fetching",
            "hosting",
            "offset reset",
            "opened",
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
        """Who serves a partition; of one that is not here nobody has said that."""
        self._handlers: dict[str, Callable[[Event], None]] = {
            "applied": self._changed,
            "session expired": self._changed,
            "session closed": self._changed,
            "stored": self._stored,
            "consumed": self._consumed,
            "fetching": self._fetching,
            "hosting": self._hosting,
            "offset reset": self._reset,
            "opened": self._opened,
        }

    def take(self, event: Event) -> None:
        """Take an event of one of these kinds into account."""
        self._handlers[event.kind](event)

    def _changed(self, event: Event) -> None:
        """A claim may have come or gone."""
        for change in event.detail["did"]:
            claim = registry.parse_owner(change[1])
            if claim is not None:
                group, partition = claim
                owned = self._owned.setdefault(claim, _Owned())
                owned.is_claimed = change[0] != "deleted"
                self._end_wait(event.t_us, group, partition)
                self._look(event.t_us, group, partition)

    def _stored(self, event: Event) -> None:
        partition = partition_of(event)
        known = self._ends.get(partition, 0)
        self._ends[partition] = max((lot.to for lot in lots_of(event)), default=known)
        self._look_at_all(event.t_us, partition)

    def _opened(self, event: Event) -> None:
        """What was behind that end is in the log no longer, so nobody waits for it."""
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
            owned.reached = max((owned.reached, *(lot.to for lot in lots_of(event))))
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
        for group, one in list(self._owned):
            if one == partition:
                self._look(now_us, group, one)

    def _look(self, now_us: int, group: str, partition: Partition) -> None:
        """See whether somebody waits for something of a partition now."""
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
        """Nobody may have said yet who serves it; somebody does if there is something in it."""
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
                f"from {seconds(now_us - lasted)} to {seconds(now_us)} {group} had a claim on "
                f"{partition}, of which there was more to read, and stream {owned.stream} of "
                f"{owned.owner or 'nobody'} was handed nothing",
            )

    def finding(self, end_us: int) -> Finding:
        """What was found."""
        for group, partition in list(self._owned):
            self._end_wait(end_us, group, partition)
        return self.first.finding(
            STARVATION,
            f"the longest wait for something unread was {duration(self.longest_us)}",
            unseen="" if self.waits else "nobody claimed a partition in which there was anything",
        )


class PunctualityJudge:
    """Watches how long producers keep what they have accepted."""

    KINDS: ClassVar = frozenset({"sent", "stored"})

    def __init__(self, bound_us: int) -> None:
        self.bound_us = bound_us
        self.first = First()
        self.longest_us = 0
        self._waiting: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        """(Topic, producer) -> accepted messages in order: from, to, and when that was."""
        self._known: dict[tuple[str, str], Ranges] = {}
        """(Topic, producer) -> what has been stored."""
        self.stored = 0

    def take(self, event: Event) -> None:
        """Take an event of one of these kinds into account."""
        if event.kind == "sent":
            self._sent(event)
        else:
            self._stored(event)

    def _sent(self, event: Event) -> None:
        """Some of it may be stored before anybody hears that it was accepted."""
        if event.detail["outcome"] == "accepted":
            key = (event.topic, event.detail["producer"])
            first, end = event.detail["first"], event.detail["end"]
            missing = self._known.setdefault(key, Ranges()).missing(first, end)
            self.stored += end - first - sum(to - at for at, to in missing)
            waiting = self._waiting.setdefault(key, [])
            for at, to in missing:
                insort(waiting, (at, to, event.t_us))

    def _stored(self, event: Event) -> None:
        for lot in lots_of(event):
            key = (event.topic, lot.producer)
            self._known.setdefault(key, Ranges()).add(lot.first, lot.end)
            waiting = self._waiting.get(key, [])
            low, high = bisect_left(waiting, (lot.first,)), bisect_left(waiting, (lot.end,))
            if low and waiting[low - 1][1] > lot.first:
                low -= 1
            left: list[tuple[int, int, int]] = []
            for at, to, accepted_us in waiting[low:high]:
                self._arrived(event, lot, max(at, lot.first), min(to, lot.end), accepted_us)
                kept = ((at, lot.first, accepted_us), (lot.end, to, accepted_us))
                left.extend(one for one in kept if one[0] < one[1])
            waiting[low:high] = left

    def _arrived(self, event: Event, lot: Lot, first: int, end: int, accepted_us: int) -> None:
        lasted = event.t_us - accepted_us
        self.stored += end - first
        self.longest_us = max(self.longest_us, lasted)
        if lasted > self.bound_us:
            self.first.note(
                accepted_us + self.bound_us,
                f"message {first} of {lot.producer} was accepted at {seconds(accepted_us)} and "
                f"stored at {seconds(event.t_us)}, {duration(lasted)} later",
            )

    def finding(self) -> Finding:
        """What was found."""
        return self.first.finding(
            PUNCTUAL,
            f"the longest time from accepted to stored was {duration(self.longest_us)}",
            unseen="" if self.stored else "no message was accepted and stored",
        )
