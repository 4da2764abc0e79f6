"""Calls over TCP: what becomes of them when the other side answers, hesitates or is gone."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

from model.calls import Call, CallError, Disconnected, HangUp, TimedOut, Unreachable
from model.log.errors import LogError, MalformedResponse
from model.log.requests import (
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    Response,
    encode_response,
)
from model.threads import Start, put, take
from real.calling import largest_response
from real.ports import free_ports
from tests.brokers import received
from tests.log_vectors import MAGIC_1_HELLO
from tests.threads_worlds import Heard, live

FETCH = FetchRequest("test", 0, 0, 1000)
PRODUCE = ProduceRequest("test", 0, MAGIC_1_HELLO)
HELLO = FetchResponse(MAGIC_1_HELLO)
Script = Callable[[socket.socket], None]


class Scripted:
    """A broker of one's own: what it does with each connection is a script."""

    def __init__(self, script: Script) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self.listener.getsockname())
        self.script = script
        self.connections = 0
        self.requests: list[bytes] = []
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with connection:
            while head := received(connection, 4):
                self.requests.append(received(connection, struct.unpack(">i", head)[0]))
                self.script(connection)


def answers(connection: socket.socket) -> None:
    """Answer as if it were a fetch."""
    connection.sendall(encode_response(HELLO))


@pytest.fixture
def serve() -> Iterator[Callable[[Script], Scripted]]:
    """Makes brokers that follow a script."""
    made: list[Scripted] = []

    def make(script: Script) -> Scripted:
        made.append(Scripted(script))
        return made[-1]

    yield make
    for one in made:
        one.listener.close()


Serve = Callable[[Script], Scripted]


def run(main: Callable[[], Any]) -> Heard:
    """Run a thread on a loop."""
    heard = Heard()
    live(main, heard)
    return heard


async def failure_of(call: Call) -> type[CallError]:
    """The error of a call that has to fail."""
    with pytest.raises(CallError) as raised:
        await call
    assert raised.value.address == call.address
    return raised.type


def test_a_thread_keeps_its_connection_and_shares_it_with_nobody(serve: Serve) -> None:
    """Two calls of one thread go over one, those of another over another."""
    broker = serve(answers)

    async def other() -> None:
        assert await Call(broker.address, FETCH) == HELLO
        await put("done", True, 1)

    async def main() -> None:
        assert [await Call(broker.address, FETCH) for _ in range(3)] == [HELLO] * 3
        assert broker.connections == 1
        await Start("other", other)
        await take("done")
        assert broker.connections == 2

    assert run(main).failed == []


def test_a_connection_ends_when_it_is_hung_up(serve: Serve) -> None:
    """The next call makes another one; to hang up what is not there does nothing."""
    broker = serve(answers)

    async def main() -> None:
        await HangUp(broker.address)
        for _ in range(2):
            await Call(broker.address, FETCH)
            await HangUp(broker.address)
        assert broker.connections == 2

    run(main)


def test_nobody_there_is_unreachable() -> None:
    """The request was not sent."""
    (port,) = free_ports(1)

    async def main() -> None:
        assert await failure_of(Call(f"127.0.0.1:{port}", FETCH)) is Unreachable

    run(main)


def test_a_response_that_does_not_come_in_time_ends_the_connection(serve: Serve) -> None:
    """What comes too late would be taken for another request's response."""
    silent = [True]

    def first_silent(connection: socket.socket) -> None:
        if not silent:
            answers(connection)

    broker = serve(first_silent)

    async def main() -> None:
        assert await failure_of(Call(broker.address, FETCH, timeout_ms=50)) is TimedOut
        silent.clear()
        assert await Call(broker.address, FETCH) == HELLO
        assert broker.connections == 2

    run(main)


def test_a_connection_that_breaks_before_the_response_is_said_so(serve: Serve) -> None:
    """In the middle of one, too; then a call makes another connection."""
    ends = [b"", encode_response(HELLO)[:7]]

    def breaks(connection: socket.socket) -> None:
        if ends:
            connection.sendall(ends.pop())
            connection.shutdown(socket.SHUT_RDWR)
        else:
            answers(connection)

    broker = serve(breaks)

    async def main() -> None:
        for _ in range(2):
            assert await failure_of(Call(broker.address, FETCH)) is Disconnected
        assert await Call(broker.address, FETCH) == HELLO

    run(main)


def test_a_connection_that_died_unnoticed_swallows_a_produce(serve: Serve) -> None:
    """Once, as in 0.7: the next one finds it broken, and the one after that a new one."""

    def ends(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_RDWR)

    broker = serve(ends)

    async def main() -> None:
        assert await Call(broker.address, PRODUCE) is None
        await pause()
        assert await Call(broker.address, PRODUCE) is None, "swallowed"
        await pause()
        assert await failure_of(Call(broker.address, PRODUCE)) is Disconnected
        assert await Call(broker.address, PRODUCE) is None
        await pause()
        assert len(broker.requests) == 2

    run(main)


async def pause() -> None:
    """Long enough for a packet to come from this machine to itself."""
    assert await take("nothing", timeout_ms=100) is None


MALFORMED = {
    "too large": struct.pack(">i", 2000),
    "too short": struct.pack(">i", 1) + b"x",
    "empty": struct.pack(">i", 0),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_response_that_is_none_is_an_error_of_the_log(what: str, serve: Serve) -> None:
    """And the connection is given up."""
    broker = serve(lambda connection: connection.sendall(MALFORMED[what]))

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(LogError):
                await Call(broker.address, FETCH)
        assert broker.connections == 2

    run(main)


def test_an_error_that_a_thread_does_not_catch_is_heard_of(serve: Serve) -> None:
    """With the name of the thread."""
    broker = serve(lambda connection: connection.sendall(MALFORMED["too short"]))

    async def other() -> None:
        await Call(broker.address, FETCH)

    async def main() -> None:
        await Start("other", other)
        await pause()

    ((name, error),) = run(main).failed
    assert (name, type(error)) == ("other", MalformedResponse)


def test_one_that_waits_holds_up_no_other(serve: Serve) -> None:
    """A broker that says nothing, and another that answers."""
    silent, other = serve(lambda connection: None), serve(answers)

    async def waits() -> None:
        await failure_of(Call(silent.address, FETCH, timeout_ms=10_000))

    async def main() -> None:
        await Start("waits", waits)
        async with asyncio.timeout(5):
            for _ in range(10):
                assert await Call(other.address, FETCH) == HELLO

    run(main)


LARGEST: dict[Any, Response] = {
    FetchRequest("t", 0, 0, 4): FetchResponse(b"four"),
    MultiFetchRequest((FetchRequest("t", 0, 0, 4), FetchRequest("t", 1, 0, 2))): (
        MultiFetchResponse((FetchResponse(b"four"), FetchResponse(b"tw")))
    ),
    OffsetsRequest("t", 0, -1, 3): OffsetsResponse((3, 2, 1)),
}


@pytest.mark.parametrize("request_", LARGEST, ids=lambda one: type(one).__name__)
def test_the_largest_response_is_taken_and_no_larger(request_: Any) -> None:
    """As much as was asked for, to the byte."""
    frame = encode_response(LARGEST[request_])

    assert largest_response(request_) == len(frame) - 4
