"""What a group would look like after a rebalance, and how far it is from that now.

The assignment is computed by the code that members compute it with, from the same view:
every partition of every topic that somebody wants, and every stream that wants it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from model.asks import Partition
from model.assignment import Assignor, View, assign, topic_view
from model.census import Census, Group, Topic
from model.member import stream_ids

Owners = dict[Partition, str]
"""Partition -> the member that has it, or is to have it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One partition changes hands."""

    partition: Partition
    before: str | None
    """Who has it; None: nobody."""
    after: str | None

    @property
    def is_move(self) -> bool:
        """Whether somebody loses it to another, rather than that it was free or becomes so."""
        return self.before is not None and self.after is not None

    def __str__(self) -> str:
        return f"{self.partition}: {self.before or 'nobody'} -> {self.after or 'nobody'}"


def view_of(census: Census, group: Group) -> View:
    """What every member would read."""
    wanted = sorted({topic for one in group.members.values() for topic in one.wanted})
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


def intended(census: Census, group: Group, assignor: Assignor) -> Owners:
    """Who would own what; UnequalSubscriptions where the assignor refuses the view."""
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
    """Who owns what now, by claims whose session is alive.

    Of several claims on one partition, that under the name by which it is counted.
    """
    owners: Owners = {}
    for claim in sorted(group.claims, key=lambda one: one.is_alias):
        if claim.is_alive and claim.member is not None:
            owners.setdefault(claim.partition, claim.member)
    return owners


def steps(now: Mapping[Partition, str], then: Mapping[Partition, str]) -> list[Step]:
    """What has to change hands from one ownership to the other."""
    partitions = sorted({*now, *then}, key=order)
    changes = [Step(one, now.get(one), then.get(one)) for one in partitions]
    return [one for one in changes if one.before != one.after]


def order(partition: Partition) -> tuple[str, list[tuple[int, str]]]:
    """Sort by topic, and then by the numbers in the name."""
    parts = partition.name.split("-")
    return partition.topic, [(int(one), "") if one.isdecimal() else (-1, one) for one in parts]


def connections(topic: Topic, owners: Mapping[Partition, str]) -> tuple[int, int, int]:
    """Pairs of a member and a broker; the fewest there could be; the brokers of the topic."""
    held = {one: name for one, name in owners.items() if one.topic == topic.name}
    pairs = {(name, topic.broker_of(one)) for one, name in held.items()}
    pairs = {pair for pair in pairs if pair[1] is not None}
    brokers = {topic.broker_of(one) for one in topic.partitions()} - {None}
    members = {name for name, _ in pairs}
    return len(pairs), max(len(members), len(brokers)) if pairs else 0, len(brokers)
