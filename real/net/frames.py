"""Length-prefixed frames from a connection, in order.

A frame starts with its size. That size is trusted only up to the limit: the buffer grows
with the bytes that arrive, not with the announced size. Bytes are read only while a task
waits for a frame, or while it looks ahead during another wait, so a fast sender is slowed
down by TCP.

Received frames are passed to `begin` in place, in the event loop's callback. `begin` does at
once what can be done at once, for one frame or for several that are better handled together.
If that is all (a fetch whose response the socket accepts), the waiting task is not even
woken: switching to it would cost more than the frame. What remains is left to the task.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from watchkeeper.model.log.format.frames import HEAD_BYTES, frame_size

T = TypeVar("T")

FIRST_BYTES = 4 * 1024
"""The size of the first buffer."""
ROOM_BYTES = 256 * 1024
"""The buffer size for a connection that has filled smaller ones."""
AT_A_TIME = 16
"""After this many frames in a row other tasks get a turn."""
AHEAD = 8
"""The most frames that are begun before their turn,"""
AHEAD_BYTES = 4 * 1024 * 1024
"""and their largest total size."""
KEPT_BYTES = 4 * 1024 * 1024
"""A larger buffer is released when its frame has been taken."""


class Frames(Generic[T]):
    """The frames of one connection, and the remaining work of each."""

    def __init__(
        self,
        connection: socket.socket,
        begin: Callable[[Iterator[memoryview]], tuple[int, T | None]],
        *,
        limit_bytes: int,
    ) -> None:
        """`begin` returns how many frames it has taken, and the remaining work of them.

        It gets the available frames, takes at least the first, and keeps no reference to them.
        Larger frames are refused; `limit_bytes` may change between two frames.
        """
        self.limit_bytes = limit_bytes
        self._connection = connection
        self._descriptor = connection.fileno()
        self._begin = begin
        self._loop = asyncio.get_running_loop()
        self._room = bytearray()
        self._at = 0
        self._end = 0
        """The received bytes that were not taken yet are between these two indexes."""
        self._is_full = True
        self._in_a_row = 0
        self._remaining: deque[tuple[T, int]] = deque()
        """The remaining work of frames, with their sizes."""
        self._remaining_bytes = 0
        self._looks_ahead = False
        self._ended: Callable[[], object] | None = None
        self._failure: OSError | None = None
        """Why nothing more can be read; raised when its turn comes."""
        self._is_over = False
        self._waiting: asyncio.Future[None] | None = None
        self._is_watched = False

    def close(self) -> None:
        """Stop reading; the connection is about to be closed."""
        self._unwatch()
        self._room = bytearray()
        self._at = self._end = 0

    async def next(self) -> T | None:
        """The remaining work of the next frame that has any; None at the end of the connection.

        Raises InvalidFrameSize for a frame above the limit, of which nothing was read.
        """
        while True:
            if not self._remaining:
                if self._in_a_row >= AT_A_TIME:
                    self._in_a_row = 0
                    await asyncio.sleep(0)  # a fast sender must not starve other tasks
                self._step()
            if self._remaining:
                remaining, size_bytes = self._remaining.popleft()
                self._remaining_bytes -= size_bytes
                return remaining
            if self._in_a_row < AT_A_TIME and self._end_of_next(self._at) is None:
                if self._failure is not None:
                    raise self._failure
                if self._is_over:
                    return None
                await self._wait()

    # --- what has come -----------------------------------------------------------------

    @contextmanager
    def looking_ahead(self) -> Iterator[None]:
        """Begin frames before their turn: those that are there and those that arrive.

        An error of one of them is raised when its turn comes.
        """
        self._looks_ahead = True
        try:
            if self._take_ahead():
                self._watch()
            yield
        finally:
            self._looks_ahead = False

    @contextmanager
    def noticing_end(self, ended: Callable[[], object]) -> Iterator[None]:
        """Call a function if the peer closes the connection meanwhile.

        It is not noticed behind a frame that the peer has sent before, which waits for its turn.
        """
        self._ended = ended
        try:
            self._watch()
            yield
        finally:
            self._ended = None

    def _look_for_end(self, ended: Callable[[], object]) -> None:
        try:
            is_over = not self._connection.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            is_over = True
        self._unwatch()
        if is_over:
            ended()

    def _take_ahead(self) -> bool:
        """Begin available frames up to the limits; return whether more are wanted."""
        try:
            while len(self._remaining) < AHEAD and self._remaining_bytes < AHEAD_BYTES:
                if not self._step():
                    return not self._is_over
        except Exception:  # it is begun again, and raised, when its turn comes
            pass
        return False

    def _step(self) -> bool:
        """Begin the next frame; return whether it was complete."""
        first_end = self._end_of_next(self._at)
        if first_end is None:
            return False
        ends: list[int] = []
        count, remaining = self._begin(self._complete_frames(first_end, ends))
        self._in_a_row += count
        end = ends[count - 1]
        if remaining is not None:
            self._remaining.append((remaining, end - self._at))
            self._remaining_bytes += end - self._at
        self._at = end
        return True

    def _complete_frames(self, first_end: int, ends: list[int]) -> Iterator[memoryview]:
        """The complete frames in order; the end of each is appended to `ends`."""
        room, at = memoryview(self._room), self._at
        end: int | None = first_end
        while end is not None:
            ends.append(end)
            yield room[at + HEAD_BYTES : end]
            at, end = end, self._end_of_next(end)

    def _end_of_next(self, at: int) -> int | None:
        """The end of the frame that begins at this index; None if it is incomplete."""
        held_bytes = self._end - at
        if held_bytes < HEAD_BYTES:
            return None
        size_bytes = frame_size(self._room[at : at + HEAD_BYTES], limit_bytes=self.limit_bytes)
        return at + HEAD_BYTES + size_bytes if held_bytes >= HEAD_BYTES + size_bytes else None

    # --- receiving -------------------------------------------------------------------------

    async def _wait(self) -> None:
        """Wait for a complete frame or for the end of the connection.

        The loop keeps watching the connection between frames: adding and removing the reader
        for each frame costs more than a small request. It stops watching when bytes arrive that
        no task waits for.
        """
        self._watch()
        self._in_a_row = 0
        self._waiting = self._loop.create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def _ready(self) -> None:
        waiting = self._waiting
        if waiting is None or waiting.done():
            if self._ended is not None:
                self._look_for_end(self._ended)
            elif not (self._looks_ahead and self._receive_ahead()):
                self._unwatch()
            return
        try:
            self._receive()
            self._step()
            if self._is_over or self._remaining or self._end_of_next(self._at) is not None:
                waiting.set_result(None)
        except (BlockingIOError, InterruptedError):
            return
        except Exception as error:  # only the waiting task can handle it
            waiting.set_exception(error)
            del waiting  # breaks the cycle of traceback and frame

    def _receive_ahead(self) -> bool:
        """Read ahead of the task; return whether more is wanted."""
        try:
            self._receive()
        except (BlockingIOError, InterruptedError):
            return True
        except OSError as error:
            self._failure = error
            return False
        return self._take_ahead()

    def _watch(self) -> None:
        if not self._is_watched:
            self._loop.add_reader(self._descriptor, self._ready)
            self._is_watched = True

    def _unwatch(self) -> None:
        if self._is_watched:
            self._loop.remove_reader(self._descriptor)
            self._is_watched = False

    def _receive(self) -> None:
        """Read as much as fits into the buffer."""
        self._make_room()
        with memoryview(self._room) as room:
            count = self._connection.recv_into(room[self._end :])
        self._is_over = not count
        self._end += count
        self._is_full = self._end == len(self._room)

    def _make_room(self) -> None:
        """Make room behind the received bytes; double the buffer if it is too small."""
        room_bytes, held_bytes = len(self._room), self._end - self._at
        if not held_bytes and room_bytes > KEPT_BYTES:
            self._room = bytearray(ROOM_BYTES)
        elif 4 * held_bytes > 3 * room_bytes or (self._is_full and room_bytes < ROOM_BYTES):
            more_bytes = max(FIRST_BYTES, 2 * room_bytes) - held_bytes
            self._room = self._room[self._at : self._end] + bytes(more_bytes)
        elif self._at:
            self._room[:held_bytes] = self._room[self._at : self._end]
        self._at, self._end = 0, held_bytes
