"""What the logs of both formats have in common: one writer at a time, flushes, a stop.

A log is a list of segments in a folder. The last one receives appends; a *roll* begins the next.

After a failed write the contents of the file are unknown, and after a failed flush the contents
of the disk are. The log then stops: it can be read, but accepts no append until it is opened and
recovered again (KAFKA-540). It also stops if a coroutine is ended in the middle of a write.

Concurrency
  `close` and everything else that goes through `exclusively` run one at a time. The caller
  guarantees that; an overlap fails an assertion. All other operations may interleave at any
  `await`: a read uses a snapshot of the segments, and a flush counts only the bytes that had
  been appended when it began.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import ClassVar, NamedTuple, Self, TypeVar

from watchkeeper.model.actor.effects import now_ms
from watchkeeper.model.log.format.contents import Contents, size_of, slice_contents
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.segments import SUFFIX, Segment, SegmentList, segment_name
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import Append, CreateFile, Delete, DiskFailed, Flush

T = TypeVar("T")


class LogStopped(LogError):
    """A write has failed: the log accepts no append before it is recovered."""

    meaning = "the log takes nothing more until it is opened and recovered"


class AppendResult(NamedTuple):
    """The offset, the number of messages and the size of an appended message set."""

    offset: int
    message_count: int
    size_bytes: int


class FileView(NamedTuple):
    """A readable part of a file: its path, position and size in bytes."""

    path: str
    at: int
    size_bytes: int


class BaseLog(ABC):
    """The log of one partition, in a folder of its own."""

    segment_class: ClassVar[type[Segment]] = Segment
    suffix: ClassVar[str] = SUFFIX

    def __init__(
        self, folder: str, segments: Iterable[Segment], settings: LogSettings, now_ms: int
    ) -> None:
        self.folder = folder
        self.segments = SegmentList(segments)
        self.settings = settings
        self.last_flush_ms = now_ms
        self.stopped = ""
        """The reason why the log accepts no append; empty while it does."""
        self._is_busy = False
        self._appended_messages = 0
        self._flushed_messages = 0

    @classmethod
    @abstractmethod
    async def open(
        cls, folder: str, settings: LogSettings, *, was_clean: bool
    ) -> tuple[Self, int]:
        """Open the log in a folder, and recover it unless it was closed cleanly.

        Returns the log and the number of bytes that recovery has truncated.
        """

    # --- offsets -----------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The first offset of the log."""
        return self.segments.view[0].start

    @property
    def end(self) -> int:
        """The offset of the next append."""
        return self.segments.last.end

    @property
    def high_watermark(self) -> int:
        """The offset up to which the log is flushed and can be read."""
        return self.segments.last.high_watermark

    @property
    def unflushed_messages(self) -> int:
        """The number of messages appended since the last flush."""
        return self._appended_messages - self._flushed_messages

    # --- appending ---------------------------------------------------------------------

    async def _write(self, segment: Segment, contents: Contents) -> None:
        """Write all of the contents; a storage may accept fewer bytes than requested."""
        size_bytes, written = size_of(contents), 0
        while written < size_bytes:
            rest = slice_contents(contents, written, size_bytes) if written else contents
            count = await Append(segment.path, rest)
            if not count:
                raise DiskFailed(segment.path, "it takes no bytes, and does not say why")
            written += count

    def _needs_roll(self, segment: Segment, now: int) -> bool:
        """Whether a segment has to be rolled before the next append, by size or by age."""
        if segment.size_bytes > self.settings.segment_bytes:
            return True
        began = segment.first_append_ms
        return began is not None and now - began > self.settings.roll_ms

    async def roll(self) -> None:
        """Begin another segment. Callers run within `exclusively`."""
        # Flush first: recovery checks the last segment only.
        await self.flush()
        last = self.segments.last
        assert last.size_bytes, f"{last.path} is empty: the next segment would be the same file"
        last.is_mutable = False
        path = f"{self.folder}/{segment_name(last.end, self.suffix)}"
        await CreateFile(path)
        self.segments.append(self.segment_class(path, last.end))

    # --- flushing ----------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until all appended bytes are on the disk; then they can be read."""
        # Appends may go on while the flush waits. Only the bytes and messages counted here
        # are durable when it returns.
        segment, messages = self.segments.last, self._appended_messages
        size_bytes = segment.size_bytes
        if segment.flushed_bytes == size_bytes:
            return
        self._check_running()
        try:
            await Flush(segment.path, size_bytes - segment.flushed_bytes)
        except BaseException as error:
            self._stop(error)
            raise
        segment.flushed_bytes = max(segment.flushed_bytes, size_bytes)
        self._flushed_messages = max(self._flushed_messages, messages)
        self.last_flush_ms = await now_ms()

    async def flush_if_older(self, age_ms: int) -> None:
        """Flush if the last flush is at least `age_ms` ago."""
        if await now_ms() - self.last_flush_ms >= age_ms:
            await self.flush()

    async def close(self) -> None:
        """Flush, and accept no more appends."""
        await self.exclusively(self.flush)
        self.stopped = "it was closed"

    # --- deleting ----------------------------------------------------------------------

    async def delete_first(self, count: int) -> tuple[Segment, ...]:
        """Delete the `count` oldest segments and return them. Callers run within `exclusively`.

        The last segment is never deleted. Deleting the oldest first leaves no gap if it is
        interrupted.
        """
        assert count < len(self.segments.view), f"{self.folder} would have no segment left"
        removed = self.segments.remove_first(count)
        for segment in removed:
            await Delete(segment.path)
        return removed

    async def delete(self) -> None:
        """Delete all segments and the folder; the log takes nothing more."""
        await self.exclusively(self._delete)

    async def _delete(self) -> None:
        # Flush first: a periodic flush that comes later finds nothing to do, and no file.
        await self.flush()
        self.stopped = "its topic was deleted"
        await Delete(self.folder)

    # --- one at a time -----------------------------------------------------------------

    async def exclusively(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run work that excludes all other such work; if it fails, the log stops."""
        assert not self._is_busy, f"{self.folder}: two are writing at once"
        self._check_running()
        self._is_busy = True
        try:
            return await work()
        except BaseException as error:
            self._stop(error)
            raise
        finally:
            self._is_busy = False

    def _check_running(self) -> None:
        if self.stopped:
            raise LogStopped(self.folder, self.stopped)

    def _stop(self, error: BaseException) -> None:
        self.stopped = self.stopped or f"{type(error).__name__}: {error}"
