"""The way back from the offset at which a member begins: what it found, what was committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event
from watchkeeper.reports.why import wording
from watchkeeper.reports.why.walk import Walk, Weight


def walk_offsets(walk: Walk) -> None:
    """Walk back from the first member and partition that a violation is about."""
    node, place = walk.about.nodes[0], walk.about.partitions[0]
    begun = _last(walk, walk.until, EventKind.FETCHING, lambda event: _begins(event, node, place))
    if begun is not None:
        at = begun.detail["at"]
        where = f"at offset {at}" if at >= 0 else "without an offset"
        walk.add(begun, f"{node} began to fetch {place} {where}", Weight.ACT)
    _add_found(walk, node, place)
    committed = _last(
        walk,
        walk.until,
        EventKind.OFFSET_COMMIT_ANSWERED,
        lambda event: _offset_in(event.detail["accepted"], place) is not None,
    )
    if committed is not None:
        offset = _offset_in(committed.detail["accepted"], place)
        text = f"the coordinator acknowledged {offset} for {place} to {committed.node}"
        walk.add(committed, text, Weight.CAUSE)
        _add_change(walk, committed)


def _add_found(walk: Walk, node: str, place: Partition) -> None:
    """Add what a member found, in Kafka and in ZooKeeper, and what was written there."""
    answered = walk.found.last_of(node, walk.until, EventKind.OFFSET_FETCH_ANSWERED)
    offset = None if answered is None else _offset_in(answered.detail["offsets"], place)
    if answered is not None and offset is not None:
        given = f"offset {offset}" if offset >= 0 else "no offset"
        text = f"the coordinator answered {node} {given} for {place}"
        walk.add(answered, text, Weight.CAUSE)
    path = paths.offset(walk.about.group, place)
    read = walk.found.last_read(node, path, walk.until)
    if read is not None:
        walk.add(read.answered, wording.read_text(read), Weight.CAUSE)
        for write in walk.found.writes_between(path, -1, read.answered.seq)[-1:]:
            walk.write(write, Weight.CAUSE)


def _add_change(walk: Walk, committed: Event) -> None:
    """Add who coordinated when an offset was committed, what struck it, and who does now."""
    before = _last(walk, committed.seq, EventKind.BECAME_LEADER, _is_of_offsets)
    after = _last(walk, walk.until, EventKind.BECAME_LEADER, _is_of_offsets)
    if before is not None and after is not None and after.seq > committed.seq:
        walk.behind(before.node, walk.until, before.seq)
        walk.say(after, Weight.BASIS)


def _last(walk: Walk, before: int, kind: str, fits: Callable[[Event], bool]) -> Event | None:
    """Return the last event of a kind, of any process, that a rule wants."""
    found = [
        event
        for events in walk.found.of_node.values()
        for event in events
        if event.kind == kind and event.seq < before and fits(event)
    ]
    return max(found, default=None)


def _begins(event: Event, node: str, place: Partition) -> bool:
    at = Partition(event.topic, event.partition)
    return event.node == node and at == place and event.detail["does"] == "begins"


def _is_of_offsets(event: Event) -> bool:
    return event.topic == OFFSETS_TOPIC


def _offset_in(rows: list[list[Any]], place: Partition) -> int | None:
    """Return the offset of a partition in the rows of an answer; None if it is not there."""
    return next((offset for *at, offset in rows if tuple(at) == place), None)
