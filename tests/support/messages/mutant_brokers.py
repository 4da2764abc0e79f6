"""Mutants of the broker's storage and logs, for runs in which a property has to detect them."""

from __future__ import annotations

from typing import Any

from watchkeeper.model.log.log import FileView, Log
from watchkeeper.model.log.log_manager import LogManager
from watchkeeper.model.log.storage import Flush
from watchkeeper.real.storage.metrics import MeteredStorage


class FlushesNothing(MeteredStorage):
    """A flush is confirmed without an operation on the disk."""

    def answer(self, effect: Any) -> Any:
        return None if isinstance(effect, Flush) else super().answer(effect)


class ShowsWhatIsNotFlushed(Log):
    """Appended messages can be read before they are flushed."""

    def view(self, offset: int, size_bytes: int) -> FileView:
        last = self.segments.last
        if not last.start <= offset <= last.end:
            return super().view(offset, size_bytes)
        at = offset - last.start
        return FileView(last.path, at, min(size_bytes, last.size_bytes - at))


class LogsThatShowTooMuch(LogManager):
    """The log manager with such logs."""

    log_class = ShowsWhatIsNotFlushed
