"""The way back from what brokers and controllers wrote, stored and left undone."""

from __future__ import annotations

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event
from watchkeeper.reports.why import wording
from watchkeeper.reports.why.lookup import Write
from watchkeeper.reports.why.walk import Walk, Weight

CUTS = frozenset({EventKind.TRUNCATED, EventKind.REPLICA_OPENED})
ROLES = frozenset({EventKind.BECAME_LEADER, EventKind.BECAME_FOLLOWER, EventKind.LEADER_UNKNOWN})
LEFT_UNDONE = frozenset(
    {
        EventKind.TRANSITION_FAILED,
        EventKind.CALLBACK_FAILED,
        EventKind.CONTROLLER_BLOCKED,
        EventKind.REQUEST_UNREADABLE,
        EventKind.DELETIONS_ENDED,
        EventKind.CONTROL_REFUSED,
        EventKind.ISR_REFUSED,
        EventKind.SETTINGS_REFUSED,
        EventKind.TURN_FAILED,
        EventKind.REASSIGNING,
        EventKind.TOPIC_DELETED,
        EventKind.REPLICA_DELETED,
        EventKind.CONTROLLER_ELECTED,
        EventKind.CONTROLLER_RESIGNED,
        EventKind.SETTINGS_APPLIED,
    }
)
"""What processes say about a request that they do not carry out, or not to the end."""
MOST_WRITES = 2


# --- znodes ----------------------------------------------------------------------------


def walk_writer(walk: Walk, node: str) -> None:
    """Walk back from the last write of a process: what it knew, and what others had written."""
    own = [write for path in walk.about.paths for write in _own(walk, node, path)]
    if not own:
        if not walk.about.partitions:
            _walk_reader(walk, node)
        return
    act = max(own, key=lambda write: write.event.seq)
    walk.write(act, Weight.ACT)
    asked = walk.found.request_of.get(act.event.seq)
    sent = act.event.seq if asked is None else asked.ask.seq
    read = walk.found.last_read(node, act.path, sent)
    if read is not None:
        walk.add(read.answered, wording.read_text(read), Weight.BASIS)
    _walk_overwritten(walk, act, sent)
    for path in walk.about.paths:
        known = walk.found.last_read(node, path, sent)
        _walk_unseen(walk, node, path, sent if known is None else known.asked.ask.seq)
        _walk_lost_znode(walk, node, path, act.event.seq)
        if path != act.path:
            _walk_unconfirmed(walk, node, path, act.event.seq)


def _own(walk: Walk, node: str, path: str) -> list[Write]:
    """The writes of a process itself to a znode."""
    found = walk.found.writes_between(path, -1, walk.until)
    return [one for one in found if one.by == node and not one.is_end_of_session]


def _walk_unseen(walk: Walk, node: str, path: str, since: int) -> None:
    """Add the last write of another process that came after what a process had read."""
    others = [
        write
        for write in walk.found.writes_between(path, since, walk.until)
        if write.by != node and write.what != "deleted"
    ]
    # Who raised the epoch has become the controller: one of both says it.
    if path == paths.CONTROLLER and paths.CONTROLLER_EPOCH in walk.about.paths:
        return
    for write in others[-1:]:
        walk.write(write, Weight.CAUSE, walk.unaware([node], write))


def _walk_overwritten(walk: Walk, act: Write, sent: int) -> None:
    """Add what took effect after a write was sent, and before it did itself."""
    found = walk.found.writes_between(act.path, sent, act.event.seq)
    for write in found[-1:]:
        if write.path == act.path:
            walk.write(write, Weight.CAUSE)


def _walk_unconfirmed(walk: Walk, node: str, path: str, before: int) -> None:
    """Add a write of the process itself of which it had no answer."""
    for write in _own(walk, node, path)[-1:]:
        asked = walk.found.request_of.get(write.event.seq)
        if asked is not None and asked.outcome == "lost" and write.event.seq < before:
            walk.write(write, Weight.CAUSE, ", and the reply was lost")
            read = walk.found.last_read(node, path, before)
            if read is not None and read.answered.seq > write.event.seq:
                walk.add(read.answered, wording.read_text(read), Weight.BASIS)


