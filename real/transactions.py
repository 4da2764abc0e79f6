"""Every write that a real ZooKeeper has agreed upon, read from its servers' logs.

`moments` knows the form of a log file; here the bodies of its transactions are read, and
from them, in the order of zxids, what each write did and whose the ephemerals were. Paths
outside of the run's own root are passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model.describe import text
from real.moments import CLOSE_SESSION, CREATE_SESSION, TRANSACTION, records_of

CREATE, DELETE, SET_DATA, SET_ACL, MULTI, CREATE_2, FAILED = 1, 2, 5, 7, 14, 15, -1
INT = struct.Struct(">i")
WORDS = {
    CREATE: "create",
    CREATE_2: "create",
    DELETE: "delete",
    SET_DATA: "set",
    SET_ACL: "set acl",
    MULTI: "multi",
    FAILED: "failed",
}


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


class _Reader:
    """Reads the fields of a body one after the other."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.at = 0

    def number(self) -> int:
        (value,) = INT.unpack_from(self.body, self.at)
        self.at += INT.size
        return int(value)

    def buffer(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        piece = self.body[self.at : self.at + length]
        self.at += length
        return piece

    def string(self) -> str:
        return (self.buffer() or b"").decode("utf-8", "replace")

    def flag(self) -> bool:
        value = self.body[self.at] != 0
        self.at += 1
        return value


@dataclass(slots=True)
class Changes:
    """What writes have done, as the rows of a trace tell it: what, where, whose, the data."""

    root: str
    owners: dict[str, int] = field(default_factory=dict)
    """Ephemeral -> the session whose it is."""

    def of(self, one: Transaction) -> list[list[Any]]:
        """What a transaction did below the root; paths are written without it."""
        if one.kind == CLOSE_SESSION:
            return self._ended(one.session)
        if one.kind == CREATE_SESSION:
            return []
        return list(self._done(one.kind, one.session, one.body))

    def _ended(self, session: int) -> list[list[Any]]:
        gone = [path for path, owner in self.owners.items() if owner == session]
        for path in gone:
            del self.owners[path]
        return [["deleted", path, session] for path in gone]

    def _done(self, kind: int, session: int, body: bytes) -> Iterator[list[Any]]:
        reader = _Reader(body)
        if kind == MULTI:
            for _ in range(reader.number()):
                inner = reader.number()
                yield from self._done(inner, session, reader.buffer() or b"")
        elif kind in (CREATE, CREATE_2):
            yield from self._created(reader, session)
        elif kind == DELETE:
            path = reader.string()
            if self._is_ours(path):
                yield ["deleted", self._local(path), self.owners.pop(self._local(path), 0)]
        elif kind == SET_DATA:
            path, data = reader.string(), reader.buffer()
            if self._is_ours(path):
                local = self._local(path)
                yield ["changed", local, self.owners.get(local, 0), text(data)]

    def _created(self, reader: _Reader, session: int) -> Iterator[list[Any]]:
        path, data = reader.string(), reader.buffer()
        for _ in range(reader.number()):
            reader.number()
            reader.string()
            reader.string()
        is_ephemeral = reader.flag()
        if self._is_ours(path):
            owner = session if is_ephemeral else 0
            if is_ephemeral:
                self.owners[self._local(path)] = session
            yield ["created", self._local(path), owner, text(data)]

    def _is_ours(self, path: str) -> bool:
        return path.startswith(f"{self.root}/")

    def _local(self, path: str) -> str:
        return path[len(self.root) :]
