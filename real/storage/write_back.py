"""A storage that writes old pages to the disk, as the kernel does by its defaults.

The kernel does so too, but a sync log has to know of it: what it does not have is taken for lost
when the host is lost. So the writing back is done here, and is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from watchkeeper.model.actor.effects import sleep
from watchkeeper.model.log.storage import Append, Delete, Flush, StorageFailure, Truncate
from watchkeeper.real.storage.host_crash import WatchedStorage

WRITTEN_BACK_AFTER_MS = 30_000
"""The age at which the kernel writes a dirty page to the disk (`dirty_expire_centisecs`)."""
CHECK_MS = 1_000
"""How often the age is looked at."""


class WrittenBack(WatchedStorage):
    """The files of one folder, of which the old bytes are on the disk."""

    def __init__(self, root: Path, sync_log: Path, now_ms: Callable[[], int]) -> None:
        super().__init__(root, sync_log)
        self._now_ms = now_ms
        self._dirty: dict[str, int] = {}
        """File -> since when it has bytes that are in the pagecache alone."""

    def answer(self, effect: Any) -> Any:
        """Perform an effect, and know which files it makes dirty or clean."""
        answer = super().answer(effect)
        if not isinstance(answer, StorageFailure):
            if isinstance(effect, Append):
                self._dirty.setdefault(effect.path, self._now_ms())
            elif isinstance(effect, Flush | Truncate):
                self._dirty.pop(effect.path, None)
            elif isinstance(effect, Delete):
                self._forget(effect.path)
        return answer

    def _forget(self, path: str) -> None:
        for dirty in [each for each in self._dirty if each == path or path in _folders(each)]:
            del self._dirty[dirty]

    async def write_back(self) -> None:
        """Write to the disk what has been in the pagecache for long enough."""
        oldest_ms = self._now_ms() - WRITTEN_BACK_AFTER_MS
        for path in [path for path, since_ms in self._dirty.items() if since_ms <= oldest_ms]:
            if path in self._dirty:  # an earlier flush has waited meanwhile
                await Flush(path)

    async def write_back_from_time_to_time(self) -> None:
        """Do what the kernel does."""
        while True:
            await sleep(CHECK_MS)
            await self.write_back()


def _folders(path: str) -> tuple[str, ...]:
    return tuple(str(folder) for folder in Path(path).parents)
