"""When sessions begin, continue and end."""

from __future__ import annotations

import pytest

from tests.support.zookeeper.ensemble_in_memory import ManualClock, MemoryClient, started
from watchkeeper.model.actor.operations import Create, Exists
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.session_ids import first_session_id, password_of
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import CloseSession, Ping

TICK_MS = 500
NO_NODE = -101


def ensemble_of(servers: int = 1, **settings: int) -> tuple[Ensemble, ManualClock]:
    clock = ManualClock()
    return Ensemble(clock, servers=servers, settings=EnsembleSettings(**settings)), clock


@pytest.mark.parametrize(
    ("requested_ms", "granted_ms"), [(0, 1000), (-5, 1000), (4001, 4001), (60_000, 10_000)]
)
def test_a_timeout_lies_between_2_and_20_ticks(requested_ms: int, granted_ms: int) -> None:
    """The server clamps the requested timeout and does not round it."""
    ensemble, _ = ensemble_of()

    response = MemoryClient(ensemble.servers[0]).connect(timeout_ms=requested_ms)

    assert response is not None
    assert response.timeout_ms == granted_ms


def test_a_silent_session_ends_at_a_tick_after_its_timeout() -> None:
    """It lives for a tick longer than its timeout at most, and its ephemerals go with it."""
    ensemble, clock = ensemble_of()
    silent = started(ensemble, timeout_ms=2000)
    silent.result(Opcode.CREATE, Create("/here", b"", ephemeral=True))
    clock.advance(100)
    other = started(ensemble, timeout_ms=9000)

    clock.advance(1900)
    assert other.request(Opcode.EXISTS, Exists("/here")).error == 0
    clock.advance(TICK_MS)

    assert other.request(Opcode.EXISTS, Exists("/here")).error == NO_NODE
    assert silent.is_closed


def test_each_request_prolongs_a_session() -> None:
    """A ping gives the session its whole timeout again."""
    ensemble, clock = ensemble_of()
    client = started(ensemble, timeout_ms=1000)

    for _ in range(10):
        clock.advance(900)
        client.request(Opcode.PING, Ping())

    assert not client.is_closed
    clock.advance(2000)
    assert client.is_closed


def test_a_session_continues_on_another_connection() -> None:
    """Same id, new timeout; the old connection is closed, the ephemerals stay."""
    ensemble, _ = ensemble_of()
    before = started(ensemble, timeout_ms=2000)
    before.result(Opcode.CREATE, Create("/here", b"", ephemeral=True))

    after = MemoryClient(ensemble.servers[0])
    response = after.connect(session=before.session, password=before.password, timeout_ms=3000)

    assert response is not None
    assert (response.session, response.timeout_ms) == (before.session, 3000)
    assert before.is_closed
    assert after.request(Opcode.EXISTS, Exists("/here")).error == 0


def test_a_wrong_password_ends_both_connections() -> None:
    """The response grants nothing, and the live connection is closed too, as Apache's is."""
    ensemble, _ = ensemble_of()
    victim = started(ensemble)

    intruder = MemoryClient(ensemble.servers[0])
    response = intruder.connect(session=victim.session, password=b"x" * 16)

    assert response is not None
    assert (response.session, response.timeout_ms) == (0, 0)
    assert intruder.is_closed
    assert victim.is_closed


def test_a_closed_session_cannot_be_continued() -> None:
    """A close is answered, its connection ends, and its id is unknown from then on."""
    ensemble, _ = ensemble_of()
    client = started(ensemble)
    client.result(Opcode.CREATE, Create("/here", b"", ephemeral=True))

    reply = client.request(Opcode.CLOSE_SESSION, CloseSession())

    assert reply.error == 0
    assert client.is_closed
    again = MemoryClient(ensemble.servers[0]).connect(
        session=client.session, password=client.password
    )
    assert again is not None
    assert again.timeout_ms == 0


def test_a_client_that_has_seen_more_is_sent_away() -> None:
    """A server that is behind what the client has read closes the connection without a word."""
    ensemble, _ = ensemble_of()

    client = MemoryClient(ensemble.servers[0])

    assert client.connect(last_zxid=99) is None
    assert client.is_closed


def test_a_connection_without_a_session_is_closed() -> None:
    """A client that connects and requests no session does not keep its place for ever."""
    ensemble, clock = ensemble_of()
    silent = MemoryClient(ensemble.servers[0])

    clock.advance(9_999)
    assert not silent.is_closed
    clock.advance(1)

    assert silent.is_closed


def test_a_password_follows_from_the_id() -> None:
    """Known pairs of id and password, as Apache ZooKeeper 3.9.5 gave them."""
    for session, password in APACHES_PASSWORDS.items():
        assert password_of(session).hex() == password


APACHES_PASSWORDS = {
    0x100001E77640000: "de075fab13ffc4e9ec7890cd14cd590a",
    0x100001E77640001: "f12859abb34aa42ee1bbf7f8e8556ed7",
    0x100001E77640002: "b8c56aabd367066002f3c1766dbb3070",
}


def test_an_id_begins_with_the_number_of_its_server() -> None:
    """The first byte is the server's number, so servers never give the same id."""
    first = [first_session_id(number, 1_700_000_000_123) for number in (1, 2, 255)]

    assert [session >> 56 & 0xFF for session in first] == [1, 2, 255]
