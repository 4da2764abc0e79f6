"""Frames from a connection, one after the other.

A frame says first how large it is, and nothing is believed of that but the limit: what is
held grows with what has come, never with what was announced. A piece of it is read when
somebody waits for one, and no sooner, so a sender who is too fast has to wait himself.
"""

from __future__ import annotations

import asyncio
import socket

from model.log.wire import frame_size

HEAD_BYTES = 4
PIECE_BYTES = 256 * 1024
"""How much is read at once."""


class Pieces:
    """What comes over a connection, read as it comes.

    The loop goes on watching the connection from one piece to the next, since to tell it
    twice a piece costs more than a small request does. It ceases when something has come
    for which nobody waits.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[bytes] | None = None
        self._is_watched = False

    async def next(self) -> bytes:
        """The next piece; `b""` when the other side has ended the connection."""
        if not self._is_watched:
            self._loop.add_reader(self._connection, self._ready)
            self._is_watched = True
        self._waiting = self._loop.create_future()
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def close(self) -> None:
        """Watch it no longer; it is about to be closed."""
        if self._is_watched:
            self._loop.remove_reader(self._connection)
            self._is_watched = False

    def _ready(self) -> None:
        waiting = self._waiting
        if waiting is None or waiting.done():
            self.close()
            return
        try:
            waiting.set_result(self._connection.recv(PIECE_BYTES))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            waiting.set_exception(error)


class Frames:
    """The frames that come over one connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._pieces = Pieces(connection)
        self._held = bytearray()

    def close(self) -> None:
        """Take no more from the connection; it is about to be closed."""
        self._pieces.close()

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
        while len(self._held) < size_bytes:
            piece = await self._pieces.next()
            if not piece:
                return False
            self._held += piece
        return True
