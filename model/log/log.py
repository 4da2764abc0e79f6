"""One log: append at the end, read anywhere, delete from the beginning.

Theory of operation
  An append writes to the end of the last file. The only state in memory is the first offset
  and the flushed size of each segment. Reads come from the pagecache, and can go to a
  connection without a copy in this process (`view`, `send`).

  Readers see flushed bytes only, up to the high watermark. So a message that a reader has seen
  survives any crash of the process or the host, and an offset denotes the same bytes for ever.
  The price: a message becomes readable with the next flush.

`watchkeeper.model.log.base_log` has what does not depend on the format: flushes, rolls, the stop
after a failed write, and the rules of concurrency.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Self

from watchkeeper.model.actor.effects import now_ms
from watchkeeper.model.log.base_log import AppendResult, BaseLog, FileView, LogStopped
from watchkeeper.model.log.format.contents import Contents, concatenate, size_of
from watchkeeper.model.log.format.message_set_07 import CheckedSet
from watchkeeper.model.log.recovery import recover
from watchkeeper.model.log.segments import DamagedLog, Segment, find, segment_name, segments_in
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import CreateFile, ListFolder, NoSuchFile, Read, Send
from watchkeeper.model.log.validation import check_for_log

__all__ = ["AppendResult", "FileView", "Log", "LogStopped"]


class Log(BaseLog):
    """The log of one partition, in a folder of its own."""

    recover = staticmethod(recover)

    @classmethod
    async def open(
        cls, folder: str, settings: LogSettings, *, was_clean: bool
    ) -> tuple[Self, int]:
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


def _check_size(view: FileView, size_bytes: int) -> None:
    """Raise `DamagedLog` if flushed bytes are missing: another program changed the file."""
    if size_bytes < view.size_bytes:
        raise DamagedLog(
            view.path,
            f"{view.size_bytes} bytes from {view.at} were flushed, {size_bytes} are there: "
            "the file was changed from outside; start again and recover",
        )
