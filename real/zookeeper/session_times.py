"""When sessions began and ended, from the servers' own transaction logs.

No client can see these moments: the owner of a session learns of its end only when it
reaches a server again. The log has every write in the order in which it was agreed upon,
with its zxid and the leader's clock.

A log file is a header (magic `ZKLG`, version, database) and records one after the other:
a checksum (Adler-32), a length, so many bytes, and `B`. The bytes are a transaction's
header (session, xid, zxid, time, type), its body, and a digest. Room that was set aside
for more is filled with zeros.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from real.wire import CLOSE_SESSION, CREATE_SESSION

MAGIC = b"ZKLG"
FILE_HEADER = struct.Struct(">4siq")
RECORD = struct.Struct(">qi")
TRANSACTION = struct.Struct(">qiqqi")
TIMEOUT = struct.Struct(">i")
END_OF_RECORD = b"B"


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A session began or ended. The kinds are those of a trace's events."""

    zxid: int
    kind: str
    session: int
    time_ms: int
    """The leader's wall clock, in milliseconds since 1970."""
    timeout_ms: int = 0
    """The session's timeout as it was agreed upon; only where it begins."""


def moments_of(folder: Path) -> Iterator[Moment]:
    """The moments in one server's log, oldest first; the server may be running."""
    for record in records_of(folder):
        yield from _moments_in(record)


def records_of(folder: Path) -> Iterator[bytes]:
    """The records of one server's log, oldest first; the server may be running."""
    files = [path for path in folder.glob("log.*") if _first_zxid(path) is not None]
    for path in sorted(files, key=lambda path: _first_zxid(path) or 0):
        yield from _records(path.read_bytes())


def agreed(folders: Iterable[Path]) -> tuple[Moment, ...]:
    """The moments that most of these servers know; what one alone knows may be undone yet."""
    logs = [frozenset(moments_of(folder)) for folder in folders]
    known = Counter(moment for log in logs for moment in log)
    return tuple(sorted(one for one, number in known.items() if 2 * number > len(logs)))


def _first_zxid(path: Path) -> int | None:
    try:
        return int(path.suffix.removeprefix("."), 16)
    except ValueError:
        return None


def _moments_in(record: bytes) -> Iterator[Moment]:
    session, xid, zxid, time_ms, kind = TRANSACTION.unpack_from(record)
    if kind == CREATE_SESSION:
        (timeout_ms,) = TIMEOUT.unpack_from(record, TRANSACTION.size)
        yield Moment(zxid, "session opened", session, time_ms, timeout_ms)
    elif kind == CLOSE_SESSION:
        yield Moment(zxid, how_it_ended(xid), session, time_ms)


def how_it_ended(xid: int) -> str:
    """A client numbers its farewell; the server's own, for a silent session, has 0."""
    return "session closed" if xid else "session expired"


def _records(log: bytes) -> Iterator[bytes]:
    """The records of a log file, up to the first that is not whole."""
    if not log.startswith(MAGIC):
        return
    at = FILE_HEADER.size
    while at + RECORD.size <= len(log):
        checksum, length = RECORD.unpack_from(log, at)
        start = at + RECORD.size
        end = start + length
        record = log[start:end]
        whole = length >= TRANSACTION.size and log[end : end + 1] == END_OF_RECORD
        if not whole or zlib.adler32(record) != checksum:
            return
        yield record
        at = end + len(END_OF_RECORD)
