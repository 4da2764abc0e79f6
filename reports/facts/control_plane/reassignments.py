"""How partitions were moved to other brokers: each step, who took it, and what it waited for.

A move begins with the request in `/admin/reassign_partitions` and ends when the controller takes
it out of there. Its steps are read from what was written to the registry, by which process, and
from what brokers say themselves. A trace has the beginning of long data only; where an
assignment or a request is cut, the events `reassigning` and `reassigned` of the controller say
to which partition a write belongs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import NO_LEADER, PartitionState, Reassignment
from watchkeeper.model.trace.assignments import assignment_of, topic_of
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.text import LONGEST_DATA
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.control_plane.replica_logs import registered
from watchkeeper.reports.facts.intervals import last_event
from watchkeeper.reports.facts.spans import Span, SpanMaker

WRITES = (EventKind.APPLIED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED)
NO_CONTROLLER = "no controller"
CONTROLLER = "controller"
MOVE = re.compile(r'"topic": ?"([^"]+)", ?"partition": ?(\d+), ?"replicas": ?\[([\d, ]+)\]')
"""A row of a request, in data that may be cut behind it."""


class MoveStep(StrEnum):
    """What happens to a partition that moves."""

    REQUESTED = "requested"
    REFUSED = "refused"
    GROWN = "assignment grows"
    BEGUN = "begun"
    REPEATED = "sent again"
    RESUMED = "resumed"
    JOINED = "joins the ISR"
    FELL_OUT = "falls out of the ISR"
    LED = "leads"
    UNLED = "no leader"
    LEFT = "leaves the ISR"
    DELETED = "replica deleted"
    SHRUNK = "assignment shrinks"
    REMOVED = "request removed"


class Outcome(StrEnum):
    """How a move ended."""

    COMPLETE = "complete"
    REFUSED = "refused"
    DROPPED = "dropped"
    """The request was removed, and the assignment does not name the targets alone."""
    UNFINISHED = "unfinished"
    """The request is there when the run ends."""


class Taken(NamedTuple):
    """A step of a move that was taken."""

    step: MoveStep
    t_us: int
    by: str
    """The process that took it."""
    broker: int | None = None
    """The broker that joins, leads, leaves or deletes."""
    why: str = ""


@dataclass(slots=True)
class Move:
    """A partition that is moved."""

    partition: Partition
    targets: tuple[int, ...]
    old: tuple[int, ...]
    """The brokers that had it and are not among the targets."""
    before: tuple[int, ...] = ()
    """The brokers that the assignment named when the request came."""
    steps: list[Taken] = field(default_factory=list)
    assigned: tuple[int, ...] = ()
    """The brokers that the assignment names last."""
    until_us: int = 0
    """When the request was removed, or the run ended."""
    stalls: list[Span] = field(default_factory=list)
    """When it could not go on: for want of a controller, or of a target that lives."""

    @property
    def begin_us(self) -> int:
        """When it was requested."""
        return self.steps[0].t_us

    def has(self, step: MoveStep) -> bool:
        """Whether a step was taken."""
        return any(taken.step is step for taken in self.steps)

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        if not self.has(MoveStep.REMOVED):
            return Outcome.UNFINISHED
        if self.has(MoveStep.REFUSED) and not self.has(MoveStep.GROWN):
            return Outcome.REFUSED
        is_complete = self.has(MoveStep.SHRUNK) or self.assigned == self.targets
        return Outcome.COMPLETE if is_complete else Outcome.DROPPED

    @property
    def controllers(self) -> list[str]:
        """The processes that carried it out as controllers, in order."""
        of_controllers = (*STARTS, MoveStep.GROWN, MoveStep.SHRUNK, MoveStep.REMOVED)
        return list(
            dict.fromkeys(taken.by for taken in self.steps if taken.step in of_controllers)
        )

    @property
    def replicas(self) -> tuple[int, ...]:
        """The old replicas, then the targets."""
        return (*self.old, *self.targets)


STARTS = (MoveStep.BEGUN, MoveStep.REPEATED, MoveStep.RESUMED)


def moves(trace: Trace) -> list[Move]:
    """Return the moves of a run, in the order in which they were requested."""
    reader = _Reader()
    for event in trace.of_kind(*WRITES, *reader.handlers):
        if event.kind in WRITES:
            reader.id_of.update(registered(event))
            for change in event.detail["did"]:
                data = change[3] if event.kind == EventKind.APPLIED and len(change) > 3 else ""
                reader.written(event, change[1], str(data or ""))
        else:
            reader.handlers[EventKind(event.kind)](event)
    return reader.all_moves(last_event(trace))


class _Reader:
    """Reads the events of a trace in order."""

    def __init__(self) -> None:
        self.open: dict[Partition, Move] = {}
        self.last: dict[Partition, Move] = {}
        """The last move of each partition, also when it has ended."""
        self.found: list[Move] = []
        self.assigned: dict[Partition, tuple[int, ...]] = {}
        self.states: dict[Partition, PartitionState] = {}
        self.id_of: dict[str, int] = {}
        self.request: Event | None = None
        """The write that created a request whose data is cut."""
        self.rest: Event | None = None
        """The last write of such a request."""
        self.cut: dict[str, list[Event]] = {}
        """Topic -> the cut writes of its assignment to which no step belongs yet."""
        self.absent: SpanMaker[str] = SpanMaker()
        """The brokers that are not registered, and the controller where there is none."""
        self.handlers = {
            EventKind.REASSIGNING: self._reassigning,
            EventKind.REASSIGNED: self._reassigned,
            EventKind.TRANSITION_FAILED: self._failed,
            EventKind.REPLICA_DELETED: self._deleted,
        }

    def all_moves(self, last: Event | None) -> list[Move]:
        absent = self.absent.end_all(last)
        for move in self.found:
            if move.partition in self.open and self.open[move.partition] is move and last:
                move.until_us = last.t_us
            move.steps.sort(key=lambda taken: taken.t_us)
            move.stalls = list(_stalls(move, absent))
        return sorted(self.found, key=lambda move: (move.begin_us, _place(move.partition)))

    # --- writes of the registry --------------------------------------------------------

    def written(self, event: Event, path: str, data: str) -> None:
        partition, topic = paths.parse_state(path), topic_of(path)
        if path == paths.REASSIGN_PARTITIONS:
            self._requests(event, data)
        elif path == paths.CONTROLLER:
            self._is_there(event, CONTROLLER, is_there=bool(data))
        elif path.startswith(f"{paths.BROKER_IDS}/"):
            self._is_there(event, path.rpartition("/")[2], is_there=bool(data))
        elif partition is not None:
            self._state(event, partition, path, data)
        elif topic is not None:
            self._assignment(event, topic, path, data)

    def _is_there(self, event: Event, name: str, *, is_there: bool) -> None:
        if is_there:
            self.absent.end(name, event)
        else:
            self.absent.begin(name, NO_CONTROLLER if name == CONTROLLER else name, event)

    def _requests(self, event: Event, data: str) -> None:
        is_cut = len(data) >= LONGEST_DATA
        requested = _requested(data)
        for partition, targets in requested.items():
            if partition not in self.open:
                self._open(event, partition, targets)
        if is_cut:
            self.request = self.request or event
            self.rest = event
            return
        self.request = self.rest = None
        for partition in [one for one in self.open if one not in requested]:
            self._close(event, partition)

    def _open(self, event: Event, partition: Partition, targets: tuple[int, ...]) -> Move:
        assigned = self.assigned.get(partition, ())
        old = tuple(broker for broker in assigned if broker not in targets)
        move = Move(partition, targets, old, before=assigned, assigned=assigned)
        self.open[partition] = self.last[partition] = move
        self.found.append(move)
        self._take(move, MoveStep.REQUESTED, event, by=str(event.detail.get("by", "")))
        return move

    def _close(self, event: Event, partition: Partition) -> None:
        move = self.open.pop(partition)
        move.until_us = event.t_us
        self._take(move, MoveStep.REMOVED, event, by=event.detail["by"])

    def _assignment(self, event: Event, topic: str, path: str, data: str) -> None:
        found = assignment_of(path, data)
        if found is None and data:
            self.cut.setdefault(topic, []).append(event)
            for partition in [one for one in self.assigned if one.topic == topic]:
                del self.assigned[partition]
        for index, replicas in () if found is None else found.replicas:
            self._assigned(event, Partition(topic, str(index)), replicas)

    def _assigned(self, event: Event, partition: Partition, replicas: tuple[int, ...]) -> None:
        before, move = self.assigned.get(partition), self.open.get(partition)
        self.assigned[partition] = replicas
        if move is None or replicas == before:
            return
        if before is None:  # the write before it was cut
            step = MoveStep.SHRUNK if replicas == move.targets else MoveStep.GROWN
            is_known = move.has(step)
        else:
            step = MoveStep.GROWN if set(replicas) - set(before) else MoveStep.SHRUNK
            is_known = False
        if not is_known:
            move.assigned = replicas
            self._take(move, step, event, by=event.detail["by"])

    def _state(self, event: Event, partition: Partition, path: str, data: str) -> None:
        try:
            now = PartitionState.decode(path, data.encode())
        except BadPayload:
            self.states.pop(partition, None)
            return
        before = self.states.get(partition)
        self.states[partition] = now
        move = self.open.get(partition)
        if move is None or before is None:
            return
        by = event.detail["by"]
        for broker in sorted(set(now.isr) - set(before.isr)):
            self._take(move, MoveStep.JOINED, event, by=by, broker=broker)
        for broker in sorted(set(before.isr) - set(now.isr)):
            step = MoveStep.FELL_OUT if broker in move.targets else MoveStep.LEFT
            self._take(move, step, event, by=by, broker=broker)
        if now.leader == before.leader:
            return
        if now.leader == NO_LEADER:
            self._take(move, MoveStep.UNLED, event, by=by)
        else:
            self._take(move, MoveStep.LED, event, by=by, broker=now.leader)

    # --- what processes say ------------------------------------------------------------

    def _reassigning(self, event: Event) -> None:
        partition, detail = _partition(event), event.detail
        move = self.open.get(partition)
        if move is None:
            move = self._open(self.request or event, partition, tuple(detail["targets"]))
        move.old = move.old or tuple(detail["old"])
        move.before = move.before or move.old
        if not move.has(MoveStep.GROWN):
            self._take_cut(move, MoveStep.GROWN, event.node, (*move.targets, *move.old))
        others = [one for one in move.controllers if one != event.node]
        if any(taken.step in STARTS and taken.by == event.node for taken in move.steps):
            step = MoveStep.REPEATED
        else:
            step = MoveStep.RESUMED if others else MoveStep.BEGUN
        self._take(move, step, event, by=event.node)

    def _reassigned(self, event: Event) -> None:
        move = self.last.get(_partition(event))
        if move is None:
            return
        if not move.has(MoveStep.SHRUNK):
            self._take_cut(move, MoveStep.SHRUNK, event.node, move.targets)
        if move.partition in self.open and self.rest is not None:
            self._close(self.rest, move.partition)

    def _take_cut(self, move: Move, step: MoveStep, node: str, assigned: tuple[int, ...]) -> None:
        """Take a step that is a cut write of the assignment, to which no step belongs yet.

        It is the last one of this controller. Where a controller has died between its write and
        its event, its successor has the event.
        """
        writes = self.cut.get(move.partition.topic, [])
        own = [event for event in writes if event.detail["by"] == node]
        left = [event for event in writes if event.detail["by"] in self.id_of]
        if step is MoveStep.SHRUNK or own:
            left = own
        if left:
            writes.remove(left[-1])
            move.assigned = self.assigned[move.partition] = assigned
            self._take(move, step, left[-1], by=left[-1].detail["by"])

    def _failed(self, event: Event) -> None:
        move = self.open.get(_partition(event))
        if move is not None and event.detail["to"] == f"replicas on {list(move.targets)}":
            self._take(move, MoveStep.REFUSED, event, by=event.node, why=str(event.detail["why"]))

    def _deleted(self, event: Event) -> None:
        """A broker may delete its replica long after the request was removed."""
        move, broker = self.last.get(_partition(event)), self.id_of.get(event.node)
        if move is not None and broker in move.old:
            self._take(move, MoveStep.DELETED, event, by=event.node, broker=broker)

    def _take(
        self,
        move: Move,
        step: MoveStep,
        event: Event,
        *,
        by: str,
        broker: int | None = None,
        why: str = "",
    ) -> None:
        move.steps.append(Taken(step, event.t_us, by, broker, why))


def _requested(data: str) -> dict[Partition, tuple[int, ...]]:
    """Return what a request names; as much as there is, where it is cut."""
    if len(data) >= LONGEST_DATA:
        return {
            Partition(topic, index): tuple(map(int, brokers.split(",")))
            for topic, index, brokers in MOVE.findall(data)
        }
    try:
        found = Reassignment.decode(paths.REASSIGN_PARTITIONS, data.encode())
    except BadPayload:
        return {}
    return {Partition(topic, str(index)): targets for topic, index, targets in found.moves}


def _stalls(move: Move, absent: Mapping[str, list[Span]]) -> list[Span]:
    """Return when a move had no controller, or a target that was not in the ISR was dead."""
    joined = {taken.broker: taken.t_us for taken in move.steps if taken.step is MoveStep.JOINED}
    waits = [(CONTROLLER, move.until_us)]
    waits += [(str(broker), joined.get(broker, move.until_us)) for broker in move.targets]
    found = []
    for name, until_us in waits:
        for span in absent.get(name, ()):
            start = max(span.start_us, move.begin_us)
            end = min(span.end_us, until_us)
            if start < end:
                found.append(span._replace(start_us=start, end_us=end))
    return found


def _partition(event: Event) -> Partition:
    return Partition(event.topic, str(event.detail["partition"]))


def _place(partition: Partition) -> tuple[str, int]:
    return partition.topic, int(partition.name)
