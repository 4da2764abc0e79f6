"""Reassignment: partitions moved to other brokers, and how far that is.

The request is one znode for the cluster. While it exists, another reassignment is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from watchkeeper.model.admin.placement import place, replace
from watchkeeper.model.admin.plan import (
    BadRequest,
    Placed,
    Plan,
    Refused,
    check,
    controller_notes,
    create,
)
from watchkeeper.model.admin.validation import (
    check_brokers,
    check_not_being_deleted,
    check_readable,
    check_replicas,
    the_partition,
    the_topic,
)
from watchkeeper.model.audit.control_plane import ControlPlane
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import Reassignment

Move = tuple[str, int, tuple[int, ...]]
"""Topic, partition and the brokers that it is moved to."""


def reassign(control: ControlPlane, moves: Sequence[Move]) -> Plan:
    """Request that partitions are moved; all of them are checked, and none is dropped in silence.

    Kafka's tool drops partitions that it does not know. If none is left, its request is an empty
    list, which no controller of 0.8 removes: it blocks every later reassignment. Brokers that are
    not registered are refused by the controller of 0.8, one partition after the other.
    """
    _check_moves(control, moves)
    _check_none_pending(control)
    there = [move for move in moves if _replicas(control, move) == move[2]]
    wanted = [move for move in moves if move not in there]
    left_out = tuple(f"{topic}/{index} is on these brokers already" for topic, index, _ in there)
    action = f"move {counted(len(wanted), 'partition')}"
    if not wanted:
        return Plan(action, left_out=left_out)
    topics = dict.fromkeys(topic for topic, _, _ in wanted)
    conditions = [
        check(control, paths.topic(name), f"the assignment of {name}") for name in topics
    ]
    request = create(
        control,
        paths.REASSIGN_PARTITIONS,
        Reassignment(tuple(wanted)).encode(),
        "another reassignment was requested meanwhile; wait until it is done",
    )
    placed = tuple(
        Placed(f"{move[0]}/{move[1]}", _replicas(control, move), move[2]) for move in wanted
    )
    notes = (*controller_notes(control), *_changed_factors(placed))
    writes = (*conditions, *request)
    return Plan(action, writes, placed, left_out=left_out, notes=notes)


def _replicas(control: ControlPlane, move: Move) -> tuple[int, ...]:
    return control.topics[move[0]].partitions[move[1]].replicas


def _check_moves(control: ControlPlane, moves: Sequence[Move]) -> None:
    seen = set()
    for topic, index, replicas in moves:
        the_partition(control, topic, index)
        check_not_being_deleted(control, topic)
        check_replicas(control, f"{topic}/{index}", replicas)
        if (topic, index) in seen:
            raise BadRequest(f"{topic}/{index} is listed more than once; list it once")
        seen.add((topic, index))
    if not moves:
        raise BadRequest("no partition is listed; name at least one")


def _check_none_pending(control: ControlPlane) -> None:
    check_readable(control, paths.REASSIGN_PARTITIONS)
    if control.reassignment is not None:
        rest = counted(len(control.reassignment.moves), "partition")
        raise Refused(
            f"a reassignment is in progress: {rest} in {paths.REASSIGN_PARTITIONS}; wait until "
            "that znode is gone"
        )


def _changed_factors(placed: Sequence[Placed]) -> Iterator[str]:
    for one in placed:
        if len(one.before) != len(one.after):
            yield (
                f"{one.partition} has {counted(len(one.before), 'replica')} now and "
                f"{len(one.after)} afterwards"
            )


# --- targets that are computed ---------------------------------------------------------


def moves_to(
    control: ControlPlane,
    topics: Sequence[str],
    brokers: Collection[int],
    *,
    start: int,
    shift: int,
) -> tuple[Move, ...]:
    """The moves that place topics on these brokers alone, as if they were created there."""
    check_brokers(control, brokers, "--to")
    moves: list[Move] = []
    for name in _named(control, topics):
        old = the_topic(control, name).assignment
        factors = {len(replicas) for replicas in old.values()}
        if len(factors) > 1:
            raise Refused(
                f"partitions of {name} differ in their number of replicas; move them by --file"
            )
        for factor in factors:
            placed = place(brokers, len(old), factor, start=start, shift=shift)
            moves += [(name, index, placed[at]) for at, index in enumerate(sorted(old))]
    return tuple(moves)


def moves_off(
    control: ControlPlane, topics: Sequence[str], brokers: Collection[int]
) -> tuple[Move, ...]:
    """The moves after which these brokers replicate none of the topics; all else stays."""
    assigned = {(one.partition.topic, int(one.partition.name)) for one in control.partitions()}
    known = {broker for one in control.partitions() for broker in one.replicas}
    strangers = sorted({*brokers} - known - control.brokers)
    if strangers:
        raise BadRequest(
            f"broker {strangers[0]} is not registered and replicates nothing; check its id"
        )
    rows = {
        f"{topic}/{index}": control.topics[topic].partitions[index].replicas
        for topic, index in sorted(assigned)
    }
    chosen = {*_named(control, topics)}
    elsewhere = {name: held for name, held in rows.items() if _topic_of(name) not in chosen}
    mine = {name: held for name, held in rows.items() if _topic_of(name) in chosen}
    load = {
        name: tuple(one for one in held if one not in brokers) for name, held in elsewhere.items()
    }
    changed = replace(load | mine, brokers, control.brokers)
    return tuple(
        (_topic_of(name), int(name.rpartition("/")[2]), replicas)
        for name, replicas in changed.items()
    )


def _topic_of(name: str) -> str:
    return name.rpartition("/")[0]


def _named(control: ControlPlane, topics: Sequence[str]) -> list[str]:
    """These topics, or all that are not being deleted; each can be read."""
    everything = [name for name in sorted(control.topics) if name not in control.deletions]
    named = list(dict.fromkeys(topics)) or everything
    for name in named:
        the_topic(control, name)
    return named


# --- how far it is ---------------------------------------------------------------------


class Progress(StrEnum):
    """How far the move of a partition is."""

    DONE = "done"
    IN_PROGRESS = "in progress"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Verified:
    """How far the move of one partition is, with the reason."""

    partition: str
    progress: Progress
    reason: str


def verify(control: ControlPlane, moves: Sequence[Move]) -> tuple[Verified, ...]:
    """Compare the assignment and the pending request with the moves that were requested."""
    check_readable(control, paths.REASSIGN_PARTITIONS)
    return tuple(Verified(f"{move[0]}/{move[1]}", *_progress(control, move)) for move in moves)


def _progress(control: ControlPlane, move: Move) -> tuple[Progress, str]:
    topic, index, target = move
    check_readable(control, paths.topic(topic))
    known = control.topics.get(topic)
    one = None if known is None else known.partitions.get(index)
    if one is None:
        return Progress.FAILED, "there is no such partition"
    pending = control.moves().get((topic, index))
    if pending is not None and pending != target:
        return Progress.FAILED, f"it is being moved to {_ids(pending)} instead"
    if pending is not None:
        missing = [broker for broker in target if broker not in one.isr]
        waiting = f"not in sync yet: {_ids(missing)}" if missing else "all are in sync"
        return Progress.IN_PROGRESS, waiting
    if one.replicas == target:
        return Progress.DONE, f"on {_ids(target)}"
    return Progress.FAILED, f"on {_ids(one.replicas)}, and no move to {_ids(target)} is pending"


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "no broker"
