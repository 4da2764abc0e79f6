"""The visited set: rows of numbers, each with a number of its own, inserted many at a time.

Theory of operation
  A search meets each state about six times. A Python set would spend its time on objects, and
  100 bytes per state. Here a state is a row of 64-bit words in one array, and a hash table
  (open addressing, linear probing, at most half full) holds the numbers of rows.

  A batch is inserted in rounds, each a few NumPy operations on all rows that are not placed
  yet. A row looks at its slot. If the slot holds an equal row, the row is known. If it holds
  another row, the row moves on to the next slot. If the slot is empty, all rows that want it
  write their provisional name into it; the row whose name is there afterwards has the slot,
  and the others look at it again. Rows are compared in full, so hash collisions cost time but
  never correctness.

  New rows are numbered in the order in which they stand in the batches, so that a search
  gives the same numbers however its work is divided.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.uint64]
Numbers = NDArray[np.int64]

SMALLEST = 1 << 12
_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


class Visited:
    """Rows of `words` 64-bit words, each once, numbered from 0."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.size = 0
        self._rows: Rows = np.empty((SMALLEST, words), np.uint64)
        self._slots: NDArray[Any] = np.zeros(2 * SMALLEST, np.uint32)
        """Number of the row + 1; 0 where there is none."""

    def __len__(self) -> int:
        return self.size

    @property
    def rows(self) -> Rows:
        """All rows by number; a view that the next `insert` may leave behind."""
        return self._rows[: self.size]

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self._rows.nbytes + self._slots.nbytes

    def insert(self, rows: Rows) -> tuple[Numbers, Numbers]:
        """Return the number of each row, and the positions in the batch of the new ones."""
        self._make_room(len(rows))
        numbers = np.empty(len(rows), np.int64)
        fresh: list[Numbers] = []
        mask = np.uint64(len(self._slots) - 1)
        slots = (_mixed(rows) & mask).astype(np.int64)
        open_ = np.arange(len(rows))
        first = self.size
        while open_.size:
            at = slots[open_]
            held = self._slots[at].astype(np.int64) - 1
            is_free = held < 0
            if is_free.any():
                # Provisional names are above all numbers. NumPy lets the last write win, so the
                # rows write backwards: of equal new rows the first has to get the slot.
                wanting = open_[is_free]
                names, where = first + 1 + wanting, at[is_free]
                self._slots[where[::-1]] = names[::-1]
                has_it = self._slots[where] == names
                fresh.append(wanting[has_it])
                open_ = np.concatenate((open_[~is_free], wanting[~has_it]))
                at = slots[open_]
                held = self._slots[at].astype(np.int64) - 1
            if not open_.size:
                break
            is_same = self._are_same(rows, open_, held, first)
            numbers[open_[is_same]] = held[is_same]
            open_ = open_[~is_same]
            slots[open_] = (slots[open_] + 1) & np.int64(mask)
        return self._settle(rows, numbers, fresh, slots, first)

    def _are_same(
        self, rows: Rows, open_: Numbers, held: Numbers, first: int
    ) -> NDArray[np.bool_]:
        """Whether each row equals the one in its slot, old or of this very batch."""
        mine = rows[open_]
        is_old = held < first
        theirs = np.empty_like(mine)
        theirs[is_old] = self._rows[held[is_old]]
        theirs[~is_old] = rows[held[~is_old] - first]
        same: NDArray[np.bool_] = (mine == theirs).all(axis=1)
        return same

    def _settle(
        self, rows: Rows, numbers: Numbers, fresh: list[Numbers], slots: Numbers, first: int
    ) -> tuple[Numbers, Numbers]:
        """Replace the provisional names of new rows by their numbers, in order."""
        if not fresh:
            return numbers, np.empty(0, np.int64)
        new = np.sort(np.concatenate(fresh))
        number_of = np.empty(len(rows), np.int64)
        number_of[new] = first + np.arange(len(new))
        numbers[new] = first + new
        by_name = numbers >= first
        numbers[by_name] = number_of[numbers[by_name] - first]
        self._slots[slots[new]] = number_of[new] + 1
        self._rows[first : first + len(new)] = rows[new]
        self.size += len(new)
        return numbers, new

    def _make_room(self, more: int) -> None:
        """Grow before a batch, so that the table is at most half full after it."""
        need = self.size + more
        if need > len(self._rows):
            rows = np.empty((max(need, 3 * len(self._rows) // 2), self.words), np.uint64)
            rows[: self.size] = self.rows
            self._rows = rows
        if 2 * need > len(self._slots):
            slots = len(self._slots)
            while 2 * need > slots:
                slots *= 2
            self._slots = np.zeros(slots, np.uint32)
            self._place_again()

    def _place_again(self) -> None:
        """Insert all rows into the new table; no comparison is needed, since no two are equal."""
        mask = np.int64(len(self._slots) - 1)
        for begin in range(0, self.size, 1 << 20):
            part = np.arange(begin, min(begin + (1 << 20), self.size))
            slots = (_mixed(self._rows[part]) & np.uint64(mask)).astype(np.int64)
            while part.size:
                is_free = self._slots[slots] == 0
                self._slots[slots[is_free]] = part[is_free] + 1
                is_leftover = self._slots[slots] != part + 1
                part, slots = part[is_leftover], (slots[is_leftover] + 1) & mask


def _mixed(rows: Rows) -> Rows:
    """A hash of each row that spreads over all its bits."""
    mixed = np.zeros(len(rows), np.uint64)
    for word in range(rows.shape[1]):
        mixed ^= rows[:, word]
        mixed *= np.uint64(_ODD[word % len(_ODD)])
        mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(_ODD[1])
    mixed ^= mixed >> np.uint64(29)
    return mixed
