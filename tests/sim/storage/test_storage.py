"""The simulated storage keeps what `watchkeeper.model.log.storage` promises, and no more."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from watchkeeper.experiment.apparatus.host import Host, new_host, run
from watchkeeper.model.log.format.contents import (
    Contents,
    Series,
    SeriesRange,
    size_of,
    whole_series,
)
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    DiskFailed,
    DiskFull,
    File,
    Flush,
    ListFolder,
    MakeFolder,
    NoSuchFile,
    Read,
    Rename,
    Send,
    StorageError,
    Touch,
    Truncate,
)
from watchkeeper.model.plan.faults import VERBS, Action, FaultEffect
from watchkeeper.sim.disk.host_costs import MACHINES, MachineProfile
from watchkeeper.sim.disk.models import DEVICES
from watchkeeper.sim.storage.host_effects import Idle

SMALL = replace(MACHINES["page"], memory_bytes=4 << 20, readahead_bytes=64 << 10)
"""A host whose memory is full before long."""
ENTRY = 110


def host(device: str = "sata-7200", seed: int = 0, **changes: Any) -> Host:
    """A small host with such a disk."""
    profile: MachineProfile = replace(SMALL, device=DEVICES[device], **changes)
    return new_host(profile, seed)


def does(host: Host, body: Any) -> Any:
    """Let a process of a host do something, to its end."""
    return run(host, [host.start(host.process(), body)])[0]


def text(number: int, size: int) -> bytes:
    """Bytes that differ from others."""
    return (f"{number:06d}." * (size // 7 + 1)).encode()[:size]


def effect(verb: str = "disk_slow") -> FaultEffect:
    """What counts what a fault does."""
    return FaultEffect(Action(0, VERBS[verb], "broker/0"))


async def appended(path: str, contents: Contents) -> int:
    """Append, going on with the rest as often as it takes; how many asks that were."""
    asks = 0
    while size_of(contents):
        written = await Append(path, contents)
        asks += 1
        assert isinstance(contents, bytes)
        contents = contents[written:]
    return asks


# --- files -----------------------------------------------------------------------------


def test_what_was_appended_is_read_by_any_process() -> None:
    """At once, without a flush."""
    machine = host()

    async def write() -> None:
        await MakeFolder("clicks-0")
        await CreateFile("clicks-0/0.kafka")
        assert await Append("clicks-0/0.kafka", b"hello ") == 6
        assert await Append("clicks-0/0.kafka", b"world") == 5

    async def read() -> list[Contents]:
        return [await Read("clicks-0/0.kafka", *place) for place in ((0, 100), (6, 3), (11, 5))]

    does(machine, write())

    assert does(machine, read()) == [b"hello world", b"wor", b""]


def test_series_are_read_as_they_lie() -> None:
    """Pieces may be cut anywhere; what goes on where a series ended becomes one."""
    machine = host()
    first, second = Series("p", 0, 3, 100), Series("p", 3, 2, 100)

    async def body() -> tuple[Contents, Contents]:
        await CreateFile("log")
        await Append("log", whole_series(first))
        await Append("log", whole_series(second))
        await Append("log", whole_series(Series("q", 0, 1, 20)))
        return await Read("log", 0, 10_000), await Read("log", 2 * ENTRY + 5, 4 * ENTRY)

    everything, some = does(machine, body())

    both = Series("p", 0, 5, 100)
    assert everything == (
        SeriesRange(both, 0, 5 * ENTRY),
        SeriesRange(Series("q", 0, 1, 20), 0, 30),
    )
    assert some == (SeriesRange(both, 225, 5 * ENTRY), SeriesRange(Series("q", 0, 1, 20), 0, 30))


def test_names() -> None:
    """Files and folders are listed in order, renamed, replaced, deleted, touched."""
    machine = host()

    async def body() -> list[tuple[File, ...]]:
        await MakeFolder("b/c")
        await CreateFile("b/2")
        await CreateFile("b/1")
        await Append("b/1", b"12345")
        seen = [await ListFolder("b")]
        await Rename("b/1", "b/2")
        await Idle(5_000_000)
        await Touch("b/2")
        seen.append(await ListFolder("b"))
        await Delete("b")
        seen.append(await ListFolder(""))
        return seen

    before, after, none = does(machine, body())

    assert [(file.name, file.size_bytes, file.is_folder) for file in before] == [
        ("1", 5, False),
        ("2", 0, False),
        ("c", 0, True),
    ]
    assert [(file.name, file.size_bytes) for file in after] == [("2", 5), ("c", 0)]
    assert after[0].modified_ms >= before[0].modified_ms + 5_000
    assert none == ()


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (Append("none", b"1"), NoSuchFile),
        (Read("none", 0, 1), NoSuchFile),
        (Send("folder", 0, 1, None), NoSuchFile),
        (Flush("none"), NoSuchFile),
        (Truncate("none", 0), NoSuchFile),
        (Delete("none"), NoSuchFile),
        (Rename("none", "other"), NoSuchFile),
        (Touch("none"), NoSuchFile),
        (ListFolder("none"), NoSuchFile),
        (CreateFile("none/file"), NoSuchFile),
        (CreateFile("folder"), StorageError),
        (MakeFolder("file/folder"), StorageError),
    ],
)
def test_what_cannot_be_done_is_said(ask: Any, error: type[StorageError]) -> None:
    """The error is raised where it was awaited, and names the path."""
    machine = host()

    async def body() -> str:
        await MakeFolder("folder")
        await CreateFile("file")
        try:
            await (
                ask if not isinstance(ask, Send) else Send("folder", 0, 1, machine.connection())
            )
        except error as raised:
            return str(raised)
        return "nothing was raised"

    outcomes = does(machine, body())

    assert ("none" in outcomes) or ("file" in outcomes) or ("folder" in outcomes)
    assert outcomes != "nothing was raised"


# --- what survives ---------------------------------------------------------------------


def test_a_crash_of_the_process_loses_nothing() -> None:
    """Dirty or clean, what was appended is the kernel's."""
    machine = host()
    process = machine.process()

    async def write() -> None:
        await CreateFile("log")
        for number in range(100):
            await Append("log", text(number, 1000))
        await Idle(1_000_000_000)

    machine.start(process, write())
    machine.kernel.run_until(100_000)
    machine.kill(process)

    async def read() -> Contents:
        return await Read("log", 0, 1 << 30)

    kept = does(machine, read())
    assert kept == b"".join(text(number, 1000) for number in range(len(kept) // 1000))
    assert len(kept) == 100_000
    assert machine.storage.files.reader.device_bytes == 0


ACTIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 60_000)),
    st.tuples(st.just("flush"), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 20_000_000)),
    st.tuples(st.just("cut"), st.integers(0, 100)),
)


