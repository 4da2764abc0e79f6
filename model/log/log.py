"""One log: append at the end, read anywhere, delete from the beginning.

Theory of operation
  An append writes to the end of the last file. The only state in memory is the first offset
  and the flushed size of each segment. Reads come from the pagecache, and can go to a
  connection without a copy in this process (`view`, `send`).

  Readers see flushed bytes only, up to the high watermark. So a message that a reader has seen
  survives any crash of the process or the host, and an offset denotes the same bytes for ever.
  The price: a message becomes readable with the next flush.

  After a failed write the contents of the file are unknown, and after a failed flush the
  contents of the disk are. The log then stops: it can be read, but accepts no append until it
  is opened and recovered again (KAFKA-540). It also stops if a coroutine is ended in the middle
  of a write.

Concurrency
  `append`, `close` and everything else that goes through `exclusively` run one at a time. The
  caller guarantees that; an overlap fails an assertion. All other operations may interleave at
  any `await`: a read uses a snapshot of the segments, and a flush counts only the bytes that
  had been appended when it began.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from watchkeeper.model.actor.effects import now_ms
from watchkeeper.model.log.format.contents import Contents, concatenate, size_of, slice_contents
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.message_set_07 import CheckedSet
from watchkeeper.model.log.recovery import recover
from watchkeeper.model.log.segments import (
    DamagedLog,
    Segment,
    SegmentList,
    find,
    segment_name,
    segments_in,
)
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    DiskFailed,
    Flush,
    ListFolder,
    NoSuchFile,
    Read,
    Send,
)
from watchkeeper.model.log.validation import check_for_log

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


class Log:
    """The log of one partition, in a folder of its own."""

    recover = staticmethod(recover)

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
    async def open(
        cls, folder: str, settings: LogSettings, *, was_clean: bool
    ) -> tuple[Log, int]:
        """Open the log in a folder, and recover it unless it was closed cleanly.

        Returns the log and the number of bytes that recovery has truncated. Raises `DamagedLog`
        if there is a gap or an overlap between segments.
        """
        now = await now_ms()
        segments = segments_in(folder, await ListFolder(folder))
        if not segments:
            segments = [Segment(f"{folder}/{segment_name(0)}", 0)]
            await CreateFile(segments[0].path)
        last = segments[-1]
        if last.size_bytes:
            last.first_append_ms = now
        cut_bytes = 0 if was_clean else await cls.recover(last)
        return cls(folder, segments, settings, now), cut_bytes

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

    # --- reading -----------------------------------------------------------------------

    def view(self, offset: int, size_bytes: int) -> FileView:
        """Return up to `size_bytes` at an offset, within one segment; empty at the end.

        Raises `OffsetOutOfRange` before the first offset and after the high watermark.
        """
        assert size_bytes >= 0, "a view has no negative size"
        segment = find(self.segments.view, offset, self.folder)
        if segment is None:
            return FileView(self.segments.last.path, self.segments.last.flushed_bytes, 0)
        at = offset - segment.start
        return FileView(segment.path, at, min(size_bytes, segment.flushed_bytes - at))

    async def read(self, offset: int, size_bytes: int) -> Contents:
        """Read the part of a file that `view` returns; `b""` if it is empty."""
        view = self.view(offset, size_bytes)
        if not view.size_bytes:
            return b""
        try:
            contents = await Read(*view)
        except NoSuchFile:
            # Retention may have deleted the segment meanwhile: then this raises
            # OffsetOutOfRange, which a client understands.
            self.view(offset, size_bytes)
            raise
        _check_size(view, size_of(contents))
        return contents

    async def send(self, view: FileView, to: object) -> None:
        """Send a whole view to a connection, straight from the file.

        Raises `NoSuchFile` if it was deleted since the view was taken. The peer then waits for
        the missing bytes: the caller has to close the connection.
        """
        sent = 0
        while sent < view.size_bytes:
            count = await Send(view.path, view.at + sent, view.size_bytes - sent, to)
            if not count:
                _check_size(view, sent)
            sent += count

    # --- appending ---------------------------------------------------------------------

    async def append(self, messages: Contents) -> AppendResult:
        """Append the whole entries of a message set.

        Raises `InvalidMessage` or `MessageSizeTooLarge` for a message that is not accepted;
        then nothing is appended.
        """
        (appended,) = await self.append_sets((check_for_log(self.settings, messages),))
        return appended

    async def append_sets(self, sets: Sequence[CheckedSet]) -> list[AppendResult]:
        """Append the sets up to the next flush or roll; return a result for each of them.

        The sets were checked with the settings of this log. The outcome is that of one append
        for each set, with a single write.
        """
        return await self.exclusively(partial(self._append_sets, sets))

    async def _append_sets(self, sets: Sequence[CheckedSet]) -> list[AppendResult]:
        now = await now_ms()
        if self._needs_roll(self.segments.last, now):
            await self.roll()
        segment, settings = self.segments.last, self.settings
        appended: list[AppendResult] = []
        before, end = self.unflushed_messages, segment.end
        messages = before
        for message_set in sets:
            appended.append(AppendResult(end, message_set.message_count, message_set.size_bytes))
            messages += message_set.message_count
            end += message_set.size_bytes
            # Stop where separate appends would have rolled or flushed.
            is_full = end - segment.start > settings.segment_bytes
            if is_full or messages >= settings.flush_messages:
                break
        if end > segment.end:
            batch = sets[: len(appended)]
            await self._append_to(
                segment, concatenate([message_set.contents for message_set in batch]), now
            )
        self._appended_messages += messages - before
        if self.unflushed_messages >= settings.flush_messages:
            await self.flush()
        return appended

    async def _append_to(self, segment: Segment, contents: Contents, now: int) -> None:
        """Write, and then grow the segment: before that, its last bytes may be missing."""
        await self._write(segment, contents)
        segment.grow(size_of(contents), now)

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
        path = f"{self.folder}/{segment_name(last.end)}"
        await CreateFile(path)
        self.segments.append(Segment(path, last.end))

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


def _check_size(view: FileView, size_bytes: int) -> None:
    """Raise `DamagedLog` if flushed bytes are missing: another program changed the file."""
    if size_bytes < view.size_bytes:
        raise DamagedLog(
            view.path,
            f"{view.size_bytes} bytes from {view.at} were flushed, {size_bytes} are there: "
            "the file was changed from outside; start again and recover",
        )
