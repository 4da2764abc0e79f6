"""Durable writes: what is ordered while the disk is busy is written and flushed together."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from watchkeeper.model.ensemble.entry import Entry
from watchkeeper.model.zookeeper_files.transactions import logged
from watchkeeper.real.zookeeper_data.data_folder import DataFolder


class GroupCommit:
    """Writes entries to a data folder in a thread of its own, in groups."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        folder: DataFolder,
        failed: Callable[[BaseException], None],
    ) -> None:
        """`failed` receives the error of a disk: the server has to stop."""
        self._loop = loop
        self._folder = folder
        self._failed = failed
        self._waiting: list[Entry] = []
        self._is_writing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="zookeeper-log")
        # Writes go on while a snapshot is taken.
        self._snapshots = ThreadPoolExecutor(1, thread_name_prefix="zookeeper-snapshot")
        self._is_taking_snapshot = False
        self._has_ended = False
        self.durable_up_to: Callable[[int], None] = lambda zxid: None
        """Called in the loop with the zxid up to which everything is durable."""

    def add(self, entry: Entry) -> None:
        """Take an entry that has to become durable."""
        self._waiting.append(entry)
        if not self._is_writing:
            # Not at once: the other requests of this turn of the loop join the group.
            self._is_writing = True
            self._loop.call_soon(self._write_group)

    def _write_group(self) -> None:
        group, self._waiting = self._waiting, []
        if not group:
            self._is_writing = False
            return
        future = self._thread.submit(self._write, group)
        future.add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(self._written, group[-1], done)
        )

    def _write(self, group: list[Entry]) -> None:
        folder = self._folder
        for entry in group:
            if entry.zxid == entry.before.zxid:
                continue  # a write of a session that has ended takes no zxid
            folder.append(
                logged(
                    entry.before,
                    entry.session,
                    entry.xid,
                    entry.zxid,
                    entry.wall_ms,
                    entry.operation,
                    entry.written,
                    opcode=entry.opcode,
                )
            )
        folder.commit()

    def _written(self, last: Entry, done: Future[None]) -> None:
        if self._has_ended:
            return
        error = done.exception()
        if error is not None:
            self._fail(error)
            return
        self.durable_up_to(last.zxid)
        if self._folder.should_snapshot and not self._is_taking_snapshot:
            self._is_taking_snapshot = True
            taken = self._snapshots.submit(self._folder.snapshot, last.written.tree)
            taken.add_done_callback(
                lambda done: self._loop.call_soon_threadsafe(self._snapshot_taken, done)
            )
        self._write_group()

    def _snapshot_taken(self, done: Future[None]) -> None:
        self._is_taking_snapshot = False
        error = done.exception()
        if error is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._has_ended:
            self._end()
            self._failed(error)

    def _end(self) -> None:
        self._has_ended = True
        self._snapshots.shutdown()
        self._thread.shutdown()
        self._folder.close()

    def close(self) -> None:
        """Write what waits, and end the threads; raises OSError, after which nothing is open."""
        group, self._waiting = self._waiting, []
        try:
            if group:
                self._thread.submit(self._write, group).result()
        finally:
            self._end()
