"""Says in words what happened to a znode, and what was read of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from watchkeeper.model.nemesis.world import OPERATOR
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event
from watchkeeper.reports.why.fault_words import WORDS, lasts
from watchkeeper.reports.why.lookup import Read, Write

LONGEST_LIST = 6
LONGEST_DATA = 90
_REGISTRATION = re.compile(r"/brokers/ids/(\d+)")


def named(path: str) -> str:
    """A znode by what it stands for; its path where that says more."""
    claim, offset, state = (
        paths.parse_owner(path),
        paths.parse_offset(path),
        paths.parse_state(path),
    )
    if claim is not None:
        return f"the claim on {claim[1]}"
    if offset is not None:
        return f"the offset of {offset[1]}"
    if state is not None:
        return f"the state of {state}"
    member, broker = paths.parse_member(path), _REGISTRATION.fullmatch(path)
    if member is not None:
        return f"the registration {member[1]}"
    return path if broker is None else f"the registration of broker {broker[1]}"


def write_text(write: Write, holders: Mapping[int, str]) -> str:
    """Who changed a znode, and how."""
    if write.is_end_of_session:
        ended = "expired" if write.event.kind == EventKind.SESSION_EXPIRED else "was closed"
        return f"the session of {write.by} {ended}, and {named(write.path)} went with it"
    who = "an operator" if write.by == OPERATOR else write.by
    claim, offset = paths.parse_owner(write.path), paths.parse_offset(write.path)
    if write.what == "deleted":
        if claim is not None and holders.get(write.owner) == write.by:
            return f"{who} released {claim[1]}"
        whose = holders.get(write.owner, "")
        of = f" of {whose}" if whose and whose != write.by else ""
        return f"{who} deleted {named(write.path)}{of}"
    if claim is not None:
        verb = "claimed" if write.what == "created" else "wrote into the claim on"
        return f"{who} {verb} {claim[1]}"
    if offset is not None:
        return f"{who} committed {write.data} for {offset[1]}"
    if write.path == paths.CONTROLLER:
        return f"{who} became the controller"
    if write.path == paths.CONTROLLER_EPOCH:
        return f"{who} raised the controller epoch to {write.data}"
    if paths.parse_member(write.path) is not None or _REGISTRATION.fullmatch(write.path):
        return f"{who} registered"
    if paths.parse_state(write.path) is not None:
        return f"{who} wrote {named(write.path)}: {state_text(write.data)}"
    verb = "created" if write.what == "created" else "wrote"
    return f"{who} {verb} {named(write.path)}{_data(write.data)}"


def outside_text(states: Sequence[Write]) -> str:
    """That the last state names a leader which was not in the ISR before; else empty."""
    try:
        before, after = (json.loads(write.data or "") for write in states[-2:])
        is_outside = after["leader"] not in (-1, *before["isr"])
    except (ValueError, KeyError, TypeError):
        return ""
    return f"; the leader was not in the ISR {before['isr']}" if is_outside else ""


def state_text(data: str | None) -> str:
    """The state of a partition: its leader, its ISR and its epochs."""
    try:
        state = json.loads(data or "")
        return (
            f"leader {state['leader']}, ISR {state['isr']}, leader epoch "
            f"{state['leader_epoch']}, controller epoch {state['controller_epoch']}"
        )
    except (ValueError, KeyError, TypeError):
        return f"{data!r}, which cannot be read"


def read_text(read: Read) -> str:
    """What a process read, and what it found."""
    who, answer = read.asked.ask.node, read.answer
    if answer is None or (isinstance(answer, Mapping) and "error" in answer):
        return f"{who} found no {named(read.path).removeprefix('the ')}"
    if isinstance(answer, list):
        return f"{who} read {read.path}: {_listed(answer)}"
    data = answer.get("data") if isinstance(answer, Mapping) else answer
    if paths.parse_state(read.path) is not None:
        return f"{who} read {named(read.path)}: {state_text(data)}"
    return f"{who} read {named(read.path)}{_data(data)}"


def _listed(names: list[Any]) -> str:
    shown = ", ".join(map(str, names[:LONGEST_LIST])) or "nothing"
    more = len(names) - LONGEST_LIST
    return f"{shown} and {more} more" if more > 0 else shown


def _data(data: Any) -> str:
    text = "" if data is None else str(data)
    return f": {text}" if 0 < len(text) <= LONGEST_DATA else ""


def fault_text(event: Event, node: str) -> str:
    """What a fault or change did to a process."""
    verb = str(event.detail.get("verb", ""))
    if verb in WORDS:
        return f"{node} {WORDS[verb]}{lasts(event)}"
    return f"{verb.replace('_', ' ')} {event.node}, by the timeline"


# --- what processes say of themselves --------------------------------------------------


def _assigned(event: Event) -> str:
    shares = [
        f"{topic}/{name}"
        for topic, names in event.detail.get("shares", {}).items()
        for name in names
    ]
    return f"{event.node} computed its share: {_listed(shares)}"


def _place(event: Event) -> str:
    name = event.partition or event.detail.get("partition", "")
    return f"{event.topic}/{name}" if name else event.topic


def _conflict(event: Event) -> str:
    """The partitions that another member has claimed."""
    path = str(event.detail.get("path", ""))
    claim = paths.parse_owner(path)
    return str(claim[1]) if claim else _listed(event.detail.get("partitions") or [event.topic])


def _why(event: Event) -> str:
    why = event.detail.get("why") or event.detail.get("error")
    return f": {why}" if why else ""


def _opened(event: Event) -> str:
    return f"{event.node} found {event.detail['end']} messages of {_place(event)} on its disk"


def _truncated(event: Event) -> str:
    lost = f" and lost {event.detail['lost']} messages" if event.detail.get("lost") else ""
    return f"{event.node} cut its log of {_place(event)} at offset {event.detail['end']}{lost}"


def _leads(event: Event) -> str:
    return (
        f"{event.node} led {_place(event)} from offset {event.detail['end']} on, in leader epoch "
        f"{event.detail['epoch']}"
    )


def _follows(event: Event) -> str:
    leader = event.detail.get("leader")
    whom = "no leader" if leader == -1 else f"broker {leader}"
    return f"{event.node} followed {whom} of {_place(event)}"


def _committed(event: Event) -> str:
    end = event.detail["high_watermark"]
    return f"{event.node} committed the messages of {_place(event)} before offset {end}"


def _failed(event: Event) -> str:
    to = event.detail.get("to", "")
    return f"{event.node} could not bring {_place(event)} to {to}{_why(event)}"


def _sent(event: Event) -> str:
    return f"{event.node} sent {event.detail['request']} to broker {event.detail['to']}"


def _refused(event: Event) -> str:
    partitions = _listed(list(event.detail.get("partitions", {})))
    return (
        f"broker {event.detail['to']} refused {event.detail['request']} of {event.node} for "
        f"{partitions}"
    )


def _offsets(rows: list[list[Any]]) -> str:
    shown = [f"{offset} for {topic}/{partition}" for topic, partition, offset in rows]
    return _listed(shown) if shown else "no offset"


def _commit_answered(event: Event) -> str:
    errors = event.detail["errors"]
    refused = f", and answered {_listed(errors)}" if errors else ""
    accepted = _offsets(event.detail["accepted"])
    return f"the coordinator acknowledged {accepted} to {event.node}{refused}"


def _fetch_answered(event: Event) -> str:
    errors, offsets = event.detail["errors"], event.detail["offsets"]
    given = [row for row in offsets if row[2] >= 0]
    without = [f"{topic}/{partition}" for topic, partition, offset in offsets if offset < 0]
    parts = [
        *([_offsets(given)] if given else []),
        *([f"no offset for {_listed(without)}"] if without else []),
        *errors,
    ]
    return f"the coordinator answered {event.node} {_listed(parts)}"


SENTENCES: Mapping[str, Callable[[Event], str]] = {
    EventKind.STARTED: lambda event: f"{event.node} started",
    EventKind.ENDED: lambda event: f"{event.node} ended{_why(event)}",
    EventKind.ABANDONED: lambda event: (
        f"the program of {event.node} ended, and its session did not"
    ),
    EventKind.ASSIGNED: _assigned,
    EventKind.REBALANCE_STARTED: lambda event: f"{event.node} began a rebalance",
    EventKind.REBALANCE_COMPLETED: lambda event: f"{event.node} completed a rebalance",
    EventKind.REBALANCE_FAILED: lambda event: f"a rebalance of {event.node} failed{_why(event)}",
    EventKind.REBALANCE_ABANDONED: lambda event: (
        f"{event.node} gave up its rebalance{_why(event)}"
    ),
    EventKind.CLAIM_CONFLICT: lambda event: (
        f"{event.node} found {_conflict(event)} claimed already"
    ),
    EventKind.ID_IN_USE: lambda event: f"{event.node} found its id registered already",
    EventKind.TURN_FAILED: lambda event: f"a turn of {event.node} failed{_why(event)}",
    EventKind.OFFSET_COMMIT_SENT: lambda event: (
        f"{event.node} sent {_offsets(event.detail['offsets'])} to the coordinator"
    ),
    EventKind.OFFSET_COMMIT_ANSWERED: _commit_answered,
    EventKind.OFFSET_FETCH_SENT: lambda event: f"{event.node} fetched offsets",
    EventKind.OFFSET_FETCH_ANSWERED: _fetch_answered,
    EventKind.OFFSETS_LOADED: lambda event: (
        f"{event.node} had read {event.detail['offsets']} offsets, as a coordinator"
    ),
    EventKind.COMMIT_REFUSED: lambda event: f"a commit of {event.node} failed{_why(event)}",
    EventKind.CONTROLLER_ELECTED: lambda event: (
        f"{event.node} became the controller, in epoch {event.detail['epoch']}"
    ),
    EventKind.CONTROLLER_RESIGNED: lambda event: (
        f"{event.node} ceased to be the controller{_why(event)}"
    ),
    EventKind.FAILOVER_COMPLETED: lambda event: (
        f"{event.node} had taken over as the controller, with the live brokers "
        f"{_listed(list(event.detail['live']))}"
    ),
    EventKind.TRANSITION_FAILED: _failed,
    EventKind.UNCLEAN_ELECTION: lambda event: (
        f"{event.node} elected broker {event.detail['leader']}, outside of the ISR of "
        f"{_place(event)}"
    ),
    EventKind.CALLBACK_FAILED: lambda event: (
        f"an error ended what {event.node} did as the controller{_why(event)}"
    ),
    EventKind.CALLBACK_LATE: lambda event: (
        f"{event.node} handled a change after its reign ({event.detail['task']})"
    ),
    EventKind.CONTROLLER_BLOCKED: lambda event: (
        f"{event.node} waited for its own thread, with the lock that the thread needed"
    ),
    EventKind.CONTROL_SENT: _sent,
    EventKind.CONTROL_TAKEN: lambda event: (
        f"{event.node} carried out {event.detail['request']} of broker "
        f"{event.detail['controller']}, of epoch {event.detail['epoch']}"
    ),
    EventKind.CONTROL_REFUSED: _refused,
    EventKind.REQUEST_UNREADABLE: lambda event: (
        f"{event.node} could not read the request{_why(event)}"
    ),
    EventKind.REASSIGNING: lambda event: f"{event.node} began to move {_place(event)}",
    EventKind.REASSIGNED: lambda event: f"{event.node} had moved {_place(event)}",
    EventKind.TOPIC_DELETED: lambda event: f"{event.node} had deleted {event.topic}",
    EventKind.DELETIONS_ENDED: lambda event: (
        f"{event.node} met a deletion that it could not complete, and ended all"
    ),
    EventKind.DELETION_REFUSED: lambda event: (
        f"{event.node} removed the request to delete {event.topic}"
    ),
    EventKind.REPLICA_OPENED: _opened,
    EventKind.REPLICA_DELETED: lambda event: f"{event.node} deleted its log of {_place(event)}",
    EventKind.TRUNCATED: _truncated,
    EventKind.FOLLOWER_HALTED: lambda event: (
        f"{event.node} found its log of {_place(event)} longer than its leader's"
    ),
    EventKind.BECAME_LEADER: _leads,
    EventKind.BECAME_FOLLOWER: _follows,
    EventKind.LEADER_UNKNOWN: lambda event: (
        f"{event.node} had to follow an unknown leader of {_place(event)}"
    ),
    EventKind.COMMITTED: _committed,
    EventKind.ISR_REFUSED: lambda event: (
        f"{event.node} could not write the ISR of {_place(event)}: the state had changed"
    ),
    EventKind.SETTINGS_APPLIED: lambda event: f"{event.node} read the settings of {event.topic}",
    EventKind.SETTINGS_REFUSED: lambda event: (
        f"{event.node} could not read settings{_why(event)}"
    ),
    EventKind.METADATA_UPDATED: lambda event: f"{event.node} learned who leads, or an ISR",
    EventKind.SHUT_DOWN: lambda event: f"{event.node} had handed over what it led",
    EventKind.EXPIRED: lambda event: f"{event.node} learned that its session had expired",
    EventKind.CONNECTED: lambda event: (
        f"{event.node} had a {'new ' if event.detail.get('new') else ''}connection"
    ),
    EventKind.OFFSET_RESET: lambda event: (
        f"{event.node} continued {_place(event)} at offset {event.detail['to']}{_why(event)}"
    ),
    EventKind.BROKER_FAILED: lambda event: (
        f"{event.node} ended because of its disk, or of what is on it"
    ),
    EventKind.SEND_FAILED: lambda event: f"{event.node} gave up messages that it had accepted",
}
"""Kind of event -> its sentence."""


def sentence(event: Event) -> str:
    """What happened, in a sentence without its moment."""
    known = SENTENCES.get(event.kind)
    return (
        f"{event.node}: {event.kind} {_place(event)}".rstrip() if known is None else known(event)
    )


def has_sentence(event: Event) -> bool:
    """Whether there is a sentence for events of this kind."""
    return event.kind in SENTENCES
