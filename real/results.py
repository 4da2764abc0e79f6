"""A database with transactions, in which applications store results with their places.

It is a file of SQLite: members of a group are processes, and any of them may be killed in the
middle of a transaction, which is then undone. Nothing is synced, since the database's host is
never lost in a run.
"""

from __future__ import annotations

import sqlite3
from functools import cached_property
from pathlib import Path

from model.asks import Partition
from model.clients.results import PlaceOf, StoreResult

PATIENCE_S = 60.0
"""How long to wait for another process that is in the middle of a transaction."""
TABLES = """
create table if not exists places (
    of_group text, topic text, part text, place integer, primary key (of_group, topic, part)
) without rowid;
create table if not exists results (
    of_group text, topic text, part text, producer text, first integer, past integer
);
"""


class Results:
    """The database, as one thread of a process sees it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _database(self) -> sqlite3.Connection:
        """Opened by whoever asks first, since a connection belongs to a thread."""
        database = sqlite3.connect(self._path, timeout=PATIENCE_S, isolation_level=None)
        database.execute("pragma synchronous = off")
        database.executescript(f"begin immediate; {TABLES} commit;")
        return database

    def place_of(self, ask: PlaceOf) -> int | None:
        """Where a group stands in a partition, by its results."""
        found = self._database.execute(
            "select place from places where of_group = ? and topic = ? and part = ?",
            _key(ask.group, ask.partition),
        ).fetchone()
        return None if found is None else int(found[0])

    def store(self, ask: StoreResult) -> bool:
        """Store a result with its place, unless somebody else has come further."""
        database, key = self._database, _key(ask.group, ask.partition)
        database.execute("begin immediate")
        with database:
            if self.place_of(PlaceOf(ask.group, ask.partition)) != ask.expected:
                return False
            database.execute("replace into places values (?, ?, ?, ?)", (*key, ask.place))
            database.executemany(
                "insert into results values (?, ?, ?, ?, ?, ?)",
                [(*key, lot.producer, lot.first, lot.end) for lot in ask.lots],
            )
        return True


def _key(group: str, partition: Partition) -> tuple[str, str, str]:
    return (group, partition.topic, partition.name)
