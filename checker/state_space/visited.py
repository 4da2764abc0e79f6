"""The visited set: rows of numbers, each with a number of its own, inserted many at a time.

Theory of operation
  A search meets each state about six times. A Python set would spend its time on objects, and
  100 bytes per state. Here a state is a row of 64-bit words in one array, and a hash table
  (open addressing, linear probing, at most half full) holds the numbers of rows.

  A batch is inserted in rounds, each a few NumPy operations on all rows that are not placed
  yet. A row looks at its slot. If the slot is empty, all rows that want it write their
  provisional name into it, and the row whose name is there afterwards has the slot. If the slot
  now holds an equal row, the row is known, or is that row itself. If it holds another row, the
  row moves on to the next slot. Rows are compared in full, so hash collisions cost time but
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
        count, first = len(rows), self.size
        self._make_room(count)
        # The batch stands behind the known rows: a provisional name is the number that a row
        # would have if all of its batch were new, so names and numbers are looked up alike.
        self._rows[first : first + count] = rows
        mask = np.int64(len(self._slots) - 1)
        slots = (_mixed(rows) & np.uint64(mask)).astype(np.int64)
        numbers = np.empty(count, np.int64)
        open_, mine, at = np.arange(count), rows, slots
        while open_.size:
            held = self._slots[at].astype(np.int64)
            wanting = np.flatnonzero(held == 0)
            if wanting.size:
                # NumPy lets the last write win, so the rows write backwards: of equal new rows
                # the first has to get the slot.
                names, where = open_[wanting] + (first + 1), at[wanting]
                self._slots[where[::-1]] = names[::-1]
                held[wanting] = self._slots[where]
            held -= 1
            is_same = _are_same(mine, self._rows.take(held, axis=0))
            numbers[open_[is_same]] = held[is_same]
            left = np.flatnonzero(~is_same)
            open_, mine, at = open_[left], mine[left], (at[left] + 1) & mask
            slots[open_] = at
        return self._settle(rows, numbers, slots, first)

    def _settle(
        self, rows: Rows, numbers: Numbers, slots: Numbers, first: int
    ) -> tuple[Numbers, Numbers]:
        """Replace the provisional names of new rows by their numbers, in order."""
        is_new = numbers == np.arange(first, first + len(rows))
        new = np.flatnonzero(is_new)
        if new.size:
            number_of = np.cumsum(is_new) + (first - 1)
            by_name = np.flatnonzero(numbers >= first)
            numbers[by_name] = number_of[numbers[by_name] - first]
            self._slots[slots[new]] = numbers[new] + 1
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


def _are_same(mine: Rows, theirs: Rows) -> NDArray[np.bool_]:
    """Whether each row equals the other's: a comparison a word, since rows are short."""
    same: NDArray[np.bool_] = mine[:, 0] == theirs[:, 0]
    for word in range(1, mine.shape[1]):
        same &= mine[:, word] == theirs[:, word]
    return same


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
