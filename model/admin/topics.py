"""Creation of a topic, partitions that are added to one, and requests to delete some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from watchkeeper.model.admin.placement import Assignment, Growth, grow
from watchkeeper.model.admin.plan import (
    BadRequest,
    Placed,
    Plan,
    Refused,
    Write,
    check,
    controller_notes,
    create,
    once,
    set_data,
)
from watchkeeper.model.admin.topic_settings import check_settings
from watchkeeper.model.admin.validation import (
    check_name,
    check_not_being_deleted,
    check_not_internal,
    check_readable,
    check_replicas,
    the_topic,
)
from watchkeeper.model.audit.control_plane import ControlPlane, TopicView
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import TopicAssignment, TopicConfig


def create_topic(
    control: ControlPlane, name: str, assigned: Assignment, overrides: Mapping[str, str]
) -> Plan:
    """Create a topic with these replicas and settings.

    The settings and the assignment are created in one transaction. Kafka's tool writes the
    settings first and unconditionally: of two that create the same topic, the one that fails has
    replaced the settings of the other.
    """
    check_name(name)
    check_settings(overrides)
    _check_numbered(name, assigned)
    for index, replicas in assigned.items():
        check_replicas(control, f"{name}/{index}", replicas)
    _check_same_factor(name, assigned)
    check_not_being_deleted(control, name)
    if name in control.snapshot.children(paths.TOPICS):
        raise Refused(f"topic {name} exists already; delete it first, or choose another name")
    config = TopicConfig(tuple(sorted(overrides.items()))).encode()
    where = paths.topic_config(name)
    notes = controller_notes(control)
    writes: list[Write]
    if where in control.snapshot.nodes:
        writes = [set_data(control, where, config, f"{where}, left of an earlier topic,")]
        notes = (*notes, f"{where} is left of an earlier topic; it is replaced")
    else:
        writes = [*create(control, where, config, _created(name))]
    data = TopicAssignment(tuple(sorted(assigned.items()))).encode()
    writes += create(control, paths.topic(name), data, _created(name))
    placed = _placed(name, {}, assigned)
    action = f"create topic {name} with {counted(len(assigned), 'partition')}"
    return Plan(action, tuple(writes), placed, notes=notes)


def _created(name: str) -> str:
    return f"topic {name} was created meanwhile by another client; describe it to see it"


def _check_numbered(name: str, assigned: Mapping[int, Sequence[int]]) -> None:
    if sorted(assigned) != list(range(len(assigned))) or not assigned:
        raise BadRequest(f"the partitions of {name} have to be numbered from 0 without a gap")


def _check_same_factor(name: str, assigned: Mapping[int, Sequence[int]]) -> None:
    factors = sorted({len(replicas) for replicas in assigned.values()})
    if len(factors) > 1:
        raise BadRequest(
            f"partitions of {name} have {' and '.join(map(str, factors))} replicas; give every "
            "partition the same number"
        )


def _placed(name: str, before: Assignment, after: Assignment) -> tuple[Placed, ...]:
    return tuple(
        Placed(f"{name}/{index}", before.get(index, ()), replicas)
        for index, replicas in sorted(after.items())
        if before.get(index) != replicas
    )


# --- partitions that are added ---------------------------------------------------------


def add_partitions(control: ControlPlane, name: str, total: int, how: Growth) -> Plan:
    """Add partitions up to this number, placed by the algorithm."""
    topic = _growing(control, name, total)
    new = grow(control.brokers, topic.assignment, total - len(topic.partitions), how)
    return _added(control, topic, new)


def add_partitions_as(control: ControlPlane, name: str, whole: Assignment) -> Plan:
    """Add partitions by an assignment of all partitions, in which the old ones are unchanged.

    Kafka's tool ignores the part that is about old partitions, whatever it says.
    """
    topic = _growing(control, name, len(whole))
    _check_numbered(name, whole)
    old = topic.assignment
    for index, replicas in old.items():
        if whole[index] != replicas:
            raise BadRequest(
                f"{name}/{index} is on {_ids(replicas)}, and the assignment gives it "
                f"{_ids(whole[index])}; partitions that exist are moved by `watchkeeper reassign`"
            )
    _check_same_factor(name, whole)
    return _added(control, topic, {index: whole[index] for index in whole if index not in old})


def _growing(control: ControlPlane, name: str, total: int) -> TopicView:
    """A topic that may grow to this number of partitions."""
    check_not_internal(name, "given more partitions")
    topic = the_topic(control, name)
    check_not_being_deleted(control, name)
    check_readable(control, paths.REASSIGN_PARTITIONS)
    if any(moved == name for moved, _ in control.moves()):
        raise Refused(
            f"partitions of {name} are being reassigned, and the controller writes the "
            "assignment; wait until the reassignment is done"
        )
    many = len(topic.partitions)
    if sorted(topic.partitions) != list(range(many)) or not many:
        there = ", ".join(map(str, sorted(topic.partitions))) or "none"
        raise Refused(f"{name} has the partitions {there}, not numbered from 0 without a gap")
    if total <= many:
        raise BadRequest(
            f"{name} has {counted(many, 'partition')}, and {total} are requested; the number "
            "can only grow"
        )
    return topic


def _added(control: ControlPlane, topic: TopicView, new: Assignment) -> Plan:
    for index, replicas in new.items():
        check_replicas(control, f"{topic.name}/{index}", replicas)
    whole = topic.assignment | new
    path = paths.topic(topic.name)
    data = TopicAssignment(tuple(sorted(whole.items()))).encode()
    return Plan(
        f"add {counted(len(new), 'partition')} to {topic.name}",
        (set_data(control, path, data, f"the assignment of {topic.name}"),),
        _placed(topic.name, {}, new),
        notes=(
            *controller_notes(control),
            "messages with a key may go to other partitions from now on",
        ),
    )


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "no broker"


# --- deletion --------------------------------------------------------------------------


def delete_topics(control: ControlPlane, names: Sequence[str]) -> Plan:
    """Request the deletion of topics: an empty znode for each, as in Kafka 0.8.2."""
    wanted = list(dict.fromkeys(names))
    writes = once(write for name in wanted for write in _deletion(control, name))
    notes = [note for name in wanted for note in _waits_for(control, name)]
    return Plan(
        f"request the deletion of {', '.join(wanted)}",
        writes,
        notes=(
            *controller_notes(control),
            *notes,
            "brokers carry it out if their delete.topic.enable is true; Kafka's default is false",
        ),
    )


def _deletion(control: ControlPlane, name: str) -> Iterator[Write]:
    check_not_internal(name, "deleted")
    check_not_being_deleted(control, name)
    the_topic(control, name)
    yield check(control, paths.topic(name), f"the assignment of {name}")
    conflict = f"the deletion of {name} was requested meanwhile by another client"
    yield from create(control, paths.topic_deletion(name), b"", conflict)


def _waits_for(control: ControlPlane, name: str) -> Iterator[str]:
    """What a deletion has to wait for."""
    replicas = {broker for held in control.topics[name].assignment.values() for broker in held}
    dead = sorted(replicas - control.brokers)
    if dead:
        yield f"the deletion of {name} waits for brokers that are not registered: {_ids(dead)}"
    if any(moved == name for moved, _ in control.moves()):
        yield f"the deletion of {name} waits for its reassignment"
