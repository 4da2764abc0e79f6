"""The logs of replicas over time: where each ends, and the high watermark of its leader."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace

SAY_END = frozenset(
    {
        *(EventKind.BECAME_LEADER, EventKind.BECAME_FOLLOWER, EventKind.COMMITTED),
        *(EventKind.REPLICA_OPENED, EventKind.TRUNCATED),
    }
)
"""The events of a replica that have the end of its log."""
OF_LEADERS = (EventKind.BECAME_LEADER, EventKind.COMMITTED, EventKind.APPENDED)


class LogEnd(NamedTuple):
    """Where the log of a replica ends from a moment on."""

    t_us: int
    end: int | None
    """None: the broker has deleted the replica."""


class Watermark(NamedTuple):
    """The high watermark and the end of the log, as the leader has them from a moment on."""

    t_us: int
    high_watermark: int
    end: int


@dataclass(slots=True)
class LeaderLog:
    """The log of a partition, as its leaders have it one after the other."""

    watermarks: list[Watermark] = field(default_factory=list)
    fallen_us: list[int] = field(default_factory=list)
    """When the high watermark was lower than before."""
    leads: tuple[str, int] = ("", -1)
    """The broker that leads, and its epoch: the greatest one that any broker has taken."""

    @property
    def end(self) -> int:
        """The greatest end of the log."""
        return max((one.end for one in self.watermarks), default=0)


def log_ends(trace: Trace) -> dict[Partition, dict[int, list[LogEnd]]]:
    """Return where the log of each replica ended: partition -> broker -> ends, in order."""
    found: dict[Partition, dict[int, list[LogEnd]]] = {}
    id_of: dict[str, int] = {}
    kinds = (*SAY_END, EventKind.APPENDED, EventKind.REPLICA_DELETED)
    for event in trace.of_kind(*kinds, EventKind.APPLIED):
        if event.kind == EventKind.APPLIED:
            id_of.update(registered(event))
            continue
        broker = id_of.get(event.node)
        if broker is None:  # it has opened its logs, and is not registered yet
            continue
        ends = found.setdefault(_partition(event), {}).setdefault(broker, [])
        end = None if event.kind == EventKind.REPLICA_DELETED else _end(event)
        if not ends or ends[-1].end != end:
            ends.append(LogEnd(event.t_us, end))
    return found


def registered(event: Event) -> dict[str, int]:
    """Return the brokers that a write registers: process -> id."""
    prefix = f"{paths.BROKER_IDS}/"
    return {
        str(event.detail["by"]): int(change[1].removeprefix(prefix))
        for change in event.detail["did"]
        if change[0] == "created" and change[1].startswith(prefix)
    }


def leader_logs(trace: Trace) -> dict[Partition, LeaderLog]:
    """Return the high watermark and the log end of each partition over time.

    They are those of the leader with the greatest epoch. What a deposed leader still appends
    or commits is not among them.
    """
    found: dict[Partition, LeaderLog] = {}
    for event in trace.of_kind(*OF_LEADERS, EventKind.APPLIED):
        if event.kind == EventKind.APPLIED:
            _forget_deleted(event, found)
            continue
        log = found.setdefault(_partition(event), LeaderLog())
        epoch = event.detail["epoch"]
        if event.kind == EventKind.BECAME_LEADER and epoch > log.leads[1]:
            log.leads = event.node, epoch
        if log.leads == (event.node, epoch):
            _add(log, event)
    return found


def _add(log: LeaderLog, event: Event) -> None:
    before = log.watermarks[-1].high_watermark if log.watermarks else 0
    mark = event.detail.get("high_watermark", before)
    if mark < before:
        log.fallen_us.append(event.t_us)
    log.watermarks.append(Watermark(event.t_us, mark, _end(event)))


def _forget_deleted(event: Event, found: dict[Partition, LeaderLog]) -> None:
    """The epochs of a partition begin again when its state has been deleted."""
    for change in event.detail["did"]:
        partition = paths.parse_state(change[1])
        if change[0] == "deleted" and partition is not None and partition in found:
            log = found[partition]
            log.leads = ("", -1)
            log.watermarks.append(Watermark(event.t_us, 0, 0))


def _partition(event: Event) -> Partition:
    return Partition(event.topic, str(event.detail["partition"]))


def _end(event: Event) -> int:
    if event.kind == EventKind.APPENDED:
        return int(event.detail["start"]) + len(event.detail["records"])
    return int(event.detail["end"])
