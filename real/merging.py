"""One trace out of many: what each process wrote, what the world did, what servers logged.

All processes of a machine share its monotonic clock, so their rows are put in the order of
their moments. The servers' log has whole milliseconds of the wall clock only; but a write
took effect after it was asked for and before its answer came, and in the order of zxids.
So each is put at the moment the log gives it, moved between its question and its answer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from model.trace import Row
from real.ledger import Agreed

WRITING = frozenset({"create", "delete", "set", "set acl", "multi", "pipelined"})


class Request(NamedTuple):
    """A request of a session that may have written: when it was asked, and answered."""

    zxid: int
    asked_us: int
    answered_us: int


Places = Mapping[str, list[tuple[int, str]]]
"""What -> the servers that it had to do with, each with since when, in order."""


def merged(
    own: list[Row], folder: Path, services: Mapping[str, Iterable[Agreed]], places: Places
) -> list[Row]:
    """All rows of a run in order.

    `services` says by cluster's prefix what each agreed upon, `places` by member which
    server let it in.
    """
    rows = [*own, *_with_servers(_written(folder), places)]
    requests, names = _requests(rows), _names(rows)
    end_us = max((row[0] for row in own), default=0)
    for prefix, agreed in services.items():
        leaders = _leaders(own, prefix)
        rows += _of_service(f"{prefix}zookeeper", leaders, agreed, requests, names)
    rows += [*_unsaid(rows), *_moved(rows)]
    rows.sort(key=lambda row: (row[0], ORDER.get(row[2], 1)))
    return [row for row in rows if row[0] <= end_us]


ORDER = {"applied": 0, "refused": 0, "session opened": 0, "run ends": 2}
"""What stands first or last among the events of one moment."""


def _written(folder: Path) -> Iterable[Row]:
    """The rows that the processes have written; a line that was cut short is left out."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                yield tuple(msgspec.json.decode(line))
            except msgspec.DecodeError:
                continue


def _with_servers(rows: Iterable[Row], places: Places) -> Iterable[Row]:
    """The same rows; a member that connected knows its server by an address of the proxy's."""
    for row in rows:
        if row[2] == "connected":
            server = _latest(places.get(row[1], []), row[0])
            row = (*row[:8], {**row[8], "at": server})
        yield row


def _leaders(own: list[Row], prefix: str) -> list[tuple[int, str]]:
    """Who led an ensemble, since when."""
    return [
        (row[0], row[1])
        for row in own
        if row[2] == "leads" and row[1].startswith(f"{prefix}zookeeper")
    ]


def _latest(places: list[tuple[int, str]], at_us: int) -> str:
    """The last one of these by that moment; empty if there is none."""
    at = bisect_right(places, at_us, key=lambda place: place[0])
    return places[at - 1][1] if at else ""


def _unsaid(rows: list[Row]) -> list[Row]:
    """What a process that was killed could not write any more: that it fetches nothing."""
    fetching: dict[str, dict[tuple[str, str], Row]] = {}
    unsaid: list[Row] = []
    for row in sorted(rows, key=lambda row: row[0]):
        at_us, node, kind, _, _, topic, partition, _, detail = row
        if kind == "fetching" and detail["does"] == "begins":
            fetching.setdefault(node, {})[topic, partition] = row
        elif kind == "fetching":
            fetching.get(node, {}).pop((topic, partition), None)
        elif kind == "ends":
            for begun in fetching.pop(node, {}).values():
                ceases = {**begun[8], "does": "ceases", "stream": 0}
                unsaid.append((at_us, *begun[1:8], ceases))
    return unsaid


def _moved(rows: list[Row]) -> list[Row]:
    """Sessions that went on over another connection, as their members have told."""
    return [
        (row[0], row[8]["at"], "session moved", row[3], "", "", "", 0, {"by": row[1]})
        for row in rows
        if row[2] == "connected" and not row[8]["new"]
    ]


def _requests(rows: Iterable[Row]) -> dict[int, list[Request]]:
    """Session -> its requests that may have written, by their zxid."""
    asked: dict[str, int] = {}
    requests: dict[int, list[Request]] = {}
    for row in sorted(rows, key=lambda row: row[0]):
        at_us, node, kind, session, _, _, _, zxid, detail = row
        if kind == "asks":
            asked[node] = at_us
        elif kind == "answers" and detail["op"] in WRITING and zxid:
            requests.setdefault(session, []).append(Request(zxid, asked.get(node, at_us), at_us))
    return requests


def _names(rows: Iterable[Row]) -> dict[int, str]:
    """Session -> the node that was connected with it."""
    return {row[3]: row[1] for row in rows if row[2] == "connected"}


def _of_service(
    ensemble: str,
    leaders: list[tuple[int, str]],
    agreed: Iterable[Agreed],
    requests: dict[int, list[Request]],
    names: dict[int, str],
) -> Iterable[Row]:
    """What the service did, as rows; sessions that no member ever had are passed over."""
    last_us = 0
    for one in agreed:
        if one.session not in names:
            continue
        last_us = max(_placed(one, requests.get(one.session, [])), last_us, 0)
        detail = {**one.detail, "by": names[one.session]}
        server = _latest(leaders, last_us) or ensemble
        yield (last_us, server, one.kind, one.session, "", "", "", one.zxid, detail)


def _placed(one: Agreed, requests: list[Request]) -> int:
    """The moment of a write: what the log says, between its question and its answer."""
    if one.kind.startswith("session"):
        return one.at_us
    at = bisect_left(requests, one.zxid, key=lambda request: request.zxid)
    if at == len(requests):
        return one.at_us
    return min(max(one.at_us, requests[at].asked_us), requests[at].answered_us)
