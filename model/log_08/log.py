"""One log of 0.8: the broker assigns the offset of each message when it appends it.

Readers see what was appended, before it is flushed: a log of one replica has a high watermark
that is its end. What a crash of the host may cost is the part that the kernel has not written;
0.8 leaves it to replication, and does not flush unless its settings say so. A crash of the
process costs nothing.

Kafka 0.8.2.2: Log, LogSegment.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Self

from watchkeeper.model.actor.effects import now_ms
from watchkeeper.model.log.base_log import AppendResult, BaseLog, FileView
from watchkeeper.model.log.segments import Segment, find
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    Flush,
    ListFolder,
    Read,
    Truncate,
)
from watchkeeper.model.log_08.checks import CheckedSet, NumberedSet
from watchkeeper.model.log_08.segments import (
    BYTES_ONLY,
    SUFFIX,
    KeyedSegment,
    first_name,
    index_of,
    open_last,
    position_of,
    recover_last,
    segments_in,
)
from watchkeeper.model.log_08.settings import KeyedLogSettings
from watchkeeper.model.log_08.swap import complete_swaps, swap_in


class KeyedLog(BaseLog):
    """The log of one partition, in a folder of its own."""

    segment_class = KeyedSegment
    suffix = SUFFIX
    cuts: int = 0
    """How often the end of the log was cut off, or all of it deleted."""

    @classmethod
    async def open(
        cls, folder: str, settings: LogSettings, *, was_clean: bool
    ) -> tuple[Self, int]:
        """Open the log in a folder, and recover its last segment unless it was closed cleanly.

        Returns the log and the number of bytes that recovery has truncated. Raises `DamagedLog`
        for a file whose name is no offset.
        """
        now = await now_ms()
        files = await complete_swaps(folder, await ListFolder(folder))
        segments = segments_in(folder, files)
        if not segments:
            segments = [KeyedSegment(f"{folder}/{first_name()}", 0)]
            await CreateFile(segments[0].path)
        last, cut_bytes = segments[-1], 0
        if was_clean:
            await open_last(last)
        else:
            cut_bytes = await recover_last(last)
        if last.size_bytes:
            last.first_append_ms = now
        return cls(folder, segments, settings, now), cut_bytes

    # --- reading -----------------------------------------------------------------------

    async def find(self, offset: int, size_bytes: int) -> FileView:
        """Return up to `size_bytes` from the entry of an offset on, within one segment.

        The view is empty at the end. Raises `OffsetOutOfRange` before the first offset and behind
        the end.
        """
        segments = self.segments.view
        segment = find(segments, offset, self.folder)
        if segment is None:
            return FileView(self.segments.last.path, self.segments.last.size_bytes, 0)
        for each in segments[segments.index(segment) :]:
            at = await position_of(_keyed(each), offset)
            if at < each.size_bytes:
                break
            # Compaction has removed what was at the end of a segment.
        return FileView(each.path, at, max(min(size_bytes, each.size_bytes - at), 0))

    async def read(self, offset: int, size_bytes: int) -> bytes:
        """Return what `find` would return a view of.

        The files of a compacted log are replaced by others of the same names, so that a view of
        one does not last. Callers hold the lock under which that is done.
        """
        view = await self.find(offset, size_bytes)
        data = await Read(view.path, view.at, view.size_bytes)
        assert isinstance(data, bytes), BYTES_ONLY
        return data

    @property
    def is_compacted(self) -> bool:
        """Whether the latest message of each key is kept, and nothing is deleted by age."""
        return isinstance(self.settings, KeyedLogSettings) and self.settings.is_compacted

    # --- appending ---------------------------------------------------------------------

    async def append_set(self, message_set: CheckedSet) -> AppendResult:
        """Append a set, which was checked with the settings of this log.

        The result has the offset of the first message.
        """
        return await self.exclusively(partial(self._append_set, message_set))

    async def _append_set(self, message_set: CheckedSet) -> AppendResult:
        now = await now_ms()
        segment = self._last()
        if message_set.message_count:
            segment = await self._with_room(message_set.size_bytes, now)
            numbered = message_set.numbered(segment.next_offset)
            first_offset = segment.next_offset
            await self._write(segment, numbered.data)
            self._extend(segment, numbered, now)
            self._appended_messages += message_set.message_count
            if self.unflushed_messages >= self.settings.flush_messages:
                await self.flush()
            return AppendResult(first_offset, message_set.message_count, len(numbered.data))
        return AppendResult(segment.next_offset, 0, 0)

    async def append_numbered(self, numbered: NumberedSet) -> None:
        """Append messages that have their offsets already, as a replica does."""
        await self.exclusively(partial(self._append_numbered, numbered))

    async def _append_numbered(self, numbered: NumberedSet) -> None:
        now = await now_ms()
        segment = await self._with_room(len(numbered.data), now)
        await self._write(segment, numbered.data)
        self._extend(segment, numbered, now)

    async def _with_room(self, size_bytes: int, now: int) -> KeyedSegment:
        """Return the segment for an append, which may be a new one."""
        if self._has_no_room(self._last(), size_bytes, now):
            await self.roll()
        return self._last()

    def _last(self) -> KeyedSegment:
        return _keyed(self.segments.last)

    def _has_no_room(self, segment: KeyedSegment, size_bytes: int, now: int) -> bool:
        """Whether a segment has to be rolled: before it grows too large, not after as in 0.7."""
        if not segment.size_bytes:
            return False
        is_full = segment.size_bytes + size_bytes > self.settings.segment_bytes
        return is_full or self._needs_roll(segment, now)

    @staticmethod
    def _extend(segment: KeyedSegment, numbered: NumberedSet, now: int) -> None:
        segment.extend(len(numbered.data), numbered.next_offset, numbered.marks, now)

    # --- cutting -----------------------------------------------------------------------

    async def cut(self, end: int) -> None:
        """Cut off all messages from an offset on. Callers hold the lock of the log."""
        await self.exclusively(partial(self._cut, end))

    async def _cut(self, end: int) -> None:
        # A cleaner at work sees that what it has copied may be gone.
        self.cuts += 1
        segments = [_keyed(each) for each in self.segments.view]
        while len(segments) > 1 and segments[-1].start >= end:
            last = segments.pop()
            self.segments.remove_last()
            await Delete(last.path)
            await self._delete_index(last)
        last = segments[-1]
        position = await position_of(last, end)
        index = await index_of(last)
        # An index that is longer than its segment would send readers to wrong positions.
        await self._delete_index(last)
        await Truncate(last.path, position)
        await Flush(last.path)
        last.cut(position)
        index.cut(position)
        last.next_offset, last.is_mutable = max(end, last.start), True
        if position:
            last.first_append_ms = await now_ms()

    async def _delete_index(self, segment: KeyedSegment) -> None:
        names = {file.name for file in await ListFolder(self.folder)}
        if segment.index_path.rpartition("/")[2] in names:
            await Delete(segment.index_path)

    # --- compaction --------------------------------------------------------------------

    async def replace(self, old: Sequence[KeyedSegment], new: KeyedSegment) -> None:
        """Replace successive segments by the one that was made of them.

        Callers hold the lock of the log.
        """
        await self.exclusively(partial(self._replace, old, new))

    async def _replace(self, old: Sequence[KeyedSegment], new: KeyedSegment) -> None:
        await swap_in([segment.path for segment in old])
        self.segments.replace(old, new)
        await self._write_index(new)

    # --- index files -------------------------------------------------------------------

    async def roll(self) -> None:
        """Begin another segment, and write the index of the last one."""
        last = self._last()
        await super().roll()
        await self._write_index(last)

    async def close(self) -> None:
        """Flush, write the index of the last segment, and accept no more appends."""
        await self.exclusively(partial(self._write_index, self._last()))
        await super().close()

    async def _write_index(self, segment: KeyedSegment) -> None:
        data = (await index_of(segment)).encode()
        await CreateFile(segment.index_path)
        while data:
            data = data[await Append(segment.index_path, data) :]

    async def delete_first(self, count: int) -> tuple[Segment, ...]:
        """Delete the `count` oldest segments with their indexes; return them."""
        removed = await super().delete_first(count)
        for segment in removed:
            await self._delete_index(_keyed(segment))
        return removed

    async def _delete(self) -> None:
        self.cuts += 1
        await super()._delete()


def _keyed(segment: Segment) -> KeyedSegment:
    assert isinstance(segment, KeyedSegment), "a log of 0.8 has segments of its own class"
    return segment