class FileWriter:
    """What a writer knows that it has done."""

    def __init__(self) -> None:
        self.data = b""
        self.flushed = 0
        """How much had been appended before a flush that was answered."""

    async def write(self, actions: list[tuple[str, int]]) -> None:
        await CreateFile("log")
        for number, (does, amount) in enumerate(actions):
            if does == "append":
                more = text(number, amount)
                self.data += more
                await appended("log", more)
            elif does == "flush":
                size = len(self.data)
                await Flush("log")
                self.flushed = size
            elif does == "cut":
                size = len(self.data) * amount // 100
                # Whether a cut that was not answered has happened, only the disk knows.
                self.flushed = min(self.flushed, size)
                await Truncate("log", size)
                self.data = self.data[:size]
            else:
                await Idle(amount)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["sata-7200", "raid-5", "nvme"]),
    st.integers(0, 1000),
    st.lists(ACTIONS, max_size=25),
    st.integers(0, 200_000_000),
    st.booleans(),
)
@example("raid-5", 0, [("append", 1), ("flush", 0), ("cut", 100), ("cut", 0)], 50_821, False)
def test_what_was_flushed_survives_the_host(
    device: str, seed: int, actions: list[tuple[str, int]], after_us: int, tears: bool
) -> None:
    """Whenever its power is lost. Of the rest a part may survive, some of it as zeros."""
    machine = host(device, seed)
    if tears:
        machine.storage.files.tear(effect("torn_write"))
    writer = FileWriter()
    machine.start(machine.process(), writer.write(actions))
    machine.kernel.run_until(after_us)
    has_cut = any(does == "cut" for does, _ in actions)
    machine.lose_power()

    async def read() -> Contents:
        try:
            return await Read("log", 0, 1 << 30)
        except NoSuchFile:
            return b""

    left = does(machine, read())
    assert isinstance(left, bytes)
    assert left[: writer.flushed] == writer.data[: writer.flushed]
    assert len(left) >= writer.flushed
    if not has_cut:
        assert len(left) <= len(writer.data)
        same = [mine in (theirs, 0) for mine, theirs in zip(left, writer.data, strict=False)]
        assert all(same)


