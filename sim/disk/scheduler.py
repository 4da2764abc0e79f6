"""Which request a disk serves next: those that are adjacent as one, and in order of place.

Requests wait in the order of their addresses. One that goes on where another of the same
kind ends becomes part of it. They are served in batches of one kind: the first of a batch is
the one that has waited longest, so that no request waits for ever, and from there the arm goes in
one direction. Reads go before writes, since a caller waits for each of them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from operator import attrgetter

BATCH = {False: 16, True: 4}
"""Whether it is of writes -> how many requests a batch has at most."""
READ_BATCHES = 2
"""How many batches of reads go before a write that waits."""

Done = Callable[[bool], object]
"""Called when a request is over: whether it was served."""
Landed = Callable[[int, int], object]
"""Called with each part of a write, from byte to byte, that has come to the disk."""


def moved(landed: Landed, by: int) -> Landed:
    """The same for what begins so many bytes earlier."""
    return lambda begin, end: landed(begin + by, end + by)


_ADDRESS = attrgetter("address")
_NUMBER = attrgetter("number")


class Part:
    """A request to a disk, or as much of it as fits into one."""

    __slots__ = ("address", "done", "landed", "size_bytes")

    def __init__(self, address: int, size_bytes: int, done: Done, landed: Landed | None) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.done = done
        self.landed = landed


class Request:
    """One request of a disk: parts that are adjacent."""

    __slots__ = ("address", "is_write", "number", "parts", "size_bytes")

    def __init__(self, part: Part, *, is_write: bool) -> None:
        self.number = 0
        """Who waits longer has a smaller one."""
        self.address = part.address
        self.size_bytes = part.size_bytes
        self.is_write = is_write
        self.parts = [part]

    @property
    def end(self) -> int:
        """Where the next one would go on."""
        return self.address + self.size_bytes

    def join(self, other: Request) -> None:
        """Take over the sectors of another request, before or behind."""
        self.number = min(self.number, other.number)
        self.address = min(self.address, other.address)
        self.size_bytes += other.size_bytes
        self.parts += other.parts


class DiskScheduler:
    """The requests that wait for a disk."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._waiting: dict[bool, list[Request]] = {False: [], True: []}
        self._is_writing = False
        self._left = 0
        """How many more requests belong to this batch."""
        self._passed = 0
        """How many batches of reads have gone before a write that waits."""
        self._added = 0
        self.merged = 0
        """How many requests became part of another."""

    def __bool__(self) -> bool:
        return bool(self._waiting[False] or self._waiting[True])

    def add(self, request: Request) -> None:
        """Let a request wait, as a part of another where it is adjacent."""
        self._added += 1
        request.number = self._added
        line = self._waiting[request.is_write]
        at = bisect_left(line, request.address, key=_ADDRESS)
        if at < len(line) and self._fits(request, line[at]):
            request.join(line.pop(at))
            self.merged += 1
        if at and self._fits(line[at - 1], request):
            line[at - 1].join(request)
            self.merged += 1
        else:
            insort(line, request, key=_ADDRESS)

    def _fits(self, one: Request, other: Request) -> bool:
        return one.end == other.address and (
            one.size_bytes + other.size_bytes <= self._most_bytes
        )

    def next(self, head: int) -> Request:
        """The request to serve now, with the arm at this place; it waits no longer."""
        if self._left and self._waiting[self._is_writing]:
            self._left -= 1
            line = self._waiting[self._is_writing]
            at = bisect_left(line, head, key=_ADDRESS)
            return line.pop(at if at < len(line) else 0)
        self._begin_batch()
        line = self._waiting[self._is_writing]
        oldest = min(line, key=_NUMBER)
        line.remove(oldest)
        return oldest

    def _begin_batch(self) -> None:
        """Decide whether to write now: if no read waits, or reads have gone first for long."""
        reads, writes = self._waiting[False], self._waiting[True]
        self._is_writing = not reads or (bool(writes) and self._passed >= READ_BATCHES)
        self._passed = self._passed + 1 if writes and not self._is_writing else 0
        self._left = BATCH[self._is_writing] - 1

    def clear(self) -> None:
        """Forget whatever waits: the host is gone."""
        for line in self._waiting.values():
            line.clear()
