"""What a request may name: topics, partitions, brokers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from watchkeeper.model.admin.plan import BadRequest, Refused
from watchkeeper.model.audit.control_plane import ControlPlane, PartitionView, TopicView
from watchkeeper.model.registry import paths

LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,255}")
INTERNAL = ("__consumer_offsets",)
"""Topics that brokers keep for themselves."""


def check_name(name: str) -> None:
    """Refuse a name that brokers do not accept: they name folders by it."""
    if not LEGAL.fullmatch(name) or name in (".", ".."):
        raise BadRequest(
            f"topic name {name!r} is not allowed; expected 1 to 255 of the characters a-z, A-Z, "
            "0-9, '.', '_' and '-', other than '.' and '..'"
        )


def check_not_internal(name: str, change: str) -> None:
    """Refuse a change of a topic that brokers keep for themselves."""
    if name in INTERNAL:
        raise BadRequest(f"{name} is a topic of the brokers themselves and cannot be {change}")


def check_readable(control: ControlPlane, *needed: str) -> None:
    """Refuse a change that depends on a znode which does not parse."""
    for path in needed:
        if path in control.bad:
            raise Refused(f"{control.bad[path]}; correct that znode first")


def the_topic(control: ControlPlane, name: str) -> TopicView:
    """Return a topic; BadRequest if there is none of that name."""
    check_readable(control, paths.topic(name))
    if name not in control.topics:
        there = ", ".join(sorted(control.topics)) or "none"
        raise BadRequest(
            f"there is no topic {name} in the 0.8 layout; topics that are there: {there}"
        )
    return control.topics[name]


def the_partition(control: ControlPlane, name: str, index: int) -> PartitionView:
    """Return a partition; BadRequest if there is none of that number."""
    topic = the_topic(control, name)
    if index not in topic.partitions:
        there = ", ".join(map(str, sorted(topic.partitions))) or "none"
        raise BadRequest(f"{name} has no partition {index}; it has {there}")
    return topic.partitions[index]


def check_not_being_deleted(control: ControlPlane, name: str) -> None:
    """Refuse a change of a topic whose deletion was requested."""
    check_readable(control, paths.DELETE_TOPICS)
    if name in control.deletions:
        raise Refused(
            f"the deletion of {name} was requested and is not finished; wait until "
            f"{paths.topic_deletion(name)} is gone"
        )


def check_brokers(control: ControlPlane, brokers: Iterable[int], purpose: str) -> None:
    """Refuse brokers that are not registered."""
    unknown = sorted({*brokers} - control.brokers)
    if unknown:
        raise Refused(
            f"{purpose} names {_listed('broker', unknown)}, not registered now; registered "
            f"brokers: {', '.join(map(str, sorted(control.brokers))) or 'none'}"
        )


def check_replicas(control: ControlPlane, partition: str, replicas: Sequence[int]) -> None:
    """Refuse replicas that are none, that repeat a broker, or that name one which is unknown."""
    if not replicas:
        raise BadRequest(f"{partition} is given no replica; name at least one broker")
    repeated = [broker for broker, many in Counter(replicas).items() if many > 1]
    if repeated:
        raise BadRequest(
            f"{partition} is given broker {repeated[0]} more than once; name each broker once"
        )
    check_brokers(control, replicas, f"the assignment of {partition}")


def _listed(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
