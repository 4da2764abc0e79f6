"""Judges of messages: that none is lost or repeated beyond what was promised, and their order.

What is promised is one of four things. *At most once*: none is handed on twice. *At least
once*: none is lost. *Exactly once*: both. *Measured*: neither is promised, both are counted.
A promise may bear limits of its own: so many lost and so many repeated are still as agreed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from model import registry
from model.accounts import Account
from model.asks import Partition
from model.delivery import Ledger, Lot, Messages
from model.ownership import First
from model.promise import Promise
from model.routes import Routes
from model.trace import Event
from model.verdicts import Finding, Property, Verdict, seconds

DELIVERY = Property(
    "delivery",
    "end",
    "no message is lost, and none is handed on twice, beyond what is promised of the group",
)
ORDER = Property(
    "order",
    "always",
    "a group is handed the messages of one producer in one partition in the order it sent them, "
    "but for repeats",
)
COMMITS = Property(
    "sane commits",
    "always",
    "a committed offset is not negative, and no further than what was handed on",
)


def judged(account: Account, promise: Promise, homes: Mapping[str, str]) -> Finding:
    """Whether what became of the messages is what was promised.

    `homes` says to which cluster each producer sends, where some of it has been mirrored.
    """
    claim = Property(f"{DELIVERY.name} to {account.group}", DELIVERY.kind, DELIVERY.says)
    if not (account.accepted or account.consumed or account.refused):
        return Finding(claim, Verdict.UNKNOWN, "no message was sent, and none was handed on")
    counted = (account.lost, account.duplicated, account.refused)
    exceeded = [
        limit is not None and number > limit
        for number, limit in zip(counted, promise.limits, strict=True)
    ]
    said = f"{promise.semantics}: {_counted(account)}{_by_home(account, homes)}"
    return Finding(claim, Verdict.VIOLATED if any(exceeded) else Verdict.HOLDS, said)


def _counted(account: Account) -> str:
    parts = [f"{account.accepted:,} messages accepted, {account.consumed:,} handed on"]
    if account.lost:
        parts.append(
            f"{account.lost:,} lost ({account.never_stored:,} never stored, "
            f"{account.skipped:,} passed by{_worst(account, 'skipped')})"
        )
    if account.duplicated:
        stored = f", {account.stored_twice:,} stored twice" if account.stored_twice else ""
        where = _worst(account, "duplicated")
        parts.append(f"{account.duplicated:,} handed on again{where}{stored}")
    if account.refused:
        parts.append(f"{account.refused:,} refused")
    if account.unread:
        parts.append(f"{account.unread:,} not yet read")
    if account.coming:
        parts.append(f"{account.coming:,} not yet mirrored")
    return ", ".join(parts)


def _by_home(account: Account, homes: Mapping[str, str]) -> str:
    """Of which clusters' messages that is, where there are several."""
    counted: dict[str, dict[str, int]] = {}
    for what, numbers in (("lost", account.lost_of), ("again", account.repeated_of)):
        for producer, number in numbers:
            of = counted.setdefault(homes.get(producer, ""), {})
            of[what] = of.get(what, 0) + number
    if len(set(homes.values())) < 2 or not counted:
        return ""
    said = [
        f"of {home}'s " + " and ".join(f"{number:,} {what}" for what, number in of.items())
        for home, of in sorted(counted.items())
    ]
    return f" ({', '.join(said)})"


def _worst(account: Account, what: Literal["skipped", "duplicated"]) -> str:
    """Where most of it happened, if it happened in several partitions."""
    found = [(getattr(share, what), share.partition) for share in account.shares]
    found = [(number, partition) for number, partition in found if number]
    if len(found) < 2:
        return f" in {found[0][1]}" if found else ""
    number, partition = max(found, key=lambda pair: pair[0])
    return f", {number:,} of them in {partition}"


# --- from the trace --------------------------------------------------------------------


def lots_of(event: Event) -> Iterable[Lot]:
    """The messages that an event of a trace is about."""
    return (Lot(*one) for one in event.detail["lots"])


def partition_of(event: Event) -> Partition:
    """The partition that an event is about; where a program tells of it, the detail names it."""
    return Partition(event.topic, event.partition or event.detail["partition"])


