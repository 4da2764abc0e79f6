"""Requests that leave together, and answers that arrive together or in parts."""

from __future__ import annotations

import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from queue import SimpleQueue
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionClosedError, SessionExpiredError
from kazoo.protocol.connection import ConnectionDropped
from kazoo.protocol.serialization import Auth, GetChildren, int_int_struct, int_struct
from kazoo.protocol.states import KeeperState

from tests.support.patience import PATIENCE_S
from watchkeeper.model.actor.errors import Failure, NoNode
from watchkeeper.model.actor.operations import Create, Exists, GetData, Operation
from watchkeeper.real.access import Access
from watchkeeper.real.client.attempts import AttemptLimit
from watchkeeper.real.client.client import Client, ClientEvent, Reply
from watchkeeper.real.client.connection import MOST_REQUESTS, Connection, send
from watchkeeper.real.client.plain_client import client_of
from watchkeeper.real.ports import HOST
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.settings import Settings

LONG_MS = 60_000
ENDLESS_MS = 1_000_000
"""A session timeout for which no test waits, divided by two addresses or not."""


def answers_to(
    client: Client, heard: SimpleQueue[ClientEvent], operations: list[Operation[Any]]
) -> list[Any]:
    """The answers to operations that are sent together, in the order of their arrival."""
    tickets = client.submit(tuple(operations), 1)
    assert not isinstance(tickets, Failure)
    replies: list[Reply] = []
    while len(replies) < len(tickets):
        what = heard.get(timeout=PATIENCE_S).content
        if isinstance(what, Reply):
            replies.append(what)
    assert [reply.ticket for reply in replies] == tickets
    return [reply.answer for reply in replies]


def test_many_requests_at_once_are_answered_in_order(zookeeper: Ensemble) -> None:
    """More than fit into one write, answers longer than one read, failures in between."""
    number = 5 * MOST_REQUESTS + 1
    heard: SimpleQueue[ClientEvent] = SimpleQueue()
    client = Client(zookeeper.hosts, "", LONG_MS, heard.put)
    client.start()
    try:
        assert heard.get(timeout=PATIENCE_S).content == "connected"
        data = [f"{at}:".encode() * 200 for at in range(number)]
        made = [Create(f"/many-{at}", data[at], ephemeral=True) for at in range(number)]
        assert answers_to(client, heard, [*made]) == [operation.path for operation in made]

        reads: list[Operation[Any]] = [GetData(operation.path, False) for operation in made]
        reads[7::10] = [GetData("/no-such", False) for _ in reads[7::10]]
        answers = answers_to(client, heard, reads)
    finally:
        client.close()

    assert [answer.kind for answer in answers[7::10]] == [NoNode] * len(answers[7::10])
    assert all(answers[at].data == data[at] for at in range(number) if at % 10 != 7)


def test_a_client_survives_a_restart_of_its_server(needs_zookeeper: None) -> None:
    """No byte of the broken connection is taken for a part of the next one.

    The session is longer than a restart of the server on a busy machine.
    """
    heard: SimpleQueue[ClientEvent] = SimpleQueue()
    with Ensemble(settings=Settings(max_session_ms=LONG_MS)) as zookeeper:
        client = Client(zookeeper.hosts, "", LONG_MS, heard.put)
        client.start()
        try:
            assert heard.get(timeout=PATIENCE_S).content == "connected"
            assert client.granted_ms == LONG_MS
            client.submit(tuple(Exists("/", False) for _ in range(300)), 1)
            zookeeper.servers[0].kill()
            zookeeper.servers[0].start()
            assert states(heard, 2) == ["suspended", "connected"]
            (root,) = answers_to(client, heard, [Exists("/", False)])
        finally:
            client.close()

    assert root is not None


def states(heard: SimpleQueue[ClientEvent], number: int) -> list[str]:
    """The next states of a connection."""
    found: list[str] = []
    while len(found) < number:
        what = heard.get(timeout=PATIENCE_S).content
        if isinstance(what, str):
            found.append(what)
    return found


@contextmanager
def silent_server() -> Iterator[str]:
    """An address where connections are accepted and nothing is answered."""
    with socket.create_server((HOST, 0)) as server:
        yield address_of(server)


@contextmanager
def full_server() -> Iterator[str]:
    """An address where connections are not even accepted, as if the machine had no power."""
    with ExitStack() as held:
        server = held.enter_context(socket.create_server((HOST, 0), backlog=0))
        is_full = False
        while not is_full:
            line = held.enter_context(socket.socket())
            line.settimeout(0.2)
            is_full = line.connect_ex(server.getsockname()) != 0
        yield address_of(server)


