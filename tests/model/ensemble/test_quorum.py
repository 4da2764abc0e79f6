"""Servers that lag, stand still, die, and are cut off from one another."""

from __future__ import annotations

import pytest

from tests.support.zookeeper.ensemble_in_memory import ManualClock, MemoryClient, started
from watchkeeper.model.actor.operations import Create, Exists, GetData, SetData, Sync
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.server import Server, ServerState
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import Ping

TICK_MS, SYNC_MS, ELECTION_MS = 500, 2000, 300
NO_NODE = -101


@pytest.fixture
def three() -> tuple[Ensemble, ManualClock]:
    clock = ManualClock()
    return Ensemble(clock, servers=3), clock


def leader_of(ensemble: Ensemble) -> Server:
    assert ensemble.leader is not None, "there is no leader"
    return ensemble.leader


def followers_of(ensemble: Ensemble) -> list[Server]:
    return [server for server in ensemble.servers if server is not ensemble.leader]


def client_of(server: Server, *, timeout_ms: int = 9000) -> MemoryClient:
    return started(server.ensemble, server=server.number - 1, timeout_ms=timeout_ms)


def states(ensemble: Ensemble) -> list[ServerState]:
    return [server.state for server in ensemble.servers]


def test_a_write_at_one_server_is_read_at_the_others(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """There is one history; without a fault each server has it at once."""
    ensemble, _ = three
    clients = [client_of(server) for server in ensemble.servers]

    clients[0].result(Opcode.CREATE, Create("/a", b"1"))

    assert [client.result(Opcode.GET_DATA, GetData("/a"))[0] for client in clients] == [b"1"] * 3


def test_a_follower_that_lags_answers_with_old_data_until_a_sync(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """A read is stale; a sync waits until everything that was committed before it has come."""
    ensemble, clock = three
    writer, follower = client_of(leader_of(ensemble)), followers_of(ensemble)[0]
    reader = client_of(follower)
    follower.lag_ms = 700

    writer.result(Opcode.CREATE, Create("/a", b"1"))

    assert reader.request(Opcode.EXISTS, Exists("/a")).error == NO_NODE
    reader.send(Opcode.SYNC, Sync("/a"))
    reader.send(Opcode.EXISTS, Exists("/a"))
    assert reader.replies() == []
    clock.advance(700)
    assert [reply.error for reply in reader.replies()] == [0, 0]


def test_a_client_reads_its_own_write_at_a_follower_that_lags(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """The answer to a write comes when this server has applied it; a read behind it waits."""
    ensemble, clock = three
    follower = followers_of(ensemble)[0]
    client = client_of(follower)
    follower.lag_ms = 700

    client.send(Opcode.CREATE, Create("/a", b"1"))
    client.send(Opcode.GET_DATA, GetData("/a"))

    assert client.replies() == []
    clock.advance(700)
    assert [reply.error for reply in client.replies()] == [0, 0]


def test_a_follower_that_dies_disturbs_only_its_own_clients(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """The other two are a majority: they go on."""
    ensemble, clock = three
    victim, other = followers_of(ensemble)
    lost, kept = client_of(victim), client_of(other)

    ensemble.quorum.kill(victim)

    assert lost.is_closed
    assert kept.request(Opcode.CREATE, Create("/a")).error == 0
    clock.advance(3 * SYNC_MS)
    assert victim.state is ServerState.DOWN


def test_a_server_that_starts_again_has_what_it_missed(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """It follows the leader and takes over its tree."""
    ensemble, _ = three
    victim = followers_of(ensemble)[0]
    writer = client_of(leader_of(ensemble))
    ensemble.quorum.kill(victim)
    writer.result(Opcode.CREATE, Create("/a", b"1"))

    ensemble.quorum.start(victim)

    assert client_of(victim).result(Opcode.GET_DATA, GetData("/a"))[0] == b"1"


def test_the_death_of_the_leader_disconnects_every_client_and_elects_another(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """Every connection of every server closes; sessions and data go on in a new epoch."""
    ensemble, clock = three
    old = leader_of(ensemble)
    client = client_of(followers_of(ensemble)[0])
    client.result(Opcode.CREATE, Create("/mine", b"", ephemeral=True))
    before = ensemble.committed.zxid

    ensemble.quorum.kill(old)

    assert client.is_closed
    assert ensemble.leader is None
    clock.advance(ELECTION_MS)
    new = leader_of(ensemble)
    again = MemoryClient(new)
    response = again.connect(session=client.session, password=client.password)
    assert response is not None
    assert response.session == client.session
    assert again.request(Opcode.EXISTS, Exists("/mine")).error == 0
    assert ensemble.committed.zxid >> 32 == (before >> 32) + 1


def test_no_session_ends_without_a_leader_and_each_gets_its_time_again(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """Two of three servers are gone for long; the session is alive when they return."""
    ensemble, clock = three
    client = client_of(leader_of(ensemble), timeout_ms=1000)
    victims = followers_of(ensemble)
    for server in victims:
        ensemble.quorum.kill(server)
    assert client.is_closed

    clock.advance(60_000)
    for server in victims:
        ensemble.quorum.start(server)
    clock.advance(ELECTION_MS)

    assert client.session in ensemble.committed.sessions
    clock.advance(1000 + TICK_MS)
    assert client.session not in ensemble.committed.sessions


def test_a_leader_that_is_cut_off_commits_nothing_and_steps_down(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """Its client's write has no answer and never took effect; the majority elects another."""
    ensemble, clock = three
    old = leader_of(ensemble)
    client = client_of(old)
    client.result(Opcode.CREATE, Create("/a", b"old"))
    ensemble.quorum.cut([old])

    client.send(Opcode.SET_DATA, SetData("/a", b"lost"))
    assert client.replies() == []
    clock.advance(SYNC_MS + ELECTION_MS)

    assert client.is_closed
    new = leader_of(ensemble)
    assert new is not old
    assert old.state is ServerState.LOOKING
    assert client_of(new).result(Opcode.GET_DATA, GetData("/a"))[0] == b"old"
    ensemble.quorum.heal()
    assert old.state is ServerState.FOLLOWING


def test_a_follower_that_is_cut_off_reads_old_data_and_then_sends_its_clients_away(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """Until it misses its leader it serves what it has; a write waits in vain."""
    ensemble, clock = three
    victim = followers_of(ensemble)[0]
    client = client_of(victim)
    ensemble.quorum.cut([victim])
    client_of(leader_of(ensemble)).result(Opcode.CREATE, Create("/a"))

    assert client.request(Opcode.EXISTS, Exists("/a")).error == NO_NODE
    client.send(Opcode.CREATE, Create("/b"))
    assert client.replies() == []
    clock.advance(SYNC_MS)

    assert client.is_closed
    assert victim.state is ServerState.LOOKING


def test_a_deposed_leader_serves_old_data_for_a_moment(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """It stood still while another one was elected; it reads, and closes who writes."""
    ensemble, clock = three
    old = leader_of(ensemble)
    reader, writer = client_of(old), client_of(old)
    ensemble.quorum.pause(old)
    clock.advance(SYNC_MS + ELECTION_MS)
    client_of(leader_of(ensemble)).result(Opcode.CREATE, Create("/a"))

    ensemble.quorum.go_on(old)

    assert reader.request(Opcode.EXISTS, Exists("/a")).error == NO_NODE
    writer.send(Opcode.CREATE, Create("/b"))
    assert writer.is_closed
    clock.advance(TICK_MS)
    assert reader.is_closed
    assert old.state is ServerState.FOLLOWING


def test_a_short_pause_is_noticed_by_delay_alone(three: tuple[Ensemble, ManualClock]) -> None:
    """Requests wait while the server stands still, and are answered after it."""
    ensemble, clock = three
    follower = followers_of(ensemble)[0]
    client = client_of(follower)
    ensemble.quorum.pause(follower)

    client.send(Opcode.CREATE, Create("/a"))
    assert client.replies() == []
    clock.advance(SYNC_MS / 2)
    ensemble.quorum.go_on(follower)

    assert [reply.error for reply in client.replies()] == [0]


def test_a_server_that_stood_still_ends_sessions_whose_signs_of_life_wait_in_its_sockets() -> (
    None
):
    """It looks at the clock before it looks at what has arrived."""
    clock = ManualClock()
    ensemble = Ensemble(clock)
    client = started(ensemble, timeout_ms=1000)
    ensemble.quorum.pause(ensemble.servers[0])
    clock.advance(900)
    client.send(Opcode.PING, Ping())
    clock.advance(5000)

    ensemble.quorum.go_on(ensemble.servers[0])

    assert client.session not in ensemble.committed.sessions
    assert client.is_closed


def test_a_session_that_moves_leaves_its_old_connection_unaware(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """On a follower the old connection still reads, and is closed when it writes."""
    ensemble, _ = three
    here, there = followers_of(ensemble)
    old = client_of(here)

    new = MemoryClient(there)
    response = new.connect(session=old.session, password=old.password)

    assert response is not None
    assert response.session == old.session
    assert old.request(Opcode.EXISTS, Exists("/")).error == 0
    old.send(Opcode.CREATE, Create("/a"))
    assert old.is_closed
    assert new.request(Opcode.EXISTS, Exists("/a")).error == NO_NODE


def test_an_even_number_of_servers_is_refused() -> None:
    """Two servers tolerate no more losses than one."""
    with pytest.raises(ValueError, match="odd number of servers, not 2"):
        Ensemble(ManualClock(), servers=2)


def test_a_pause_counts_from_its_own_begin(three: tuple[Ensemble, ManualClock]) -> None:
    """Two short pauses are not one long pause, whatever else happens meanwhile."""
    ensemble, clock = three
    leader, victim = leader_of(ensemble), followers_of(ensemble)[0]
    ensemble.quorum.pause(leader)
    clock.advance(SYNC_MS - 100)
    ensemble.quorum.go_on(leader)
    clock.advance(50)
    ensemble.quorum.pause(leader)
    ensemble.quorum.kill(victim)
    clock.advance(SYNC_MS - 100)
    ensemble.quorum.go_on(leader)

    assert ensemble.leader is leader
    assert ensemble.quorum.has_majority


def test_a_follower_that_stood_still_for_long_follows_again(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """Its clients are sent away, and it takes over what it missed."""
    ensemble, clock = three
    victim = followers_of(ensemble)[0]
    client = client_of(victim)
    ensemble.quorum.pause(victim)
    clock.advance(SYNC_MS)
    client_of(leader_of(ensemble)).result(Opcode.CREATE, Create("/a"))

    ensemble.quorum.go_on(victim)
    clock.advance(TICK_MS)

    assert client.is_closed
    assert client_of(victim).request(Opcode.EXISTS, Exists("/a")).error == 0


def test_a_majority_that_stands_still_is_missed_and_comes_back(
    three: tuple[Ensemble, ManualClock],
) -> None:
    """The leader sends its clients away; when the others go on, there is a leader again."""
    ensemble, clock = three
    client = client_of(leader_of(ensemble))
    victims = followers_of(ensemble)
    for server in victims:
        ensemble.quorum.pause(server)
    clock.advance(SYNC_MS)
    assert client.is_closed

    for server in victims:
        ensemble.quorum.go_on(server)
    clock.advance(TICK_MS + ELECTION_MS)

    assert sorted(states(ensemble)) == sorted(
        [ServerState.LEADING, ServerState.FOLLOWING, ServerState.FOLLOWING]
    )
    again = MemoryClient(leader_of(ensemble))
    assert again.connect(session=client.session, password=client.password) is not None