def _walk_reader(walk: Walk, node: str) -> None:
    """Walk back from what a process has read, where it writes nothing."""
    for path in walk.about.paths:
        for write in walk.found.writes_between(path, -1, walk.until)[-MOST_WRITES:]:
            walk.write(write, Weight.CAUSE, walk.unaware([node], write))
            for read in walk.found.reads.get(node, {}).get(write.path, ())[-1:]:
                if write.event.seq < read.answered.seq < walk.until:
                    walk.add(read.answered, wording.read_text(read), Weight.BASIS)
    walk.behind(node, walk.until)
    said = walk.found.of_node.get(node, ())
    last = [one for one in said if one.kind in LEFT_UNDONE and one.seq < walk.until]
    for event in last[-1:]:
        walk.say(event, Weight.ACT)


def _walk_lost_znode(walk: Walk, node: str, path: str, before: int) -> None:
    """Add that a process has lost a znode of its session, such as that of the controller."""
    writes = walk.found.writes_between(path, -1, before)
    lost = [one for one in writes if one.is_end_of_session and one.by == node]
    again = [one for one in writes if one.what == "created" and one.by == node]
    if lost and not (again and again[-1].event.seq > lost[-1].event.seq):
        walk.write(lost[-1], Weight.CAUSE)
        walk.lost_session(node, lost[-1].event)


def walk_request(walk: Walk, path: str) -> None:
    """Walk back from a znode that is still there: who made it, and what became of it."""
    writes = walk.found.writes_between(path, -1, walk.until)
    made = next((write for write in reversed(writes) if write.path == path), None)
    if made is None:
        return
    walk.write(made, Weight.ACT)
    said = [
        event
        for events in walk.found.of_node.values()
        for event in events
        if made.event.seq < event.seq < walk.until and event.kind in LEFT_UNDONE
    ]
    walk.say_different(said, Weight.ACT)
    for node in walk.found.faults:
        if "/" in node and not node.startswith("/"):  # a process, and no znode
            walk.behind(node, walk.until)


# --- replicas --------------------------------------------------------------------------


def walk_replica(walk: Walk) -> None:
    """Walk back from a replica: how its log came to be what it is, and who wrote its state."""
    place, offset = walk.about.partitions[0], walk.about.offset
    events = [event for event in walk.found.of_place.get(place, ()) if event.seq < walk.until]
    since = -1
    if offset is not None:
        since = _walk_commit(walk, events, offset)
    for node in walk.about.nodes:
        _walk_log(walk, node, [event for event in events if event.node == node], offset)
        walk.behind(node, walk.until, after=since)
    _walk_state(walk, place, since)
    unclean = [one for one in events if one.kind == EventKind.UNCLEAN_ELECTION]
    for event in unclean[-1:]:
        walk.say(event, Weight.ACT)
    if offset is None:
        walk.say_different([one for one in events if one.kind in LEFT_UNDONE], Weight.ACT)


def _walk_commit(walk: Walk, events: list[Event], offset: int) -> int:
    """Add when an offset was committed first; the number of that event."""
    for event in events:
        if event.kind == EventKind.COMMITTED and event.detail["high_watermark"] > offset:
            text = f"{event.node} committed offset {offset} of {walk.about.partitions[0]}"
            walk.add(event, text, Weight.BASIS)
            return event.seq
    return -1


def _walk_log(walk: Walk, node: str, events: list[Event], offset: int | None) -> None:
    """Add what cut the log of a broker, and whom it followed last."""
    cuts = [
        event
        for event in events
        if event.kind in CUTS and (offset is None or event.detail["end"] <= offset)
    ]
    for event in cuts[-1:]:
        walk.say(event, Weight.ACT if offset is not None else Weight.CAUSE)
    for event in [one for one in events if one.kind in ROLES][-1:]:
        walk.say(event, Weight.CAUSE)


def _walk_state(walk: Walk, place: Partition, since: int) -> None:
    """Add the last states of a partition, and the ends of sessions that led to them."""
    path = paths.partition_state(place)
    states = walk.found.writes_between(path, -1, walk.until)
    for write in states[-1:]:
        walk.write(write, Weight.CAUSE)
    for write in states[-2:-1]:
        walk.write(write, Weight.AROUND)
    for write in walk.found.writes_between(paths.topic(place.topic), -1, walk.until):
        if write.path == paths.topic(place.topic):
            walk.write(write, Weight.BASIS)
    gone = [
        write
        for write in walk.found.writes_between(paths.BROKER_IDS, since, walk.until)
        if write.is_end_of_session
    ]
    for write in gone[-2:]:
        walk.behind(write.by, write.event.seq)
        walk.write(write, Weight.AROUND)
