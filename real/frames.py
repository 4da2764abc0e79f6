"""Frames from a connection, one after the other.

A frame says first how large it is, and nothing is believed of that but the limit: what is
held grows with what has come, never with what was announced.
"""

from __future__ import annotations

import asyncio
import socket

from model.log.wire import frame_size

HEAD_BYTES = 4
PIECE_BYTES = 256 * 1024
"""How much is read at once."""


class Frames:
    """What comes over one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._held = bytearray()

    async def next(self, limit_bytes: int) -> bytes | None:
        """The next frame without its first four bytes; None if the connection ends before.

        `InvalidFrameSize` if it is larger than the limit; then nothing of it was read.
        """
        if not await self._have(HEAD_BYTES):
            return None
        size_bytes = frame_size(bytes(self._held[:HEAD_BYTES]), limit_bytes=limit_bytes)
        end = HEAD_BYTES + size_bytes
        if not await self._have(end):
            return None
        with memoryview(self._held) as held:
            frame = bytes(held[HEAD_BYTES:end])
        del self._held[:end]
        return frame

    async def _have(self, size_bytes: int) -> bool:
        """Hold so much; False if no more comes."""
        loop = asyncio.get_running_loop()
        while len(self._held) < size_bytes:
            piece = await loop.sock_recv(self._connection, PIECE_BYTES)
            if not piece:
                return False
            self._held += piece
        return True
