"""RPC over TCP: what happens if the broker answers, hesitates or is gone."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

from tests.support.live.broker_process import received
from tests.support.log.vectors import MAGIC_1_HELLO
from tests.support.task_worlds import Heard, live
from watchkeeper.model.actor.rpc import (
    Call,
    CallError,
    Disconnected,
    HangUp,
    TimedOut,
    Unreachable,
)
from watchkeeper.model.actor.tasks import Start, put, take
from watchkeeper.model.log.format.errors import LogError, MalformedResponse
from watchkeeper.model.log.format.requests import (
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
from watchkeeper.real.net.rpc import largest_response
from watchkeeper.real.ports import free_ports

FETCH = FetchRequest("test", 0, 0, 1000)
PRODUCE = ProduceRequest("test", 0, MAGIC_1_HELLO)
HELLO = FetchResponse(MAGIC_1_HELLO)
Script = Callable[[socket.socket], None]


class Scripted:
    """A broker that follows a script for each connection."""

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
    """Starts scripted brokers."""
    made: list[Scripted] = []

    def make(script: Script) -> Scripted:
        made.append(Scripted(script))
        return made[-1]

    yield make
    for server in made:
        server.listener.close()


Serve = Callable[[Script], Scripted]


def run(main: Callable[[], Any]) -> Heard:
    """Run a task on a loop."""
    heard = Heard()
    live(main, heard)
    return heard


async def failure_of(call: Call) -> type[CallError]:
    """The error of a call that has to fail."""
    with pytest.raises(CallError) as raised:
        await call
    assert raised.value.address == call.address
    return raised.type


def test_a_task_keeps_its_connection_for_itself(serve: Serve) -> None:
    """Two calls of one task share a connection, those of another task do not."""
    broker = serve(answers)

    async def second() -> None:
        assert await Call(broker.address, FETCH) == HELLO
        await put("done", True, 1)

    async def main() -> None:
        assert [await Call(broker.address, FETCH) for _ in range(3)] == [HELLO] * 3
        assert broker.connections == 1
        await Start("other", second)
        await take("done")
        assert broker.connections == 2

    assert run(main).failed == []


def test_a_connection_ends_when_it_is_hung_up(serve: Serve) -> None:
    """The next call opens another one; closing a missing one has no effect."""
    broker = serve(answers)

    async def main() -> None:
        await HangUp(broker.address)
        for _ in range(2):
            await Call(broker.address, FETCH)
            await HangUp(broker.address)
        assert broker.connections == 2

    run(main)


def test_a_missing_broker_is_unreachable() -> None:
    """The request was not sent."""
    (port,) = free_ports(1)

    async def main() -> None:
        assert await failure_of(Call(f"127.0.0.1:{port}", FETCH)) is Unreachable

    run(main)


def test_a_response_that_does_not_come_in_time_ends_the_connection(serve: Serve) -> None:
    """A late response would be taken for the response of another request."""
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


def test_a_connection_that_breaks_before_the_response_is_reported(serve: Serve) -> None:
    """Also in the middle of a response; the next call opens another connection."""
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


def test_a_dead_connection_loses_one_produce_request(serve: Serve) -> None:
    """Once, as in 0.7: the next call finds it broken, and the one after that opens a new one."""

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
        for _ in range(PAUSES):
            await pause()
            if len(broker.requests) >= 2:
                break
        assert len(broker.requests) == 2

    run(main)


PAUSES = 600
"""A busy machine may let the server wait."""


async def pause() -> None:
    """Long enough for a packet on the loopback."""
    assert await take("nothing", timeout_ms=100) is None


MALFORMED = {
    "too large": struct.pack(">i", 2000),
    "too short": struct.pack(">i", 1) + b"x",
    "empty": struct.pack(">i", 0),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_an_invalid_response_is_a_log_error(what: str, serve: Serve) -> None:
    """And the connection is closed."""
    broker = serve(lambda connection: connection.sendall(MALFORMED[what]))

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(LogError):
                await Call(broker.address, FETCH)
        assert broker.connections == 2

    run(main)


def test_an_uncaught_error_of_a_task_is_reported(serve: Serve) -> None:
    """With the name of the task."""
    broker = serve(lambda connection: connection.sendall(MALFORMED["too short"]))

    async def second() -> None:
        await Call(broker.address, FETCH)

    async def main() -> None:
        await Start("other", second)
        await pause()

    ((name, error),) = run(main).failed
    assert (name, type(error)) == ("other", MalformedResponse)


def test_a_waiting_call_blocks_no_other(serve: Serve) -> None:
    """A broker that does not answer, and another one that does."""
    silent, answering = serve(lambda connection: None), serve(answers)

    async def waits() -> None:
        await failure_of(Call(silent.address, FETCH, timeout_ms=10_000))

    async def main() -> None:
        await Start("waits", waits)
        async with asyncio.timeout(5):
            for _ in range(10):
                assert await Call(answering.address, FETCH) == HELLO

    run(main)


LARGEST: dict[Any, Response] = {
    FetchRequest("t", 0, 0, 4): FetchResponse(b"four"),
    MultiFetchRequest((FetchRequest("t", 0, 0, 4), FetchRequest("t", 1, 0, 2))): (
        MultiFetchResponse((FetchResponse(b"four"), FetchResponse(b"tw")))
    ),
    OffsetsRequest("t", 0, -1, 3): OffsetsResponse((3, 2, 1)),
}


@pytest.mark.parametrize("request_", LARGEST, ids=lambda request: type(request).__name__)
def test_a_response_has_a_largest_size(request_: Any) -> None:
    """Exactly as much as was requested."""
    frame = encode_response(LARGEST[request_])

    assert largest_response(request_) == len(frame) - 4
