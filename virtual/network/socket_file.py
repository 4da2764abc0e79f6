"""The file of a virtual socket."""

from __future__ import annotations

import io
from typing import Any


class SocketFile(io.RawIOBase):
    """The raw file of `makefile`, over which Python buffers."""

    def __init__(self, sock: Any, reads: bool, writes: bool) -> None:
        self._sock = sock
        self._reads = reads
        self._writes = writes
        self.name = sock.fileno()
        self.mode = "rb" if reads else "wb"

    def readable(self) -> bool:
        """Whether it can be read."""
        return self._reads

    def writable(self) -> bool:
        """Whether it can be written."""
        return self._writes

    def readinto(self, buffer: Any) -> int | None:
        """Receive into a buffer; None if nothing is there and the socket does not wait."""
        try:
            return int(self._sock.recv_into(buffer))
        except BlockingIOError:
            return None

    def write(self, data: Any) -> int | None:
        """Send bytes; None if there is no room and the socket does not wait."""
        try:
            return int(self._sock.send(data))
        except BlockingIOError:
            return None

    def fileno(self) -> int:
        """The descriptor of its socket."""
        return int(self._sock.fileno())

    def close(self) -> None:
        """Close the file; its socket may be closed now."""
        if not self.closed:
            super().close()
            self._sock.file_closed()
