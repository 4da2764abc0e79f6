"""What programs do to the descriptors of virtual sockets beside their methods."""

from __future__ import annotations

import fcntl as fcntl_module
import os
from typing import Any

from watchkeeper.virtual.network.socket import world_network

FIRST = 1_000_001
"""Virtual descriptors are beyond those of the operating system."""
_fcntl = fcntl_module.fcntl
_sendfile = getattr(os, "sendfile", None)
_get_blocking = os.get_blocking
_set_blocking = os.set_blocking


def _number_of(source: Any) -> int:
    return source if isinstance(source, int) else int(source.fileno())


def _socket_of(source: Any) -> Any:
    """The virtual socket of a descriptor; None for a real one."""
    number = _number_of(source)
    found = world_network()
    if found is None or number < FIRST or found[0].running is None:
        return None
    return found[0].running.process.descriptors.get(number)


def fcntl(fd: Any, cmd: int, arg: Any = 0, /) -> Any:
    """Read or set the flags of a descriptor."""
    sock = _socket_of(fd)
    if sock is None:
        return _fcntl(fd, cmd, arg)
    if cmd == fcntl_module.F_GETFD:
        return fcntl_module.FD_CLOEXEC
    if cmd == fcntl_module.F_GETFL:
        return os.O_RDWR | (0 if sock.getblocking() else os.O_NONBLOCK)
    if cmd == fcntl_module.F_SETFL:
        sock.setblocking(not arg & os.O_NONBLOCK)
    return 0


def sendfile(out_fd: Any, in_fd: Any, offset: Any, count: int, *more: Any, **named: Any) -> int:
    """Send a part of a file: what a virtual socket takes, without the kernel."""
    sock = _socket_of(out_fd)
    if sock is None:
        assert _sendfile is not None, "it is replaced only where there is one"
        return int(_sendfile(out_fd, in_fd, offset, count, *more, **named))
    number = _number_of(in_fd)
    data = os.read(number, count) if offset is None else os.pread(number, count, offset)
    return int(sock.send(data))


def get_blocking(fd: int, /) -> bool:
    """Whether the operations of a descriptor wait."""
    sock = _socket_of(fd)
    return _get_blocking(fd) if sock is None else bool(sock.getblocking())


def set_blocking(fd: int, blocking: bool, /) -> None:
    """Let the operations of a descriptor wait, or not."""
    sock = _socket_of(fd)
    if sock is None:
        _set_blocking(fd, blocking)
    else:
        sock.setblocking(blocking)
