"""Results and positions in one SQLite database: each step is a transaction.

One table has the positions, another one the results. A program with tables of its own writes
them in the same transaction, with a function that gets the connection.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.clients.consumer.result_store import (
    ReadPosition,
    StoredResult,
    StoreResult,
)

Write = Callable[[sqlite3.Connection, StoreResult], None]
"""Writes results into a user's tables; it neither begins nor commits a transaction."""

WAITS_S = 30.0
"""How long to wait for a transaction of another process."""
RETRY_S = 0.01
"""How long to wait between two attempts to switch the file to a write-ahead log."""

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


def add_rows(connection: sqlite3.Connection, effect: StoreResult) -> None:
    """Write each result as a row of the results table."""
    key = (effect.group, *effect.partition)
    connection.executemany(ADD, [(*key, effect.position, body) for body in effect.results])


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log, which its first process does and all others find.

    SQLite refuses at once where two processes switch at the same time: each of them holds a
    shared lock, and both would wait for the other one. So the attempt is repeated here.
    """
    until = time.monotonic() + WAITS_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= until:
                raise
            time.sleep(RETRY_S)


class SqliteResults:
    """A store of results in a file, for any number of threads and processes."""

    def __init__(self, path: Path | str, write: Write = add_rows) -> None:
        self.path = Path(path)
        self.write = write
        self._lock = Lock()
        self.connection = sqlite3.connect(
            self.path, timeout=WAITS_S, isolation_level=None, check_same_thread=False
        )
        _write_ahead(self.connection)
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.executescript(TABLES)

    def position_of(self, effect: ReadPosition) -> int | None:
        """The position of a group."""
        with self._lock:
            return self._place(effect.group, effect.partition)

    def _place(self, group: str, partition: Partition) -> int | None:
        row = self.connection.execute(PLACE, (group, *partition)).fetchone()
        return None if row is None else int(row[0])

    def store(self, effect: StoreResult) -> bool:
        """Store results with their position; False if the expected position is outdated."""
        with self._lock, self._transaction():
            if self._place(effect.group, effect.partition) != effect.expected:
                return False
            self.write(self.connection, effect)
            self.connection.execute(MOVE, (effect.group, *effect.partition, effect.position))
            return True

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit everything that is written inside, or nothing.

        It takes the write lock at its begin, so what it reads stays true until its end.
        """
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def results_of(self, group: str) -> Iterator[StoredResult]:
        """The results of a group, in the order in which they were stored."""
        with self._lock:
            rows = self.connection.execute(ALL, (group,)).fetchall()
        for topic, partition, place, body in rows:
            yield StoredResult(Partition(topic, partition), place, body)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self.connection.close()
