"""A log keeps its promises on the simulated storage, whenever a host loses its power."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mutants.invariants import broken_after_crash
from watchkeeper.experiment.apparatus.host import Host, new_host, run
from watchkeeper.model.log.format.contents import (
    Contents,
    Series,
    SeriesRange,
    size_of,
    slice_contents,
    whole_series,
)
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.recovery import recover
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import DiskFailed, DiskFull, MakeFolder, StorageError
from watchkeeper.model.plan.faults import VERBS, Action, FaultEffect
from watchkeeper.sim.disk.host_costs import MACHINES
from watchkeeper.sim.disk.models import DEVICES
from watchkeeper.sim.storage.file_contents import Pieces
from watchkeeper.sim.storage.host_effects import Idle

FOLDER = "clicks-0"
SMALL = replace(MACHINES["page"], memory_bytes=2 << 20)
SET_OF = 7


def message_set(number: int, payload: int, *, is_real: bool) -> Contents:
    """The messages of one append."""
    if not is_real:
        return whole_series(Series("p", number * SET_OF, SET_OF, payload))
    return encode([Message.of(bytes([number % 251] * payload)) for _ in range(SET_OF)])


class Life:
    """A log that is appended to until its host loses its power."""

    def __init__(self, host: Host, options: LogSettings, *, is_real: bool) -> None:
        self.host = host
        self.options = options
        self.is_real = is_real
        self.log: Log | None = None
        self.appended: list[Contents] = []
        """With what is under way."""
        self.failed: StorageError | None = None

    async def write(self, payloads: list[int], rest_us: int) -> None:
        """Append sets; flush where the settings say so."""
        await MakeFolder(FOLDER)
        self.log, _ = await Log.open(FOLDER, self.options, was_clean=False)
        for number, payload in enumerate(payloads):
            self.appended.append(message_set(number, payload, is_real=self.is_real))
            try:
                await self.log.append(self.appended[-1])
            except StorageError as error:
                self.failed = error
                return
            await Idle(rest_us)

    @property
    def everything(self) -> Contents:
        """All that was ever appended, from offset 0."""
        if self.is_real:
            return b"".join(contents for contents in self.appended if isinstance(contents, bytes))
        pieces = [
            p for contents in self.appended if not isinstance(contents, bytes) for p in contents
        ]
        return tuple(pieces)

    async def found(self) -> tuple[int, Contents]:
        """Open the log again and read all of it."""
        await MakeFolder(FOLDER)
        log, _ = await Log.open(FOLDER, self.options, was_clean=False)
        at, found = log.start, []
        while at < log.high_watermark:
            found.append(await log.read(at, 10_000))
            at += size_of(found[-1])
        if self.is_real:
            return log.start, b"".join(item for item in found if isinstance(item, bytes))
        return log.start, tuple(p for item in found if not isinstance(item, bytes) for p in item)


def plain(contents: Contents) -> Contents:
    """Series, message by message: however they were joined or cut, the same is the same."""
    if isinstance(contents, bytes):
        return contents
    joined = Pieces()
    joined.append(contents)
    return tuple(
        piece
        for series_range in joined.read(0, 1 << 40)
        if isinstance(series_range, SeriesRange)
        for begin in range(series_range.begin, series_range.end, series_range.series.entry_bytes)
        for number in [series_range.series.first + begin // series_range.series.entry_bytes]
        for piece in whole_series(
            Series(series_range.series.producer, number, 1, series_range.series.payload_bytes)
        )
    )


def broken(life: Life) -> tuple[str, ...]:
    """What a log has broken when its host comes back."""
    flushed = 0 if life.log is None else life.log.high_watermark
    life.host.lose_power()
    (start, found), *_ = run(life.host, [life.host.start(life.host.process(), life.found())])
    return broken_after_crash(plain(life.everything), flushed, start, plain(found))


@settings(max_examples=60)
@given(
    st.sampled_from(["sata-7200", "raid-5", "nvme"]),
    st.integers(0, 10**6),
    st.lists(st.integers(1, 3_000), min_size=1, max_size=40),
    st.sampled_from([1, 20, 100, 10**9]),
    st.integers(0, 2_000_000),
    st.integers(0, 50_000),
    st.booleans(),
    st.booleans(),
)
def test_what_was_flushed_is_kept_and_the_rest_is_whole(
    device: str,
    seed: int,
    payloads: list[int],
    flush_messages: int,
    after_us: int,
    rest_us: int,
    is_real: bool,
    tears: bool,
) -> None:
    """At the same offsets, and no part of a message is taken for one."""
    host = new_host(replace(SMALL, device=DEVICES[device]), seed)
    if tears:
        host.storage.files.tear(FaultEffect(Action(0, VERBS["torn_write"], "broker/0")))
    options = LogSettings(flush_messages=flush_messages, segment_bytes=30_000)
    life = Life(host, options, is_real=is_real)
    host.start(host.process(), life.write(payloads, rest_us))
    host.kernel.run_until(after_us)

    assert broken(life) == ()


async def trusting(_: Any) -> int:
    """Recovery that checks nothing, and trusts the size of a file."""
    return 0


def crashes(*, recovers: bool, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What is broken in any of many crashes, by a log that recovers or does not."""
    if not recovers:
        monkeypatch.setattr(Log, "recover", staticmethod(trusting))
    seen: set[str] = set()
    for seed in range(20):
        host = new_host(replace(SMALL, device=DEVICES["nvme"]), seed)
        life = Life(host, LogSettings(flush_messages=10**9), is_real=seed % 2 == 0)
        host.start(host.process(), life.write([3_000] * 200, 0))
        host.kernel.run_until(1_900 + 100 * (seed // 2))
        seen.update(broken(life))
    return seen


def test_a_log_that_does_not_recover_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage leaves tails that are cut and holes of zeros, of bytes and of series."""
    assert Log.recover is recover
    assert crashes(recovers=True, monkeypatch=monkeypatch) == set()
    assert crashes(recovers=False, monkeypatch=monkeypatch) >= {
        "read as appended",
        "entries are whole",
    }


def test_a_log_whose_disk_is_full_stops_and_recovers() -> None:
    """A message that was written in part is cut off, and what was flushed is there."""
    host = new_host(SMALL)
    full = FaultEffect(Action(0, VERBS["disk_full"], "broker/0"))
    life = Life(host, LogSettings(flush_messages=10), is_real=True)
    undo = host.storage.files.fill_up(full, left_bytes=50_000)
    run(host, [host.start(host.process(), life.write([1_000] * 100, 1000))])

    assert isinstance(life.failed, DiskFull)
    assert full.is_real
    undo()
    assert broken(life) == ()


def test_a_log_whose_disk_fails_stops_and_keeps_what_was_flushed() -> None:
    """A flush that failed proves nothing; the log takes nothing more."""
    host = new_host(SMALL)
    failing = FaultEffect(Action(0, VERBS["disk_slow"], "broker/0"))
    life = Life(host, LogSettings(flush_messages=10), is_real=True)
    thread = host.start(host.process(), life.write([1_000] * 100, 1000))
    host.kernel.run_until(300_000)
    undo = host.storage.files.fail(failing, forgets=True)
    run(host, [thread])

    assert isinstance(life.failed, DiskFailed)
    assert life.log is not None
    assert life.log.stopped
    undo()
    assert broken(life) == ()


def test_offsets_are_those_of_real_bytes() -> None:
    """A series stands where its messages would stand."""
    ends = []
    for is_real in (False, True):
        host = new_host(SMALL)
        life = Life(host, LogSettings(flush_messages=5, segment_bytes=5_000), is_real=is_real)
        run(host, [host.start(host.process(), life.write([100, 2_000, 31, 500] * 10, 0))])
        assert life.log is not None
        ends.append([segment.start for segment in life.log.segments.view])
    assert ends[0] == ends[1]
    assert len(ends[0]) > 5
    assert size_of(slice_contents(whole_series(Series("p", 0, SET_OF, 100)), 3, 50)) == 47
