"""Requests that leave together and answers that come together, or in pieces."""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionClosedError, SessionExpiredError
from kazoo.protocol.connection import ConnectionDropped
from kazoo.protocol.serialization import Auth, GetChildren, int_int_struct, int_struct
from kazoo.protocol.states import KeeperState

from model.errors import Failure, NoNode
from model.operations import Create, Exists, GetData, Operation
from real.client import Client, Reply, Said
from real.connection import MOST_REQUESTS, Connection, send
from real.ensemble import Ensemble
from real.settings import Settings

PATIENCE_S = 20.0
LONG_MS = 60_000


def answers_to(
    client: Client, heard: SimpleQueue[Said], operations: list[Operation[Any]]
) -> list[Any]:
    """What a server answers to operations that are sent all at once, as the answers come."""
    tickets = client.submit(tuple(operations), 1)
    assert not isinstance(tickets, Failure)
    replies: list[Reply] = []
    while len(replies) < len(tickets):
        what = heard.get(timeout=PATIENCE_S).what
        if isinstance(what, Reply):
            replies.append(what)
    assert [reply.ticket for reply in replies] == tickets
    return [reply.answer for reply in replies]


def test_many_requests_at_once_are_answered_in_order(zookeeper: Ensemble) -> None:
    """More than leave in one go, answers longer than one reading, failures in between."""
    number = 5 * MOST_REQUESTS + 1
    heard: SimpleQueue[Said] = SimpleQueue()
    client = Client(zookeeper.hosts, "", 6000, heard.put)
    client.start()
    try:
        assert heard.get(timeout=PATIENCE_S).what == "connected"
        data = [f"{at}:".encode() * 200 for at in range(number)]
        made = [Create(f"/many-{at}", data[at], ephemeral=True) for at in range(number)]
        assert answers_to(client, heard, [*made]) == [one.path for one in made]

        reads: list[Operation[Any]] = [GetData(one.path, False) for one in made]
        reads[7::10] = [GetData("/no-such", False) for _ in reads[7::10]]
        answers = answers_to(client, heard, reads)
    finally:
        client.close()

    assert [one.kind for one in answers[7::10]] == [NoNode] * len(answers[7::10])
    assert all(answers[at].data == data[at] for at in range(number) if at % 10 != 7)


def test_a_client_goes_on_after_its_server_was_killed(needs_zookeeper: None) -> None:
    """Nothing that was read of the broken connection is taken for a part of the next.

    The session is longer than a busy machine takes to start a server, or it would end.
    """
    heard: SimpleQueue[Said] = SimpleQueue()
    with Ensemble(settings=Settings(max_session_ms=LONG_MS)) as zookeeper:
        client = Client(zookeeper.hosts, "", LONG_MS, heard.put)
        client.start()
        try:
            assert heard.get(timeout=PATIENCE_S).what == "connected"
            assert client.granted_ms == LONG_MS
            client.submit(tuple(Exists("/", False) for _ in range(300)), 1)
            zookeeper.servers[0].kill()
            zookeeper.servers[0].start()
            assert states(heard, 2) == ["suspended", "connected"]
            (root,) = answers_to(client, heard, [Exists("/", False)])
        finally:
            client.close()

    assert root is not None


def states(heard: SimpleQueue[Said], number: int) -> list[str]:
    """The next states of a connection."""
    found: list[str] = []
    while len(found) < number:
        what = heard.get(timeout=PATIENCE_S).what
        if isinstance(what, str):
            found.append(what)
    return found


# --- without a server ------------------------------------------------------------------


class Lines:
    """A connection whose two sockets lead here."""

    def __init__(self) -> None:
        self.client = KazooClient()
        self.connection = Connection(self.client)
        self.far, near = socket.socketpair()
        near.setblocking(False)
        self.connection._socket = near
        self.connection._xid = 0
        self.connection._read_sock, self.connection._write_sock = socket.socketpair()
        self.far.settimeout(PATIENCE_S)
        self.connection._read_sock.settimeout(PATIENCE_S)

    def close(self) -> None:
        for one in (self.far, self.connection._socket):
            one.close()
        self.connection.connection_stopped.set()
        self.connection.close()


@pytest.fixture
def lines() -> Iterator[Lines]:
    found = Lines()
    yield found
    found.close()


def test_a_frame_may_come_in_pieces(lines: Lines) -> None:
    """What is there is kept until the rest has come; what belongs to the next frame is too."""
    lines.far.send(b"ab")
    assert lines.connection._read(1, PATIENCE_S) == b"a"
    lines.far.send(b"cde")
    assert lines.connection._read(3, PATIENCE_S) == b"bcd"
    assert lines.connection._read(1, PATIENCE_S) == b"e"

    with pytest.raises(lines.connection.handler.timeout_exception):
        lines.connection._read(1, 0.01)


def test_a_closed_connection_is_dropped(lines: Lines) -> None:
    """As kazoo has it, so that it connects again."""
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
def test_whole_frames_are_handled_before_anybody_waits(
    lines: Lines, received: bytes, has_more: bool
) -> None:
    """A look at the socket would not tell of what has been read of it already."""
    lines.connection._received += received

    assert lines.connection._has_more() is has_more


class Encrypted:
    """A socket as it behaves when what passes is encrypted."""

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
def test_an_encrypted_socket_may_want_to_be_asked_again(lines: Lines, want: Exception) -> None:
    """It reads where it has to write, and takes less than it is given."""
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
    """Takes an answer."""

    def __init__(self) -> None:
        self.errors: list[type[Exception]] = []

    def set_exception(self, error: Exception) -> None:
        self.errors.append(type(error))


def sent(lines: Lines) -> list[tuple[int, int]]:
    """The number and the kind of each request that has been sent."""
    lines.connection._send_request(PATIENCE_S, PATIENCE_S)
    data, found = lines.far.recv(1 << 20), []
    while data:
        (length,) = int_struct.unpack_from(data)
        found.append(int_int_struct.unpack_from(data, int_struct.size))
        data = data[int_struct.size + length :]
    return found


def test_what_is_queued_leaves_together_up_to_a_limit(lines: Lines) -> None:
    """Numbered one after the other; the rest is announced again."""
    requests = [(GetChildren("/", None), Result()) for _ in range(MOST_REQUESTS + 2)]
    lines.client._state = KeeperState.CONNECTED

    send(lines.client, requests)

    assert [number for number, _ in sent(lines)] == list(range(1, MOST_REQUESTS + 1))
    assert len(lines.client._pending) == MOST_REQUESTS
    assert [number for number, _ in sent(lines)] == [MOST_REQUESTS + 1, MOST_REQUESTS + 2]
    assert next(iter(lines.client._pending))[1] is requests[0][1]
    assert not lines.client._queue


def test_credentials_bear_the_number_that_is_theirs(lines: Lines) -> None:
    """Their answer comes under that number, and counts for no other request."""
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
def test_a_request_that_cannot_be_made_is_refused_once(
    lines: Lines, state: Any, error: type[Exception]
) -> None:
    """And it is not in the queue, where the next session would find it."""
    result = Result()
    lines.client._state = state

    send(lines.client, [(GetChildren("/", None), result)])

    assert result.errors == [error]
    assert not lines.client._queue


def test_a_closed_connection_refuses_what_it_cannot_be_told_of(lines: Lines) -> None:
    """Where there is nobody to wake, the request will never be sent."""
    result = Result()
    lines.client._state = KeeperState.CONNECTED
    lines.connection._write_sock.close()

    send(lines.client, [(GetChildren("/", None), result)])

    assert result.errors == [ConnectionClosedError]
