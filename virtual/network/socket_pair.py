"""Two sockets of one process that are connected with each other."""

from __future__ import annotations

import socket as socket_module
from typing import Any

from watchkeeper.virtual.network.endpoint import Endpoint
from watchkeeper.virtual.network.socket import VirtualSocket, world_network

real_socketpair = socket_module.socketpair


def socketpair(
    family: int | None = None, type: int = socket_module.SOCK_STREAM, proto: int = 0
) -> tuple[Any, Any]:
    """Two sockets that are connected with each other."""
    found = world_network()
    if found is None:
        return real_socketpair() if family is None else real_socketpair(family, type, proto)
    scheduler, network = found
    pair = [VirtualSocket(scheduler, network, socket_module.AF_UNIX, type) for _ in range(2)]
    assert scheduler.running is not None, "sockets are made by threads"
    address = scheduler.running.process.address
    ends = [(address, network.next_port()), (address, network.next_port())]
    left = Endpoint(network, ends[0], ends[1])
    right = Endpoint(network, ends[1], ends[0])
    left.peer, right.peer = right, left
    left.is_paired = right.is_paired = True
    for sock, endpoint in zip(pair, (left, right), strict=True):
        sock.endpoint, sock._local = endpoint, endpoint.local
    return pair[0], pair[1]
