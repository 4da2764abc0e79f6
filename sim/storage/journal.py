"""The journal of a file system: it makes names and sizes last, many changes at a time."""

from __future__ import annotations

from watchkeeper.model.delivery.interval_set import IntervalSet
from watchkeeper.sim.disk.disk import Store
from watchkeeper.sim.disk.scheduler import Done
from watchkeeper.sim.storage.allocator import JOURNAL_BYTES
from watchkeeper.sim.storage.files import Tree


class Journal:
    """What is written to the disk so that changes of names outlive the host."""

    def __init__(self, store: Store, tree: Tree, size_bytes: int) -> None:
        self.store = store
        self.tree = tree
        self.size_bytes = size_bytes
        """How much a commit writes."""
        self.commits = 0
        self._at = 0
        self._waiting: list[Done] = []
        self._changes = 0
        """How many changes are in the commit that is under way."""
        self._written = IntervalSet()
        self._is_committing = False

    def commit(self, done: Done) -> None:
        """Make all changes last; a change that comes during a commit is in the next one."""
        self._waiting.append(done)
        if not self._is_committing:
            self._begin()

    def _begin(self) -> None:
        self._is_committing = True
        batch, self._waiting = self._waiting, []
        self._changes = self.tree.pending
        self._written.clear()
        self._at = (self._at + self.size_bytes) % (JOURNAL_BYTES - self.size_bytes)

        def written(is_good: bool) -> None:
            if is_good:
                self.store.flush(lambda is_good: self._end(batch, is_good))
            else:
                self._end(batch, False)

        self.store.submit(
            self._at, self.size_bytes, written, is_write=True, landed=self._written.add
        )

    def _end(self, batch: list[Done], is_good: bool) -> None:
        self.commits += 1
        self._is_committing = False
        if is_good:
            self.tree.settle(self._changes)
        if self._waiting:
            self._begin()
        for done in batch:
            done(is_good)

    def lose_power(self) -> int:
        """What is in a commit that was written whole lasts, the rest is undone; how much."""
        if self._is_committing and self._written.size >= self.size_bytes:
            self.tree.settle(self._changes)
        self._is_committing = False
        self._waiting.clear()
        return self.tree.undo()
