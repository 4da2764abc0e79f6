"""Write-behind and read-ahead: when pages go to the disk, and when they come from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.experiment.apparatus.host import Host, new_host, run
from watchkeeper.model.log.format.contents import Series, whole_series
from watchkeeper.model.log.storage import Append, CreateFile, Delete, Flush, Read, Send
from watchkeeper.sim.disk.host_costs import MACHINES
from watchkeeper.sim.disk.models import DEVICES
from watchkeeper.sim.storage.file_contents import zeros
from watchkeeper.sim.storage.host_effects import Idle, Overwrite
from watchkeeper.sim.storage.pagecache import PAGE_BYTES
from watchkeeper.sim.storage.readahead import FIRST_PAGES, Readahead

MB = 1_000_000
KIB = 1024
DISK = DEVICES["sata-ssd"]
SMALL = replace(MACHINES["modern"], device=DISK, memory_bytes=100 * MB)
"""10 MB dirty and writing back begins, 20 MB and writers wait."""


def host(**changes: Any) -> Host:
    """A small host."""
    return new_host(replace(SMALL, **changes))


def does(host: Host, *bodies: Any) -> list[Any]:
    """Let a process of a host do several things at once, to their end."""
    process = host.process()
    return run(host, [host.start(process, body) for body in bodies])


def dirty(host: Host) -> float:
    """How many MB are not on the disk."""
    return host.storage.files.cache.unwritten_pages * PAGE_BYTES / MB


async def append(total: int, each: int = 100_000, path: str = "log") -> None:
    """Append to a file."""
    await CreateFile(path)
    for number in range(total // each):
        await Append(path, whole_series(Series("p", number, 1, each - 10)))


# --- write-behind ----------------------------------------------------------------------


def test_little_that_is_dirty_stays_in_memory() -> None:
    """Until it is old: the disk hears of it half a minute later, at the next look."""
    machine = host()
    does(machine, append(5 * MB))
    machine.kernel.run_until(29_000_000)
    before = dirty(machine)
    machine.kernel.run_until(36_000_000)

    assert before == pytest.approx(5, rel=0.01)
    assert dirty(machine) == 0


def test_much_that_is_dirty_is_written_back() -> None:
    """Down to the background ratio, and no further than the two chunks that are under way."""
    machine = host(memory_bytes=1000 * MB)
    does(machine, append(150 * MB))
    machine.kernel.run_until(5_000_000)

    assert 100 - 2 * 25 <= dirty(machine) <= 100


def test_writers_wait_for_the_disk_where_too_much_is_dirty() -> None:
    """Beyond the dirty ratio memory is filled no faster than the disk takes it."""
    machine = host()
    begin = machine.kernel.now_us
    does(machine, append(200 * MB))
    took_s = (machine.kernel.now_us - begin) / 1e6

    assert machine.storage.files.writeback.throttled_us > 0
    assert 180 * MB / DISK.write_bytes_per_s < took_s < 1.2 * 200 * MB / DISK.write_bytes_per_s
    assert dirty(machine) <= 20.2


def test_writers_are_let_in_in_their_order() -> None:
    """A process that has waited longest writes first."""
    machine = host()

    async def writer(number: int) -> None:
        await Idle(number)
        await Append("log", whole_series(Series(f"late {number}", 0, 1, 1 * MB)))

    does(machine, append(19_900_000))
    does(machine, *(writer(number) for number in range(30)))
    pieces = machine.storage.files.tree.file("log").read(0, 1 << 40)
    assert not isinstance(pieces, bytes)
    producers = [series_range.series.producer for series_range in pieces]
    assert producers == ["p", *(f"late {number}" for number in range(30))]


def test_dirty_files_take_turns() -> None:
    """One that is written to all the time keeps no other from the disk."""
    machine = host()

    async def much() -> None:
        await append(400 * MB, path="much")

    async def little() -> None:
        await append(1 * MB, path="little")

    does(machine, little(), much())
    file = machine.storage.files.tree.file("little")
    assert not file.cached.dirty


def test_what_is_deleted_is_not_written() -> None:
    """Dirty pages of a file that is gone are gone with it."""
    machine = host()

    async def body() -> None:
        await append(5 * MB)
        await Delete("log")

    does(machine, body())
    machine.kernel.run_until(60_000_000)
    assert dirty(machine) == 0
    assert machine.storage.files.store.written_bytes < 100 * KIB
    assert machine.storage.files.volume.used_bytes == 0


def test_a_flush_writes_one_file() -> None:
    """What is dirty of others stays in memory."""
    machine = host()

    async def body() -> None:
        await append(3 * MB, path="other")
        await append(2 * MB)
        await Flush("log")

    does(machine, body())
    assert dirty(machine) == pytest.approx(3, rel=0.01)


def test_flushes_at_once_share_a_commit() -> None:
    """The journal takes a process that comes while a commit is under way into the next."""
    machine = host()

    async def body(number: int) -> None:
        await append(4096, 4096, path=str(number))
        await Flush(str(number))

    does(machine, *(body(number) for number in range(20)))
    assert machine.storage.files.journal.commits < 20


def test_a_part_of_a_page_is_written_into_what_is_there() -> None:
    """The page is read first, if it is not in memory; a whole page is not."""
    machine = host()
    machine.storage.files.preload("log", zeros(100 * PAGE_BYTES))

    async def body(at: int, size: int) -> None:
        await Overwrite("log", at, size)

    does(machine, body(10 * PAGE_BYTES, PAGE_BYTES))
    assert machine.storage.files.reader.device_bytes == 0
    does(machine, body(20 * PAGE_BYTES + 1, PAGE_BYTES))
    assert machine.storage.files.reader.device_bytes == 2 * PAGE_BYTES


# --- read-ahead ------------------------------------------------------------------------


def windows(readahead: Readahead, reads: list[tuple[int, int]], last: int) -> list[int]:
    """How many pages each read asks for beyond what it wants."""
    found = []
    for begin, end in reads:
        left, right = readahead.plan(begin, end, last, is_miss=True)
        assert left >= end or left == right
        found.append(right - left)
    return found


def test_a_window_starts_small_and_doubles() -> None:
    """To a most, a process that goes on where the last read ended."""
    reads = [(page, page + 1) for page in range(200)]
    found = [size for size in windows(Readahead(64), reads, 10_000) if size]

    assert found[:6] == [FIRST_PAGES, 8, 16, 32, 64, 64]


def test_a_process_that_reads_elsewhere_gets_nothing_more() -> None:
    """And has to begin small again."""
    readahead = Readahead(64)
    in_order = windows(readahead, [(page, page + 1) for page in range(100)], 10**6)
    elsewhere = windows(readahead, [(5_000, 5_001), (90_000, 90_001), (700, 701)], 10**6)
    again = windows(readahead, [(701, 702)], 10**6)

    assert max(in_order) == 64
    assert elsewhere == [0, 0, 0]
    assert again == [FIRST_PAGES]


def test_several_who_read_in_order_do_not_disturb_each_other() -> None:
    """Each has a window of its own."""
    readahead = Readahead(64)
    turns = [(base + page, base + page + 1) for page in range(100) for base in (0, 5_000, 9_000)]
    found = windows(readahead, turns, 10**6)

    assert [max(found[number::3]) for number in range(3)] == [64, 64, 64]


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(1, 12), st.booleans()), max_size=40),
    st.integers(1, 40),
)
def test_nothing_is_requested_that_is_not_there(
    reads: list[tuple[int, int, bool]], most: int
) -> None:
    """Never beyond the end of the file, and never more than the most or the read itself."""
    readahead, last = Readahead(most), 100
    for begin, size, is_miss in reads:
        end = min(begin + size, last)
        left, right = readahead.plan(begin, end, last, is_miss=is_miss)
        assert left <= right <= max(last, end)
        assert right - left <= max(most, end - begin)


def in_order(total: int, each: int) -> Callable[[], Any]:
    """A reader of the file `log`."""

    async def body() -> None:
        for at in range(0, total, each):
            await Read("log", at, each)

    return body


@pytest.mark.parametrize("each", [4096, 10_000, 64 * KIB, 1_000_000])
def test_a_file_that_is_read_in_order_comes_as_fast_as_the_disk_reads(each: int) -> None:
    """Whatever the size of the reads, each page is read once."""
    machine = host(readahead_bytes=512 * KIB)
    machine.storage.files.preload("log", zeros(50 * MB))
    does(machine, in_order(50 * MB, each)())

    assert machine.kernel.now_us / 1e6 == pytest.approx(50 * MB / DISK.read_bytes_per_s, rel=0.12)
    assert machine.storage.files.reader.device_bytes == -(-50 * MB // PAGE_BYTES) * PAGE_BYTES


def test_readers_at_random_get_what_they_ask_for() -> None:
    """No page more."""
    machine = host()
    machine.storage.files.preload("log", zeros(50 * MB))

    async def body() -> None:
        for number in range(1, 100):
            await Read("log", number * 7919 % 12_000 * PAGE_BYTES, PAGE_BYTES)

    does(machine, body())
    assert machine.storage.files.reader.device_bytes == 99 * PAGE_BYTES


@pytest.mark.parametrize("readers", [2, 7])
def test_several_readers_read_what_is_on_the_disk_once(readers: int) -> None:
    """A process that comes second waits for the request of the first."""
    machine = host()
    machine.storage.files.preload("log", zeros(20 * MB))
    does(machine, *(in_order(20 * MB, 256 * KIB)() for _ in range(readers)))
    reader = machine.storage.files.reader

    assert reader.device_bytes == -(-20 * MB // PAGE_BYTES) * PAGE_BYTES
    assert reader.shared_bytes > 0
    assert reader.hit_bytes + reader.miss_bytes == readers * 20 * MB


def test_what_was_written_just_now_is_read_from_memory() -> None:
    """Every byte a hit, by whatever way it is read."""
    machine = host()

    async def body() -> None:
        await append(5 * MB)
        to = machine.connection()
        for at in range(0, 5 * MB, 100_000):
            await Read("log", at, 100_000)
            await Send("log", at, 100_000, to)

    does(machine, body())
    reader = machine.storage.files.reader
    assert (reader.hit_bytes, reader.miss_bytes, reader.device_bytes) == (10 * MB, 0, 0)


# --- the network -----------------------------------------------------------------------


def test_a_connection_takes_no_more_than_the_network_carries() -> None:
    """And a slow consumer no more than it takes; both send what is requested."""
    took = []
    for takes in (None, 10 * MB):
        machine = host(network_bytes_per_s=100 * MB)
        to = machine.connection(takes_bytes_per_s=takes)

        async def body(to: Any = to) -> None:
            await append(10 * MB)
            for at in range(0, 10 * MB, 100_000):
                assert await Send("log", at, 100_000, to) == 100_000

        does(machine, body())
        took.append(machine.kernel.now_us / 1e6)
    assert took[0] == pytest.approx(0.1, rel=0.2)
    assert took[1] == pytest.approx(1.0, rel=0.2)


def test_a_slow_consumer_does_not_hold_up_a_fast_one() -> None:
    """The network is shared by a process that has something to send."""
    machine = host(network_bytes_per_s=100 * MB)
    done: list[tuple[str, int]] = []

    async def body(name: str, takes: int | None) -> None:
        to = machine.connection(takes_bytes_per_s=takes)
        for at in range(0, 5 * MB, 100_000):
            await Send("log", at, 100_000, to)
        done.append((name, machine.kernel.now_us))

    does(machine, append(5 * MB))
    begin = machine.kernel.now_us
    does(machine, body("slow", 1 * MB), body("fast", None))
    (first, at_us), (last, _) = done
    assert (first, last) == ("fast", "slow")
    assert at_us - begin < 100_000


# --- the processor ---------------------------------------------------------------------


def test_calls_that_take_less_than_a_tick_add_up() -> None:
    """Ten thousand of them take ten thousand times as long as one."""
    machine = host(call_ns=150, write_ns=0, page_ns=0, cores=1)

    async def body() -> None:
        await CreateFile("log")
        begin = machine.kernel.now_us
        for _ in range(10_000):
            await Append("log", zeros(9))
        took.append(machine.kernel.now_us - begin)

    took: list[int] = []
    does(machine, body())
    assert took[0] == pytest.approx(10_000 * 0.151, rel=0.01)


@pytest.mark.parametrize(("cores", "times"), [(1, 4), (2, 2), (4, 1), (8, 1)])
def test_threads_share_the_cores(cores: int, times: int) -> None:
    """Four threads on one core take four times as long as on four."""
    machine = host(cores=cores, bus_bytes_per_s=10**15)
    file = machine.storage.files.preload("log", zeros(20 * MB))
    machine.storage.files.cache.put(file.cached, 0, 20 * MB // PAGE_BYTES + 1)
    does(machine, *(in_order(20 * MB, 1 * MB)() for _ in range(4)))

    alone_s = 20 * MB / SMALL.copy_bytes_per_s
    assert machine.kernel.now_us / 1e6 == pytest.approx(times * alone_s, rel=0.05)
