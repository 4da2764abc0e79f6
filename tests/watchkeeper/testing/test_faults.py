"""The verbs of a ZooKeeper for tests: a kazoo client sees each effect, and each is counted."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic, sleep

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss

from tests.support.live_zookeeper import until
from watchkeeper.real.zookeeper.server import ask_word
from watchkeeper.testing import ControlError, Fault, ZooKeeper

TICK_S = 0.1
LONG_S = 30.0
RETRY = {"max_tries": -1, "delay": 0.02, "max_delay": 0.1}


@pytest.fixture(params=["in this process", "in its own"])
def one(request: pytest.FixtureRequest) -> Iterator[ZooKeeper]:
    """One server, by each of the two handles."""
    with ZooKeeper(
        tick_s=TICK_S, max_session_s=LONG_S, own_process=request.param == "in its own"
    ) as zookeeper:
        yield zookeeper


@pytest.fixture
def three() -> Iterator[ZooKeeper]:
    """Three servers."""
    with ZooKeeper(3, tick_s=TICK_S, max_session_s=LONG_S) as zookeeper:
        yield zookeeper


def patient(zookeeper: ZooKeeper, **options: object) -> KazooClient:
    """A client that tries for long to connect, with a session that lives for long."""
    return zookeeper.client(timeout=LONG_S, connection_retry=RETRY, **options)


def states_of(client: KazooClient) -> list[str]:
    """The states that a client goes through from now on."""
    seen: list[str] = []
    client.add_listener(lambda state: seen.append(state) or None)
    return seen


# --- sessions and connections ----------------------------------------------------------


def test_an_expired_session_is_lost_and_its_ephemerals_are_gone(one: ZooKeeper) -> None:
    """The client gets LOST, and another one sees no ephemeral."""
    client, other = patient(one), patient(one)
    client.create("/mine", ephemeral=True)
    seen = states_of(client)

    fault = one.expire(client)

    assert fault.effects == {"sessions ended": 1}
    until(lambda: KazooState.LOST in seen)
    assert other.exists("/mine") is None


def test_the_end_of_a_session_that_there_is_not_counts_nothing(one: ZooKeeper) -> None:
    """A fault that strikes nothing has no effects."""
    assert one.expire(12345).effects == {}


def test_a_client_without_a_session_is_refused(one: ZooKeeper) -> None:
    """A fault cannot be aimed at it."""
    with pytest.raises(ControlError, match="has no session"):
        one.expire(KazooClient(one.hosts))


def test_a_disconnected_client_comes_back_with_its_session(one: ZooKeeper) -> None:
    """Connections break, sessions live."""
    client, other = patient(one), patient(one)
    session, seen, seen_by_other = client.client_id[0], states_of(client), states_of(other)

    fault = one.disconnect(client)

    until(lambda: seen[-1:] == [KazooState.CONNECTED])
    assert fault.effects == {"connections broken": 1}
    assert seen == [KazooState.SUSPENDED, KazooState.CONNECTED]
    assert client.client_id[0] == session
    assert seen_by_other == []


def test_a_refused_client_gets_no_connection_until_the_fault_ends(one: ZooKeeper) -> None:
    """Other clients connect meanwhile."""
    client = patient(one)
    seen = states_of(client)

    fault = one.disconnect(client, for_s=LONG_S)
    fault.wait("connections refused")
    patient(one).create("/by-another")
    assert seen == [KazooState.SUSPENDED]
    fault.end()

    until(lambda: seen[-1:] == [KazooState.CONNECTED])


def test_all_clients_are_refused_for_a_time(one: ZooKeeper) -> None:
    """Without a session the fault is meant for every client; it ends by itself too."""
    client = patient(one)
    seen = states_of(client)

    fault = one.disconnect(for_s=LONG_S)
    fault.wait("connections refused")
    assert fault.end()["connections broken"] == 1
    until(lambda: seen[-1:] == [KazooState.CONNECTED])
    one.disconnect(for_s=0.1)
    until(lambda: seen == 2 * [KazooState.SUSPENDED, KazooState.CONNECTED])


def test_a_disconnection_without_clients_counts_nothing(one: ZooKeeper) -> None:
    """There is nothing to break."""
    assert one.disconnect().effects == {}


def test_a_delay_holds_up_replies_of_old_and_new_connections(one: ZooKeeper) -> None:
    """A request takes the delay twice: on its way and on the way back."""
    client = patient(one)
    with one.delay(0.1) as fault:
        for each in (client, patient(one)):
            began = monotonic()
            each.get("/")
            assert monotonic() - began >= 0.2
    assert fault.effects == {"messages delayed": 2}


def test_a_delay_of_one_session_leaves_others_alone(one: ZooKeeper) -> None:
    """One that has delayed nothing counts nothing; its end delivers what it holds back."""
    client, other = patient(one), patient(one)
    fault = one.delay(LONG_S, client)

    other.create("/at-once")
    assert fault.effects == {}
    reply = client.get_async("/")
    other.get("/")
    assert not reply.ready()
    fault.end()

    assert reply.get(timeout=LONG_S)


# --- requests and replies --------------------------------------------------------------


def test_the_write_whose_reply_is_dropped_has_taken_effect(one: ZooKeeper) -> None:
    """The client gets a ConnectionLoss, and finds the znode."""
    client = patient(one)
    fault = one.drop_next_reply("/a", operation="create", session=client)

    client.get_children("/")
    with pytest.raises(ConnectionLoss):
        client.create("/a")

    assert fault.effects == {"replies lost": 1}
    assert client.retry(client.exists, "/a")


def test_a_lost_request_has_no_effect(one: ZooKeeper) -> None:
    """The client gets a ConnectionLoss, and finds nothing."""
    client = patient(one)
    fault = one.lose_next_request("/a")

    with pytest.raises(ConnectionLoss):
        client.create("/a")

    assert fault.effects == {"requests lost": 1}
    assert client.retry(client.exists, "/a") is None
    client.create("/a")


def test_a_late_request_lands_after_its_connection_is_gone(one: ZooKeeper) -> None:
    """The client gets a ConnectionLoss, and the znode comes later."""
    client = patient(one)
    fault = one.lose_next_request("/a", lands_after_s=0.3)

    with pytest.raises(ConnectionLoss):
        client.create("/a")
    fault.wait("late requests executed")

    assert fault.effects == {"requests lost": 1, "late requests executed": 1}
    assert client.retry(client.exists, "/a")
    (broken,), (applied,) = one.history.of_kind("suspended"), one.history.of_kind("applied")
    assert applied.t_us - broken.t_us >= 290_000, "a timer may be early by its resolution"


@pytest.mark.parametrize(
    "aim", [{"path": "/b"}, {"path": "/a/*"}, {"operation": "delete"}, {"session": 12345}]
)
def test_a_loss_strikes_only_what_it_is_aimed_at(one: ZooKeeper, aim: dict[str, object]) -> None:
    """Another path, operation or session: nothing is lost, and nothing is counted."""
    client = patient(one)
    faults = [one.drop_next_reply(**aim), one.lose_next_request(**aim)]  # type: ignore[arg-type]

    client.create("/a")

    assert [fault.end() for fault in faults] == [{}, {}]
    client.delete("/a")  # both are disarmed


@pytest.mark.parametrize("path", ["/a/one", "/a/*", "*"])
def test_a_loss_finds_a_path_in_a_multi_and_by_an_asterisk(one: ZooKeeper, path: str) -> None:
    """A multi names the paths of its parts."""
    client = patient(one)
    fault = one.drop_next_reply(path, operation="multi")
    transaction = client.transaction()
    transaction.create("/a")
    transaction.create("/a/one")

    with pytest.raises(ConnectionLoss):
        transaction.commit()

    assert fault.effects == {"replies lost": 1}
    assert client.retry(client.exists, "/a/one")


def test_an_unknown_operation_is_refused_with_the_known_ones(one: ZooKeeper) -> None:
    """A loss that fits nothing by mistake would say nothing."""
    with pytest.raises(ControlError, match=r"'mkdir' is no operation; name one of 'create', "):
        one.drop_next_reply(operation="mkdir")


# --- servers ---------------------------------------------------------------------------


def test_a_pause_below_the_session_timeout_only_delays(one: ZooKeeper) -> None:
    """Requests wait, and the session lives."""
    client = patient(one)
    session = client.client_id[0]

    fault = one.pause()
    reply = client.create_async("/a", ephemeral=True)
    reply.wait(0.3)
    assert not reply.ready()
    fault.end()

    assert reply.get(timeout=LONG_S) == "/a"
    assert fault.effects == {"servers paused": 1}
    assert list(one.sessions) == [session]


def test_a_pause_past_the_session_timeout_ends_the_session(one: ZooKeeper) -> None:
    """A server that goes on looks at the clock before it reads what lies in its sockets."""
    client = one.client(timeout=3 * TICK_S, connection_retry=RETRY)
    seen = states_of(client)

    with one.pause():
        until(lambda: seen, patience_s=LONG_S)  # the client has given the server up
        sleep(5 * TICK_S)
    until(lambda: KazooState.LOST in seen)

    kinds = [event.kind for event in one.history.of_kind("session expired")]
    assert kinds == ["session expired"]


def test_what_is_paused_already_and_what_is_not_paused_count_nothing(one: ZooKeeper) -> None:
    """Neither verb strikes a second time."""
    assert one.resume().effects == {}
    assert one.pause().effects == {"servers paused": 1}
    assert one.pause().effects == {}
    assert one.resume().effects == {"servers resumed": 1}


def test_a_killed_server_comes_back_with_its_data(one: ZooKeeper) -> None:
    """Its clients lose their connection and keep their session."""
    client = patient(one)
    client.create("/a", ephemeral=True)
    seen = states_of(client)

    fault = one.kill(1)
    until(lambda: KazooState.SUSPENDED in seen)
    assert one.leader is None
    assert one.kill(1).effects == {}, "it is down already"
    fault.end()

    until(lambda: seen[-1:] == [KazooState.CONNECTED])
    assert fault.effects == {"servers killed": 1}
    assert client.exists("/a").ephemeralOwner == client.client_id[0]
    assert one.start(1).effects == {}, "it runs"


def test_a_sync_waits_for_a_follower_that_lags(three: ZooKeeper) -> None:
    """What comes after it is not older than the sync."""
    writer, reader = patient(three, server="leader"), patient(three, server=1)

    fault = three.lag(1, by_s=0.3)
    writer.create("/a")
    reader.sync("/")
    assert reader.exists("/a")

    assert fault.end() == {"commits delayed": 1}


def test_a_follower_that_lags_gives_old_data(three: ZooKeeper) -> None:
    """Before a write the lag counts nothing; its end does not wait for what is left of it."""
    writer, reader = patient(three, server="leader"), patient(three, server=1)
    fault = three.lag(1, by_s=LONG_S)
    assert reader.exists("/a") is None
    assert fault.effects == {}

    writer.create("/a")
    assert reader.exists("/a") is None
    fault.end()

    assert reader.exists("/a")


def test_a_leader_cannot_lag(three: ZooKeeper, one: ZooKeeper) -> None:
    """It has applied everything that is committed."""
    with pytest.raises(ControlError, match="name a follower"):
        three.lag("leader", by_s=1)
    with pytest.raises(ControlError, match="no server follows a leader"):
        one.lag(by_s=1)


def test_another_server_leads_when_the_leader_is_killed(three: ZooKeeper) -> None:
    """Sessions move on, with their ephemerals."""
    client = patient(three)
    client.create("/a", ephemeral=True)
    first = three.wait_for_leader()

    fault = three.kill("leader")
    assert three.wait_for_leader() != first
    client.retry(client.set, "/a", b"1")

    assert fault.end() == {"servers killed": 1}
    assert len(three.sessions) == 1


def test_without_a_quorum_there_is_no_service(three: ZooKeeper) -> None:
    """Clients lose their connections, and have them back when servers return."""
    client = patient(three)
    seen = states_of(client)

    fault = three.quorum_loss()
    until(lambda: KazooState.SUSPENDED in seen)
    assert three.leader is None
    assert fault.effects == {"servers killed": 2}
    assert three.quorum_loss().effects == {}, "it is lost already"
    fault.end()

    three.wait_for_leader()
    assert client.retry(client.create, "/a") == "/a"


def test_a_server_that_is_cut_off_from_the_others_gives_up_its_clients(
    three: ZooKeeper,
) -> None:
    """It has no leader; the others go on."""
    alone = patient(three, server=1)
    seen = states_of(alone)
    other = patient(three, server="leader")

    fault = three.cut(1)
    until(lambda: KazooState.SUSPENDED in seen)
    other.create("/a")
    assert fault.effects == {"links between servers cut": 2}
    assert three.heal().effects == {"cuts healed": 1}

    until(lambda: seen[-1:] == [KazooState.CONNECTED])
    assert alone.retry(alone.exists, "/a")
    assert three.heal().effects == {}


def serves(address: str) -> bool:
    """Whether a server has a leader and serves."""
    host, _, port = address.rpartition(":")
    return ask_word(host, int(port), "srvr", LONG_S).startswith("Zookeeper version")


def test_the_end_of_one_cut_leaves_another_one(three: ZooKeeper) -> None:
    """A server is cut off as long as one cut has it on its side."""
    first, second = three.cut(1), three.cut(1, 2)
    until(lambda: three.leader == 2)
    second.end()

    until(lambda: not serves(three.hosts_of(1)))
    assert serves(three.hosts_of(2))
    first.end()
    until(lambda: serves(three.hosts_of(1)))


@pytest.mark.parametrize("servers", [(), (1, 2, 3)])
def test_a_cut_has_servers_on_both_sides(three: ZooKeeper, servers: tuple[int, ...]) -> None:
    """Anything else would be no cut."""
    with pytest.raises(ControlError, match="servers on both sides"):
        three.cut(*servers)


@pytest.mark.parametrize("server", [0, 4, "observer"])
def test_an_unknown_server_is_refused_with_the_known_ones(
    three: ZooKeeper, server: int | str
) -> None:
    """A number or a role."""
    with pytest.raises(ControlError, match="name 1, 2, 3, 'leader' or 'follower'"):
        three.kill(server)


# --- waiting ---------------------------------------------------------------------------


def test_waiting_for_a_fault_that_strikes_nothing_ends_with_a_sentence(one: ZooKeeper) -> None:
    """It names what did not happen."""
    fault: Fault = one.drop_next_reply("/never")
    with pytest.raises(TimeoutError, match="should have replies lost within"):
        fault.wait("replies lost", timeout_s=0.1)
