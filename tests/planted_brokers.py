"""Brokers that break their word, for runs in which a judge has to notice."""

from __future__ import annotations

from typing import Any

from model.log.log import Log, View
from model.log.logs import Logs
from model.log.storage import Flush
from real.gauges import GaugedStorage


class FlushesNothing(GaugedStorage):
    """It says that everything is on the disk, and asks the disk for nothing."""

    def answer(self, ask: Any) -> Any:
        return None if isinstance(ask, Flush) else super().answer(ask)


class ShowsWhatIsNotFlushed(Log):
    """It lets whatever was appended be read at once."""

    def view(self, offset: int, size_bytes: int) -> View:
        last = self.segments.last
        if not last.start <= offset <= last.end:
            return super().view(offset, size_bytes)
        at = offset - last.start
        return View(last.path, at, min(size_bytes, last.size_bytes - at))


class LogsThatShowTooMuch(Logs):
    """The logs of a broker that does so."""

    log = ShowsWhatIsNotFlushed
