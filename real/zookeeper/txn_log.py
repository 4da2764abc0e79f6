"""Every write that a real ZooKeeper has agreed upon, read from its servers' logs.

`moments` knows the form of a log file; here the bodies of its transactions are read, and
from them, in the order of zxids, what each write did and whose the ephemerals were. Paths
outside of the run's own root are passed over.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from real.ledger import Agreed, Ledger
from real.moments import TRANSACTION, how_it_ended, records_of
from real.wire import (
    CLOSE_SESSION,
    CREATE,
    CREATE_2,
    CREATE_SESSION,
    DELETE,
    ERROR,
    MULTI,
    SET_DATA,
    WORDS,
    Fields,
)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A write: who asked for it, when the leader took it, and its body."""

    zxid: int
    session: int
    time_ms: int
    kind: int
    xid: int
    body: bytes


def transactions_of(folder: Path) -> Iterator[Transaction]:
    """The transactions in one server's log, oldest first."""
    for record in records_of(folder):
        session, xid, zxid, time_ms, kind = TRANSACTION.unpack_from(record)
        yield Transaction(zxid, session, time_ms, kind, xid, record[TRANSACTION.size :])


def all_transactions(folders: Iterable[Path]) -> list[Transaction]:
    """What all servers together have logged, each write once, in the order of zxids.

    A write that one server alone has may never have taken effect; the longest log of those
    that agree decides, and that is the log of whoever leads at the end.
    """
    logs = [{one.zxid: one for one in transactions_of(folder)} for folder in folders]
    longest = max(logs, key=lambda log: max(log, default=0), default={})
    return [longest[zxid] for zxid in sorted(longest)]


def agreed_upon(folders: Iterable[Path], root: str, begin_ns: int) -> Iterator[Agreed]:
    """What the service did in a run that began at that moment of the monotonic clock."""
    wall_us = time.time_ns() // 1000 - (time.monotonic_ns() - begin_ns) // 1000
    ledger = Ledger(root)
    for one in all_transactions(folders):
        kind, detail = _told(one, ledger)
        yield Agreed(one.zxid, one.session, one.time_ms * 1000 - wall_us, kind, detail)


def _told(one: Transaction, ledger: Ledger) -> tuple[str, dict[str, Any]]:
    if one.kind == CREATE_SESSION:
        return "session opened", {}
    if one.kind == CLOSE_SESSION:
        return how_it_ended(one.xid), {"did": ledger.ended(one.session)}
    if one.kind == ERROR or (one.kind == MULTI and _is_refused(one.body)):
        return "refused", {"op": WORDS[one.kind]}
    did = list(_done(one.kind, one.session, one.body, ledger))
    return "applied", {"op": WORDS.get(one.kind, "other"), "did": did}


def _is_refused(body: bytes) -> bool:
    """Whether a multi failed; what stood before the part at fault is logged all the same."""
    fields = Fields(body)
    kinds = []
    for _ in range(fields.number()):
        kinds.append(fields.number())
        fields.buffer()
    return ERROR in kinds


def _done(kind: int, session: int, body: bytes, ledger: Ledger) -> Iterator[list[Any]]:
    fields = Fields(body)
    if kind == MULTI:
        for _ in range(fields.number()):
            inner = fields.number()
            yield from _done(inner, session, fields.buffer() or b"", ledger)
    elif kind in (CREATE, CREATE_2):
        path, data = fields.string(), fields.buffer()
        fields.pass_over_acl()
        yield from ledger.created(path, session if fields.flag() else 0, data)
    elif kind == DELETE:
        yield from ledger.deleted(fields.string())
    elif kind == SET_DATA:
        yield from ledger.changed(fields.string(), fields.buffer())
