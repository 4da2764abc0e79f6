"""Whatever is done with a log, and wherever it crashes: it keeps what it promises.

Against a naive log, which is one string of bytes. Every operation can be cut short after
any number of answers of the storage; then the process begins again, or the host does.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.mutants.invariants import broken_after_crash
from tests.support.log.memory_storage import Killable, Killed, MemoryStorage
from tests.support.log.messages import FOLDER, message_set
from watchkeeper.model.log.format.errors import MessageSizeTooLarge, OffsetOutOfRange
from watchkeeper.model.log.format.requests import LATEST
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.retention import delete_old
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import MakeFolder
from watchkeeper.model.log.timestamps import offsets_before
from watchkeeper.real.storage.host_crash import WatchedStorage, end_host

BLOCK_BYTES = 16
"""What the disk in memory writes wholly or not at all; an entry's header fits into it."""
LARGEST = 60

PAYLOADS = st.lists(st.binary(max_size=40), max_size=4)
KILLED_AFTER = st.none() | st.integers(0, 12)
"""After how many answers the process ends, if it does."""


class Storage(Killable):
    """What the machine needs of a storage beside answers."""

    def begin_again(self) -> None:
        """The process has ended, and another one begins."""

    def lose(self, data: st.DataObject) -> None:
        """The host ends."""

    def shorten(self, sizes_bytes: list[int]) -> None:
        """The next appends are cut short."""

    def wait(self, duration_ms: int) -> None:
        """Time goes by."""

    def remove(self) -> None:
        """It is not needed any more."""


