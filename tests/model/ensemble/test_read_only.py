"""A server without a leader, in read-only mode, as Apache ZooKeeper 3.9.5 was seen to behave."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.zookeeper.ensemble_in_memory import ManualClock, MemoryClient, started
from watchkeeper.model.actor.operations import Check, Create, GetData, Multi, SetData, Sync
from watchkeeper.model.ensemble import words
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.server import Server, ServerState
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import CloseSession

NOT_READ_ONLY = -119
BEFORE_MS = 2_000


class Alone:
    """Three servers of which two have died, once the third one serves reads."""

    def __init__(self, *, settings: EnsembleSettings | None = None) -> None:
        self.clock = ManualClock()
        self.ensemble = Ensemble(
            self.clock, servers=3, settings=settings or EnsembleSettings(read_only_mode=True)
        )
        self.member = started(self.ensemble, timeout_ms=9000)
        self.member.result(Opcode.CREATE, Create("/a", b"1"))
        for server in self.ensemble.servers[1:]:
            self.ensemble.quorum.kill(server)
        self.clock.advance(BEFORE_MS)

    @property
    def server(self) -> Server:
        """The one that is left."""
        return self.ensemble.servers[0]

    def client(self, *, read_only: bool = True) -> MemoryClient:
        """A client that has requested a session."""
        client = MemoryClient(self.server)
        client.connect(read_only=read_only)
        return client


@pytest.fixture
def alone() -> Alone:
    return Alone()


def test_reads_are_served_some_time_after_the_leader_is_lost() -> None:
    """Two seconds or a tick pass first; until then a connection is closed."""
    clock = ManualClock()
    ensemble = Ensemble(clock, servers=3, settings=EnsembleSettings(read_only_mode=True))
    for server in ensemble.servers[1:]:
        ensemble.quorum.kill(server)

    clock.advance(BEFORE_MS - 1)
    assert ensemble.servers[0].state is ServerState.LOOKING
    assert words.answer(ensemble.servers[0], b"isro") == "null"
    clock.advance(1)

    assert ensemble.servers[0].state is ServerState.READ_ONLY
    assert words.answer(ensemble.servers[0], b"isro") == "ro"


def test_without_the_mode_a_server_without_a_leader_serves_nothing() -> None:
    """It is off by default."""
    alone = Alone(settings=EnsembleSettings())

    assert alone.server.state is ServerState.LOOKING
    assert alone.client().is_closed


def test_a_client_that_does_not_accept_it_is_closed(alone: Alone) -> None:
    """The flag of the connect request decides."""
    assert alone.client(read_only=False).is_closed
    assert not alone.client().is_closed


def test_the_answer_to_connect_says_that_the_server_is_read_only(alone: Alone) -> None:
    """With a leader the same client reads that it is not."""
    client = MemoryClient(alone.server)
    response = client.connect(read_only=True)
    assert response is not None
    assert response.read_only is True

    alone.ensemble.quorum.start(alone.ensemble.servers[1])
    alone.clock.advance(1000)
    response = MemoryClient(alone.server).connect(read_only=True)

    assert response is not None
    assert response.read_only is False


def test_reads_are_answered_and_what_needs_the_leader_is_refused(alone: Alone) -> None:
    """A multi that only checks and a sync are refused too; the connection goes on."""
    client = alone.client()

    assert client.result(Opcode.GET_DATA, GetData("/a"))[0] == b"1"
    for opcode, body in (
        (Opcode.SET_DATA, SetData("/a", b"2")),
        (Opcode.CREATE, Create("/b", b"")),
        (Opcode.MULTI, Multi((Check("/a", -1),))),
        (Opcode.SYNC, Sync("/a")),
    ):
        assert client.request(opcode, body).error == NOT_READ_ONLY
    assert client.result(Opcode.GET_DATA, GetData("/a"))[0] == b"1"


def test_a_session_of_the_ensemble_waits_for_a_leader(alone: Alone) -> None:
    """Its connection is closed without an answer, and it goes on at the leader afterwards."""
    member = alone.member
    again = MemoryClient(alone.server)
    assert again.connect(session=member.session, password=member.password, read_only=True) is None
    assert again.is_closed

    alone.ensemble.quorum.start(alone.ensemble.servers[1])
    alone.clock.advance(1000)
    again = MemoryClient(alone.server)
    response = again.connect(session=member.session, password=member.password)

    assert response is not None
    assert response.session == member.session


def test_a_session_that_began_there_goes_on_there_alone(alone: Alone) -> None:
    """It survives its connection, and is unknown once there is a leader."""
    client = alone.client()
    session, password = client.session, client.password
    client.transport.is_closed = True
    again = MemoryClient(alone.server)
    response = again.connect(session=session, password=password, read_only=True)
    assert response is not None
    assert response.session == session

    alone.ensemble.quorum.start(alone.ensemble.servers[1])
    alone.clock.advance(1000)
    assert again.is_closed
    response = MemoryClient(alone.server).connect(session=session, password=password)

    assert response is not None
    assert response.session == 0


def test_a_session_that_began_there_ends_by_silence(alone: Alone) -> None:
    """The server itself counts its signs of life."""
    client = alone.client()

    alone.clock.advance(60_000)

    assert client.is_closed
    again = MemoryClient(alone.server)
    response = again.connect(session=client.session, password=client.password, read_only=True)
    assert response is not None
    assert response.session == 0


def test_a_session_that_began_there_can_be_closed(alone: Alone) -> None:
    """The answer has no error, and the session is gone."""
    client = alone.client()

    assert client.request(Opcode.CLOSE_SESSION, CloseSession()).error == 0

    assert client.is_closed
    assert client.session not in alone.server.sessions


@pytest.mark.parametrize("presented", [lambda client: bytes(16), lambda client: client.password])
def test_the_password_of_such_a_session_counts(
    alone: Alone, presented: Callable[[MemoryClient], bytes]
) -> None:
    """A wrong one is answered as for a session that has ended."""
    client = alone.client()
    password = presented(client)

    again = MemoryClient(alone.server)
    response = again.connect(session=client.session, password=password, read_only=True)

    assert response is not None
    assert (response.session == client.session) == (password == client.password)
    assert response.read_only is True


def test_a_server_that_finds_a_leader_in_time_never_is_read_only() -> None:
    """A look of less than two seconds, twice, does not add up."""
    clock = ManualClock()
    ensemble = Ensemble(clock, servers=3, settings=EnsembleSettings(read_only_mode=True))
    follower = ensemble.servers[0]
    for _ in range(2):
        for server in ensemble.servers[1:]:
            ensemble.quorum.kill(server)
        clock.advance(BEFORE_MS - 500)
        assert follower.state is ServerState.LOOKING
        ensemble.quorum.start(ensemble.servers[1])
        clock.advance(400)
        assert follower.is_serving


def test_the_words_say_that_it_is_read_only(alone: Alone) -> None:
    """As Apache's server does."""
    text = words.answer(alone.server, b"srvr")

    assert "READ-ONLY mode; serving only read-only clients\n" in text
    assert "Mode: read-only\n" in text
    assert "zk_server_state\tread-only\n" in words.answer(alone.server, b"mntr")
