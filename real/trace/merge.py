"""Merges one trace from what processes wrote, what the world did and what servers logged.

All processes of a machine share its monotonic clock, so their rows are ordered by time. The
servers' log has only milliseconds of the wall clock. But a write takes effect after its request
and before its answer, and writes take effect in zxid order. So each write is placed at the time
in the log, clamped between its request and its answer, and never before the previous write.
A write whose answer was lost took effect before the next answer of its session.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import NamedTuple

import msgspec

from watchkeeper.model.nemesis.world import OPERATOR
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Row
from watchkeeper.model.zookeeper.znode import NO_SESSION
from watchkeeper.real.trace.write_events import CommittedEvent

WRITING = frozenset({"create", "delete", "set", "set acl", "multi", "pipelined"})


LOST = ({"error": "ConnectionLoss"}, {"error": "SessionExpired"})
"""The answers after which a client does not know whether its request has written."""


class Request(NamedTuple):
    """A request of a session that was answered and may have written."""

    zxid: int
    since_us: int
    """When it was sent, or the first of the requests before it whose answers were lost."""
    asked_us: int
    answered_us: int


Places = Mapping[str, list[tuple[int, str]]]
"""Member or ensemble -> (since when, server), in order."""


def merged(
    own: list[Row],
    folder: Path,
    services: Mapping[str, Iterable[CommittedEvent]],
    places: Places,
    by_hand: Set[int] = frozenset(),
) -> list[Row]:
    """All rows of a run in order.

    `services` maps the prefix of a cluster to its committed events, `places` maps a member to the
    servers that it connected to; `by_hand` are the sessions in which an operator wrote.
    """
    rows = [*own, *_with_servers(process_rows(folder), places)]
    requests, names = _requests(rows), _names(rows) | dict.fromkeys(by_hand, OPERATOR)
    end_us = max((row[0] for row in own), default=0)
    for prefix, committed in services.items():
        leaders = _leaders(own, prefix)
        rows += _of_service(f"{prefix}zookeeper", leaders, committed, requests, names)
    rows += [*_unwritten(rows), *_moved(rows)]
    rows.sort(key=lambda row: (row[0], ORDER.get(row[2], 1)))
    return [row for row in rows if row[0] <= end_us]


ORDER: dict[str, int] = {
    EventKind.APPLIED: 0,
    EventKind.REFUSED: 0,
    EventKind.SESSION_OPENED: 0,
    EventKind.RUN_ENDED: 2,
}
"""The order of events at the same time: effects first, the end of the run last."""


def process_rows(folder: Path) -> Iterable[Row]:
    """The rows that the processes have written; a truncated line of a killed one is skipped."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                yield tuple(msgspec.json.decode(line))
            except msgspec.DecodeError:
                continue


def _with_servers(rows: Iterable[Row], places: Places) -> Iterable[Row]:
    """The same rows; names the server of a connection, where a member knows the proxy only."""
    for row in rows:
        if row[2] == EventKind.CONNECTED:
            server = _latest(places.get(row[1], []), row[0])
            row = (*row[:8], {**row[8], "at": server})
        yield row


def _leaders(own: list[Row], prefix: str) -> list[tuple[int, str]]:
    """The leaders of an ensemble, with the time since when they led."""
    return [
        (row[0], row[1])
        for row in own
        if row[2] == EventKind.LEADER_ELECTED and row[1].startswith(f"{prefix}zookeeper")
    ]


def _latest(places: list[tuple[int, str]], at_us: int) -> str:
    """The last server up to that time; empty if there is none."""
    at = bisect_right(places, at_us, key=lambda place: place[0])
    return places[at - 1][1] if at else ""


def _unwritten(rows: list[Row]) -> list[Row]:
    """The end of fetching that a process did not write itself: it was killed, or abandoned."""
    fetching: dict[str, dict[tuple[str, str], Row]] = {}
    unwritten: list[Row] = []
    for row in sorted(rows, key=lambda row: row[0]):
        at_us, node, kind, _, _, topic, partition, _, detail = row
        if kind == EventKind.FETCHING and detail["does"] == "begins":
            fetching.setdefault(node, {})[topic, partition] = row
        elif kind == EventKind.FETCHING:
            fetching.get(node, {}).pop((topic, partition), None)
        elif kind in (EventKind.ENDED, EventKind.ABANDONED):
            for begun in fetching.pop(node, {}).values():
                ceases = {**begun[8], "does": "ceases", "stream": 0}
                unwritten.append((at_us, *begun[1:8], ceases))
    return unwritten


def _moved(rows: list[Row]) -> list[Row]:
    """Sessions that continued on another connection, from the members' rows."""
    return [
        (row[0], row[8]["at"], EventKind.SESSION_MOVED, row[3], "", "", "", 0, {"by": row[1]})
        for row in rows
        if row[2] == EventKind.CONNECTED and not row[8]["new"]
    ]


def _requests(rows: Iterable[Row]) -> dict[int, list[Request]]:
    """Session -> its requests that may have written, in zxid order."""
    request_us: dict[str, int] = {}
    lost_us: dict[int, int] = {}
    requests: dict[int, list[Request]] = {}
    for row in sorted(rows, key=lambda row: row[0]):
        at_us, node, kind, session, _, _, _, zxid, detail = row
        if kind == EventKind.REQUEST:
            request_us[node] = at_us
        elif kind == EventKind.RESPONSE and detail["op"] in WRITING and zxid:
            asked_us = request_us.get(node, at_us)
            if detail["answer"] in LOST:
                lost_us.setdefault(session, asked_us)
                continue
            since_us = lost_us.pop(session, asked_us)
            requests.setdefault(session, []).append(Request(zxid, since_us, asked_us, at_us))
    return requests


def _names(rows: Iterable[Row]) -> dict[int, str]:
    """Session -> the node that was connected with it."""
    return {row[3]: row[1] for row in rows if row[2] == EventKind.CONNECTED}


def _of_service(
    ensemble: str,
    leaders: list[tuple[int, str]],
    committed: Iterable[CommittedEvent],
    requests: dict[int, list[Request]],
    names: dict[int, str],
) -> Iterable[Row]:
    """The events of a service as rows; sessions that belong to no member are skipped."""
    last_us = 0
    for write in committed:
        by = names.get(write.session)
        is_by_hand = by == OPERATOR
        if by is None or (is_by_hand and not _changes_a_run(write)):
            continue
        # Never before the previous write: the log's order is the order of effects.
        last_us = max(_placed(write, requests.get(write.session, [])), last_us, 0)
        detail = {**write.detail, "by": by}
        session = NO_SESSION if is_by_hand else write.session
        server = _latest(leaders, last_us) or ensemble
        yield (last_us, server, write.kind, session, "", "", "", write.zxid, detail)


def _changes_a_run(write: CommittedEvent) -> bool:
    """Whether a write of an operator's session changes znodes of the run."""
    return write.kind == EventKind.APPLIED and bool(write.detail["did"])


def _placed(event: CommittedEvent, requests: list[Request]) -> int:
    """The time of a write: the time in the log, clamped between request and answer."""
    if event.kind.startswith("session"):
        return event.at_us
    at = bisect_left(requests, event.zxid, key=lambda request: request.zxid)
    if at == len(requests):
        return event.at_us
    request = requests[at]
    # A smaller zxid: an earlier write of a batch, or a write whose answer was lost.
    first_us = request.asked_us if request.zxid == event.zxid else request.since_us
    return min(max(event.at_us, first_us), request.answered_us)
