"""A disk on the simulation's calendar: requests wait, are served, and may go wrong.

How long a request takes follows from the row of the disk in `watchkeeper.sim.disk.models`.
For a rotating disk the place of the arm and the angle of the platter are kept, so that
writing what has just been read waits for a whole rotation, without a rule of its own.

Faults are methods. Each takes an `Effect`, which counts what it has really done, and
returns a function that undoes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from watchkeeper.sim.disk.models import NS, SECTOR_BYTES, Arm, Device
from watchkeeper.sim.disk.scheduler import DiskScheduler, Done, Landed, Part, Request, moved
from watchkeeper.sim.engine.kernel import Kernel

Undo = Callable[[], None]
OWN_MEMORY_BYTES = 2 << 20
"""How far a rotating disk reads on by itself."""


class Counts(Protocol):
    """Whatever counts what a fault has done; `watchkeeper.model.plan.faults.Effect` does."""

    def add(self, what: str, number: int = 1) -> None:
        """Count something."""


class Store(Protocol):
    """A disk, or an array of disks."""

    @property
    def requests(self) -> int:
        """How many requests were served."""

    def submit(
        self, address: int, size_bytes: int, done: Done, *, is_write: bool, landed: Landed | None
    ) -> None:
        """Request a read or a write; `done` hears whether it was served.

        `landed` hears of each part of a write that has come to the disk, also of one that
        was cut short by the end of the host.
        """

    def flush(self, done: Done) -> None:
        """Let the disk swear that what it wrote is there to stay."""

    def slow_down(self, times: int, effect: Counts) -> Undo:
        """Let every request take so many times as long."""

    def fail(self, effect: Counts, *, reads: bool, writes: bool) -> Undo:
        """Answer requests with an error."""

    def tear(self, effect: Counts) -> Undo:
        """At the end of the host, let sectors arrive out of order."""

    def lose_power(self) -> None:
        """Stop where it is: some of what was being written has landed, no request is answered."""


class Together:
    """Calls once when several requests are over."""

    __slots__ = ("_done", "_is_good", "_left")

    def __init__(self, number: int, done: Done) -> None:
        assert number > 0, "something has to be waited for"
        self._left = number
        self._is_good = True
        self._done = done

    def __call__(self, is_good: bool) -> None:
        """One of them is over."""
        self._left -= 1
        self._is_good = self._is_good and is_good
        if not self._left:
            self._done(self._is_good)


class Disk:
    """One disk."""

    def __init__(self, kernel: Kernel, device: Device, name: str = "disk") -> None:
        self.kernel = kernel
        self.device = device
        self.read_bytes = 0
        self.written_bytes = 0
        self.requests = 0
        """How many were served, after those that were adjacent had become one."""
        self._line = DiskScheduler(device.most_bytes)
        self._serving: dict[Request, tuple[int, int]] = {}
        """Request -> when its data begin to pass, and when they have."""
        self._head = 0
        self._last_is_write = False
        self._free_ns = 0
        """When the bus, or the head, is free for the data of the next request."""
        self._lives = 0
        self._chance = kernel.streams(f"storage/{name}")
        self._flush_us = kernel.streams(f"storage/{name}/flush").sampler(device.flush)
        self._slow: list[tuple[int, Counts]] = []
        self._failing: list[tuple[bool, bool, Counts]] = []
        self._tearing: list[Counts] = []

    # --- requests ----------------------------------------------------------------------

    def submit(
        self,
        address: int,
        size_bytes: int,
        done: Done,
        *,
        is_write: bool,
        landed: Landed | None = None,
    ) -> None:
        """Request a read or a write; `done` hears whether it was served."""
        most = self.device.most_bytes
        if size_bytes <= most:
            self._line.add(Request(Part(address, size_bytes, done, landed), is_write=is_write))
        else:
            together = Together(-(-size_bytes // most), done)
            for begin in range(0, size_bytes, most):
                part = Part(
                    address + begin,
                    min(most, size_bytes - begin),
                    together,
                    landed and moved(landed, begin),
                )
                self._line.add(Request(part, is_write=is_write))
        self._serve()

    def flush(self, done: Done) -> None:
        """Let the disk swear that what it wrote is there to stay."""
        took_us = self._flush_us() * self._slowness("flushes slowed")
        self.kernel.after(took_us, self._flushed, (self._lives, done))

    def _flushed(self, flush: tuple[int, Done]) -> None:
        lives, done = flush
        if lives == self._lives:
            done(not self._fails(is_write=True))

    def _serve(self) -> None:
        while self._line and len(self._serving) < self.device.channels:
            request = self._line.next(self._head)
            begin_ns, end_ns = self._time(request)
            self._serving[request] = begin_ns, end_ns
            due = (self._lives, request)
            self.kernel.at(-(-end_ns // 1000), self._serves, due)

    def _time(self, request: Request) -> tuple[int, int]:
        """When the data of a request begin to pass, and when they have passed."""
        device, now = self.device, self.kernel.now_us * 1000
        latency = (device.write_us if request.is_write else device.read_us) * 1000
        rate = device.rate(is_write=request.is_write)
        if device.arm is None or self._goes_on(request):
            begin = max(now + latency, self._free_ns)
        else:
            begin = self._found_ns(device.arm, request.address, now + latency)
        end = begin + request.size_bytes * NS // rate
        if device.arm is not None and self._is_coming(request):
            end = self._passed_ns(request.end, now + latency, rate)
            begin = min(begin, end)
        times = self._slowness("requests slowed")
        end = now + (end - now) * times
        self._head, self._last_is_write = request.end, request.is_write
        self._free_ns = end
        return begin, end

    def _goes_on(self, request: Request) -> bool:
        """Whether the arm is there: the disk gathers what it is to write in its own memory."""
        return request.address == self._head and request.is_write == self._last_is_write

    def _is_coming(self, request: Request) -> bool:
        """Whether the disk is about to read this anyway: it reads on into its own memory."""
        distance = request.address - self._head
        is_reading = not (request.is_write or self._last_is_write)
        return is_reading and 0 <= distance <= OWN_MEMORY_BYTES

    def _passed_ns(self, address: int, now_ns: int, rate: int) -> int:
        """When the disk, which reads on until its own memory is full, has come to a place."""
        distance = address - self._head
        beyond = max(distance - OWN_MEMORY_BYTES, 0)
        return max(self._free_ns + distance * NS // rate, now_ns + beyond * NS // rate)

    def _found_ns(self, arm: Arm, address: int, now_ns: int) -> int:
        """When the head is over a place, if it sets out now."""
        device, rotation = self.device, arm.rotation_ns
        track_bytes = device.read_bytes_per_s * rotation // NS
        distance = abs(address - self._head)
        if distance >= track_bytes:
            now_ns += arm.seek_ns(distance, device.capacity_bytes)
        angle_ns = address % track_bytes * rotation // track_bytes
        return now_ns + (angle_ns - now_ns) % rotation

    def _serves(self, due: tuple[int, Request]) -> None:
        """A request is over."""
        lives, request = due
        if lives != self._lives:
            return
        del self._serving[request]
        self.requests += 1
        if request.is_write:
            self.written_bytes += request.size_bytes
        else:
            self.read_bytes += request.size_bytes
        is_good = not self._fails(is_write=request.is_write)
        for part in request.parts:
            if is_good and part.landed is not None:
                part.landed(0, part.size_bytes)
            part.done(is_good)
        self._serve()

    # --- faults ------------------------------------------------------------------------

    def slow_down(self, times: int, effect: Counts) -> Undo:
        """Let every request take so many times as long, from now on."""
        assert times >= 1, "a fault does not make a disk faster"
        entry = (times, effect)
        self._slow.append(entry)
        return lambda: self._slow.remove(entry)

    def fail(self, effect: Counts, *, reads: bool = True, writes: bool = True) -> Undo:
        """Answer requests with an error, from now on."""
        entry = (reads, writes, effect)
        self._failing.append(entry)
        return lambda: self._failing.remove(entry)

    def tear(self, effect: Counts) -> Undo:
        """At the end of the host, let sectors of a write arrive in any order, or not."""
        self._tearing.append(effect)
        return lambda: self._tearing.remove(effect)

    def _slowness(self, what: str) -> int:
        product = 1
        for times, effect in self._slow:
            effect.add(what)
            product *= times
        return product

    def _fails(self, *, is_write: bool) -> bool:
        """Whether a request goes wrong; what makes it go wrong counts that."""
        failed = False
        for reads, writes, effect in self._failing:
            if writes if is_write else reads:
                effect.add("writes failed" if is_write else "reads failed")
                failed = True
        return failed

    # --- the end of the host -----------------------------------------------------------

    def lose_power(self) -> None:
        """Stop where it is; say of each write how much of it has come to the disk."""
        now = self.kernel.now_us * 1000
        serving, self._serving = self._serving, {}
        self._lives += 1
        self._line.clear()
        self._free_ns = now
        self._head, self._last_is_write = 0, False
        for request, (begin, end) in serving.items():
            if request.is_write:
                for left, right in self._arrived(request, begin, end, now):
                    _tell(request, left, right)

    def _arrived(
        self, request: Request, begin_ns: int, end_ns: int, now_ns: int
    ) -> list[tuple[int, int]]:
        """The parts of a write, by address, that are on the disk at this moment."""
        sectors = -(-request.size_bytes // SECTOR_BYTES)
        passed = max(now_ns - begin_ns, 0) * sectors // max(end_ns - begin_ns, 1)
        count = min(passed, sectors)
        if not self._tearing:
            return [(request.address, request.address + count * SECTOR_BYTES)]
        for effect in self._tearing:
            effect.add("writes torn")
        return [
            (address, address + SECTOR_BYTES)
            for sector in range(sectors)
            for address in [request.address + sector * SECTOR_BYTES]
            if self._chance.below(sectors + 1) <= max(count, 1)
        ]


def _tell(request: Request, left: int, right: int) -> None:
    """Tell the parts of a request what of them lies between two addresses."""
    for part in request.parts:
        begin = max(left - part.address, 0)
        end = min(right - part.address, part.size_bytes)
        if part.landed is not None and begin < end:
            part.landed(begin, end)
