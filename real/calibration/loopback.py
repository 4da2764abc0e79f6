"""Rates of sending a file over the loopback to a thread that discards it."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

from watchkeeper.model.calibration.disk import MIB

NS = 1_000_000_000
Part = Callable[[int, int, int], int]
"""Sends a part of a file (file, offset, size); returns how much was sent."""


def sendfile_rate(file: int, size_bytes: int, rounds: int) -> int:
    """Bytes per second with `sendfile`, 1 MiB for each call."""
    with sink() as to:
        return _rate(size_bytes, rounds, lambda at, most: send(to, file, at, most))


def copying_rate(file: int, size_bytes: int, rounds: int) -> int:
    """Bytes per second with reads and writes."""
    with sink() as to:
        return _rate(size_bytes, rounds, lambda at, most: copy(to, file, at, most))


def send(to: socket.socket, file: int, at: int, most: int) -> int:
    """Send a part of a file with `sendfile`; return how much was sent."""
    return os.sendfile(to.fileno(), file, at, most)


def copy(to: socket.socket, file: int, at: int, most: int) -> int:
    """Send a part of a file with a read and a write; return how much was sent."""
    data = os.pread(file, most, at)
    to.sendall(data)
    return len(data)


def _rate(size_bytes: int, rounds: int, part: Callable[[int, int], int]) -> int:
    taken = []
    for _ in range(rounds):
        begin, at = time.perf_counter_ns(), 0
        while at < size_bytes:
            at += part(at, min(MIB, size_bytes - at))
        taken.append(time.perf_counter_ns() - begin)
    return int(size_bytes * NS // max(median(taken), 1))


@contextmanager
def sink() -> Iterator[socket.socket]:
    """A connection to a thread that discards what it receives."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_swallow, args=(server,), daemon=True)
        thread.start()
        with socket.create_connection(server.getsockname()) as connection:
            yield connection
        thread.join()


def _swallow(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        memory = bytearray(MIB)
        while connection.recv_into(memory):
            pass
