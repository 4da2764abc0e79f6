"""Judges of delivery: losses and repeats within the guarantee, and the order of messages.

A guarantee is one of four. *At most once*: no message is handed on twice. *At least once*: no
message is lost. *Exactly once*: both. *Measured*: neither is guaranteed, both are counted. A
guarantee may have limits of its own: that many losses and repeats are still allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, ClassVar, Literal

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.delivery.counts import DeliveryCounts
from watchkeeper.model.delivery.ledger import Ledger, MessageRange, Messages
from watchkeeper.model.plan.delivery_guarantee import DeliveryGuarantee
from watchkeeper.model.plan.mirror_routes import Routes
from watchkeeper.model.properties.ownership import First
from watchkeeper.model.properties.verdicts import (
    Finding,
    Property,
    Subject,
    Verdict,
    seconds,
    unexercised,
)
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

DELIVERY = Property(
    "delivery",
    "end",
    "messages are lost or consumed twice only as far as the group's delivery guarantee allows",
    exercise="a message that is sent or handed on",
)
ORDER = Property(
    "order",
    "always",
    "a group consumes the messages of one producer in one partition in the order of sending, "
    "except for repeats",
    exercise="a message that is handed on",
)
COMMITS = Property(
    "sane commits",
    "always",
    "a committed offset is not negative, and not above the consumed offset",
    exercise="an offset that is committed",
    is_optional=True,
)

FATES = ("messages are lost", "messages are handed on again", "messages are refused")
"""What a guarantee limits, in the order of its limits."""


def judged(
    account: DeliveryCounts, guarantee: DeliveryGuarantee, homes: Mapping[str, str]
) -> Finding:
    """Judge the fate of a group's messages by its guarantee.

    `homes` maps each producer to the cluster it sends to, if messages are mirrored.
    """
    claim = replace(DELIVERY, name=f"{DELIVERY.name} to {account.group}", family=DELIVERY.name)
    exercised = account.accepted + account.consumed + account.refused
    if not exercised:
        return unexercised(claim)
    counted = (account.lost, account.duplicated, account.refused)
    exceeded = [
        limit is not None and number > limit
        for number, limit in zip(counted, guarantee.limits, strict=True)
    ]
    message = f"{guarantee.semantics}: {_counted(account)}{_by_home(account, homes)}"
    if not any(exceeded):
        return Finding(
            claim, Verdict.HOLDS, message, exercised=exercised, is_notable=any(counted)
        )
    shape = f"{' and '.join(compress(FATES, exceeded))}, beyond the guarantee"
    return Finding(
        claim,
        Verdict.VIOLATED,
        message,
        exercised=exercised,
        shape=shape,
        about=_about(account),
    )


def _about(account: DeliveryCounts) -> Subject:
    """What is wrong is looked for where most messages were passed by or handed on again."""
    shares = [share for share in account.shares if share.skipped or share.duplicated]
    worst = max(shares, key=lambda share: (share.skipped, share.duplicated), default=None)
    return Subject(group=account.group, partitions=() if worst is None else (worst.partition,))


def _counted(account: DeliveryCounts) -> str:
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


def _by_home(account: DeliveryCounts, homes: Mapping[str, str]) -> str:
    """Of which clusters' messages that is, where there are several."""
    counted: dict[str, dict[str, int]] = {}
    for what, numbers in (("lost", account.lost_of), ("again", account.repeated_of)):
        for producer, number in numbers:
            of = counted.setdefault(homes.get(producer, ""), {})
            of[what] = of.get(what, 0) + number
    if len(set(homes.values())) < 2 or not counted:
        return ""
    message = [
        f"of {home}'s " + " and ".join(f"{number:,} {what}" for what, number in of.items())
        for home, of in sorted(counted.items())
    ]
    return f" ({', '.join(message)})"


