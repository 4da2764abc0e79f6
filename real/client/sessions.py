"""Session timeouts that a ZooKeeper grants, and the end of a session by another client.

A server moves every requested timeout into its bounds and reports the result when it grants
the session. Any client that knows the id and password of a session can close it.
"""

from __future__ import annotations

import socket
import ssl

from watchkeeper.model.wire.connect import (
    ConnectRequest,
    SessionKey,
    decode_connect_response,
    encode_connect_request,
)
from watchkeeper.model.wire.fields import INT32, Malformed
from watchkeeper.model.wire.frames import frame
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import CloseSession, encode_request
from watchkeeper.real.access import Access
from watchkeeper.real.client.plain_client import client_of

FAREWELL = encode_request(1, Opcode.CLOSE_SESSION, CloseSession())
SHORTEST_MS, LONGEST_MS = 1, 2**31 - 1
END_TIMEOUT_S = 5.0


def end_session(access: Access, session: SessionKey) -> bool:
    """Continue a session on another connection and close it; return whether that succeeded."""
    client = client_of(access, client_id=(session.number, session.password))
    client.start_async().wait(END_TIMEOUT_S)
    is_the_same = client.client_id is not None and client.client_id[0] == session.number
    client.stop()
    client.close()
    return is_the_same


def granted_bounds_ms(
    addresses: tuple[str, ...], tls: ssl.SSLContext | None, timeout_s: float
) -> tuple[int, int]:
    """Return the shortest and the longest session timeout in ms.

    Raises the last OSError if no server answers.
    """
    problem = OSError("no address was given")
    for address in addresses:
        try:
            return (
                _granted_ms(address, SHORTEST_MS, tls, timeout_s),
                _granted_ms(address, LONGEST_MS, tls, timeout_s),
            )
        except Malformed:
            problem = OSError("what answers is no ZooKeeper")
        except OSError as error:
            problem = error
    raise problem


def _granted_ms(
    address: str, timeout_ms: int, tls: ssl.SSLContext | None, timeout_s: float
) -> int:
    """Open a session with this timeout, close it, and return the granted timeout."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    with socket.create_connection((host, int(port)), timeout=timeout_s) as plain:
        connection = tls.wrap_socket(plain, server_hostname=host) if tls is not None else plain
        wanted = ConnectRequest(0, 0, timeout_ms, 0, bytes(16), False)
        connection.sendall(frame(encode_connect_request(wanted)))
        granted_ms = decode_connect_response(_receive(connection)).timeout_ms
        connection.sendall(frame(FAREWELL))
        _receive(connection)
        return granted_ms


def _receive(connection: socket.socket) -> bytes:
    """Receive the payload of a frame."""
    (length,) = INT32.unpack(_exactly(connection, INT32.size))
    return _exactly(connection, length)


def _exactly(connection: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        chunk = connection.recv(length - len(found))
        if not chunk:
            raise OSError("the connection was closed")
        found += chunk
    return found
