"""What a cluster has: its topics and partitions, and what is amiss with each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from watchkeeper.model.admin.validation import the_topic
from watchkeeper.model.audit.control_plane import ControlPlane, PartitionView
from watchkeeper.model.registry import paths


class Mark(StrEnum):
    """What is amiss with a partition."""

    UNAVAILABLE = "unavailable"
    """It has no leader, or one that is not registered."""
    UNDER_REPLICATED = "under-replicated"
    """A replica is not in its ISR."""
    NOT_PREFERRED = "not preferred"
    """Another replica than the first one leads it."""


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition as it is now."""

    topic: str
    partition: int
    leader: int | None
    """None for no leader."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader_epoch: int | None
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic as it is now."""

    topic: str
    partitions: tuple[PartitionRow, ...]
    total: int
    """The number of its partitions, shown or not."""
    overrides: tuple[tuple[str, str], ...]
    is_being_deleted: bool
    unknown: tuple[str, ...]
    """What of it does not parse."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "topic": self.topic,
            "total": self.total,
            "overrides": dict(self.overrides),
            "being_deleted": self.is_being_deleted,
            "unknown": list(self.unknown),
            "partitions": [
                {
                    "partition": row.partition,
                    "leader": row.leader,
                    "leader_epoch": row.leader_epoch,
                    "replicas": list(row.replicas),
                    "isr": list(row.isr),
                    "marks": [mark.value for mark in row.marks],
                }
                for row in self.partitions
            ],
        }


def describe(
    control: ControlPlane,
    names: Sequence[str] = (),
    *,
    only: Sequence[Mark] = (),
    with_overrides: bool = False,
) -> tuple[TopicRow, ...]:
    """Describe topics, all if none is named.

    `only` keeps the partitions that have one of these marks, and the topics that have such a
    partition. `with_overrides` keeps the topics that override a setting.
    """
    for name in names:
        if name not in control.topics:
            the_topic(control, name)
    rows = [_topic_row(control, name, only) for name in names or sorted(control.topics)]
    return tuple(
        row
        for row in rows
        if (row.partitions or not only) and (row.overrides or not with_overrides)
    )


def _topic_row(control: ControlPlane, name: str, only: Sequence[Mark]) -> TopicRow:
    topic = control.topics[name]
    config = control.configs.get(name)
    rows = [
        _partition_row(control, topic.partitions[index]) for index in sorted(topic.partitions)
    ]
    return TopicRow(
        name,
        tuple(row for row in rows if not only or {*only} & {*row.marks}),
        len(rows),
        () if config is None else config.overrides,
        name in control.deletions,
        tuple(_unknown(control, name)),
    )


def _unknown(control: ControlPlane, name: str) -> Iterator[str]:
    above = f"{paths.topic(name)}/"
    places = (paths.topic(name), paths.topic_config(name))
    for path, message in control.bad.items():
        if path in places or path.startswith(above):
            yield message


def _partition_row(control: ControlPlane, one: PartitionView) -> PartitionRow:
    return PartitionRow(
        one.partition.topic,
        int(one.partition.name),
        None if one.leader < 0 else one.leader,
        one.replicas,
        one.isr,
        None if one.state is None else one.state.leader_epoch,
        tuple(_marks(control, one)),
    )


def _marks(control: ControlPlane, one: PartitionView) -> Iterator[Mark]:
    if one.is_unreadable:
        return
    if one.leader not in control.brokers:
        yield Mark.UNAVAILABLE
    if not {*one.replicas} <= {*one.isr}:
        yield Mark.UNDER_REPLICATED
    if not one.is_led_as_preferred:
        yield Mark.NOT_PREFERRED
