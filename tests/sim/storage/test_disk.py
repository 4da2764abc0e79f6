"""Disks and arrays: what a request takes, who goes first, and what is left when power goes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.model.plan.faults import VERBS, Action, FaultEffect
from watchkeeper.sim.disk.disk import Disk, Together
from watchkeeper.sim.disk.models import DEVICES, MIB, Device
from watchkeeper.sim.disk.raid5 import Raid5
from watchkeeper.sim.disk.scheduler import BATCH, READ_BATCHES, DiskScheduler, Part, Request
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.engine.latency_profile import DEFAULT
from watchkeeper.sim.engine.random_streams import Streams
from watchkeeper.sim.storage.allocator import REGION_BYTES, Room, Volume, rounded

RAID, ROTATING = DEVICES["raid-5"], DEVICES["sata-7200"]
KIB = 1024


class Bench:
    """A disk in a world of its own."""

    def __init__(self, device: Device, seed: int = 0) -> None:
        self.kernel = Kernel(Streams(seed), DEFAULT)
        self.store: Any = (Raid5 if device.members > 1 else Disk)(self.kernel, device)
        self.answers: list[tuple[int, str, bool]] = []
        """When a request was over, which, and whether it was served."""
        self.landed: dict[str, list[tuple[int, int]]] = {}

    def ask(self, name: str, address: int, size: int, *, write: bool = False) -> None:
        """Ask for something."""

        def done(is_good: bool) -> None:
            self.answers.append((self.kernel.now_us, name, is_good))

        def landed(begin: int, end: int) -> None:
            self.landed.setdefault(name, []).append((begin, end))

        self.store.submit(address, size, done, is_write=write, landed=landed)

    def run(self) -> list[str]:
        """Let everything happen; the names in the order in which they were over."""
        while self.kernel._queue:
            self.kernel.step()
        return [name for _, name, _ in self.answers]

    @property
    def members(self) -> list[Disk]:
        """The disks of an array, or the only one."""
        return self.store.members if isinstance(self.store, Raid5) else [self.store]

    def moved(self) -> tuple[int, int]:
        """Bytes read and written by all members."""
        members = self.members
        return sum(member.read_bytes for member in members), sum(
            member.written_bytes for member in members
        )


def effect() -> FaultEffect:
    """What counts what a fault does."""
    return FaultEffect(Action(0, VERBS["disk_slow"], "broker/0"))


# --- how long --------------------------------------------------------------------------


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("name", DEVICES)
def test_in_line_a_disk_does_what_its_row_says(name: str, write: bool) -> None:
    """An array does what its data members do together."""
    device = DEVICES[name]
    bench = Bench(device)
    size = 200 * 5 * device.chunk_bytes
    bench.ask("all", 0, size, write=write)
    bench.run()

    expected_s = size / device.rate(is_write=write) / max(device.members - 1, 1)
    assert bench.kernel.now_us / 1e6 == pytest.approx(expected_s, rel=0.05)


def test_somewhere_else_a_rotating_disk_has_to_go_there_first() -> None:
    """On average a seek and half a rotation."""
    bench = Bench(ROTATING)
    chance = bench.kernel.streams("places")
    places = [chance.below(ROTATING.capacity_bytes // 4096) * 4096 for _ in range(300)]

    def go_on(_: bool = True) -> None:
        if places:
            bench.store.submit(places.pop(), 4096, go_on, is_write=False)

    go_on()
    bench.run()
    assert bench.kernel.now_us / 300 == pytest.approx(8_500 + 4_167, rel=0.05)


def test_what_was_just_read_is_written_a_rotation_later() -> None:
    """Its sector has to come round again."""
    bench = Bench(ROTATING)
    bench.ask("read", 50_000_000, 4096)
    bench.run()
    read_us = bench.kernel.now_us
    bench.ask("write", 50_000_000, 4096, write=True)
    bench.run()

    assert bench.kernel.now_us - read_us == pytest.approx(60_000_000 / 7200, rel=0.01)


def test_a_disk_without_moving_parts_serves_many_at_once() -> None:
    """Sixteen reads take hardly longer than one."""
    took = []
    for count in (1, 16):
        bench = Bench(DEVICES["sata-ssd"])
        for number in range(count):
            bench.ask(str(number), number * 10 * MIB, 4096)
        bench.run()
        took.append(bench.kernel.now_us)
    assert took[1] < 3 * took[0]


# --- who goes first --------------------------------------------------------------------


def requests(*wanted: tuple[int, int, bool]) -> tuple[DiskScheduler, list[Request]]:
    """An elevator with requests: address, size, and whether it is a write."""
    elevator = DiskScheduler(MIB)
    made = []
    for address, size, write in wanted:
        request = Request(Part(address, size, bool, None), is_write=write)
        elevator.add(request)
        made.append(request)
    return elevator, made


def test_adjacent_requests_become_one() -> None:
    """From both sides, but not of another kind, and not beyond the longest."""
    elevator, _ = requests((8, 4, True), (0, 4, True), (4, 4, True), (12, 4, False))
    longest, _ = requests((0, MIB, True), (MIB, 4, True))

    assert (elevator.next(0).size_bytes, elevator.next(0).size_bytes) in ((12, 4), (4, 12))
    assert not elevator
    assert elevator.merged == 2
    assert longest.next(0).size_bytes == MIB


def test_the_arm_goes_in_one_direction() -> None:
    """From the one that has waited longest on, and then from the beginning."""
    elevator, _ = requests(*((address, 1, False) for address in (50, 10, 90, 70, 30)))

    served, head = [], 0
    while elevator:
        request = elevator.next(head)
        head = request.end
        served.append(request.address)
    assert served == [50, 70, 90, 10, 30]


def test_reads_go_first_but_not_for_ever() -> None:
    """A write has its turn after two batches of reads."""
    wanted = [(10 * number, 1, False) for number in range(100)]
    elevator, _ = requests((5000, 1, True), *wanted)

    kinds = [elevator.next(0).is_write for _ in range(60)]
    assert kinds.index(True) == READ_BATCHES * BATCH[False]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 4), st.booleans(), st.booleans()),
        max_size=40,
    )
)
def test_every_request_is_served_once(wanted: list[tuple[int, int, bool, bool]]) -> None:
    """Whatever is added when: each part comes out exactly once, of its kind."""
    elevator, out, head = DiskScheduler(6), list[tuple[int, int, bool]](), 0
    for address, size, write, serves in wanted:
        elevator.add(Request(Part(address, size, bool, None), is_write=write))
        if serves:
            request = elevator.next(head)
            head = request.end
            out += [(part.address, part.size_bytes, request.is_write) for part in request.parts]
            assert request.size_bytes == sum(part.size_bytes for part in request.parts)
    while elevator:
        request = elevator.next(head)
        out += [(part.address, part.size_bytes, request.is_write) for part in request.parts]

    assert sorted(out) == sorted((address, size, write) for address, size, write, _ in wanted)


# --- arrays ----------------------------------------------------------------------------

CHUNK = RAID.chunk_bytes
ROW = CHUNK * 5


def test_every_place_of_an_array_is_one_place_of_one_member() -> None:
    """No two share one, none is where the parity is, and parity goes round."""
    array = Bench(RAID).store
    places = [array._place(at) for at in range(0, 30 * ROW, CHUNK)]
    chunks = {(member, there // CHUNK) for member, there, _ in places}
    parities = {(array._parity(row), row) for row in range(30)}

    assert len(chunks) == len(places) == 150
    assert not chunks & parities
    assert len({member for member, _ in parities}) == 6


def test_a_whole_row_is_written_without_reading() -> None:
    """To every member at once, parity too."""
    bench = Bench(RAID)
    bench.ask("row", 7 * ROW, 3 * ROW, write=True)
    bench.run()

    assert bench.moved() == (0, 18 * CHUNK)


def test_a_part_of_a_row_takes_four_requests() -> None:
    """Old data and old parity are read, new data and new parity are written."""
    bench = Bench(RAID)
    bench.ask("page", 7 * ROW + 4096, 4096, write=True)
    bench.run()

    assert bench.moved() == (8192, 8192)
    assert bench.store.requests == 4


def test_parts_that_make_a_row_are_written_as_one() -> None:
    """While the array has something else to write, a part waits for the rest."""
    bench = Bench(RAID)
    bench.ask("other", 100 * ROW, ROW, write=True)
    bench.ask("first", 7 * ROW, 2 * CHUNK, write=True)
    bench.ask("second", 7 * ROW + 2 * CHUNK, 3 * CHUNK, write=True)
    bench.run()

    assert bench.moved() == (0, 12 * CHUNK)
    assert sorted(bench.run()) == ["first", "other", "second"]


def test_a_part_of_a_row_does_not_wait_for_ever() -> None:
    """With others writing all the time, its time comes."""
    bench = Bench(RAID)
    until_us = 500_000

    def go_on(_: bool = True) -> None:
        if bench.kernel.now_us < until_us:
            place = 1000 * ROW + bench.kernel.now_us // 1000 * ROW
            bench.store.submit(place, ROW, go_on, is_write=True)

    go_on()
    bench.ask("part", 7 * ROW, 4096, write=True)
    bench.run()
    assert bench.answers[0][0] < until_us / 2


@settings(max_examples=60)
@given(st.integers(0, 4 * ROW), st.integers(1, 3 * ROW), st.booleans())
def test_an_array_moves_what_is_requested(begin: int, size: int, write: bool) -> None:
    """A read brings the data, a write at least data and parity; each is answered once."""
    bench = Bench(RAID)
    bench.ask("it", begin, size, write=write)

    assert bench.run() == ["it"]
    read, written = bench.moved()
    assert written >= size if write else size <= read <= size + (size // ROW + 2) * CHUNK
    assert bench.store._rows == {}


# --- faults ----------------------------------------------------------------------------


@pytest.mark.parametrize("device", [ROTATING, RAID, DEVICES["nvme"]])
def test_faults_end(device: Device) -> None:
    """Slow, and failing, for as long as they last; every one counts."""
    bench = Bench(device)
    slow, failing = effect(), effect()

    def once() -> tuple[int, bool]:
        begin = bench.kernel.now_us
        bench.ask("it", 3 * ROW, ROW, write=True)
        bench.run()
        return bench.kernel.now_us - begin, bench.answers[-1][2]

    usual, _ = once()
    undo = bench.store.slow_down(20, slow)
    slowed, is_good = once()
    undo()
    undo = bench.store.fail(failing, reads=False, writes=True)
    _, failed = once()
    undo()
    after, is_good_again = once()

    assert slowed > 5 * usual
    assert after < 3 * usual
    assert (is_good, failed, is_good_again) == (True, False, True)
    assert slow.is_real
    assert failing.is_real


def test_a_flush_fails_where_writes_do() -> None:
    """And takes what the row of the disk says otherwise."""
    bench = Bench(DEVICES["sata-ssd"])
    heard: list[tuple[int, bool]] = []
    bench.store.flush(lambda is_good: heard.append((bench.kernel.now_us, is_good)))
    bench.run()
    bench.store.fail(effect(), reads=False, writes=True)
    bench.store.flush(lambda is_good: heard.append((bench.kernel.now_us, is_good)))
    bench.run()

    assert heard == [(900, True), (1800, False)]


# --- no power --------------------------------------------------------------------------


def test_of_a_write_under_way_the_beginning_is_there() -> None:
    """As much as had passed, to the sector; of what waits nothing."""
    bench = Bench(DEVICES["nvme"])
    bench.ask("first", 0, MIB, write=True)
    bench.ask("second", MIB, MIB, write=True)
    bench.kernel.run_until(20 + 218)  # the latency, and half of what a MiB takes
    bench.store.lose_power()

    ((begin, end),) = bench.landed["first"]
    assert begin == 0
    assert end % 512 == 0
    assert 0.45 * MIB < end < 0.55 * MIB
    assert "second" not in bench.landed
    assert bench.run() == []


@settings(max_examples=100)
@given(st.integers(0, 2 * ROW), st.integers(1, 3 * ROW), st.integers(0, 40_000))
def test_an_array_says_which_bytes_are_there(begin: int, size: int, after_us: int) -> None:
    """What it says lies within the write, and nothing is said twice."""
    bench = Bench(RAID)
    bench.ask("it", begin, size, write=True)
    bench.kernel.run_until(after_us)
    bench.store.lose_power()

    landed = sorted(bench.landed.get("it", []))
    assert all(0 <= left < right <= size for left, right in landed)
    assert all(pair[1] <= following[0] for pair, following in pairwise(landed))
    if bench.answers:
        assert sum(right - left for left, right in landed) == size


def test_all_of_several_are_waited_for() -> None:
    """And one that failed is enough to fail."""
    heard: list[bool] = []
    together = Together(3, heard.append)
    for is_good in (True, False, True):
        assert heard == []
        together(is_good)
    assert heard == [False]


# --- room ------------------------------------------------------------------------------


@st.composite
def changes(draw: Callable[[Any], Any]) -> list[tuple[int, int]]:
    """Which of four files has which size next."""
    sizes = st.integers(0, 5 * REGION_BYTES)
    return draw(st.lists(st.tuples(st.integers(0, 3), sizes), max_size=20))


@settings(max_examples=100)
@given(changes())
def test_no_two_files_are_in_one_place(wanted: list[tuple[int, int]]) -> None:
    """However they grow and shrink; and what is used is what they have."""
    volume, rooms = Volume(8 * REGION_BYTES), [Room() for _ in range(4)]
    for number, size in wanted:
        room = rooms[number]
        if size >= room.size_bytes:
            got = volume.grow(room, size)
            assert got == size or volume.left_bytes < 4096
            assert got <= size
        else:
            volume.shrink(room, size)
            assert room.size_bytes == rounded(size)

    spans = sorted(span for room in rooms for span in room.spans(0, room.size_bytes))
    assert all(pair[1] <= following[0] for pair, following in pairwise(spans))
    assert sum(end - begin for begin, end in spans) == volume.used_bytes
    assert volume.used_bytes <= 8 * REGION_BYTES


def test_a_file_alone_stands_in_line() -> None:
    """And one that grows beside it does not."""
    volume, alone = Volume(100 * REGION_BYTES), Room()
    volume.grow(alone, 3 * REGION_BYTES)
    assert len(alone.spans(0, 3 * REGION_BYTES)) == 1

    first, second = Room(), Room()
    for size in range(1, 4):
        for room in (first, second):
            volume.grow(room, size * REGION_BYTES)
    assert len(first.spans(100, 3 * REGION_BYTES)) == 3