class InMemory(MemoryStorage, Storage):
    """The one in memory."""

    def lose(self, data: st.DataObject) -> None:
        """Let what was not flushed be cut anywhere, with blocks of zeros."""

        def tear(path: str, rest: bytes, at: int) -> bytes:
            left = rest[: data.draw(st.integers(0, len(rest)), f"left of {path}")]
            blocks = range(at // BLOCK_BYTES, (at + len(left)) // BLOCK_BYTES + 1)
            for block in data.draw(st.sets(st.sampled_from(blocks), max_size=2), "zeros"):
                begin = max(block * BLOCK_BYTES - at, 0)
                end = min((block + 1) * BLOCK_BYTES - at, len(left))
                left = left[:begin] + bytes(max(end - begin, 0)) + left[max(begin, end) :]
            return left

        self.end_host(tear)

    def shorten(self, sizes_bytes: list[int]) -> None:
        """Let the next appends take so much each."""
        self.shortened.clear()
        self.shortened.extend(sizes_bytes)

    def wait(self, duration_ms: int) -> None:
        """Move the clock."""
        self.now_ms += duration_ms


class OnFiles(Storage):
    """Real files, of which is known what has been synced."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.files = self._opened()

    def _opened(self) -> WatchedStorage:
        return WatchedStorage(self.folder / "root", self.folder / "record")

    def answer(self, effect: Any) -> Any:
        """Answer with files."""
        return self.files.answer(effect)

    def begin_again(self) -> None:
        """Close all files, as the end of a process does."""
        self.files.close()
        self.files = self._opened()

    def lose(self, data: st.DataObject) -> None:
        """Tear what was not synced."""
        random = Random(data.draw(st.integers(0, 2**32), "seed of the end of the host"))
        end_host(self.folder / "root", self.folder / "record", random)

    def remove(self) -> None:
        """Remove the files."""
        self.files.close()
        shutil.rmtree(self.folder)


class LogMachine(RuleBasedStateMachine):
    """One log and what is known of it."""

    storage_class: type[Storage] = InMemory

    @initialize(
        segment_bytes=st.sampled_from([1, 50, 200]),
        flush_messages=st.sampled_from([1, 3, 100]),
        retention_bytes=st.sampled_from([-1, 0, 100]),
    )
    def begin(self, segment_bytes: int, flush_messages: int, retention_bytes: int) -> None:
        """Make a log."""
        self.storage = self.storage_class()
        self.settings = LogSettings(
            segment_bytes=segment_bytes,
            flush_messages=flush_messages,
            retention_bytes=retention_bytes,
            roll_ms=500,
            retention_ms=2000,
            largest_payload_bytes=LARGEST,
        )
        self.appended = b""
        """Of every offset what was appended there."""
        self.acknowledged = 0
        """The end of the log, as the appends returned it."""
        self.promised = 0
        """Up to where the log could be read at some time."""
        self.started = 0
        """Where it began, for all that is known."""
        assert self.storage.answer(MakeFolder(FOLDER)) is None
        self.open(was_clean=False)

    def teardown(self) -> None:
        """Remove what was made."""
        if hasattr(self, "storage"):
            self.storage.remove()

    # --- what is done ------------------------------------------------------------------

    @rule(
        payloads=PAYLOADS,
        short=st.lists(st.integers(1, 30), max_size=4),
        killed_after=KILLED_AFTER,
        data=st.data(),
    )
    def append(
        self,
        payloads: list[bytes],
        short: list[int],
        killed_after: int | None,
        data: st.DataObject,
    ) -> None:
        """Append messages; perhaps the writes are short, perhaps the process ends meanwhile."""
        contents = message_set(*payloads)
        self.storage.shorten(short)
        self.appended += contents
        try:
            offset, count, size_bytes = self.storage.run(
                self.log.append(contents), killed_after=killed_after
            )
        except Killed:
            self.crash(data)
            return
        assert (offset, count, size_bytes) == (self.acknowledged, len(payloads), len(contents))
        self.acknowledged += size_bytes

    @rule(payloads=PAYLOADS)
    def append_too_much(self, payloads: list[bytes]) -> None:
        """A set in which one message is too large is not appended at all."""
        contents = message_set(*payloads, bytes(LARGEST + 1))
        try:
            self.storage.run(self.log.append(contents))
        except MessageSizeTooLarge:
            return
        raise AssertionError("it was appended")

    @rule(age_ms=st.sampled_from([0, 100]), killed_after=KILLED_AFTER, data=st.data())
    def flush(self, age_ms: int, killed_after: int | None, data: st.DataObject) -> None:
        """Flush, if it is time."""
        try:
            self.storage.run(self.log.flush_if_older(age_ms), killed_after=killed_after)
        except Killed:
            self.crash(data)
            return
        assert age_ms or self.log.high_watermark == self.log.end

    @rule(killed_after=st.none() | st.integers(3, 9), data=st.data())
    def delete(self, killed_after: int | None, data: st.DataObject) -> None:
        """Delete what is old or too much."""
        try:
            self.storage.run(delete_old(self.log), killed_after=killed_after)
        except Killed:
            self.crash(data)
            return
        assert self.log.start >= self.started
        self.started = self.log.start

    @rule(duration_ms=st.sampled_from([60, 501, 2001]))
    def wait(self, duration_ms: int) -> None:
        """Time goes by."""
        self.storage.wait(duration_ms)

    @rule(at=st.integers(0, 10**9), size_bytes=st.integers(1, 400))
    def read(self, at: int, size_bytes: int) -> None:
        """Read anywhere: it is what was appended there, and something unless it is the end."""
        low, high = self.log.start, self.log.high_watermark
        offset = low - 1 + at % (high - low + 3)
        try:
            found = self.storage.run(self.log.read(offset, size_bytes))
        except OffsetOutOfRange:
            assert not low <= offset <= high
            return
        assert isinstance(found, bytes)
        assert low <= offset <= high
        assert found == self.appended[offset : offset + len(found)]
        assert len(found) <= size_bytes
        assert bool(found) == (offset < high)

    # --- ends --------------------------------------------------------------------------

    @rule()
    def end_process(self) -> None:
        """The process is killed between two operations: nothing is lost."""
        self.storage.begin_again()
        self.open(was_clean=False)

    @rule(data=st.data())
    def end_host(self, data: st.DataObject) -> None:
        """The host ends: what was not flushed may be lost."""
        self.acknowledged = 0
        self.storage.begin_again()
        self.storage.lose(data)
        self.open(was_clean=False)

    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        """The log is closed, and the host switched off: nothing is lost, nothing recovered."""
        self.storage.run(self.log.close())
        self.promised = self.log.end
        self.storage.begin_again()
        self.storage.lose(data)
        self.open(was_clean=True)

    def crash(self, data: st.DataObject) -> None:
        """The process was killed in the middle of something."""
        self.promised = max(self.promised, self.log.high_watermark)
        if data.draw(st.booleans(), "the host ends too"):
            self.end_host(data)
        else:
            self.end_process()

    def open(self, *, was_clean: bool) -> None:
        """Open the log that there is, and look at all that can be read of it."""
        self.log, _ = self.storage.run(Log.open(FOLDER, self.settings, was_clean=was_clean))
        log = self.log
        found = b""
        while log.start + len(found) < log.high_watermark:
            part = self.storage.run(log.read(log.start + len(found), 100))
            assert isinstance(part, bytes)
            found += part
        assert broken_after_crash(self.appended, self.promised, log.start, found) == ()
        assert log.end == log.high_watermark >= self.acknowledged
        assert log.start >= self.started
        self.appended = self.appended[: log.end]
        self.acknowledged = log.end
        self.started = log.start

    # --- what is always true -----------------------------------------------------------

    @invariant()
    def the_end_is_that_of_what_was_appended(self) -> None:
        """And what can be read does not reach beyond it, nor is it ever taken back."""
        if not hasattr(self, "log"):
            return
        assert self.log.end == self.acknowledged == len(self.appended)
        assert self.promised <= self.log.high_watermark <= self.log.end
        self.promised = self.log.high_watermark
        (latest,) = self.storage.run(offsets_before(self.log, LATEST, 1))
        assert latest == self.log.high_watermark

    @invariant()
    def segments_follow_one_another(self) -> None:
        """Each ends where the next begins, and only the last one is appended to."""
        if not hasattr(self, "log"):
            return
        view = self.log.segments.view
        assert [segment.end for segment in view[:-1]] == [segment.start for segment in view[1:]]
        assert [segment.is_mutable for segment in view] == [False] * (len(view) - 1) + [True]
        assert all(file.size_bytes == file.flushed_bytes > 0 for file in view[:-1])


class LogOnFiles(LogMachine):
    """The same on real files."""

    storage_class = OnFiles


TestLogInMemory = LogMachine.TestCase
TestLogInMemory.settings = settings(max_examples=60, stateful_step_count=40)
TestLogOnFiles = LogOnFiles.TestCase
TestLogOnFiles.settings = settings(max_examples=10, stateful_step_count=20)
