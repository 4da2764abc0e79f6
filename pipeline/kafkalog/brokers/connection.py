"""A connection to a broker: one request at a time, in the protocol of 0.7 or of 0.8.

What stands at an address may be no broker, so a response has the size that it must have at most,
and nothing is waited for longer than a few seconds.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any, Self

from watchkeeper.model.log.format import requests
from watchkeeper.model.log.format.frames import (
    HEAD_BYTES,
    LARGEST_FRAME_BYTES,
    WireStruct,
    frame_size,
)
from watchkeeper.model.wire_08.table import decode_response, encode_request

TIMEOUT_S = 10.0
"""Of the connection, and of each part of a response."""
CLIENT = "watchkeeper"
RECEIVED_BYTES = 1 << 20
"""The most bytes that are received at once."""


class Connection:
    """A connection to a broker at `HOST:PORT`; its methods raise OSError or LogError."""

    def __init__(self, address: str, timeout_s: float = TIMEOUT_S) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):  # the peer may have closed it before
            self._socket.close()

    def ask_07(self, request: requests.Request, limit_bytes: int) -> Any:
        """Send a request of 0.7, and wait for its response."""
        frame = self.exchange(requests.encode_request(request), limit_bytes)
        return requests.decode_response(request, frame)

    def ask_08(self, request: WireStruct, limit_bytes: int = LARGEST_FRAME_BYTES) -> Any:
        """Send a request of 0.8, and wait for its response."""
        self._sent += 1
        frame = self.exchange(encode_request(request, self._sent, CLIENT), limit_bytes)
        return decode_response(request, frame, self._sent)

    def exchange(self, sent: bytes, limit_bytes: int) -> bytes:
        """Send a frame, and receive the next one without its size."""
        self._socket.sendall(sent)
        return self._received(frame_size(self._received(HEAD_BYTES), limit_bytes=limit_bytes))

    def _received(self, size_bytes: int) -> bytes:
        data = bytearray()  # it grows with what arrives, not with what was announced
        while len(data) < size_bytes:
            part = self._socket.recv(min(size_bytes - len(data), RECEIVED_BYTES))
            if not part:
                raise ConnectionResetError("the broker has closed the connection")
            data += part
        return bytes(data)
