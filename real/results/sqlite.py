"""Results and places in one SQLite database: each step is a transaction.

A table has the places, another one the results. Whoever has tables of his own writes into
them in the same transaction, by a function that is given the connection.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from model.asks import Partition
from model.clients.results import Kept, PlaceOf, StoreResult

Write = Callable[[sqlite3.Connection, StoreResult], None]
"""Writes results into tables of a user's own; it neither begins a transaction nor ends one."""

WAITS_S = 30.0
"""For another process that is in the middle of a transaction."""

TABLES = """
CREATE TABLE IF NOT EXISTS places (
    group_id TEXT NOT NULL, topic TEXT NOT NULL, partition TEXT NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (group_id, topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    number INTEGER PRIMARY KEY,
    group_id TEXT NOT NULL, topic TEXT NOT NULL, partition TEXT NOT NULL, place INTEGER NOT NULL,
    body BLOB NOT NULL
);
"""
PLACE = "SELECT place FROM places WHERE group_id = ? AND topic = ? AND partition = ?"
MOVE = "INSERT OR REPLACE INTO places VALUES (?, ?, ?, ?)"
ADD = "INSERT INTO results (group_id, topic, partition, place, body) VALUES (?, ?, ?, ?, ?)"
ALL = "SELECT topic, partition, place, body FROM results WHERE group_id = ? ORDER BY number"


def add_rows(connection: sqlite3.Connection, ask: StoreResult) -> None:
    """Write each result as a row of the table of results."""
    key = (ask.group, *ask.partition)
    connection.executemany(ADD, [(*key, ask.place, body) for body in ask.results])


class SqliteResults:
    """A store of results in a file, for any number of threads and processes."""

    def __init__(self, path: Path | str, write: Write = add_rows) -> None:
        self.path = Path(path)
        self.write = write
        self._lock = Lock()
        self.connection = sqlite3.connect(
            self.path, timeout=WAITS_S, isolation_level=None, check_same_thread=False
        )
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.executescript(TABLES)

    def place_of(self, ask: PlaceOf) -> int | None:
        """Where a group stands."""
        with self._lock:
            return self._place(ask.group, ask.partition)

    def _place(self, group: str, partition: Partition) -> int | None:
        row = self.connection.execute(PLACE, (group, *partition)).fetchone()
        return None if row is None else int(row[0])

    def store(self, ask: StoreResult) -> bool:
        """Store a result with its place, unless somebody else has come further."""
        with self._lock, self._transaction():
            if self._place(ask.group, ask.partition) != ask.expected:
                return False
            self.write(self.connection, ask)
            self.connection.execute(MOVE, (ask.group, *ask.partition, ask.place))
            return True

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All that is written in here, or nothing of it.

        It takes the right to write at its beginning: what it reads is true until its end.
        """
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def results_of(self, group: str) -> Iterator[Kept]:
        """The results of a group, as rows of the table of results."""
        with self._lock:
            rows = self.connection.execute(ALL, (group,)).fetchall()
        for topic, partition, place, body in rows:
            yield Kept(Partition(topic, partition), place, body)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self.connection.close()
