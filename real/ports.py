"""Ports of this machine that nobody uses.

They lie below those the kernel gives to outgoing connections, on Linux and on macOS: a
server that is down for a while must find its port free when it comes back, and a client
that tries to reach it meanwhile must not be given that very port for its own end.
"""

from __future__ import annotations

import os
import socket
from itertools import count, islice

from real.problems import EnvironmentProblem

HOST = "127.0.0.1"
LOWEST = 20_000
SPAN = 12_000
STRIDE = 17
"""Processes that start one after the other look in different places."""

_next = count(os.getpid() * STRIDE)


def free_ports(number: int) -> tuple[int, ...]:
    """So many free ports; this process gets none of them twice, soon."""
    candidates = (LOWEST + place % SPAN for place in islice(_next, SPAN))
    found = tuple(islice((port for port in candidates if is_free(port)), number))
    if len(found) < number:
        raise EnvironmentProblem(
            f"{number} free ports are needed, but only {len(found)} of {LOWEST} to "
            f"{LOWEST + SPAN - 1} on {HOST} are free; end some of the processes that listen"
        )
    return found


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
