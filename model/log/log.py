"""One log: appended to at its end, read anywhere, deleted from its beginning.

The theory
  Appending is writing to the end of the last file. Nothing is kept in memory but where each
  segment begins and how far it has been flushed; what is read comes from the pagecache, and
  can be handed to a connection without passing through here (`view`, `send`).

  Readers see what has been flushed, and nothing else. So what a reader has seen cannot be
  lost, whatever becomes of the process or the host, and an offset means the same bytes for
  ever. The price is that a message can be read only after the next flush.

  After a write that has failed nobody knows what is in the file, and after a flush that has
  failed nobody knows what is on the disk. The log stops then: it can be read, but takes
  nothing until it has been opened and recovered again. It also stops where a coroutine is
  ended in the middle of a write.

Who may do what at once
  One at a time: `append`, `close`, and whatever else goes through `alone`. Whoever drives a
  log sees to that; a log that finds two at work fails an assertion. All else may happen in
  between, at any `await`: reading takes a view of the segments, and flushing marks only as
  much as had been appended when it began.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from model.asks import now_ms
from model.log.checking import checked_for
from model.log.contents import Contents, joined, part_of, size_of
from model.log.errors import LogError
from model.log.message_set import Checked
from model.log.recovery import recover
from model.log.segments import Damaged, Segment, SegmentList, find, name_of, segments_of
from model.log.settings import LogSettings
from model.log.storage import (
    Append,
    CreateFile,
    Delete,
    DiskFailed,
    Flush,
    Listed,
    NoSuchFile,
    Read,
    Send,
)

T = TypeVar("T")


class LogStopped(LogError):
    """A write has failed: the log takes nothing more before it has been recovered."""

    meaning = "the log takes nothing more until it is opened and recovered"


class Appended(NamedTuple):
    """What was appended, and at which offset it begins."""

    offset: int
    message_count: int
    size_bytes: int


class View(NamedTuple):
    """A part of a file that can be read."""

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
        """Why nothing more is taken; empty as long as something is."""
        self._is_busy = False
        self._appended_messages = 0
        self._flushed_messages = 0

    @classmethod
    async def open(
        cls, folder: str, settings: LogSettings, *, was_clean: bool
    ) -> tuple[Log, int]:
        """Open the log in a folder, and recover it unless it was closed cleanly.

        Answered with the log and with how many bytes recovery has cut off. `Damaged` if one
        segment does not follow the other.
        """
        now = await now_ms()
        segments = segments_of(folder, await Listed(folder))
        if not segments:
            segments = [Segment(f"{folder}/{name_of(0)}", 0)]
            await CreateFile(segments[0].path)
        last = segments[-1]
        if last.size_bytes:
            last.first_append_ms = now
        cut_bytes = 0 if was_clean else await cls.recover(last)
        return cls(folder, segments, settings, now), cut_bytes

    # --- where it is -------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The first offset that it has."""
        return self.segments.view[0].start

    @property
    def end(self) -> int:
        """The offset of whatever is appended next."""
        return self.segments.last.end

    @property
    def readable_end(self) -> int:
        """Up to which offset it can be read."""
        return self.segments.last.readable_end

    @property
    def unflushed_messages(self) -> int:
        """How many messages were appended since it was flushed."""
        return self._appended_messages - self._flushed_messages

    # --- reading -----------------------------------------------------------------------

    def view(self, offset: int, size_bytes: int) -> View:
        """What can be read at an offset, at most so much; it ends where the segment ends.

        `OffsetOutOfRange` before the beginning and after what can be read; exactly there the
        view is empty.
        """
        assert size_bytes >= 0, "a view has no negative size"
        segment = find(self.segments.view, offset, self.folder)
        if segment is None:
            return View(self.segments.last.path, self.segments.last.flushed_bytes, 0)
        at = offset - segment.start
        return View(segment.path, at, min(size_bytes, segment.flushed_bytes - at))

    async def read(self, offset: int, size_bytes: int) -> Contents:
        """Read at an offset, as `view` says; `b""` where that is empty."""
        view = self.view(offset, size_bytes)
        if not view.size_bytes:
            return b""
        try:
            contents = await Read(*view)
        except NoSuchFile:
            self.view(offset, size_bytes)  # out of range now, if it was deleted meanwhile
            raise
        _check_size(view, size_of(contents))
        return contents

    async def send(self, view: View, to: object) -> None:
        """Send a view to a connection, all of it, straight from the file.

        `NoSuchFile` if it was deleted since the view was taken. Then the other side waits
        for bytes that do not come, and its connection has to be closed.
        """
        sent = 0
        while sent < view.size_bytes:
            count = await Send(view.path, view.at + sent, view.size_bytes - sent, to)
            if not count:
                _check_size(view, sent)
            sent += count

    # --- appending ---------------------------------------------------------------------

    async def append(self, messages: Contents) -> Appended:
        """Append a message set as it is, but for the part of an entry at its end.

        `InvalidMessage` or `MessageSizeTooLarge` if one of its messages is not to be taken;
        then nothing is appended.
        """
        (appended,) = await self.append_some((checked_for(self.settings, messages),))
        return appended

    async def append_some(self, sets: Sequence[Checked]) -> list[Appended]:
        """Append as many message sets as come before the next flush or the next segment.

        They were checked with the settings of this log. It is as if they came one after the
        other, but they are written at once.
        """
        return await self.alone(partial(self._append_some, sets))

    async def _append_some(self, sets: Sequence[Checked]) -> list[Appended]:
        now = await now_ms()
        if self._is_due(self.segments.last, now):
            await self.roll()
        segment, settings = self.segments.last, self.settings
        appended: list[Appended] = []
        before, end = self.unflushed_messages, segment.end
        messages = before
        for one in sets:
            appended.append(Appended(end, one.message_count, one.size_bytes))
            messages += one.message_count
            end += one.size_bytes
            is_full = end - segment.start > settings.segment_bytes
            if is_full or messages >= settings.flush_messages:
                break
        if end > segment.end:
            some = sets[: len(appended)]
            await self._add(segment, joined([one.contents for one in some]), now)
        self._appended_messages += messages - before
        if self.unflushed_messages >= settings.flush_messages:
            await self.flush()
        return appended

    async def _add(self, segment: Segment, contents: Contents, now: int) -> None:
        """The segment grows when all is written, and not before: until then it has holes."""
        await self._write(segment, contents)
        segment.grow(size_of(contents), now)

    async def _write(self, segment: Segment, contents: Contents) -> None:
        size_bytes, written = size_of(contents), 0
        while written < size_bytes:
            rest = part_of(contents, written, size_bytes) if written else contents
            count = await Append(segment.path, rest)
            if not count:
                raise DiskFailed(segment.path, "it takes no bytes, and does not say why")
            written += count

    def _is_due(self, segment: Segment, now: int) -> bool:
        """Whether a segment is to be rolled before anything is appended to it."""
        if segment.size_bytes > self.settings.segment_bytes:
            return True
        began = segment.first_append_ms
        return began is not None and now - began > self.settings.roll_ms

    async def roll(self) -> None:
        """Begin another segment; for those who are `alone`."""
        await self.flush()
        last = self.segments.last
        assert last.size_bytes, f"{last.path} is empty: the next segment would be the same file"
        last.is_mutable = False
        path = f"{self.folder}/{name_of(last.end)}"
        await CreateFile(path)
        self.segments.append(Segment(path, last.end))

    # --- flushing ----------------------------------------------------------------------

    async def flush(self) -> None:
        """Wait until all that was appended is on the disk; from then on it can be read."""
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
        """Flush, if it was not done for so long."""
        if await now_ms() - self.last_flush_ms >= age_ms:
            await self.flush()

    async def close(self) -> None:
        """Flush, and take nothing more."""
        await self.alone(self.flush)
        self.stopped = "it was closed"

    # --- deleting ----------------------------------------------------------------------

    async def delete_first(self, count: int) -> tuple[Segment, ...]:
        """Delete the oldest segments, but never the last one; for those who are `alone`.

        They go oldest first, one after the other: whenever that is cut short, what is left
        follows one another without a gap.
        """
        assert count < len(self.segments.view), f"{self.folder} would have no segment left"
        removed = self.segments.remove_first(count)
        for segment in removed:
            await Delete(segment.path)
        return removed

    # --- one at a time -----------------------------------------------------------------

    async def alone(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something that nobody else may do meanwhile; if it fails, the log stops."""
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


def _check_size(view: View, size_bytes: int) -> None:
    """What was flushed is there; if it is not, something else has changed the file."""
    if size_bytes < view.size_bytes:
        raise Damaged(
            view.path,
            f"{view.size_bytes} bytes from {view.at} were flushed, {size_bytes} are there: "
            "the file was changed from outside; start again and recover",
        )
