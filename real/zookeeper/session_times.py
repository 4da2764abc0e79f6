"""When sessions began and ended, from the servers' own transaction logs.

No client can observe these times: the owner of a session learns of its end only when it
reaches a server again. The log holds every committed write in order, with its zxid and the
leader's clock.

A log file is a header (magic `ZKLG`, version, database) followed by records. A record is a
checksum (Adler-32), a length, that many bytes, and `B`. The bytes are a transaction header
(session, xid, zxid, time, type), its body, and a digest. Preallocated space after the last
record is filled with zeros.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.proxy.zk_frames import CLOSE_SESSION, CREATE_SESSION

MAGIC = b"ZKLG"
FILE_HEADER = struct.Struct(">4siq")
RECORD = struct.Struct(">qi")
TRANSACTION = struct.Struct(">qiqqi")
TIMEOUT = struct.Struct(">i")
END_OF_RECORD = b"B"


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
    for record in records_of(folder):
        yield from _session_times_in(record)


def records_of(folder: Path) -> Iterator[bytes]:
    """The records of one server's log, oldest first; the server may be running."""
    files = [path for path in folder.glob("log.*") if _first_zxid(path) is not None]
    for path in sorted(files, key=lambda path: _first_zxid(path) or 0):
        yield from _records(path.read_bytes())


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


def _session_times_in(record: bytes) -> Iterator[SessionTime]:
    session, xid, zxid, time_ms, kind = TRANSACTION.unpack_from(record)
    if kind == CREATE_SESSION:
        (timeout_ms,) = TIMEOUT.unpack_from(record, TRANSACTION.size)
        yield SessionTime(zxid, EventKind.SESSION_OPENED, session, time_ms, timeout_ms)
    elif kind == CLOSE_SESSION:
        yield SessionTime(zxid, how_it_ended(xid), session, time_ms)


def how_it_ended(xid: int) -> str:
    """The kind of a session's end: a client numbers its close request, the server uses xid 0."""
    return EventKind.SESSION_CLOSED if xid else EventKind.SESSION_EXPIRED


def _records(log: bytes) -> Iterator[bytes]:
    """The records of a log file, up to the first incomplete one."""
    if not log.startswith(MAGIC):
        return
    at = FILE_HEADER.size
    while at + RECORD.size <= len(log):
        checksum, length = RECORD.unpack_from(log, at)
        start = at + RECORD.size
        end = start + length
        record = log[start:end]
        is_complete = length >= TRANSACTION.size and log[end : end + 1] == END_OF_RECORD
        if not is_complete or zlib.adler32(record) != checksum:
            return
        yield record
        at = end + len(END_OF_RECORD)
