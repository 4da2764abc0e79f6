"""One end of a connection: what has arrived, what is under way, and who waits for it.

Bytes travel as the pieces in which they were sent, in order. A sender may have `WINDOW_BYTES`
under way and unread; then it waits, as with the buffers of a kernel. What is sent to an end that
is closed comes back as a reset.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchkeeper.virtual.network.network import Network
    from watchkeeper.virtual.threads.task import Task

WINDOW_BYTES = 256 * 1024
Address = tuple[str, int]


class Endpoint:
    """One end of a connection between two addresses."""

    __slots__ = (
        "arrived",
        "arrived_bytes",
        "changed",
        "due_ns",
        "error",
        "has_ended",
        "is_closed",
        "is_paired",
        "is_shut",
        "link",
        "local",
        "network",
        "offset",
        "peer",
        "remote",
        "under_way",
        "waiters",
    )

    def __init__(self, network: Network, local: Address, remote: Address) -> None:
        self.network = network
        self.local = local
        self.remote = remote
        self.link = (local[0], remote[0])
        self.peer: Endpoint | None = None
        self.arrived: deque[bytes] = deque()
        self.offset = 0
        """How much of the first piece was read."""
        self.arrived_bytes = 0
        self.under_way = 0
        """Bytes that this end has sent and the other has not read."""
        self.has_ended = False
        """Whether the other end sends nothing more."""
        self.is_shut = False
        """Whether this end sends nothing more."""
        self.is_paired = False
        """Whether both ends are of one kernel, which needs no time."""
        self.is_closed = False
        self.error: int | None = None
        """The error that the next operation finds."""
        self.due_ns = 0
        """When the last piece that was sent arrives: none overtakes it."""
        self.waiters: list[Task] = []
        self.changed: Callable[[], object] | None = None
        """Called when something has arrived, for services without threads."""

    # --- sending -----------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send bytes to the other end."""
        peer = self.peer
        assert peer is not None, "a connection has two ends"
        self.under_way += len(data)
        if self.is_paired:
            peer.take(data)
        else:
            self.network.carry(self, partial(peer.take, data))

    def shut(self) -> None:
        """Send nothing more: the other end finds the end of the stream behind what was sent."""
        if not self.is_shut:
            self.is_shut = True
            peer = self.peer
            if peer is not None:
                self.network.carry(self, peer.take_end)

    def close(self) -> None:
        """Close this end; what is unread is lost, and the other end learns that."""
        if self.is_closed:
            return
        has_unread = bool(self.arrived)
        self.is_closed = True
        self.forget_arrived()
        peer = self.peer
        if has_unread and peer is not None:
            self.is_shut = True
            self.network.carry(self, lambda: peer.take_reset(errno.ECONNRESET))
        else:
            self.shut()
        self.wake()

    def abort(self) -> None:
        """Close this end at once: the other end finds a reset."""
        peer = self.peer
        if not self.is_closed and peer is not None:
            self.is_closed = self.is_shut = True
            self.network.carry(self, lambda: peer.take_reset(errno.ECONNRESET))
            self.wake()

    # --- receiving ---------------------------------------------------------------------

    def take(self, data: bytes) -> None:
        """A piece has arrived."""
        if self.is_closed:
            self._refuse()
            return
        self.arrived.append(data)
        self.arrived_bytes += len(data)
        if self.waiters or self.changed is not None:
            self.wake()

    def _refuse(self) -> None:
        peer = self.peer
        if peer is not None and not peer.is_closed:
            self.network.carry(self, lambda: peer.take_reset(errno.ECONNRESET))

    def take_end(self) -> None:
        """The other end sends nothing more."""
        self.has_ended = True
        self.wake()

    def take_reset(self, error: int) -> None:
        """The connection is broken."""
        if not self.is_closed and self.error is None:
            self.error = error
            self.has_ended = True
            self.forget_arrived()
            self.wake()

    def read(self, most: int) -> bytes:
        """Take at most so many of the bytes that have arrived."""
        arrived, offset = self.arrived, self.offset
        first = arrived[0]
        end = offset + most
        if end < len(first):  # a part of a piece, as kazoo reads the length of an answer
            self.offset = end
            data = first[offset:end]
            size = most
        elif len(arrived) == 1:  # all that is left, as most reads of servers are
            arrived.popleft()
            if offset:
                self.offset = 0
                data = first[offset:]
            else:
                data = first
            size = len(data)
        else:
            data = self.peek(most)
            self._drop(len(data))
            return data
        # `_count_read`, written out.
        self.arrived_bytes -= size
        peer = self.peer
        if peer is not None:
            before = peer.under_way
            peer.under_way = before - size
            if before >= WINDOW_BYTES:
                peer.wake()
        return data

    def peek(self, most: int) -> bytes:
        """At most so many of the bytes that have arrived, which stay."""
        arrived, offset = self.arrived, self.offset
        first = arrived[0]
        if len(arrived) == 1 or len(first) - offset >= most:
            return first[offset : offset + most]
        return b"".join([first[offset:], *list(arrived)[1:]])[:most]

    def _drop(self, size: int) -> None:
        """Forget so many bytes; a piece that is read in part stays as it is, with an offset."""
        self._count_read(size)
        arrived, offset = self.arrived, self.offset + size
        while arrived and offset >= len(arrived[0]):
            offset -= len(arrived.popleft())
        self.offset = offset

    def _count_read(self, size: int) -> None:
        self.arrived_bytes -= size
        peer = self.peer
        if peer is not None:
            before = peer.under_way
            peer.under_way = before - size
            if before >= WINDOW_BYTES:
                peer.wake()

    def forget_arrived(self) -> None:
        """Lose what has arrived and was not read."""
        self._count_read(self.arrived_bytes)
        self.arrived.clear()
        self.offset = 0

    @property
    def is_over(self) -> bool:
        """Whether the connection is broken, or ended by the other end."""
        return self.error is not None or self.has_ended

    @property
    def is_readable(self) -> bool:
        """Whether a read does not wait."""
        return bool(self.arrived) or self.has_ended or self.error is not None

    @property
    def is_writable(self) -> bool:
        """Whether a write does not wait."""
        return self.under_way < WINDOW_BYTES or self.error is not None

    def wake(self) -> None:
        """Something has changed for those who wait."""
        if self.waiters:
            wake = self.network.scheduler.wake
            for task in self.waiters:  # none leaves the list before it runs
                wake(task)
        if self.changed is not None:
            self.changed()


class Listener:
    """A port that accepts connections."""

    __slots__ = ("accept", "backlog", "is_closed", "local", "pending", "waiters")

    def __init__(
        self, local: Address, backlog: int, accept: Callable[[Endpoint], object] | None = None
    ) -> None:
        self.local = local
        self.backlog = max(backlog, 1)
        self.accept = accept
        """Takes connections at once, for services without threads."""
        self.pending: deque[Endpoint] = deque()
        self.waiters: list[Task] = []
        self.is_closed = False

    @property
    def is_readable(self) -> bool:
        """Whether a connection waits to be accepted."""
        return bool(self.pending)

    is_writable = False
    error = None