def address_of(server: socket.socket) -> str:
    return f"{HOST}:{server.getsockname()[1]}"


@pytest.mark.parametrize("dead_server", [silent_server, full_server])
def test_a_server_that_does_not_answer_is_left_for_the_next(
    zookeeper: Ensemble, dead_server: Callable[[], AbstractContextManager[str]]
) -> None:
    """Long before the session timeout, so that the session is not lost."""
    heard: SimpleQueue[ClientEvent] = SimpleQueue()
    with dead_server() as address:
        hosts = f"{address},{zookeeper.hosts}"
        client = Client(hosts, "", ENDLESS_MS, heard.put, {"randomize_hosts": False})
        client.start()
        try:
            assert states(heard, 1) == ["connected"]
        finally:
            client.close()


def test_a_server_that_does_not_answer_is_tried_again() -> None:
    """ZooKeeper forgets connections of the moment in which it starts, and answers the next."""
    with socket.create_server((HOST, 0)) as silent:
        silent.settimeout(PATIENCE_S)
        client = Client(address_of(silent), "", ENDLESS_MS, lambda event: None)
        client.start()
        try:
            lines = [silent.accept()[0] for _ in range(2)]
        finally:
            client.abandon()
        assert len(lines) == 2
        for line in lines:
            line.close()


def test_a_plain_client_tries_such_a_server_again_too() -> None:
    """Audits, snapshots and the begin of a run."""
    with socket.create_server((HOST, 0)) as silent:
        silent.settimeout(PATIENCE_S)
        client = client_of(Access(address_of(silent), timeout_s=ENDLESS_MS / 1000))
        client.start_async()
        try:
            lines = [silent.accept()[0] for _ in range(2)]
        finally:
            client.stop()
            client.close()
        assert len(lines) == 2
        for line in lines:
            line.close()


