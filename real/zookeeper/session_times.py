"""When sessions began and ended, from the servers' own transaction logs.

No client can observe these times: the owner of a session learns of its end only when it
reaches a server again. The log holds every committed write in order, with its zxid and the
leader's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.zookeeper_files.disk_fields import DiskReader
from watchkeeper.model.zookeeper_files.transactions import Transaction
from watchkeeper.model.zookeeper_files.txn_log import NotALog, decode_log


@dataclass(frozen=True, slots=True, order=True)
class SessionTime:
    """The begin or end of a session. The kinds are those of the trace's events."""

    zxid: int
    kind: str
    session: int
    time_ms: int
    """The leader's wall clock, in milliseconds since 1970."""
    timeout_ms: int = 0
    """The negotiated session timeout; only for the begin of a session."""


def session_times_of(folder: Path) -> Iterator[SessionTime]:
    """The session times in one server's log, oldest first; the server may be running."""
    for transaction in transactions_of(folder):
        if transaction.opcode in _KINDS:
            yield _session_time(transaction)


def transactions_of(folder: Path) -> Iterator[Transaction]:
    """The transactions in one server's log, oldest first; the server may be running.

    Files that are no logs are passed over.
    """
    files = [path for path in folder.glob("log.*") if _first_zxid(path) is not None]
    for path in sorted(files, key=lambda path: _first_zxid(path) or 0):
        with suppress(NotALog):
            yield from decode_log(path.read_bytes()).transactions


def agreed_session_times(folders: Iterable[Path]) -> tuple[SessionTime, ...]:
    """The session times that a majority of the servers has logged.

    What a minority has logged may still be undone.
    """
    logs = [frozenset(session_times_of(folder)) for folder in folders]
    known = Counter(session_time for log in logs for session_time in log)
    return tuple(
        sorted(session_time for session_time, number in known.items() if 2 * number > len(logs))
    )


def _first_zxid(path: Path) -> int | None:
    try:
        return int(path.suffix.removeprefix("."), 16)
    except ValueError:
        return None


_KINDS = frozenset({Opcode.CREATE_SESSION, Opcode.CLOSE_SESSION})


def _session_time(transaction: Transaction) -> SessionTime:
    zxid, session, time_ms = transaction.zxid, transaction.session, transaction.time_ms
    if transaction.opcode == Opcode.CLOSE_SESSION:
        return SessionTime(zxid, how_it_ended(transaction.xid), session, time_ms)
    timeout_ms = DiskReader(transaction.body).int32()
    return SessionTime(zxid, EventKind.SESSION_OPENED, session, time_ms, timeout_ms)


def how_it_ended(xid: int) -> str:
    """The kind of a session's end: a client numbers its close request, the server uses xid 0."""
    return EventKind.SESSION_CLOSED if xid else EventKind.SESSION_EXPIRED
