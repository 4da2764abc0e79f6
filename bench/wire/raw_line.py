"""One connection to a ZooKeeper, as a bare socket."""

from __future__ import annotations

import select
import socket
import time
from collections import deque

from bench.wire import jute

ANSWER_S = 10.0
"""How long an answer may take before it counts as missing."""
SESSION_MS = 30_000


class Line:
    """One connection: what was sent and is not answered, and what has arrived."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), ANSWER_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""
        self.is_open = True
        self.awaited: deque[tuple[int, int]] = deque()
        """(xid, opcode) of the requests that are not answered."""

    def send(self, data: bytes) -> None:
        """Send bytes; a connection that is closed takes none."""
        try:
            self._socket.sendall(data)
        except OSError:
            self.is_open = False

    def frame(self, timeout_s: float) -> bytes | None:
        """The next frame; None if there is none in time or the connection is closed."""
        ends = time.monotonic() + timeout_s
        while not self._is_whole():
            left = ends - time.monotonic()
            if not self.is_open or not self._receive(max(left, 0.0)) or left < 0:
                return None
        length = jute.INT.unpack_from(self._data)[0]
        payload, self._data = self._data[4 : 4 + length], self._data[4 + length :]
        return payload

    def _is_whole(self) -> bool:
        data = self._data
        return len(data) >= 4 and len(data) >= 4 + int(jute.INT.unpack_from(data)[0])

    def _receive(self, timeout_s: float) -> bool:
        if not select.select([self._socket], [], [], timeout_s)[0]:
            return False
        try:
            data = self._socket.recv(1 << 18)
        except OSError:
            data = b""
        self._data += data
        self.is_open = bool(data)
        return self.is_open

    def close(self) -> None:
        """Close this end."""
        self.is_open = False
        self._socket.close()

    def fileno(self) -> int:
        """The socket, for selectors."""
        return self._socket.fileno()

    def begin_session(self, timeout_ms: int = SESSION_MS) -> jute.Granted:
        """Request a new session and return what is granted; raises OSError if none is."""
        self.send(jute.connect_request(0, bytes(16), timeout_ms, read_only=False))
        payload = self.frame(ANSWER_S)
        if payload is None:
            raise OSError("no session was granted")
        return jute.granted(payload)

    def call(self, xid: int, opcode: int, body: bytes) -> tuple[int, bytes]:
        """Send a request and return its error and body; events that come before are dropped."""
        self.send(jute.request(xid, opcode, body))
        while (payload := self.frame(ANSWER_S)) is not None:
            found, _, error = jute.REPLY_HEAD.unpack_from(payload)
            if found == xid:
                return error, payload[jute.REPLY_HEAD.size :]
        raise OSError(f"request {xid} with opcode {opcode} has no answer")