def test_attempts_that_run_out_of_time_get_more_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is only slow is reached at last; an error that comes at once is no sign."""
    now_s = 0.0
    monkeypatch.setattr("watchkeeper.real.client.attempts.monotonic", lambda: now_s)
    limit = AttemptLimit()
    found = []
    for took_s, is_answered in [(0, False), (2, False), (4, False), (7, False), (7, True)]:
        with suppress(ConnectionDropped), limit.attempt():
            found.append(limit.of(60.0))
            now_s += took_s
            if not is_answered:
                raise ConnectionDropped
    assert found == [2.0, 2.0, 4.0, 8.0, 8.0]
    assert limit.of(60.0) == 2.0
    assert limit.of(1.0) == 1.0


# --- without a server ------------------------------------------------------------------


class Lines:
    """A connection whose two sockets end in the test."""

    def __init__(self) -> None:
        self.client = KazooClient()
        self.connection = Connection(self.client, AttemptLimit())
        self.far, near = socket.socketpair()
        near.setblocking(False)
        self.connection._socket = near
        self.connection._xid = 0
        self.connection._read_sock, self.connection._write_sock = socket.socketpair()
        self.far.settimeout(PATIENCE_S)
        self.connection._read_sock.settimeout(PATIENCE_S)

    def close(self) -> None:
        for end in (self.far, self.connection._socket):
            end.close()
        self.connection.connection_stopped.set()
        self.connection.close()


@pytest.fixture
def lines() -> Iterator[Lines]:
    found = Lines()
    yield found
    found.close()


def test_a_frame_may_arrive_in_parts(lines: Lines) -> None:
    """The parts are kept until the frame is complete, and so is the begin of the next one."""
    lines.far.send(b"ab")
    assert lines.connection._read(1, PATIENCE_S) == b"a"
    lines.far.send(b"cde")
    assert lines.connection._read(3, PATIENCE_S) == b"bcd"
    assert lines.connection._read(1, PATIENCE_S) == b"e"

    with pytest.raises(lines.connection.handler.timeout_exception):
        lines.connection._read(1, 0.01)


def test_a_closed_connection_is_dropped(lines: Lines) -> None:
    """As kazoo does, so that it connects again."""
    lines.far.close()

    with pytest.raises(ConnectionDropped):
        lines.connection._read(1, PATIENCE_S)


@pytest.mark.parametrize(
    ("received", "has_more"),
    [
        (b"", False),
        (int_struct.pack(3)[:2], False),
        (int_struct.pack(3) + b"ab", False),
        (int_struct.pack(3) + b"abc", True),
        (int_struct.pack(3) + b"abcd", True),
    ],
)
def test_complete_frames_are_handled_before_waiting(
    lines: Lines, received: bytes, has_more: bool
) -> None:
    """Polling the socket would not show what has been read already."""
    lines.connection._received += received

    assert lines.connection._has_more() is has_more


class Encrypted:
    """A socket that behaves like an encrypted one."""

    def __init__(self, plain: socket.socket, wants: list[Exception]) -> None:
        self.plain = plain
        self.wants = deque(wants)
        self.decrypted = 0

    def fileno(self) -> int:
        return self.plain.fileno()

    def pending(self) -> int:
        return self.decrypted

    def recv(self, number: int) -> bytes:
        if self.wants:
            raise self.wants.popleft()
        return self.plain.recv(number)

    def send(self, data: memoryview) -> int:
        if self.wants:
            raise self.wants.popleft()
        return self.plain.send(data[:5])

    def close(self) -> None:
        self.plain.close()


@pytest.mark.parametrize("want", [ssl.SSLWantReadError(), ssl.SSLWantWriteError()])
def test_an_encrypted_socket_may_need_a_retry(lines: Lines, want: Exception) -> None:
    """It has to write in order to read, and accepts less than it is given."""
    lines.connection._socket = socket_ = Encrypted(lines.connection._socket, [want])
    lines.far.send(b"abc")
    assert lines.connection._read(3, PATIENCE_S) == b"abc"
    socket_.wants.append(want)
    lines.far.send(b"x")

    lines.connection._write(b"0123456789", PATIENCE_S)

    assert lines.far.recv(100) == b"0123456789"
    assert not lines.connection._has_more()
    socket_.decrypted = 1
    assert lines.connection._has_more()


class Result:
    """Receives an answer."""

    def __init__(self) -> None:
        self.errors: list[type[Exception]] = []

    def set_exception(self, error: Exception) -> None:
        self.errors.append(type(error))


def sent(lines: Lines) -> list[tuple[int, int]]:
    """The xid and the kind of each request that was sent."""
    lines.connection._send_request(PATIENCE_S, PATIENCE_S)
    data, found = lines.far.recv(1 << 20), []
    while data:
        (length,) = int_struct.unpack_from(data)
        found.append(int_int_struct.unpack_from(data, int_struct.size))
        data = data[int_struct.size + length :]
    return found


def test_queued_requests_leave_together_up_to_a_limit(lines: Lines) -> None:
    """Numbered consecutively; the rest is announced again."""
    requests = [(GetChildren("/", None), Result()) for _ in range(MOST_REQUESTS + 2)]
    lines.client._state = KeeperState.CONNECTED

    send(lines.client, requests)

    assert [number for number, _ in sent(lines)] == list(range(1, MOST_REQUESTS + 1))
    assert len(lines.client._pending) == MOST_REQUESTS
    assert [number for number, _ in sent(lines)] == [MOST_REQUESTS + 1, MOST_REQUESTS + 2]
    assert next(iter(lines.client._pending))[1] is requests[0][1]
    assert not lines.client._queue


def test_more_wake_ups_than_their_socket_holds_block_nothing(lines: Lines) -> None:
    """The thread that takes wake-ups also sends one, and must not wait for room that it makes."""
    wakes, result = lines.connection._write_sock, Result()
    wakes.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            wakes.send(b"\0")
    wakes.setblocking(True)
    # A wait ends with an error after a second, and not never.
    wakes.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 1, 0))
    lines.client._state = KeeperState.CONNECTED

    send(lines.client, [(GetChildren("/", None), result)])

    assert not result.errors
    assert sent(lines) == [(1, GetChildren.type)]


def test_credentials_have_their_reserved_xid(lines: Lines) -> None:
    """Their answer has that number too, and belongs to no other request."""
    lines.client._state = KeeperState.CONNECTED

    send(lines.client, [(Auth(0, "digest", "me:secret"), Result()), (GetChildren("/", None), 0)])

    assert sent(lines) == [(-4, Auth.type), (1, GetChildren.type)]


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (KeeperState.EXPIRED_SESSION, SessionExpiredError),
        (KeeperState.CLOSED, ConnectionClosedError),
    ],
)
def test_a_request_that_cannot_be_sent_is_refused_once(
    lines: Lines, state: Any, error: type[Exception]
) -> None:
    """And it is not in the queue, where the next session would find it."""
    result = Result()
    lines.client._state = state

    send(lines.client, [(GetChildren("/", None), result)])

    assert result.errors == [error]
    assert not lines.client._queue


def test_a_closed_connection_refuses_requests(lines: Lines) -> None:
    """Without a connection to wake, the request would never be sent."""
    result = Result()
    lines.client._state = KeeperState.CONNECTED
    lines.connection._write_sock.close()

    send(lines.client, [(GetChildren("/", None), result)])

    assert result.errors == [ConnectionClosedError]
