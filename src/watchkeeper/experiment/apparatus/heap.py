"""The other way: a broker that keeps messages as objects in its own memory.

A message in a heap is not its bytes. It is an entry of a map with a boxed key, an object, a
buffer and an array, each with a header and each rounded up; what that makes follows from the
layout. When the heap is full, everything stands still while all that lives is visited, object
by object, each somewhere else in memory, and moved together. So a pause grows with what lives,
and ends a session when it is longer than the session's timeout. After a restart of the process
nothing of it is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.experiment.apparatus.host import Host, Process
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.disk.models import NS


@dataclass(frozen=True, slots=True)
class Layout:
    """How a runtime lays out objects."""

    header_bytes: int = 16
    array_header_bytes: int = 24
    reference_bytes: int = 8
    aligned_bytes: int = 8

    def object_bytes(self, references: int, fields_bytes: int) -> int:
        """What an object takes with so many references and so much beside."""
        return self._rounded(self.header_bytes + references * self.reference_bytes + fields_bytes)

    def array_bytes(self, size_bytes: int) -> int:
        """What an array of bytes takes."""
        return self._rounded(self.array_header_bytes + size_bytes)

    def _rounded(self, size_bytes: int) -> int:
        return -(-size_bytes // self.aligned_bytes) * self.aligned_bytes


OBJECTS = {
    "entry of the map": (3, 4),
    "boxed key": (0, 8),
    "message": (1, 9),
    "buffer": (1, 31),
}
"""What a message is made of, beside its array -> references, and bytes of other fields."""
OBJECTS_A_MESSAGE = len(OBJECTS) + 1
HOTSPOT_64 = Layout()
"""The layout of a 64-bit HotSpot that does not compress references."""


def message_bytes(payload_bytes: int, layout: Layout = HOTSPOT_64) -> int:
    """What a message takes in a heap."""
    parts = sum(layout.object_bytes(*fields) for fields in OBJECTS.values())
    slot = layout.reference_bytes * 4 // 3  # the table of the map is three quarters full
    return parts + slot + layout.array_bytes(payload_bytes)


@dataclass(frozen=True, slots=True)
class Collector:
    """How garbage is collected."""

    threads: int = 1
    visits: int = 2
    """How often an object is looked at where it is: to mark it, and to change its references."""

    def pause_us(self, objects: int, live_bytes: int, machine: MachineProfile) -> int:
        """How long everything stands still until so much that lives is moved together."""
        visiting = objects * self.visits * machine.access_ns
        moving = live_bytes * NS // machine.copy_bytes_per_s
        return (visiting + moving) // (1000 * min(self.threads, machine.cores))


ALONE = Collector()
"""What the collectors of the time fell back on when the heap was full: one thread."""


class Heap:
    """The memory of one process, with messages in it."""

    def __init__(
        self,
        host: Host,
        process: Process,
        size_bytes: int,
        *,
        layout: Layout = HOTSPOT_64,
        collector: Collector = ALONE,
    ) -> None:
        self.host = host
        self.process = process
        self.size_bytes = size_bytes
        self.layout = layout
        self.collector = collector
        self.live_bytes = 0
        self.messages = 0
        """How many live."""
        self.pauses_us: list[int] = []
        self._used_bytes = 0
        """With what is garbage already."""

    def put(self, count: int, payload_bytes: int) -> None:
        """Keep messages; garbage is collected when they do not fit."""
        size = count * message_bytes(payload_bytes, self.layout)
        self._make_room(size)
        self.messages += count
        self.live_bytes += size
        self._used_bytes += size

    def drop(self, count: int, payload_bytes: int) -> None:
        """Forget messages: they are garbage."""
        assert count <= self.messages, "what is forgotten was kept"
        self.messages -= count
        self.live_bytes -= count * message_bytes(payload_bytes, self.layout)

    def fits(self, count: int, payload_bytes: int) -> bool:
        """Whether messages can be kept without forgetting others."""
        size = count * message_bytes(payload_bytes, self.layout)
        return self.live_bytes + size <= self.size_bytes

    def _make_room(self, size_bytes: int) -> None:
        if self._used_bytes + size_bytes <= self.size_bytes:
            return
        self.collect()
        if self._used_bytes + size_bytes > self.size_bytes:
            raise OutOfMemory(
                f"{size_bytes:,} bytes do not fit into a heap of {self.size_bytes:,} in which "
                f"{self.live_bytes:,} live; keep less, or have a larger heap"
            )

    def collect(self) -> None:
        """Collect garbage: the process stands still."""
        machine = self.host.machine.profile
        objects = self.messages * OBJECTS_A_MESSAGE
        pause = self.collector.pause_us(objects, self.live_bytes, machine)
        self.pauses_us.append(pause)
        self.process.stand_still(pause)
        self._used_bytes = self.live_bytes


class OutOfMemory(MemoryError):
    """What lives does not fit into the heap."""
