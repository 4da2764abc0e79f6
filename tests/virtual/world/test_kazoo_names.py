"""kazoo's own polling, and the one step that stands for it, see the same and wait the same."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.handlers import threading as kazoo_handler
from kazoo.protocol.connection import ConnectionDropped, ConnectionHandler

from tests.support.virtual_time import Machine
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.world import kazoo_names

Polls = Callable[..., Any]
PORT = 7000


def _polled(poll: Polls, *arguments: Any) -> Any:
    """What a poll returns or raises, the sockets by their descriptors; and when it ends."""
    try:
        found: Any = [list(map(_number_of, sockets)) for sockets in poll(*arguments)]
    except (TypeError, ValueError, OSError) as error:
        found = type(error).__name__, str(error)
    return found, time.monotonic()


def _number_of(sock: Any) -> int:
    return sock if isinstance(sock, int) else int(sock.fileno())


def _every_kind(poll: Polls) -> list[Any]:
    """Polls of sockets that are ready, not ready, closed, given twice, and wrongly given."""
    left, right = socket.socketpair()
    other, far = socket.socketpair()
    client = socket.create_connection(("server", PORT))
    client.setblocking(False)
    closed = socket.socket()
    closed.close()
    left.send(b"x")
    far.close()
    every = [right, other, client]
    return [
        _polled(poll, [right], [], []),
        _polled(poll, [], [left], [], 1),
        _polled(poll, [left], [], [], 0.25),
        _polled(poll, every, [left, far], [], 1),
        _polled(poll, every, [left], [], 0),
        _polled(poll, [right], [right], [], 1),
        _polled(poll, [left], [left], [], 1),
        _polled(poll, [right, right], [], [], 1),
        _polled(poll, [closed], [], [], 1),
        _polled(poll, [client], [], [], 2.5),
        _polled(poll, [client], [], []),
        _polled(poll, [right.fileno()], [], [], 1),
        _polled(poll, [right], [], [], -1),
        _polled(poll, [right], [], [], "soon"),
        _polled(poll, ["a word"], [], [], 1),
        _polled(poll, [], [], [], 0.5),
    ]


def _served() -> None:
    """A server that answers after three seconds, and closes a second later."""
    with socket.create_server(("", PORT)) as listening:
        client, _ = listening.accept()
        time.sleep(3)
        client.sendall(b"late")
        time.sleep(1)
        client.close()


def _run(poll: Polls, seed: int) -> tuple[Any, int, int]:
    machine = Machine(RandomPolicy(seed), seed=seed)
    machine.process("server", _served)

    def late(poll: Polls) -> Any:
        time.sleep(0.01)
        return _every_kind(poll)

    machine.process("client", late, poll)
    found = machine.run()["client"]
    return found, machine.scheduler.step, machine.scheduler.now_ns


@pytest.mark.parametrize("seed", range(8))
def test_polling_in_one_step_is_kazoos_polling(seed: int) -> None:
    """Results, errors, moments and switch points are those of kazoo's own function."""
    kazoo_names.put()
    shorter: Any = kazoo_handler.selector_select
    assert _run(shorter, seed) == _run(shorter.__wrapped__, seed)


def test_polling_outside_of_a_world_is_kazoos() -> None:
    """Real sockets are polled as ever."""
    kazoo_names.put()
    left, right = socket.socketpair()
    with left, right:
        left.send(b"x")
        assert kazoo_handler.selector_select([right], [left], [], 1) == ([right], [left], [])


def _kazoos_handling() -> Any:
    kazoo_names.put()
    return ConnectionHandler._socket_error_handling


@pytest.mark.parametrize(
    "error",
    [
        None,
        OSError(errno.ECONNRESET, "reset"),
        OSError("no number"),
        TimeoutError("timed out"),
        ValueError("no error of a socket"),
        ConnectionDropped("dropped before"),
    ],
    ids=repr,
)
def test_errors_of_sockets_are_what_kazoo_makes_of_them(error: Exception | None) -> None:
    """The same exception with the same text and cause; without an error the body ends."""

    def found(handling: Any) -> Any:
        try:
            with handling(None):
                if error is not None:
                    raise error
        except Exception as raised:
            return type(raised), str(raised), raised.__context__
        return "the body ran to its end"

    shorter = _kazoos_handling()
    assert shorter is not shorter.__wrapped__, "it stands for kazoo's"
    assert found(shorter) == found(shorter.__wrapped__)


def test_another_handling_of_errors_is_left_alone() -> None:
    """A kazoo that handles errors of sockets in another way keeps its own way."""

    def other(self: Any) -> None:
        self.logger.warning("a socket failed")

    code = other.__code__
    assert (code.co_consts, code.co_names) != kazoo_names.KNOWN_HANDLING
