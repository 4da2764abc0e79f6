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
        if folder.should_snapshot:
            folder.snapshot(group[-1].written.tree)

    def _written(self, last: Entry, done: Future[None]) -> None:
        error = done.exception()
        if error is not None:
            self._failed(error)
            return
        self.durable_up_to(last.zxid)
        self._write_group()

    def close(self) -> None:
        """Write what waits, and end the thread."""
        group, self._waiting = self._waiting, []
        if group:
            self._thread.submit(self._write, group).result()
        self._thread.shutdown()
        self._folder.close()
