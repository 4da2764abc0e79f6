"""The committed offsets of one partition of the offsets topic, in memory."""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.model.offset_manager.records import CommittedOffset, OffsetKey


class Entry(NamedTuple):
    """A committed offset, and the offset of its message in the log."""

    committed: CommittedOffset
    at: int


class OffsetCache:
    """What the log of a partition says, as far as it is known."""

    def __init__(self) -> None:
        self.is_loaded = False
        """Whether all that was in the log has been read."""
        self._entries: dict[OffsetKey, Entry] = {}

    def note(self, at: int, key: OffsetKey, committed: CommittedOffset | None) -> None:
        """Note the message at an offset of the log; without a commit it removes the entry.

        The loader reads messages that were appended long ago while new commits arrive. An older
        message never replaces what a newer one says.
        """
        entry = self._entries.get(key)
        if entry is not None and at <= entry.at:
            return
        if committed is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = Entry(committed, at)

    def get(self, key: OffsetKey) -> CommittedOffset | None:
        """Return the committed offset of a partition; None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry.committed

    def committed_before(self, time_ms: int) -> tuple[OffsetKey, ...]:
        """Return the keys of the commits that are older than a time."""
        return tuple(
            key for key, entry in self._entries.items() if entry.committed.committed_ms < time_ms
        )

    def __len__(self) -> int:
        return len(self._entries)