def test_what_was_not_flushed_is_lost() -> None:
    """The test above is not passed by a host that loses nothing."""
    machine = host()
    writer = FileWriter()
    machine.start(
        machine.process(), writer.write([("append", 50_000), ("flush", 0), ("append", 50_000)])
    )
    machine.kernel.run_until(1_000_000)

    lost = machine.lose_power()

    assert len(writer.data) == 100_000
    assert writer.flushed == 50_000
    assert lost[0].before_bytes == 100_000
    assert lost[0].after_bytes - lost[0].zero_bytes == 50_000


def tails(seeds: int) -> list[tuple[int, int]]:
    """How much is left beyond what was flushed, and how much of that as zeros, by seed."""
    found = []
    for seed in range(seeds):
        machine = host("nvme", seed, memory_bytes=4 << (20 + seed % 2 * 8))
        writer = FileWriter()
        machine.start(
            machine.process(),
            writer.write([("append", 10_000), ("flush", 0), *[("append", 700_001)] * 20]),
        )
        machine.kernel.run_until(1_500 + 40 * seed)
        lost = machine.lose_power()
        found += [(loss.after_bytes - 10_000, loss.zero_bytes) for loss in lost]
    return found


def test_the_tail_is_cut_anywhere_and_may_hold_zeros() -> None:
    """Some crashes leave nothing of the tail, some a part, some zeros."""
    found = tails(40)

    assert any(left == 0 for left, _ in found)
    assert any(left % 4096 for left, _ in found)
    assert any(left > zeros > 0 for left, zeros in found)
    assert any(left > 0 and zeros == 0 for left, zeros in found)


def test_a_series_that_lost_its_middle_has_no_whole_entry_there() -> None:
    """Zeros are a piece that no entry ends in."""
    machine = host("nvme", 1)

    async def write() -> None:
        await CreateFile("log")
        await Append("log", whole_series(Series("p", 0, 100, 90)))
        await Flush("log")
        await Append("log", whole_series(Series("p", 100, 900, 90)))

    does(machine, write())
    file = machine.storage.files.tree.file("log")
    file.durable.add(20_000, 30_000)
    machine.lose_power()

    async def read() -> Contents:
        return await Read("log", 0, 1 << 30)

    pieces = does(machine, read())
    assert [series_range.size_bytes for series_range in pieces[:3]] == [10_000, 10_000, 10_000]
    hole = pieces[1]
    assert hole.series.entry_bytes > 1 << 50
    assert pieces[0].end % 100 == 0
    assert (pieces[2].begin, pieces[2].series.first) == (20_000, 0)


# --- faults ----------------------------------------------------------------------------


