"""Free ports on this machine.

The range lies below the ephemeral ports of Linux and macOS. A server that is down for a
while has to find its port free when it returns; a client that tries to reach it in the
meantime must not get that very port for its own end of the connection.

For the same reason no other watchkeeper process may take such a port. Ports are reserved in
blocks: the process that has bound the first port of a block owns the others until it ends.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterator
from itertools import islice
from threading import Lock

from watchkeeper.real.errors import EnvironmentProblem

HOST = "127.0.0.1"
LOWEST = 20_000
BLOCK = 100
BLOCKS = 120
RECYCLE_FROM = 4
"""A process that owns this many blocks reuses its first ports instead of reserving more."""


class _Blocks:
    """The port blocks that this process has reserved."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._locks: list[socket.socket] = []
        self._left: deque[int] = deque()
        """The ports in the order in which they are tried; a tried port moves to the end."""
        self._looked = 0

    @property
    def number(self) -> int:
        """The number of reserved blocks."""
        return len(self._locks)

    def next_port(self) -> int | None:
        """The next port to try; None if this machine has none left."""
        if len(self._locks) < RECYCLE_FROM and self._looked >= len(self._left):
            self._take_block()
        if not self._left:
            return None
        port = self._left.popleft()
        self._left.append(port)
        self._looked += 1
        return port

    def _take_block(self) -> None:
        for place in range(BLOCKS):
            # Start at a block that depends on the process id: processes rarely compete for one.
            first = LOWEST + (self.process + place) % BLOCKS * BLOCK
            lock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                lock.bind((HOST, first))
            except OSError:
                lock.close()
                continue
            self._locks.append(lock)
            self._left.extendleft(range(first + BLOCK - 1, first, -1))
            return


_blocks = _Blocks()
_lock = Lock()


def free_ports(number: int) -> tuple[int, ...]:
    """Return `number` free ports that neither this process nor another one uses soon.

    Raises EnvironmentProblem if there are too few.
    """
    with _lock:
        found = tuple(islice(filter(is_free, _candidates()), number))
    if len(found) < number:
        raise EnvironmentProblem(
            f"{number} free ports are needed on {HOST}, but of those between {LOWEST} and "
            f"{LOWEST + BLOCK * BLOCKS - 1} that no other process has only {len(found)} are "
            "free; end some of the processes that listen"
        )
    return found


def open_sockets() -> int:
    """The number of sockets that this process keeps open to reserve its blocks."""
    return _blocks.number


def _candidates() -> Iterator[int]:
    """The ports of this process, each once."""
    global _blocks
    if _blocks.process != os.getpid():
        _blocks = _Blocks()  # after a fork, the blocks are the parent's
    seen: set[int] = set()
    while (port := _blocks.next_port()) is not None and port not in seen:
        seen.add(port)
        yield port


def is_free(port: int) -> bool:
    """Whether a server could listen on this port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError:
            return False
    return True


def check_free(ports: dict[str, int]) -> None:
    """Check that all ports (use -> port) are free; raises EnvironmentProblem otherwise."""
    for use, port in ports.items():
        if not is_free(port):
            raise EnvironmentProblem(
                f"{use} should listen on {HOST}:{port}, but another process has that port; "
                "end it, or let free ports be chosen"
            )
