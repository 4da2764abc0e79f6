"""Where files are on a disk, and how much room is left.

A file grows by regions. Alone it gets one behind the other and stands in line; files that
grow together share the disk region by region, as they do where a file system puts off the
choice of a place until it writes.
"""

from __future__ import annotations

from heapq import heappop, heappush

from watchkeeper.model.delivery.interval_set import Interval
from watchkeeper.sim.disk.disk import Counts, Undo
from watchkeeper.sim.storage.pagecache import PAGE_BYTES

REGION_BYTES = 8 << 20
JOURNAL_BYTES = 128 << 20
"""What the journal goes round in, at the beginning of the disk."""


def rounded(size_bytes: int) -> int:
    """So many bytes as whole pages."""
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES


class Room:
    """What a file has on the disk."""

    __slots__ = ("regions", "size_bytes")

    def __init__(self) -> None:
        self.regions: list[int] = []
        """Where each of its regions begins."""
        self.size_bytes = 0

    def spans(self, begin: int, end: int) -> list[Interval]:
        """Where some of its bytes are: from address to address, adjacent ones together."""
        found: list[Interval] = []
        while begin < end:
            number, inside = divmod(begin, REGION_BYTES)
            size = min(REGION_BYTES - inside, end - begin)
            address = self.regions[number] + inside
            if found and found[-1][1] == address:
                found[-1] = found[-1][0], address + size
            else:
                found.append((address, address + size))
            begin += size
        return found


class Volume:
    """The room on a disk."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes
        self.used_bytes = 0
        self._next = JOURNAL_BYTES
        self._free: list[int] = []
        self._full: list[tuple[int, Counts]] = []
        """How much may be used, by which fault."""

    @property
    def left_bytes(self) -> int:
        """How much room there is."""
        limit = min((limit for limit, _ in self._full), default=self.room_bytes)
        return max(limit - self.used_bytes, 0)

    def grow(self, room: Room, size_bytes: int) -> int:
        """Have room for so many bytes of a file, or as many as there is room for; how many."""
        wanted = rounded(size_bytes) - room.size_bytes
        if wanted <= 0:
            return size_bytes
        if wanted > self.left_bytes:
            wanted = self.left_bytes // PAGE_BYTES * PAGE_BYTES
            for _, effect in self._full:
                effect.add("writes without room")
        self._give(room, wanted)
        return min(size_bytes, room.size_bytes)

    def restore(self, room: Room, size_bytes: int) -> None:
        """Give a file that is back the room that it had, even if another file has it now."""
        if size_bytes > room.size_bytes:
            self._give(room, rounded(size_bytes) - room.size_bytes)

    def _give(self, room: Room, size_bytes: int) -> None:
        room.size_bytes += size_bytes
        self.used_bytes += size_bytes
        while len(room.regions) * REGION_BYTES < room.size_bytes:
            room.regions.append(self._region())

    def shrink(self, room: Room, size_bytes: int) -> None:
        """Give back what is behind so many bytes of a file, if it has more than that."""
        kept = min(rounded(size_bytes), room.size_bytes)
        self.used_bytes -= room.size_bytes - kept
        room.size_bytes = kept
        regions = -(-kept // REGION_BYTES)
        for region in room.regions[regions:]:
            heappush(self._free, region)
        del room.regions[regions:]

    def _region(self) -> int:
        if self._free:
            return heappop(self._free)
        self._next += REGION_BYTES
        return self._next - REGION_BYTES

    def fill_up(self, effect: Counts, *, left_bytes: int = 0) -> Undo:
        """Take all the room but so much, as other data would."""
        entry = (self.used_bytes + left_bytes, effect)
        self._full.append(entry)
        return lambda: self._full.remove(entry)
