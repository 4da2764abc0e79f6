"""Finds events of a trace by process, znode and partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace, struck_by
from watchkeeper.reports.facts.operations import Asked, attach_effects, operations

READS = frozenset({"get", "children", "exists"})
WRITES = (EventKind.APPLIED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED)
SKIPPED = frozenset(
    {EventKind.REQUEST, EventKind.RESPONSE, EventKind.FETCHED, EventKind.HOST_METRICS}
)
"""Kinds of which there are many, and which are found in other ways."""


class Write(NamedTuple):
    """A change of one znode."""

    event: Event
    what: str
    """created, changed or deleted"""
    path: str
    owner: int
    """The session of an ephemeral znode; 0 for others."""
    data: str | None

    @property
    def by(self) -> str:
        """The process whose request or whose session it was."""
        return str(self.event.detail.get("by", ""))

    @property
    def is_end_of_session(self) -> bool:
        """Whether the znode went with the session that it belonged to."""
        return self.event.kind != EventKind.APPLIED


class Read(NamedTuple):
    """A read of one znode with its answer."""

    asked: Asked
    answered: Event
    word: str
    path: str
    answer: Any


@dataclass(slots=True)
class Lookup:
    """The events of a trace, by what they are about."""

    of_node: dict[str, list[Event]]
    """What a process did or suffered, without its requests."""
    writes: dict[str, list[Write]]
    """Path -> its changes. A znode that comes or goes changes the one above it, too."""
    reads: dict[str, dict[str, list[Read]]]
    """Process -> path -> its reads."""
    of_place: dict[Partition, list[Event]]
    holders: dict[int, str]
    """Session -> its process."""
    faults: dict[str, list[Event]]
    """Process -> the faults and changes that struck it."""
    faults_ended: dict[int, Event]
    lost: list[Event]
    """The requests and replies that the timeline lost or kept back."""
    request_of: dict[int, Asked]
    """The event of a write -> its request."""

    def last(
        self, node: str, before: int, fits: Callable[[Event], bool], after: int = -1
    ) -> Event | None:
        """The last event of a process between two others that a rule wants."""
        for event in self.of_node.get(node, [])[::-1]:
            if event.seq <= after:
                return None
            if event.seq < before and fits(event):
                return event
        return None

    def last_of(self, node: str, before: int, kind: str, after: int = -1) -> Event | None:
        """The last event of a process between two others that is of a kind."""
        return self.last(node, before, lambda event: event.kind == kind, after)

    def first(self, node: str, after: int, kind: str, before: int) -> Event | None:
        """The first event of a kind and process between two."""
        for event in self.of_node.get(node, ()):
            if after < event.seq < before and event.kind == kind:
                return event
        return None

    def last_read(self, node: str, path: str, before: int) -> Read | None:
        """The last read of a znode that a process had the answer of."""
        found = self.reads.get(node, {}).get(path, ())
        return next((one for one in reversed(found) if one.answered.seq < before), None)

    def writes_between(self, path: str, after: int, before: int) -> list[Write]:
        """The changes of a znode between two events, and of what is directly below it."""
        return [one for one in self.writes.get(path, ()) if after < one.event.seq < before]

    def writes_of(self, node: str) -> list[Write]:
        """What a process itself has written, in order."""
        found = {
            write.event.seq: write
            for writes in self.writes.values()
            for write in writes
            if write.by == node and not write.is_end_of_session
        }
        return [found[seq] for seq in sorted(found)]

    def fetching(self, group: str, place: Partition) -> Iterator[Event]:
        """The beginnings and ends of fetching a partition in a group."""
        for event in self.of_place.get(place, ()):
            if event.kind == EventKind.FETCHING and event.group == group:
                yield event


def lookup(trace: Trace) -> Lookup:
    """Read a trace once."""
    found = Lookup({}, {}, {}, {}, {}, {}, {}, [], {})
    for event in trace:
        if event.kind not in SKIPPED:
            _note(found, event)
    _note_operations(found, trace)
    return found


def _note(found: Lookup, event: Event) -> None:
    found.of_node.setdefault(event.node, []).append(event)
    name = event.partition or event.detail.get("partition")
    if event.topic and name:
        found.of_place.setdefault(Partition(event.topic, str(name)), []).append(event)
    if event.kind == EventKind.SESSION_OPENED:
        found.holders[event.session] = event.detail["by"]
    elif event.kind in WRITES:
        _note_write(found, event)
    elif event.kind in (EventKind.FAULT, EventKind.CHANGE):
        for node in struck_by(event):
            found.faults.setdefault(node, []).append(event)
        if event.detail.get("verb") == "lose":
            found.lost.append(event)
    elif event.kind == EventKind.FAULT_ENDED:
        found.faults_ended[event.detail["number"]] = event


def _note_write(found: Lookup, event: Event) -> None:
    if event.kind != EventKind.APPLIED:
        node = found.holders.get(event.session, "")
        found.of_node.setdefault(node, []).append(event)
    for what, path, owner, *data in event.detail["did"]:
        write = Write(event, what, path, owner, data[0] if data else None)
        found.writes.setdefault(path, []).append(write)
        if what != "changed":
            found.writes.setdefault(paths.parent_of(path), []).append(write)


def _note_operations(found: Lookup, trace: Trace) -> None:
    asked = operations(trace)
    attach_effects(asked, trace.of_kind(EventKind.APPLIED))
    for one in asked:
        for effect in one.effects:
            found.request_of[effect.seq] = one
        if one.answer is not None and one.outcome != "lost":
            of_node = found.reads.setdefault(one.ask.node, {})
            for word, path, answer in _parts(one):
                if word in READS:
                    read = Read(one, one.answer, word, path, answer)
                    of_node.setdefault(path, []).append(read)


def _parts(asked: Asked) -> Iterable[tuple[str, str, Any]]:
    """The operations of a request, each with its answer."""
    assert asked.answer is not None, "only requests with answers come here"
    answer = asked.answer.detail.get("answer")
    parts = asked.ask.detail.get("parts")
    if parts is None:
        return [(asked.word, str(asked.ask.detail.get("path", "")), answer)]
    answers = answer if isinstance(answer, list) else [None] * len(parts)
    return [(word, path, one) for (word, path), one in zip(parts, answers, strict=False)]
