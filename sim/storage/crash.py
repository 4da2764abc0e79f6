"""What is left of the files of a host that has lost its power.

Left is what the disk has sworn, what it had written without being asked to swear, and of a
write that was under way as much as had passed. The journal decides about names. A file may be
longer than what was written of it, since its length can be on the disk before its data; and a
page may be there while one before it is not. Both read as zeros.
"""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.sim.engine.random_streams import Stream
from watchkeeper.sim.storage.files import FileNode
from watchkeeper.sim.storage.filesystem import FileSystem
from watchkeeper.sim.storage.pagecache import PAGE_BYTES
from watchkeeper.sim.storage.readahead import Readahead

LENGTH_AHEAD_PERCENT = 25
"""How often the length of a file is ahead of its data."""


class Lost(NamedTuple):
    """What a crash took of a file."""

    path: str
    before_bytes: int
    after_bytes: int
    zero_bytes: int
    """How much of what is left reads as zeros."""

    @property
    def lost_bytes(self) -> int:
        """How much of what was there is not: it is behind the end, or reads as zeros."""
        return self.before_bytes - self.after_bytes + self.zero_bytes


def lose_power(system: FileSystem) -> tuple[Lost, ...]:
    """Take the power from a host; what was lost, file by file."""
    system.store.lose_power()
    system.journal.lose_power()
    memory = system.empty_memory()
    system.cache = memory
    system.reader.lose_power(memory)
    system.writeback.lose_power(memory)
    system.unflushed_bytes = system.most_unflushed_bytes = 0  # what is left is on the disk
    lost = []
    for path, file in system.tree.files.items():
        before = file.size_bytes
        zero_bytes = survive(file, system.chance)
        file.cached = memory.open()
        file.readahead = Readahead(system.profile.readahead_bytes // PAGE_BYTES)
        file.readings.clear()
        file.writings.clear()
        system.volume.shrink(file.room, file.size_bytes)
        system.volume.restore(file.room, file.size_bytes)
        if file.size_bytes < before or zero_bytes:
            lost.append(Lost(path, before, file.size_bytes, zero_bytes))
    return tuple(lost)


def survive(file: FileNode, chance: Stream) -> int:
    """Let a file be what is on the disk of it; how much of that reads as zeros."""
    assert not file.durable.missing(0, file.flushed_bytes), "what was flushed is on the disk"
    size = file.size_bytes
    length = min(file.durable.end, size)
    if length < size and chance.chance(LENGTH_AHEAD_PERCENT):
        length = chance.between(length + 1, size)
    file.cut(length)
    gaps = file.durable.missing(0, length)
    for begin, end in gaps:
        file.blank(begin, end)
    file.durable.add(0, length)
    file.flushed_bytes = file.sworn_bytes = length
    return sum(end - begin for begin, end in gaps)
