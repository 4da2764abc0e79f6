"""Sends responses over one connection; messages go from the file to the socket without a copy."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from watchkeeper.model.log.base_log import FileView
from watchkeeper.model.log.segments import DamagedLog
from watchkeeper.real.storage.file_storage import FileStorage

MORE = getattr(socket, "MSG_MORE", 0)
"""Announces the rest of a packet; not every system has it."""

Rest = Callable[[], Awaitable[None]]
"""The remaining work of a request."""


class Sender:
    """Sends bytes and parts of files over a socket that does not block."""

    def __init__(self, connection: socket.socket, storage: FileStorage) -> None:
        self._connection = connection
        self._storage = storage

    def send_at_once(self, parts: Sequence[bytes | FileView]) -> Rest | None:
        """Send what the socket accepts now, usually everything; return the remaining work."""
        for number, part in enumerate(parts, 1):
            sent = self._send(part, MORE if number < len(parts) else 0)
            if sent < _size_of(part):
                return partial(self.send_all, parts[number - 1 :], sent)
        return None

    async def send_all(self, parts: Sequence[bytes | FileView], sent: int = 0) -> None:
        """Send everything; `sent` bytes of the first part have been sent already."""
        for number, part in enumerate(parts, 1):
            if number > 1:
                sent = self._send(part, MORE if number < len(parts) else 0)
            if sent < _size_of(part):
                await self._send_rest(part, sent)

    def _send(self, part: bytes | FileView, flags: int) -> int:
        """Send what the socket accepts now; return how much that was."""
        try:
            if isinstance(part, bytes):
                return self._connection.send(part, flags)
            with self._storage.sending(*part) as descriptor:
                return os.sendfile(
                    self._connection.fileno(), descriptor, part.at, part.size_bytes
                )
        except BlockingIOError:
            return 0

    async def _send_rest(self, part: bytes | FileView, sent: int) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(part, bytes):
            await loop.sock_sendall(self._connection, part[sent:])
            return
        with (
            self._storage.lease(part.path) as descriptor,
            open(descriptor, "rb", buffering=0, closefd=False) as file,
        ):
            at, left_bytes = part.at + sent, part.size_bytes - sent
            sent += await loop.sock_sendfile(self._connection, file, at, left_bytes)
        if sent < part.size_bytes:
            raise DamagedLog(
                part.path,
                f"{part.size_bytes} bytes from {part.at} were flushed, {sent} are there: "
                "the file was changed from outside; start the broker again to recover it",
            )


def _size_of(part: bytes | FileView) -> int:
    return len(part) if isinstance(part, bytes) else part.size_bytes