def test_a_disk_that_is_full_takes_what_there_is_room_for() -> None:
    """An append is cut short, the next one fails, and after the fault all is well."""
    machine, full = host(), effect("disk_full")
    undo = machine.storage.files.fill_up(full, left_bytes=8192)

    async def body() -> list[Any]:
        await CreateFile("log")
        outcomes: list[Any] = [await Append("log", text(1, 10_000))]
        try:
            await Append("log", text(1, 10_000)[8192:])
        except DiskFull as error:
            outcomes.append(str(error))
        undo()
        return [
            *outcomes,
            await Append("log", text(1, 10_000)[8192:]),
            await Read("log", 0, 20_000),
        ]

    assert does(machine, body()) == [
        8192,
        "log: there is no room left on the disk",
        1808,
        text(1, 10_000),
    ]
    assert full.counts == {"writes without room": 2}


def test_a_disk_that_fails_says_so_and_keeps_its_pages_dirty() -> None:
    """A flush fails as long as the disk does; what it did not write it writes later."""
    machine, failing = host(), effect()
    does(machine, prepared())
    undo = machine.storage.files.fail(failing)

    async def flush() -> str:
        try:
            await Flush("log")
        except DiskFailed as error:
            return str(error)
        return "done"

    async def body() -> list[str]:
        outcomes = [await flush(), await flush()]
        undo()
        return [*outcomes, await flush()]

    assert does(machine, body()) == ["log: the disk failed (a flush)"] * 2 + ["done"]
    assert failing.counts == {"writes failed": 2}
    machine.lose_power()
    assert machine.storage.files.tree.file("log").size_bytes == 5_000


async def prepared() -> None:
    """A file that is dirty in memory, whose name is on the disk."""
    await CreateFile("log")
    await Append("log", text(1, 5_000))


def test_a_kernel_that_forgets_failures_loses_what_a_second_flush_promised() -> None:
    """As Linux does: the first flush fails, the second succeeds, and the data are gone."""
    machine, failing = host(), effect()
    does(machine, prepared())
    undo = machine.storage.files.fail(failing, forgets=True)

    async def body() -> str:
        outcomes = ""
        try:
            await Flush("log")
        except DiskFailed:
            outcomes = "failed"
        undo()
        await Flush("log")
        return outcomes

    assert does(machine, body()) == "failed"
    assert failing.counts == {"writes failed": 1, "pages forgotten": 2}
    file = machine.storage.files.tree.file("log")
    assert file.size_bytes == 5_000
    assert file.durable.size == 0


def test_reads_fail_where_the_disk_has_to_be_asked() -> None:
    """What is in memory is read all the same."""
    machine, failing = host(), effect()
    machine.storage.files.preload("old", text(1, 50_000))
    does(machine, prepared())
    machine.storage.files.fail(failing, writes=False)

    async def body() -> list[Any]:
        outcomes: list[Any] = [await Read("log", 0, 10)]
        for ask in (
            Read("old", 0, 10),
            Send("old", 0, 10, machine.connection()),
            Append("old", b"1"),
        ):
            try:
                await ask
            except DiskFailed as error:
                outcomes.append(error.path)
        return outcomes

    assert does(machine, body()) == [text(1, 10), "old", "old", "old"]
    assert failing.counts["reads failed"] >= 3


def took_us(host: Host) -> int:
    """How long it takes to write and flush some."""
    begin = host.kernel.now_us
    does(host, FileWriter().write([("append", 100_000), ("flush", 0)] * 5))
    return host.kernel.now_us - begin


@pytest.mark.parametrize("device", DEVICES)
def test_a_slow_disk_takes_longer_and_then_no_longer(device: str) -> None:
    """On every kind of disk."""
    machine, slow = host(device), effect()
    before = took_us(machine)
    undo = machine.storage.files.slow_down(10, slow)
    during = took_us(machine)
    undo()
    after = took_us(machine)

    assert during > 4 * before
    assert after < 2 * before
    assert slow.counts["requests slowed"] > 0


