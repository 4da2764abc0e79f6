"""Frames are begun when they arrive, some of them ahead, and returned in their order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S
from watchkeeper.model.log.format.errors import InvalidFrameSize, LogError
from watchkeeper.real.net.frames import AHEAD, AHEAD_BYTES, AT_A_TIME, Frames

LIMIT_BYTES = 2 * AHEAD_BYTES
Begin = Callable[[Iterator[memoryview]], tuple[int, bytes | None]]


def framed(*contents: bytes) -> bytes:
    """These bodies as frames."""
    return b"".join(len(content).to_bytes(4) + content for content in contents)


def one_by_one(frames: Iterator[memoryview]) -> tuple[int, bytes]:
    """Leave the next frame as remaining work."""
    return 1, bytes(next(frames))


def all_together(frames: Iterator[memoryview]) -> tuple[int, bytes]:
    """Leave all available frames as remaining work."""
    several = [*map(bytes, frames)]
    return len(several), b"+".join(several)


class Pair:
    """Frames, and the other end of their connection."""

    def __init__(self, begin: Begin) -> None:
        here, self.there = socket.socketpair()
        for end in (here, self.there):
            end.setblocking(False)
        self.begun: list[bytes] = []
        self.frames = Frames(here, self._begin, limit_bytes=LIMIT_BYTES)
        self._here = here
        self._do = begin

    def _begin(self, frames: Iterator[memoryview]) -> tuple[int, bytes | None]:
        count, left = self._do(frames)
        self.begun.append(left or b"")
        return count, left

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.there, data)

    def close(self) -> None:
        self.frames.close()
        self._here.close()
        self.there.close()


@asynccontextmanager
async def pair(begin: Begin = one_by_one) -> AsyncIterator[Pair]:
    """A connection with Frames at one end."""
    made = Pair(begin)
    try:
        yield made
    finally:
        made.close()


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in a loop, with a time limit."""
    asyncio.run(asyncio.wait_for(test(), timeout=PATIENCE_S))


async def until(is_so: Callable[[], bool]) -> None:
    """Let the loop run until a condition holds."""
    while not is_so():
        await asyncio.sleep(0.001)


def test_frames_are_found_one_after_the_other() -> None:
    async def test() -> None:
        async with pair() as two:
            data = framed(b"a", b"bc", b"d" * 100_000)
            await two.send(data[:3])
            sending = asyncio.create_task(two.send(data[3:]))
            assert [await two.frames.next() for _ in range(3)] == [b"a", b"bc", b"d" * 100_000]
            await sending
            two.there.close()
            assert await two.frames.next() is None

    run(test)


def test_available_frames_can_be_taken_together() -> None:
    """All that are available, and no incomplete one."""

    async def test() -> None:
        async with pair(all_together) as two:
            data = framed(b"a", b"b", b"c", b"d")
            await two.send(data[:-1])
            assert await two.frames.next() == b"a+b+c"
            await two.send(data[-1:])
            assert await two.frames.next() == b"d"

    run(test)


def test_who_takes_a_part_of_them_gets_the_rest_next() -> None:
    def two_at_most(frames: Iterator[memoryview]) -> tuple[int, bytes]:
        several = [bytes(frame) for frame in frames][:2]
        return len(several), b"+".join(several)

    async def test() -> None:
        async with pair(two_at_most) as two:
            await two.send(framed(b"a", b"b", b"c"))
            assert [await two.frames.next() for _ in range(2)] == [b"a+b", b"c"]

    run(test)


def test_frames_without_remaining_work_wake_no_task() -> None:
    """And after some of them other tasks have their turn."""

    async def test() -> None:
        async with pair(lambda frames: (1, bytes(next(frames)).strip(b"-") or None)) as two:
            await two.send(framed(*[b"-"] * (3 * AT_A_TIME), b"a"))
            assert await two.frames.next() == b"a"
            assert len(two.begun) == 3 * AT_A_TIME + 1

    run(test)


def test_a_sender_without_pauses_does_not_starve_others() -> None:
    """Even if some work of each frame remains."""

    async def test() -> None:
        turns = 0

        async def second() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with pair() as two:
            await two.send(framed(*[b"a"] * (10 * AT_A_TIME)))
            task = asyncio.create_task(second())
            for _ in range(10 * AT_A_TIME):
                await two.frames.next()
            task.cancel()
        assert turns >= 9

    run(test)


# --- ahead -----------------------------------------------------------------------------


