"""One trace out of many: what each process wrote, what the world did, what servers logged.

All processes of a machine share its monotonic clock, so their rows are put in the order of
their moments. The servers' log has whole milliseconds of the wall clock only; but a write
took effect after it was asked for and before its answer came, and in the order of zxids.
So each is put at the moment the log gives it, moved between its question and its answer.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from model.trace import Row
from real.moments import CLOSE_SESSION, CREATE_SESSION, how_it_ended
from real.transactions import FAILED, WORDS, Changes, Transaction, all_transactions

WRITING = frozenset({"create", "delete", "set", "set acl", "multi", "pipelined"})


class Request(NamedTuple):
    """A request of a session that may have written: when it was asked, and answered."""

    zxid: int
    asked_us: int
    answered_us: int


def merged(
    own: list[Row], folder: Path, logs: dict[str, list[Path]], root: str, begin_ns: int
) -> list[Row]:
    """All rows of a run in order; `logs` are the servers' folders by the cluster's prefix."""
    rows = [*own, *_written(folder)]
    requests, names = _requests(rows), _names(rows)
    end_us = max((row[0] for row in own), default=0)
    for prefix, folders in logs.items():
        rows += _of_service(prefix, all_transactions(folders), requests, names, root, begin_ns)
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
        (row[0], "zookeeper", "session moved", row[3], "", "", "", 0, {"by": row[1]})
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
    prefix: str,
    transactions: list[Transaction],
    requests: dict[int, list[Request]],
    names: dict[int, str],
    root: str,
    begin_ns: int,
) -> Iterable[Row]:
    """What the service did, as rows; sessions that no member ever had are passed over."""
    wall_us = time.time_ns() // 1000 - (time.monotonic_ns() - begin_ns) // 1000
    changes = Changes(root)
    last_us = 0
    for one in transactions:
        did = changes.of(one)
        if one.session not in names:
            continue
        log_us = one.time_ms * 1000 - wall_us
        last_us = max(_placed(one, log_us, requests.get(one.session, [])), last_us, 0)
        kind, detail = _told(one, did)
        by = {"by": names[one.session]}
        server = f"{prefix}zookeeper"
        yield (last_us, server, kind, one.session, "", "", "", one.zxid, {**detail, **by})


def _placed(one: Transaction, log_us: int, requests: list[Request]) -> int:
    """The moment of a write: what the log says, between its question and its answer."""
    if one.kind in (CREATE_SESSION, CLOSE_SESSION):
        return log_us
    at = bisect_left(requests, one.zxid, key=lambda request: request.zxid)
    if at == len(requests):
        return log_us
    return min(max(log_us, requests[at].asked_us), requests[at].answered_us)


def _told(one: Transaction, did: list[Any]) -> tuple[str, dict[str, Any]]:
    if one.kind == CREATE_SESSION:
        return "session opened", {}
    if one.kind == CLOSE_SESSION:
        return how_it_ended(one.xid), {"did": did}
    if one.kind == FAILED:
        return "refused", {"op": "failed"}
    return "applied", {"op": WORDS.get(one.kind, "other"), "did": did}
