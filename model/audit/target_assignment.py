"""The assignment of a group after a rebalance, and the steps from the present one to it.

It is computed by the code that members use, from the same view: every partition of every topic
with a subscriber, and every stream that subscribes to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.audit.registry_view import Group, RegistryView, Topic
from watchkeeper.model.group.assignment import Assignor, View, assign, topic_view
from watchkeeper.model.group.state import stream_ids

Owners = dict[Partition, str]
"""Partition -> its owner, now or after a rebalance."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the owner of one partition."""

    partition: Partition
    before: str | None
    """The owner before; None for no owner."""
    after: str | None

    @property
    def is_move(self) -> bool:
        """Whether the partition moves from one owner to another, rather than from or to none."""
        return self.before is not None and self.after is not None

    def __str__(self) -> str:
        return f"{self.partition}: {self.before or 'no member'} -> {self.after or 'no member'}"


def view_of(census: RegistryView, group: Group) -> View:
    """The view that every member would read."""
    wanted = sorted({topic for member in group.members.values() for topic in member.wanted})
    views = []
    for name in wanted:
        topic = census.topics.get(name, Topic(name))
        views.append(topic_view(name, topic.partitions(), _streams(group, name), topic.layout))
    return tuple(views)


def _streams(group: Group, topic: str) -> list[str]:
    return [
        stream
        for member in group.members.values()
        for stream in stream_ids(group.unit, member.name, member.wanted.get(topic, 0))
    ]


def intended(census: RegistryView, group: Group, assignor: Assignor) -> Owners:
    """The target assignment; UnequalSubscriptions if the assignor refuses the view."""
    member_of = {
        stream: member.name
        for member in group.members.values()
        for stream in stream_ids(group.unit, member.name, max(member.wanted.values(), default=0))
    }
    shares = assign(assignor, view_of(census, group))
    return {
        partition: member_of[stream]
        for stream, partitions in shares.items()
        for partition in partitions
    }


def owners_now(group: Group) -> Owners:
    """The present owners, by claims of live sessions.

    Of several claims on one partition, the one under its canonical name counts.
    """
    owners: Owners = {}
    for claim in sorted(group.claims, key=lambda claim: claim.is_alias):
        if claim.is_alive and claim.member is not None:
            owners.setdefault(claim.partition, claim.member)
    return owners


def steps(now: Mapping[Partition, str], then: Mapping[Partition, str]) -> list[Step]:
    """The steps from one assignment to another."""
    partitions = sorted({*now, *then}, key=order)
    changes = [
        Step(partition, now.get(partition), then.get(partition)) for partition in partitions
    ]
    return [change for change in changes if change.before != change.after]


def order(partition: Partition) -> tuple[str, list[tuple[int, str]]]:
    """Sort by topic, and then by the numbers in the name."""
    parts = partition.name.split("-")
    return partition.topic, [
        (int(part), "") if part.isdecimal() else (-1, part) for part in parts
    ]


def connections(topic: Topic, owners: Mapping[Partition, str]) -> tuple[int, int, int]:
    """Pairs of a member and a broker; the fewest there could be; the brokers of the topic."""
    held = {
        partition: name for partition, name in owners.items() if partition.topic == topic.name
    }
    pairs = {(name, topic.broker_of(partition)) for partition, name in held.items()}
    pairs = {pair for pair in pairs if pair[1] is not None}
    brokers = {topic.broker_of(number) for number in topic.partitions()} - {None}
    members = {name for name, _ in pairs}
    return len(pairs), max(len(members), len(brokers)) if pairs else 0, len(brokers)
