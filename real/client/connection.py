"""kazoo's connection, changed to carry many requests at once.

kazoo sends and reads one frame at a time: one wake-up for each request, and several polls of
the socket for each request and each answer. Members read in batches, and when a member
joins, all of them do so at once. Here all queued requests leave in one write, and all
received frames are read in one call and handled before the next wait.

kazoo still decides about sessions, pings, where to connect, and which error a request gets
when a connection breaks. The class overrides kazoo's private methods; the tests in
tests/real/client/test_connection.py fail if a release of kazoo changes them.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionClosedError, SessionExpiredError
from kazoo.protocol.connection import AUTH_XID, CLOSE_RESPONSE, ConnectionHandler
from kazoo.protocol.serialization import Auth, int_int_struct, int_struct
from kazoo.protocol.states import KeeperState

from watchkeeper.real.client.attempts import AttemptLimit

MOST_BYTES = 65_536
"""The size of one read."""
MOST_REQUESTS = 200
"""The most requests in one write; answers are read between two writes."""
LAST_XID = 2**31 - 1

REFUSALS = {
    KeeperState.AUTH_FAILED: AuthFailedError,
    KeeperState.CLOSED: ConnectionClosedError,
    KeeperState.EXPIRED_SESSION: SessionExpiredError,
}
"""State of kazoo -> the error that it refuses a request with."""

Request = tuple[Any, Any]
"""A request and the receiver of its answer, with `set(value)` and `set_exception(error)`."""


def ready(
    reading: Iterable[Any], writing: Iterable[Any], timeout_s: float | None
) -> tuple[list[Any], list[Any]]:
    """Wait until sockets can be read or written; return the readable and the writable ones."""
    poll = select.poll()
    readers = {reader.fileno(): reader for reader in reading}
    writers = {writer.fileno(): writer for writer in writing}
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
    """Queue requests back to back and wake the connection once."""
    refusal = REFUSALS.get(client._state)
    if refusal is None:
        client._queue.extend(requests)
        if _wake(client._connection):
            return
        refusal = ConnectionClosedError
    for _, result in requests:
        result.set_exception(refusal())


def _wake(connection: ConnectionHandler) -> bool:
    """Make a connection look at its queue; False for a closed one."""
    try:
        # Without waiting: the connection's own thread wakes itself too, and only it makes room.
        connection._write_sock.send(b"\0", socket.MSG_DONTWAIT)
    except BlockingIOError:  # it has more wake-ups than its socket holds: one of them will do
        return True
    except (AttributeError, OSError):
        return False
    return True


class Connection(ConnectionHandler):  # type: ignore[misc]
    """A connection that sends and reads in batches."""

    _xid: int

    def __init__(self, client: KazooClient, limit: AttemptLimit) -> None:
        """Replace the connection that a kazoo client was created with."""
        super().__init__(
            client,
            client._connection.retry_sleeper,
            logger=client._connection.logger,
            sasl_options=client._connection.sasl_options,
        )
        self._limit = limit
        self._received = bytearray()
        self.granted_ms = 0
        """The session timeout that the server has granted; 0 before the first session."""
        self.frame_zxid = 0
        """The zxid in the frame that was read last; 0 if it had none."""
        client._connection = self

    def _connect(self, *address: Any) -> Any:
        self._received.clear()  # what is left of an earlier connection
        with self._limit.attempt():
            read_ms, connect_ms = super()._connect(*address)
        self.granted_ms = round(read_ms * 3 / 2)  # kazoo tells two thirds of it, in milliseconds
        return read_ms, connect_ms

    def _invoke(self, timeout: float, *request: Any, **options: Any) -> Any:
        return super()._invoke(self._limit.of(timeout), *request, **options)

    # --- reading -----------------------------------------------------------------------

    def _read_socket(self, read_timeout: float) -> Any:
        """Read from the socket once and handle every complete frame."""
        while True:
            response = super()._read_socket(read_timeout)
            if response == CLOSE_RESPONSE or not self._has_more():
                return response

    def _read_header(self, timeout: float) -> Any:
        """Read a frame; keep its zxid, which kazoo reads past if the frame is a watch event."""
        header, *rest = super()._read_header(timeout)
        self.frame_zxid = max(header.zxid, 0)
        return header, *rest

    def _has_more(self) -> bool:
        """Whether a frame is buffered, which polling the socket would not show."""
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
        """Send the queued requests in one write."""
        queue = self.client._queue
        self._read_sock.recv(MOST_BYTES)  # the wake-ups; what they announced is in the queue
        message = bytearray()
        sent = []
        for at in range(min(len(queue), MOST_REQUESTS)):
            request, result = queue[at]
            xid = AUTH_XID if request.type == Auth.type else self._next_xid()
            # The requests stay in the queue until the write has succeeded: if the connection
            # breaks, kazoo itself refuses everything that is queued or pending.
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