def _worst(account: DeliveryCounts, what: Literal["skipped", "duplicated"]) -> str:
    """Where most of it happened, if it happened in several partitions."""
    found = [(getattr(share, what), share.partition) for share in account.shares]
    found = [(number, partition) for number, partition in found if number]
    if len(found) < 2:
        return f" in {found[0][1]}" if found else ""
    number, partition = max(found, key=lambda pair: pair[0])
    return f", {number:,} of them in {partition}"


# --- from the trace --------------------------------------------------------------------


def ranges_of(event: Event) -> Iterable[MessageRange]:
    """The messages that an event of a trace is about."""
    return (MessageRange(*pair) for pair in event.detail["ranges"])


def partition_of(event: Event) -> Partition:
    """The partition of an event; an event of a program names it in its detail."""
    return Partition(event.topic, event.partition or event.detail["partition"])


class DeliveryJudge:
    """Follows every message through a trace."""

    KINDS: ClassVar = frozenset(
        {
            EventKind.SENT,
            EventKind.STORED,
            EventKind.LOG_OPENED,
            EventKind.CONSUMED,
            EventKind.HANDLED,
            EventKind.OFFSET_RESET,
            EventKind.APPLIED,
        }
    )

    def __init__(
        self,
        guarantees: Mapping[str, DeliveryGuarantee],
        says_handled: Collection[str] = (),
        routes: Routes | None = None,
    ) -> None:
        self.routes = routes or Routes()
        self.guarantees = guarantees
        """Group -> its delivery guarantee."""
        self.says_handled = frozenset(says_handled)
        """Groups whose applications report a message as handled. Only then does it count for
        them; for other groups it counts when it is handed on."""
        self.ledgers = {name: Ledger() for name in self.routes.clusters}
        """Cluster -> the ledger of its messages."""
        for followers in self.routes.followers.values():
            for name in followers:
                self._ledger_of(name).goes_on.add(name)
        self._handed = Ledger()
        """The messages handed on, whether or not they were handled then."""
        self.order = First()
        self.commits = First()
        self.handed_on = 0
        self.committed = 0
        self._latest: dict[tuple[str, Partition, str], int] = {}
        """(Group, partition, producer) -> one past the highest number handed on."""
        self._sane: dict[tuple[str, Partition], int] = {}
        """(Group, partition) -> the highest offset that may be committed."""
        self._ends: dict[tuple[str, Partition], int] = {}
        """(Cluster, partition) -> the end of its log, as far as it is known."""
        self._handlers: dict[str, Callable[[Event], None]] = {
            EventKind.SENT: self._sent,
            EventKind.STORED: self._stored,
            EventKind.LOG_OPENED: self._opened,
            EventKind.CONSUMED: self._consumed,
            EventKind.HANDLED: self._handled,
            EventKind.OFFSET_RESET: self._reset,
            EventKind.APPLIED: self._applied,
        }

    def take(self, event: Event) -> None:
        """Process an event of one of these kinds."""
        self._handlers[event.kind](event)

    def _sent(self, event: Event) -> None:
        detail: Any = event.detail
        sent = (event.topic, detail["producer"], detail["first"], detail["end"])
        for cluster in self.routes.reached_from(self.routes.cluster_of(event.node), event.topic):
            self.ledgers[cluster].send(*sent, detail["outcome"])

    def _stored(self, event: Event) -> None:
        cluster, partition = self.routes.cluster_of(event.node), partition_of(event)
        for message_range in ranges_of(event):
            self.ledgers[cluster].store(partition, message_range)
            self._ends[cluster, partition] = message_range.to

    def _opened(self, event: Event) -> None:
        cluster, partition = self.routes.cluster_of(event.node), partition_of(event)
        self.ledgers[cluster].cut(partition, event.detail["end"])
        self._ends[cluster, partition] = event.detail["end"]

    def _ledger_of(self, group: str) -> Ledger:
        return self.ledgers[self.routes.cluster_of_group(group)]

    def _consumed(self, event: Event) -> None:
        partition = partition_of(event)
        for message_range in ranges_of(event):
            self._look_at_order(event, partition, message_range)
            self._handed.consume(event.group, partition, message_range)
            if event.group not in self.says_handled:
                self._had(event.group, partition, message_range)
            self._allow(event.group, partition, message_range.to)
            self.handed_on += message_range.size

    def _handled(self, event: Event) -> None:
        if event.group in self.says_handled:
            for message_range in ranges_of(event):
                self._had(event.group, partition_of(event), message_range)

    def _had(self, group: str, partition: Partition, message_range: MessageRange) -> None:
        """Record messages for a group and for the groups that take over from it."""
        self._ledger_of(group).consume(group, partition, message_range)
        for follower in self.routes.followers.get(group, ()):
            self._ledger_of(follower).have(follower, partition.topic, message_range)

    def _look_at_order(
        self, event: Event, partition: Partition, message_range: MessageRange
    ) -> None:
        if self.routes.ways_to(self.routes.cluster_of_group(event.group), partition.topic):
            return  # a mirror preserves the order within one source partition only
        key = (event.group, partition, message_range.producer)
        latest = self._latest.get(key, 0)
        new = self._handed.first_new(event.group, partition.topic, message_range)
        if new is not None and new < latest:
            self.order.note(
                event.t_us,
                "a group is handed a message after a later one of the same producer",
                f"at {seconds(event.t_us)} {event.node} was handed message {new} of "
                f"{message_range.producer} in {partition}, where message {latest - 1} had come "
                "before",
                Subject((event.node,), event.group, (partition,)),
            )
        self._latest[key] = max(latest, message_range.end)

    def _reset(self, event: Event) -> None:
        partition = partition_of(event)
        self._ledger_of(event.group).begin(event.group, partition, event.detail["to"])
        self._allow(event.group, partition, event.detail["to"])

    def _allow(self, group: str, partition: Partition, offset: int) -> None:
        key = (group, partition)
        self._sane[key] = max(self._sane.get(key, 0), offset)

    def _applied(self, event: Event) -> None:
        for change in event.detail["did"]:
            place = paths.parse_offset(change[1]) if change[0] != "deleted" else None
            if place is not None and change[3] is not None:
                self._look_at_commit(event, *place, change[3])

    def _look_at_commit(self, event: Event, group: str, partition: Partition, data: str) -> None:
        self.committed += 1
        number = paths.offset_in(data)
        offset = -1 if number is None else number
        most = self._most(group, partition)
        if offset < 0 or (most is not None and offset > most):
            come = f"what lies before {most}" if most else "nothing"
            self.commits.note(
                event.t_us,
                "a member commits "
                + ("a negative offset" if offset < 0 else "more than it was handed"),
                f"at {seconds(event.t_us)} {event.detail['by']} committed {data} for "
                f"{partition}, of which {group} had been handed {come}",
                Subject(
                    (event.detail["by"],),
                    group,
                    (partition,),
                    paths=(paths.offset(group, partition),),
                ),
            )
        self._ledger_of(group).commit(group, partition, max(offset, 0))

    def _most(self, group: str, partition: Partition) -> int | None:
        """The highest offset that may be committed.

        A group that has consumed nothing may have committed in an earlier run, but never beyond
        the end of the log; None if that end is unknown too.
        """
        end = self._ends.get((self.routes.cluster_of_group(group), partition))
        return self._sane.get((group, partition), end)

    # --- the end -----------------------------------------------------------------------

    def _account(self, group: str, topics: Sequence[str]) -> DeliveryCounts:
        """The counts of a group's messages; messages at a source may still be mirrored."""
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
        """The findings: one for each guarantee, and those that hold always."""
        return [
            *(
                judged(self._account(group, guarantee.topics), guarantee, self.routes.of_producer)
                for group, guarantee in sorted(self.guarantees.items())
            ),
            self.order.finding(
                ORDER,
                f"{self.handed_on:,} messages were handed on, each after those before it",
                self.handed_on,
            ),
            self.commits.finding(
                COMMITS,
                f"{self.committed:,} offsets were committed, none beyond what was handed on",
                self.committed,
            ),
        ]