def test_writes_that_are_cut_short_are_gone_on_with() -> None:
    """An append may write less than it should."""
    machine, cut = host(), effect()
    undo = machine.storage.files.cut_writes(cut)

    async def body() -> int:
        await CreateFile("log")
        asks = await appended("log", text(1, 5_000))
        undo()
        return asks + await appended("log", text(2, 5_000))

    asks = does(machine, body())
    assert asks > 2
    assert cut.counts == {"writes cut short": asks - 2}
    assert machine.storage.files.tree.file("log").size_bytes == 10_000


@pytest.mark.parametrize("is_torn", [False, True])
def test_torn_writes_leave_holes(is_torn: bool) -> None:
    """Sectors of a write arrive in any order: some behind a gap that reads as zeros."""
    runs, torn = [], effect("torn_write")
    for after_us in range(1_000, 12_000, 500):
        machine = host("sata-7200")
        if is_torn:
            machine.storage.files.tear(torn)
        machine.start(machine.process(), FileWriter().write([("append", 500_000), ("flush", 0)]))
        machine.kernel.run_until(after_us)
        machine.lose_power()
        runs.append(zero_runs(machine))

    assert torn.is_real == is_torn
    assert (max(runs) > 1) == is_torn


def zero_runs(host: Host) -> int:
    """How many runs of zeros there are in the file."""
    files = host.storage.files.tree.files
    data = files["log"].read(0, 1 << 30) if "log" in files else b""
    assert isinstance(data, bytes)
    sectors = [data[at : at + 512].count(0) > 256 for at in range(0, len(data), 512)]
    return sum(here and not before for before, here in pairwise([False, *sectors]))


# --- names and the end of the host -----------------------------------------------------


def test_names_that_were_answered_survive() -> None:
    """A file that was made, renamed or deleted is as it was answered."""
    machine = host()

    async def body() -> None:
        await MakeFolder("a")
        for name in ("kept", "old", "gone"):
            await CreateFile(f"a/{name}")
        await Rename("a/old", "a/new")
        await Delete("a/gone")

    does(machine, body())
    machine.lose_power()

    async def listed() -> tuple[File, ...]:
        return await ListFolder("a")

    assert [file.name for file in does(machine, listed())] == ["kept", "new"]


@pytest.mark.parametrize("after_us", range(0, 60_000, 3_000))
def test_names_under_way_are_there_or_not(after_us: int) -> None:
    """A change that was not answered has happened whole or not at all."""
    machine = host()
    done: list[str] = []

    async def body() -> None:
        await CreateFile("a")
        done.append("made")
        await Append("a", b"12345678")
        await Flush("a")
        done.append("flushed")
        await Rename("a", "b")
        done.append("renamed")
        await Truncate("b", 4)
        done.append("cut")
        await Delete("b")
        done.append("deleted")

    machine.start(machine.process(), body())
    machine.kernel.run_until(after_us)
    machine.lose_power()

    files = {name: file.size_bytes for name, file in machine.storage.files.tree.files.items()}
    possible: dict[int, list[dict[str, int]]] = {
        0: [{}, {"a": 0}],
        1: [{"a": 0}, {"a": 8}],
        2: [{"a": 8}, {"b": 8}],
        3: [{"b": 8}, {"b": 4}],
        4: [{"b": 4}, {}],
        5: [{}],
    }
    assert files in possible[len(done)] or (len(done) == 1 and list(files) == ["a"])


# --- one seed, one run -----------------------------------------------------------------


def history(seed: int) -> list[Any]:
    """What a run with crashes leaves."""
    machine = host("raid-5", seed)
    outcomes: list[Any] = []
    for turn in range(6):
        writer = FileWriter()
        machine.start(
            machine.process(), writer.write([("append", 70_001), ("wait", 3_000_000)] * 8)
        )
        machine.kernel.run_until(machine.kernel.now_us + 13_000_000 + 777 * turn)
        outcomes += [
            machine.lose_power(),
            machine.kernel.now_us,
            machine.storage.files.tree.file("log").size_bytes,
        ]
    return outcomes


def test_a_seed_gives_one_run() -> None:
    """Crash for crash, byte for byte; another seed gives another."""
    assert history(1) == history(1)
    assert history(1) != history(2)
