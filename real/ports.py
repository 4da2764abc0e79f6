"""Ports of this machine that nobody uses.

They lie below those the kernel gives to outgoing connections, on Linux and on macOS: a
server that is down for a while must find its port free when it comes back, and a client
that tries to reach it meanwhile must not be given that very port for its own end.

For the same reason no other process of ours may take it meanwhile. So ports are had by the
block: whoever has bound the first port of a block has all the others, until it ends.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterator
from itertools import islice
from threading import Lock

from real.problems import EnvironmentProblem

HOST = "127.0.0.1"
LOWEST = 20_000
BLOCK = 100
BLOCKS = 120
ENOUGH = 4
"""With so many blocks a process goes back to the ports that it had first."""


class _Blocks:
    """The blocks that this process has."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._locks: list[socket.socket] = []
        self._left: deque[int] = deque()
        """Ports in the order in which they are looked at; one that was looked at goes last."""
        self._looked = 0

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self._locks)

    def next_port(self) -> int | None:
        """A port to look at; None if there is none left on this machine."""
        if len(self._locks) < ENOUGH and self._looked >= len(self._left):
            self._take_block()
        if not self._left:
            return None
        port = self._left.popleft()
        self._left.append(port)
        self._looked += 1
        return port

    def _take_block(self) -> None:
        for place in range(BLOCKS):
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
    """So many free ports; this process gets none of them twice, soon, and no other does."""
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
    """How many sockets this process keeps open so that no other takes its ports."""
    return _blocks.number


def _candidates() -> Iterator[int]:
    """Ports of this process, each once."""
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
    """Check that ports, by what they are for, are free; EnvironmentProblem if one is not."""
    for use, port in ports.items():
        if not is_free(port):
            raise EnvironmentProblem(
                f"{use} should listen on {HOST}:{port}, but another process has that port; "
                "end it, or let free ports be chosen"
            )
