"""Frames from a connection, one after the other.

A frame says first how large it is, and nothing is believed of that but the limit: the room for
it grows with what has come, never with what was announced. Something is read when somebody
waits for a frame, or looks some way ahead while he waits for something else, and no sooner; so a
sender who is too fast has to wait himself.

What has come is given to `begin` where it lies, to do with it at once whatever can be done at
once, with one frame or with several that are better done together. Where that is all, as with a
fetch whose answer the connection takes, whoever waits is not even woken: the way through a task
would cost more than such a frame does. What is left to be done is his.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from model.log.wire import HEAD_BYTES, frame_size

T = TypeVar("T")

FIRST_BYTES = 4 * 1024
"""How much is read at once, to begin with."""
ROOM_BYTES = 256 * 1024
"""So much is read at once from a connection that has filled all the room there was."""
AT_A_TIME = 16
"""After so many frames that came together it is somebody else's turn."""
AHEAD = 8
"""So many frames are begun with at most before it is their turn,"""
AHEAD_BYTES = 4 * 1024 * 1024
"""and no more of them once they are as large as that."""
KEPT_BYTES = 4 * 1024 * 1024
"""More room than that is given up when a frame has been taken from it."""


class Frames(Generic[T]):
    """The frames that come over one connection, and what is left to be done of each."""

    def __init__(
        self,
        connection: socket.socket,
        begin: Callable[[Iterator[memoryview]], tuple[int, T | None]],
        *,
        limit_bytes: int,
    ) -> None:
        """`begin` answers how many frames it has taken, and what is left to be done of them.

        It gets those that are there, takes at least the first, and keeps nothing of them.
        Larger frames are refused; `limit_bytes` can be changed between two of them.
        """
        self.limit_bytes = limit_bytes
        self._connection = connection
        self._descriptor = connection.fileno()
        self._begin = begin
        self._loop = asyncio.get_running_loop()
        self._room = bytearray()
        self._at = 0
        self._end = 0
        """Between these two is what has come and was not taken yet."""
        self._is_full = True
        self._in_a_row = 0
        self._left: deque[tuple[T, int]] = deque()
        """What is left of frames, and how large they were."""
        self._left_bytes = 0
        self._looks_ahead = False
        self._failure: OSError | None = None
        """Why nothing more comes; it is said when it is its turn."""
        self._is_over = False
        self._waiting: asyncio.Future[None] | None = None
        self._is_watched = False

    def close(self) -> None:
        """Take no more from the connection; it is about to be closed."""
        self._unwatch()
        self._room = bytearray()
        self._at = self._end = 0

    async def next(self) -> T | None:
        """What is left of the next frame of which something is; None if the connection ends.

        `InvalidFrameSize` if a frame is larger than the limit; then nothing of it was read.
        """
        while True:
            if not self._left:
                if self._in_a_row >= AT_A_TIME:
                    self._in_a_row = 0
                    await asyncio.sleep(0)  # what comes without a pause leaves none to others
                self._step()
            if self._left:
                left, size_bytes = self._left.popleft()
                self._left_bytes -= size_bytes
                return left
            if self._in_a_row < AT_A_TIME and self._end_of_next(self._at) is None:
                if self._failure is not None:
                    raise self._failure
                if self._is_over:
                    return None
                await self._wait()

    # --- what has come -----------------------------------------------------------------

    @contextmanager
    def looking_ahead(self) -> Iterator[None]:
        """Begin with frames before it is their turn, those that are there and those that come.

        What is wrong with one of them is said when it is its turn.
        """
        self._looks_ahead = True
        try:
            if self._take_ahead():
                self._watch()
            yield
        finally:
            self._looks_ahead = False

    def _take_ahead(self) -> bool:
        """Begin with what is there, while there is not enough; whether more is wanted."""
        try:
            while len(self._left) < AHEAD and self._left_bytes < AHEAD_BYTES:
                if not self._step():
                    return not self._is_over
        except Exception:  # it is begun with once more, and raised, when it is its turn
            pass
        return False

    def _step(self) -> bool:
        """Begin with the next frame; whether it is there."""
        first_end = self._end_of_next(self._at)
        if first_end is None:
            return False
        ends: list[int] = []
        count, left = self._begin(self._whole_ones(first_end, ends))
        self._in_a_row += count
        end = ends[count - 1]
        if left is not None:
            self._left.append((left, end - self._at))
            self._left_bytes += end - self._at
        self._at = end
        return True

    def _whole_ones(self, first_end: int, ends: list[int]) -> Iterator[memoryview]:
        """The frames that are there, one after the other; where each ends is added."""
        room, at = memoryview(self._room), self._at
        end: int | None = first_end
        while end is not None:
            ends.append(end)
            yield room[at + HEAD_BYTES : end]
            at, end = end, self._end_of_next(end)

    def _end_of_next(self, at: int) -> int | None:
        """Where the frame ends that begins there; None if it is not there yet."""
        held_bytes = self._end - at
        if held_bytes < HEAD_BYTES:
            return None
        size_bytes = frame_size(self._room[at : at + HEAD_BYTES], limit_bytes=self.limit_bytes)
        return at + HEAD_BYTES + size_bytes if held_bytes >= HEAD_BYTES + size_bytes else None

    # --- what comes --------------------------------------------------------------------

    async def _wait(self) -> None:
        """Wait until a frame is there, or the end.

        The loop goes on watching the connection from one frame to the next, since to tell it
        twice a frame costs more than a small request does. It ceases when something has come
        for which nobody waits.
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
            if not (self._looks_ahead and self._receive_ahead()):
                self._unwatch()
            return
        try:
            self._receive()
            self._step()
            if self._is_over or self._left or self._end_of_next(self._at) is not None:
                waiting.set_result(None)
        except (BlockingIOError, InterruptedError):
            return
        except Exception as error:  # whoever waits is who can do something about it
            waiting.set_exception(error)
            del waiting  # or what was raised would keep this call, and the call what was raised

    def _receive_ahead(self) -> bool:
        """Read what has come before anybody waits for it; whether more is wanted."""
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
        """Read as much as there is room for."""
        self._make_room()
        with memoryview(self._room) as room:
            count = self._connection.recv_into(room[self._end :])
        self._is_over = not count
        self._end += count
        self._is_full = self._end == len(self._room)

    def _make_room(self) -> None:
        """Have room beside what has come, and twice as much of it where it is too little."""
        room_bytes, held_bytes = len(self._room), self._end - self._at
        if not held_bytes and room_bytes > KEPT_BYTES:
            self._room = bytearray(ROOM_BYTES)
        elif 4 * held_bytes > 3 * room_bytes or (self._is_full and room_bytes < ROOM_BYTES):
            more_bytes = max(FIRST_BYTES, 2 * room_bytes) - held_bytes
            self._room = self._room[self._at : self._end] + bytes(more_bytes)
        elif self._at:
            self._room[:held_bytes] = self._room[self._at : self._end]
        self._at, self._end = 0, held_bytes
