"""A machine: what its processor, its memory and its network cost, as rows of a table.

Costs are nanoseconds, and a system call takes less than the microsecond that is the tick of
the simulation. So whatever is shared keeps the moment until which it is taken in nanoseconds,
and so does each caller; only the moment of an answer is cut down to the tick.
A million calls of 0.3 us take 0.3 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapreplace

from watchkeeper.sim.disk.models import DEVICES, MIB, NS, Device
from watchkeeper.sim.engine.kernel import Kernel

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class MachineProfile:
    """One kind of machine."""

    name: str
    about: str
    device: Device
    memory_bytes: int
    """What is left for the pagecache."""
    cores: int
    call_ns: int
    """A system call, there and back, without what it does."""
    write_ns: int
    """What the file system spends on each write, beside the call, the pages and the copy."""
    copy_bytes_per_s: int
    """From one place in memory to another, by one core."""
    page_ns: int
    """What a page costs that comes into the pagecache, or is handed to the network."""
    access_ns: int
    """A read of memory that is in no cache of the processor."""
    bus_bytes_per_s: int
    """What passes between memory and everything else."""
    network_bytes_per_s: int
    hop_us: int
    """From this machine to another, one way."""
    socket_buffer_bytes: int = 128 << 10
    readahead_bytes: int = 128 << 10
    background_percent: int = 10
    """How much of the memory may be dirty before writing back begins, and"""
    dirty_percent: int = 20
    """before a writer has to wait."""
    expire_us: int = 30_000_000
    """How old a dirty page may be,"""
    wake_us: int = 5_000_000
    """and how often that is looked at."""
    journal_bytes: int = 12 << 10
    """What the file system writes to make names and sizes last."""


MACHINES = {
    machine.name: machine
    for machine in (
        MachineProfile(
            "page",
            "a server of the design page's time: six SATA disks, 16 GiB, 1 Gb/s",
            DEVICES["raid-5"],
            memory_bytes=14 * GIB,
            cores=8,
            call_ns=400,
            write_ns=800,
            copy_bytes_per_s=2_500_000_000,
            page_ns=300,
            access_ns=100,
            bus_bytes_per_s=12_000_000_000,
            network_bytes_per_s=125_000_000,
            hop_us=100,
            readahead_bytes=640 << 10,
        ),
        MachineProfile(
            "modern",
            "a server of today: NVMe, 64 GiB, 25 Gb/s",
            DEVICES["nvme"],
            memory_bytes=60 * GIB,
            cores=16,
            call_ns=150,
            write_ns=350,
            copy_bytes_per_s=9_000_000_000,
            page_ns=120,
            access_ns=85,
            bus_bytes_per_s=80_000_000_000,
            network_bytes_per_s=3_125_000_000,
            hop_us=20,
            socket_buffer_bytes=MIB,
        ),
    )
}
"""Every kind of machine that is known here, by name."""


class Lane:
    """Something that serves one after the other."""

    __slots__ = ("busy_ns", "free_ns")

    def __init__(self) -> None:
        self.free_ns = 0
        self.busy_ns = 0

    def take(self, ready_ns: int, cost_ns: int) -> int:
        """Be served from this moment on at the earliest; when that is done."""
        begin = ready_ns if ready_ns > self.free_ns else self.free_ns
        self.free_ns = begin + cost_ns
        self.busy_ns += cost_ns
        return self.free_ns


class Cores:
    """The cores of a processor: a caller takes the one that is free first."""

    __slots__ = ("_free_ns", "busy_ns")

    def __init__(self, number: int) -> None:
        self._free_ns = [0] * number
        self.busy_ns = 0

    def take(self, ready_ns: int, cost_ns: int) -> int:
        """Compute from this moment on at the earliest; when that is done."""
        free = self._free_ns[0]
        done = (ready_ns if ready_ns > free else free) + cost_ns
        heapreplace(self._free_ns, done)
        self.busy_ns += cost_ns
        return done


class Caller:
    """A thread: it does one thing after the other."""

    __slots__ = ("ready_ns",)

    def __init__(self) -> None:
        self.ready_ns = 0
        """When it is done with what it did last, to the nanosecond."""


class Machine:
    """Processor, memory and network of one machine, shared by all that runs there."""

    def __init__(self, kernel: Kernel, profile: MachineProfile) -> None:
        self.kernel = kernel
        self.profile = profile
        self.cores = Cores(profile.cores)
        self.bus = Lane()
        self.network_out = Lane()
        self.network_in = Lane()
        self.calls = 0
        self.copied_bytes = 0

    def begin(self, caller: Caller) -> int:
        """The present moment, of a caller, to the nanosecond."""
        now = self.kernel.now_us * 1000
        return caller.ready_ns if caller.ready_ns > now else now

    def compute(self, caller: Caller, cost_ns: int) -> int:
        """Let a caller compute; when that is done."""
        caller.ready_ns = self.cores.take(self.begin(caller), cost_ns)
        return caller.ready_ns

    def call(self, caller: Caller, cost_ns: int = 0) -> int:
        """Let a caller make a system call that costs so much beside the call; when it is done."""
        self.calls += 1
        return self.compute(caller, self.profile.call_ns + cost_ns)

    def copy(self, caller: Caller, size_bytes: int, cost_ns: int = 0) -> int:
        """Let a caller copy memory, which is read and written; when that is done."""
        profile, begin = self.profile, self.begin(caller)
        self.copied_bytes += size_bytes
        moved = self.bus.take(begin, 2 * size_bytes * NS // profile.bus_bytes_per_s)
        cost_ns += size_bytes * NS // profile.copy_bytes_per_s
        caller.ready_ns = done = max(self.cores.take(begin, cost_ns), moved)
        return done

    def transmit(self, caller: Caller, size_bytes: int, to: Connection) -> None:
        """Let a caller write from its own memory to a connection."""
        self.calls += 1
        ready = self.copy(caller, size_bytes, self.profile.call_ns)
        caller.ready_ns = to.send(ready, size_bytes)

    def receive(self, caller: Caller, size_bytes: int) -> None:
        """Let a caller take what comes from the network into its own memory."""
        cost = size_bytes * NS // self.profile.network_bytes_per_s
        self.move(size_bytes)
        caller.ready_ns = self.network_in.take(self.begin(caller), cost)
        self.calls += 1
        self.copy(caller, size_bytes, self.profile.call_ns)

    def move(self, size_bytes: int) -> int:
        """Let a device move data from or to memory by itself; when that is done."""
        cost = size_bytes * NS // self.profile.bus_bytes_per_s
        return self.bus.take(self.kernel.now_us * 1000, cost)


class Connection:
    """A connection to a peer that takes no more than so much a second."""

    def __init__(self, machine: Machine, *, takes_bytes_per_s: int | None = None) -> None:
        self.machine = machine
        self.takes_bytes_per_s = takes_bytes_per_s
        self.sent_bytes = 0
        self._empty_ns = 0
        """When all that was sent has left."""

    def send(self, ready_ns: int, size_bytes: int) -> int:
        """Send what is in memory; when the last of it has found room in the socket's buffer."""
        profile = self.machine.profile
        rate = profile.network_bytes_per_s
        self.machine.move(size_bytes)
        left = self.machine.network_out.take(ready_ns, size_bytes * NS // rate)
        if self.takes_bytes_per_s is not None and self.takes_bytes_per_s < rate:
            rate = self.takes_bytes_per_s
            left = max(left, max(self._empty_ns, ready_ns) + size_bytes * NS // rate)
        self._empty_ns = left
        self.sent_bytes += size_bytes
        return max(ready_ns, left - profile.socket_buffer_bytes * NS // rate)

    @property
    def arrives_us(self) -> int:
        """When all that was sent is there."""
        return self._empty_ns // 1000 + self.machine.profile.hop_us
