"""Asks a ZooKeeper which session timeouts it grants.

It moves whatever is asked for into its bounds, and says so when it grants the session.
"""

from __future__ import annotations

import socket
import ssl
import struct

from real.wire import CLOSE_SESSION, CONNECTED, LENGTH

CONNECT = struct.Struct(">iqiqi16s?")
"""Version, last zxid, timeout, session, password with its length, read-only."""
FAREWELL = struct.Struct(">ii")
SHORTEST_MS, LONGEST_MS = 1, 2**31 - 1


def granted_bounds_ms(
    addresses: tuple[str, ...], tls: ssl.SSLContext | None, patience_s: float
) -> tuple[int, int]:
    """The shortest and the longest session timeout; OSError, the last one, if nobody says."""
    problem = OSError("no address was given")
    for address in addresses:
        try:
            return (
                _granted_ms(address, SHORTEST_MS, tls, patience_s),
                _granted_ms(address, LONGEST_MS, tls, patience_s),
            )
        except struct.error:
            problem = OSError("what answers is no ZooKeeper")
        except OSError as error:
            problem = error
    raise problem


def _granted_ms(
    address: str, timeout_ms: int, tls: ssl.SSLContext | None, patience_s: float
) -> int:
    """Open a session with this timeout and close it; the timeout that it was given."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    with socket.create_connection((host, int(port)), timeout=patience_s) as plain:
        place = tls.wrap_socket(plain, server_hostname=host) if tls is not None else plain
        _send(place, CONNECT.pack(0, 0, timeout_ms, 0, 16, bytes(16), False))
        answer = _receive(place)
        _, _, granted_ms, _, _ = CONNECTED.unpack_from(answer)
        _send(place, FAREWELL.pack(1, CLOSE_SESSION))
        _receive(place)
        return int(granted_ms)


def _send(place: socket.socket, body: bytes) -> None:
    place.sendall(LENGTH.pack(len(body)) + body)


def _receive(place: socket.socket) -> bytes:
    """A frame, with its length."""
    head = _exactly(place, LENGTH.size)
    (length,) = LENGTH.unpack(head)
    return head + _exactly(place, length)


def _exactly(place: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        piece = place.recv(length - len(found))
        if not piece:
            raise OSError("the connection was closed")
        found += piece
    return found