def test_nothing_is_begun_ahead_unless_that_is_wanted() -> None:
    async def test() -> None:
        async with pair() as two:
            await two.send(framed(b"a"))
            assert await two.frames.next() == b"a"
            await two.send(framed(b"b"))
            await asyncio.sleep(0.05)
            assert two.begun == [b"a"]

    run(test)


def test_available_and_arriving_frames_are_begun_ahead() -> None:
    """It is returned in its turn, and so are frames that arrive after the look-ahead."""

    async def test() -> None:
        async with pair() as two:
            await two.send(framed(b"a", b"b"))
            assert await two.frames.next() == b"a"
            with two.frames.looking_ahead():
                assert two.begun == [b"a", b"b"]
                await two.send(framed(b"c"))
                await until(lambda: two.begun == [b"a", b"b", b"c"])
            await two.send(framed(b"d"))
            assert [await two.frames.next() for _ in range(3)] == [b"b", b"c", b"d"]

    run(test)


@pytest.mark.parametrize(
    ("each_bytes", "most"), [(1, AHEAD), (AHEAD_BYTES // 4, 4), (AHEAD_BYTES + 1, 1)]
)
def test_looking_ahead_is_bounded(each_bytes: int, most: int) -> None:
    """A number of frames or of bytes; the sender has to wait and loses nothing."""
    sent = [bytes([number]) * each_bytes for number in range(3 * AHEAD)]

    async def test() -> None:
        async with pair() as two:
            sending = asyncio.create_task(two.send(framed(*sent)))
            assert await two.frames.next() == sent[0]
            with two.frames.looking_ahead():
                await until(lambda: len(two.begun) == 1 + most)
                await asyncio.sleep(0.1)
                assert len(two.begun) == 1 + most
            for frame in sent[1:]:
                assert await two.frames.next() == frame
            await sending

    run(test)


@pytest.mark.parametrize("comes_later", [False, True])
def test_what_is_wrong_ahead_is_said_in_its_turn(comes_later: bool) -> None:
    async def test() -> None:
        async with pair() as two:
            wrong = framed(b"b") + (LIMIT_BYTES + 1).to_bytes(4) + b"c" * 100
            await two.send(framed(b"a") + (b"" if comes_later else wrong))
            assert await two.frames.next() == b"a"
            with two.frames.looking_ahead():
                if comes_later:
                    await two.send(wrong)
                await until(lambda: two.begun == [b"a", b"b"])
                await asyncio.sleep(0.05)
            assert await two.frames.next() == b"b"
            with pytest.raises(InvalidFrameSize):
                await two.frames.next()

    run(test)


@pytest.mark.parametrize("error", [LogError("b", "on purpose"), MemoryError("on purpose")])
def test_what_cannot_be_begun_with_ahead_is_tried_again_in_its_turn(error: Exception) -> None:
    def refusing(frames: Iterator[memoryview]) -> tuple[int, bytes]:
        frame = bytes(next(frames))
        if frame == b"b":
            raise error
        return 1, frame

    async def test() -> None:
        async with pair(refusing) as two:
            await two.send(framed(b"a", b"b", b"c"))
            assert await two.frames.next() == b"a"
            with two.frames.looking_ahead():
                await asyncio.sleep(0.05)
            with pytest.raises(type(error), match="on purpose"):
                await two.frames.next()
            assert two.begun == [b"a"]

    run(test)


@pytest.mark.parametrize("comes_later", [False, True])
def test_the_end_of_a_connection_is_reported_in_its_turn(comes_later: bool) -> None:
    async def test() -> None:
        async with pair() as two:
            await two.send(framed(b"a", b"b"))
            assert await two.frames.next() == b"a"
            if not comes_later:
                two.there.close()
            with two.frames.looking_ahead():
                if comes_later:
                    two.there.close()
                await asyncio.sleep(0.05)
            assert await two.frames.next() == b"b"
            assert await two.frames.next() is None

    run(test)


def test_a_connection_that_fails_ahead_fails_in_its_turn() -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            there = socket.create_connection(server.getsockname())
            here, _ = server.accept()
        here.setblocking(False)
        frames = Frames(here, one_by_one, limit_bytes=LIMIT_BYTES)
        there.sendall(framed(b"a", b"b"))
        assert await frames.next() == b"a"
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        with frames.looking_ahead():
            there.close()  # at once, with a reset
            await asyncio.sleep(0.05)
        assert await frames.next() == b"b"
        with pytest.raises(ConnectionResetError):
            await frames.next()
        frames.close()
        here.close()

    run(test)
