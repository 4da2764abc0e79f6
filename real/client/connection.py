"""kazoo's connection, made to carry many requests at once.

kazoo sends and reads one frame at a time: for each request a wake-up, and for each request
and each answer several looks whether the socket is ready. Members read in batches, and
when a member joins, all of them do so at once. Here whatever is queued leaves in one
write; whatever has come is read in one go and handled before anybody waits again.

All that kazoo decides stays kazoo's: sessions, pings, where to connect, and what befalls
requests when a connection breaks.
"""

from __future__ import annotations

import select
import ssl
from collections.abc import Iterable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionClosedError, SessionExpiredError
from kazoo.protocol.connection import AUTH_XID, CLOSE_RESPONSE, ConnectionHandler
from kazoo.protocol.serialization import Auth, int_int_struct, int_struct
from kazoo.protocol.states import KeeperState

MOST_BYTES = 65_536
"""What is read in one go."""
MOST_REQUESTS = 200
"""How many requests leave in one go; between two goes answers are read."""
LAST_XID = 2**31 - 1

REFUSALS = {
    KeeperState.AUTH_FAILED: AuthFailedError,
    KeeperState.CLOSED: ConnectionClosedError,
    KeeperState.EXPIRED_SESSION: SessionExpiredError,
}
"""State of kazoo's -> what it refuses a request with."""

Request = tuple[Any, Any]
"""A request, and what takes its answer: `set(value)` or `set_exception(error)` is called."""


def ready(
    reading: Iterable[Any], writing: Iterable[Any], timeout_s: float | None
) -> tuple[list[Any], list[Any]]:
    """Wait until one of these sockets can be read or written; those that can."""
    poll = select.poll()
    readers = {one.fileno(): one for one in reading}
    writers = {one.fileno(): one for one in writing}
    for number in readers:
        poll.register(number, select.POLLIN)
    for number in writers:
        poll.register(number, select.POLLOUT)
    found = [number for number, _ in poll.poll(None if timeout_s is None else timeout_s * 1000)]
    return (
        [readers[number] for number in found if number in readers],
        [writers[number] for number in found if number in writers],
    )


def send(client: KazooClient, requests: list[Request]) -> None:
    """Queue requests back to back, and wake the connection once."""
    refusal = REFUSALS.get(client._state)
    if refusal is None:
        client._queue.extend(requests)
        if _wake(client._connection):
            return
        refusal = ConnectionClosedError
    for _, result in requests:
        result.set_exception(refusal())


def _wake(connection: ConnectionHandler) -> bool:
    """Let a connection look at its queue; False for one that has been closed."""
    try:
        connection._write_sock.send(b"\0")
    except (AttributeError, OSError):
        return False
    return True


class Connection(ConnectionHandler):  # type: ignore[misc]
    """A connection that sends and reads in batches."""

    _xid: int

    def __init__(self, client: KazooClient) -> None:
        """Take the place of the connection that a client has been made with."""
        super().__init__(
            client,
            client._connection.retry_sleeper,
            logger=client._connection.logger,
            sasl_options=client._connection.sasl_options,
        )
        self._received = bytearray()
        self.granted_ms = 0
        """The session timeout that the server has granted; 0 before there was a session."""
        client._connection = self

    def _connect(self, *address: Any) -> Any:
        self._received.clear()  # what is left of an earlier connection
        read_ms, connect_ms = super()._connect(*address)
        self.granted_ms = round(read_ms * 3 / 2)  # kazoo tells two thirds of it, in milliseconds
        return read_ms, connect_ms

    # --- reading -----------------------------------------------------------------------

    def _read_socket(self, read_timeout: float) -> Any:
        """Read what there is, and handle every frame of it."""
        while True:
            response = super()._read_socket(read_timeout)
            if response == CLOSE_RESPONSE or not self._has_more():
                return response

    def _has_more(self) -> bool:
        """Whether there is a frame that a look at the socket would not tell of."""
        pending = getattr(self._socket, "pending", None)  # only encrypted sockets have it
        if pending is not None and pending() > 0:
            return True
        if len(self._received) < int_struct.size:
            return False
        (length,) = int_struct.unpack_from(self._received)
        is_whole: bool = len(self._received) >= int_struct.size + length
        return is_whole

    def _read(self, length: int, timeout: float) -> bytes:
        while len(self._received) < length:
            self._receive(timeout)
        data = bytes(self._received[:length])
        del self._received[:length]
        return data

    def _receive(self, timeout: float) -> None:
        with self._socket_error_handling():
            try:
                chunk = self._socket.recv(MOST_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                self._wait([self._socket], [], timeout)
                return
            except ssl.SSLWantWriteError:
                self._wait([], [self._socket], timeout)
                return
            if not chunk:
                raise ConnectionResetError("the server has closed the connection")
            self._received += chunk

    def _wait(self, reading: list[Any], writing: list[Any], timeout: float) -> None:
        if not any(ready(reading, writing, timeout)):
            raise self.handler.timeout_exception("socket time-out")

    # --- writing -----------------------------------------------------------------------

    def _send_request(self, read_timeout: float, connect_timeout: float) -> None:
        """Send what is queued."""
        queue = self.client._queue
        self._read_sock.recv(MOST_BYTES)  # the wake-ups; what they announced is in the queue
        message = bytearray()
        sent = []
        for at in range(min(len(queue), MOST_REQUESTS)):
            request, result = queue[at]
            xid = AUTH_XID if request.type == Auth.type else self._next_xid()
            body = request.serialize()
            message += int_struct.pack(len(body) + int_int_struct.size)
            message += int_int_struct.pack(xid, request.type) + body
            sent.append((request, result, xid))
        self._write(message, connect_timeout)
        self.client._pending.extend(sent)
        for _ in sent:
            queue.popleft()
        if queue:
            _wake(self)

    def _next_xid(self) -> int:
        xid: int = self._xid % LAST_XID + 1
        self._xid = xid
        return xid

    def _write(self, message: bytes | bytearray, timeout: float) -> None:
        left = memoryview(message)
        with self._socket_error_handling():
            while left:
                try:
                    left = left[self._socket.send(left) :]
                except (BlockingIOError, ssl.SSLWantWriteError):
                    self._wait([], [self._socket], timeout)
                except ssl.SSLWantReadError:
                    self._wait([self._socket], [], timeout)
