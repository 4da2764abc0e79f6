"""Every committed write of a ZooKeeper, read from its servers' transaction logs.

`session_times` knows the format of a log file; this module decodes the bodies of its
transactions and derives, in zxid order, what each write changed and which session owned
which ephemeral. Paths outside the run's root are skipped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.proxy.zk_frames import (
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
from watchkeeper.real.trace.write_events import CommittedEvent, WriteEvents
from watchkeeper.real.zookeeper.session_times import TRANSACTION, how_it_ended, records_of


@dataclass(frozen=True, slots=True)
class Transaction:
    """A logged write: its session, the leader's time, and its body."""

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
    """All logged writes of these servers, each once, in zxid order.

    A write that only one server has logged may never have taken effect. The longest log
    decides: it belongs to the server that leads at the end.
    """
    logs = [
        {transaction.zxid: transaction for transaction in transactions_of(folder)}
        for folder in folders
    ]
    longest = max(logs, key=lambda log: max(log, default=0), default={})
    return [longest[zxid] for zxid in sorted(longest)]


def committed_writes(
    folders: Iterable[Path], root: str, begin_ns: int
) -> Iterator[CommittedEvent]:
    """The effects of the service in a run that began at `begin_ns` (monotonic clock)."""
    # The log has wall-clock times, the trace has times since the begin of the run.
    wall_us = time.time_ns() // 1000 - (time.monotonic_ns() - begin_ns) // 1000
    ledger = WriteEvents(root)
    for transaction in all_transactions(folders):
        kind, detail = _event_of(transaction, ledger)
        yield CommittedEvent(
            transaction.zxid,
            transaction.session,
            transaction.time_ms * 1000 - wall_us,
            kind,
            detail,
        )


def _event_of(transaction: Transaction, ledger: WriteEvents) -> tuple[str, dict[str, Any]]:
    if transaction.kind == CREATE_SESSION:
        return EventKind.SESSION_OPENED, {}
    if transaction.kind == CLOSE_SESSION:
        return how_it_ended(transaction.xid), {"did": ledger.ended(transaction.session)}
    if transaction.kind == ERROR or (transaction.kind == MULTI and _is_refused(transaction.body)):
        return EventKind.REFUSED, {"op": WORDS[transaction.kind]}
    did = list(_changes_of(transaction.kind, transaction.session, transaction.body, ledger))
    return EventKind.APPLIED, {"op": WORDS.get(transaction.kind, "other"), "did": did}


def _is_refused(body: bytes) -> bool:
    """Whether a multi failed; the log keeps the parts before the failed one all the same."""
    fields = Fields(body)
    kinds = []
    for _ in range(fields.number()):
        kinds.append(fields.number())
        fields.buffer()
    return ERROR in kinds


def _changes_of(kind: int, session: int, body: bytes, ledger: WriteEvents) -> Iterator[list[Any]]:
    fields = Fields(body)
    if kind == MULTI:
        for _ in range(fields.number()):
            inner = fields.number()
            yield from _changes_of(inner, session, fields.buffer() or b"", ledger)
    elif kind in (CREATE, CREATE_2):
        path, data = fields.string(), fields.buffer()
        fields.pass_over_acl()
        yield from ledger.created(path, session if fields.flag() else 0, data)
    elif kind == DELETE:
        yield from ledger.deleted(fields.string())
    elif kind == SET_DATA:
        yield from ledger.changed(fields.string(), fields.buffer())
