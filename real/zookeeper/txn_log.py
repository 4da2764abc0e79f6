"""Every committed write of a ZooKeeper, read from its servers' transaction logs.

This module decodes the bodies of logged transactions and derives, in zxid order, what each
write changed and which session owned which ephemeral. Paths outside the run's root are skipped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire.opcodes import CREATES, Opcode
from watchkeeper.model.zookeeper_files.disk_fields import DiskReader
from watchkeeper.model.zookeeper_files.transactions import Transaction
from watchkeeper.real.trace.write_events import WORDS, CommittedEvent, WriteEvents
from watchkeeper.real.zookeeper.session_times import how_it_ended, transactions_of


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
    opcode, session = transaction.opcode, transaction.session
    if opcode == Opcode.CREATE_SESSION:
        return EventKind.SESSION_OPENED, {}
    if opcode == Opcode.CLOSE_SESSION:
        return how_it_ended(transaction.xid), {"did": ledger.ended(session)}
    if opcode == Opcode.ERROR or (opcode == Opcode.MULTI and _is_refused(transaction.body)):
        return EventKind.REFUSED, {"op": WORDS[opcode]}
    did = list(_changes_of(opcode, session, transaction.body, ledger))
    return EventKind.APPLIED, {"op": WORDS.get(opcode, "other"), "did": did}


def _is_refused(body: bytes) -> bool:
    """Whether a multi failed; the log keeps the parts before the failed one all the same."""
    return any(opcode == Opcode.ERROR for opcode, _ in _parts_of(body))


def _parts_of(body: bytes) -> list[tuple[int, bytes]]:
    """The opcode and the body of each part of a multi."""
    fields = DiskReader(body)
    return [(fields.int32(), fields.buffer() or b"") for _ in range(fields.count())]


def _changes_of(
    opcode: int, session: int, body: bytes, ledger: WriteEvents
) -> Iterator[list[Any]]:
    fields = DiskReader(body)
    if opcode == Opcode.MULTI:
        for part, inner in _parts_of(body):
            yield from _changes_of(part, session, inner, ledger)
    elif opcode in CREATES:
        path, data, _ = fields.path(), fields.buffer(), fields.acl()
        is_ephemeral = opcode in (Opcode.CREATE, Opcode.CREATE_2) and fields.boolean()
        yield from ledger.created(path, session if is_ephemeral else 0, data)
    elif opcode in (Opcode.DELETE, Opcode.DELETE_CONTAINER):
        yield from ledger.deleted(fields.path())
    elif opcode == Opcode.SET_DATA:
        yield from ledger.changed(fields.path(), fields.buffer())