class DeliveryJudge:
    """Follows every message through a trace."""

    KINDS: ClassVar = frozenset(
        {"sent", "stored", "opened", "consumed", "handled", "offset reset", "applied"}
    )

    def __init__(
        self,
        promises: Mapping[str, Promise],
        says_handled: Collection[str] = (),
        routes: Routes | None = None,
    ) -> None:
        self.routes = routes or Routes()
        self.promises = promises
        """Group -> what is promised to it."""
        self.says_handled = frozenset(says_handled)
        """Groups whose applications say when they are done with a message. Only then does it
        count for them; for the others it does when it is handed on."""
        self.ledgers = {name: Ledger() for name in self.routes.clusters}
        """What became of the messages of each cluster."""
        for followers in self.routes.followers.values():
            for name in followers:
                self._ledger_of(name).goes_on.add(name)
        self._handed = Ledger()
        """What was handed on, whether or not it was handled then."""
        self.order = First()
        self.commits = First()
        self.handed_on = 0
        self.committed = 0
        self._latest: dict[tuple[str, Partition, str], int] = {}
        """(Group, partition, producer) -> one past the highest number handed on."""
        self._sane: dict[tuple[str, Partition], int] = {}
        """(Group, partition) -> the highest offset that may be committed."""
        self._ends: dict[tuple[str, Partition], int] = {}
        """(Cluster, partition) -> the end of its log, as far as anybody has said."""
        self._handlers: dict[str, Callable[[Event], None]] = {
            "sent": self._sent,
            "stored": self._stored,
            "opened": self._opened,
            "consumed": self._consumed,
            "handled": self._handled,
            "offset reset": self._reset,
            "applied": self._applied,
        }

    def take(self, event: Event) -> None:
        """Take an event of one of these kinds into account."""
        self._handlers[event.kind](event)

    def _sent(self, event: Event) -> None:
        detail: Any = event.detail
        told = (event.topic, detail["producer"], detail["first"], detail["end"])
        for cluster in self.routes.reached_from(self.routes.cluster_of(event.node), event.topic):
            self.ledgers[cluster].send(*told, detail["outcome"])

    def _stored(self, event: Event) -> None:
        cluster, partition = self.routes.cluster_of(event.node), partition_of(event)
        for lot in lots_of(event):
            self.ledgers[cluster].store(partition, lot)
            self._ends[cluster, partition] = lot.to

    def _opened(self, event: Event) -> None:
        cluster, partition = self.routes.cluster_of(event.node), partition_of(event)
        self.ledgers[cluster].cut(partition, event.detail["end"])
        self._ends[cluster, partition] = event.detail["end"]

    def _ledger_of(self, group: str) -> Ledger:
        return self.ledgers[self.routes.cluster_of_group(group)]

    def _consumed(self, event: Event) -> None:
        partition = partition_of(event)
        for lot in lots_of(event):
            self._look_at_order(event, partition, lot)
            self._handed.consume(event.group, partition, lot)
            if event.group not in self.says_handled:
                self._had(event.group, partition, lot)
            self._allow(event.group, partition, lot.to)
            self.handed_on += lot.size

    def _handled(self, event: Event) -> None:
        if event.group in self.says_handled:
            for lot in lots_of(event):
                self._had(event.group, partition_of(event), lot)

    def _had(self, group: str, partition: Partition, lot: Lot) -> None:
        """A group has had messages, and so have those that go on with its work."""
        self._ledger_of(group).consume(group, partition, lot)
        for follower in self.routes.followers.get(group, ()):
            self._ledger_of(follower).have(follower, partition.topic, lot)

    def _look_at_order(self, event: Event, partition: Partition, lot: Lot) -> None:
        if self.routes.ways_to(self.routes.cluster_of_group(event.group), partition.topic):
            return  # a mirror keeps the order of a partition of its source, and of no other
        key = (event.group, partition, lot.producer)
        latest = self._latest.get(key, 0)
        new = self._handed.first_new(event.group, partition.topic, lot)
        if new is not None and new < latest:
            self.order.note(
                event.t_us,
                f"at {seconds(event.t_us)} {event.node} was handed message {new} of "
                f"{lot.producer} in {partition}, where message {latest - 1} had come before",
            )
        self._latest[key] = max(latest, lot.end)

    def _reset(self, event: Event) -> None:
        partition = partition_of(event)
        self._ledger_of(event.group).begin(event.group, partition, event.detail["to"])
        self._allow(event.group, partition, event.detail["to"])

    def _allow(self, group: str, partition: Partition, offset: int) -> None:
        key = (group, partition)
        self._sane[key] = max(self._sane.get(key, 0), offset)

    def _applied(self, event: Event) -> None:
        for change in event.detail["did"]:
            place = registry.parse_offset(change[1]) if change[0] != "deleted" else None
            if place is not None and change[3] is not None:
                self._look_at_commit(event, *place, change[3])

    def _look_at_commit(self, event: Event, group: str, partition: Partition, data: str) -> None:
        self.committed += 1
        number = registry.offset_in(data)
        offset = -1 if number is None else number
        most = self._most(group, partition)
        if offset < 0 or (most is not None and offset > most):
            come = f"what lies before {most}" if most else "nothing"
            self.commits.note(
                event.t_us,
                f"at {seconds(event.t_us)} {event.detail['by']} committed {data} for "
                f"{partition}, of which {group} had been handed {come}",
            )
        self._ledger_of(group).commit(group, partition, max(offset, 0))

    def _most(self, group: str, partition: Partition) -> int | None:
        """The highest offset that may be committed.

        A group of which nothing was seen may have come from an earlier run, but never beyond
        the end of the log; None where nothing is known of that either.
        """
        end = self._ends.get((self.routes.cluster_of_group(group), partition))
        return self._sane.get((group, partition), end)

    # --- the end -----------------------------------------------------------------------

    def _account(self, group: str, topics: Sequence[str]) -> Account:
        """What became of a group's messages; what lies at a source may yet be mirrored."""
        cluster = self.routes.cluster_of_group(group)
        coming = {topic: self._coming(cluster, topic) for topic in topics}
        return self._ledger_of(group).account(group, topics, coming)

    def _coming(self, cluster: str, topic: str) -> Messages:
        found = Messages()
        for way in self.routes.ways_to(cluster, topic):
            found.add_all(self.ledgers[way.source].unread(way.group, topic))
            found.add_all(self._coming(way.source, topic))
        return found

    def findings(self) -> list[Finding]:
        """What was found: one for each promise, and what holds always."""
        return [
            *(
                judged(self._account(group, promise.topics), promise, self.routes.of_producer)
                for group, promise in sorted(self.promises.items())
            ),
            self.order.finding(
                ORDER,
                f"{self.handed_on:,} messages were handed on, each after those before it",
                unseen="" if self.handed_on else "no message was handed on",
            ),
            self.commits.finding(
                COMMITS,
                f"{self.committed:,} offsets were committed, none beyond what was handed on",
                unseen="" if self.committed else "no offset was committed",
                counts=bool(self.committed),
            ),
        ]
