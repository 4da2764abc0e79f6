"""Each fault of the proxy has exactly its documented effect on a real client and server."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.serialization import Create
from kazoo.security import OPEN_ACL_UNSAFE

from tests.support.live_zookeeper import connected, disconnect, until
from tests.support.patience import PATIENCE_S
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.real.ports import HOST, free_ports, is_free
from watchkeeper.real.proxy.connection import ProxiedConnection
from watchkeeper.real.proxy.proxy import Proxy
from watchkeeper.real.proxy.tap import Tap
from watchkeeper.real.proxy.valve import Flow, Valve
from watchkeeper.real.zookeeper.ensemble import Ensemble

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

ME = "billing/1"
NUMBER = 500
"""Messages that are delayed together."""


@pytest.fixture(scope="module", name="zookeeper")
def fixture_zookeeper(own_zookeeper: Ensemble) -> Ensemble:
    """Tests here count the connections of the server."""
    return own_zookeeper


class Tally(Counter[str]):
    """Counts the effects of a fault."""

    def add(self, what: str, number: int = 1) -> None:
        """Count an effect."""
        self[what] += number


@pytest.fixture
def direct(zookeeper: Ensemble) -> Iterator[KazooClient]:
    """A client that bypasses the proxy and sees the actual state; it cleans up afterwards."""
    client = connected(zookeeper.hosts)
    yield client
    for name in set(client.get_children("/")) - {"zookeeper"}:
        client.delete(f"/{name}", recursive=True)
    disconnect(client)


@pytest.fixture
def proxy(zookeeper: Ensemble, direct: KazooClient) -> Iterator[Proxy]:
    with Proxy(zookeeper.addresses) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: Proxy) -> Iterator[KazooClient]:
    """A client of the proxy, with the states that it goes through."""
    client = connected(proxy.hosts_of(ME))
    client.states = []
    client.add_listener(lambda state: client.states.append(str(state)) and None)
    yield client
    disconnect(client)


@pytest.fixture
def tally() -> Tally:
    return Tally()


def connections(zookeeper: Ensemble) -> int:
    """The number of connections of the server, without this one."""
    report = zookeeper.servers[0].four_letter_word("srvr", PATIENCE_S)
    return int(report.partition("Connections: ")[2].split()[0]) - 1


def value(client: KazooClient, path: str) -> bytes | None:
    return client.get(path)[0] if client.exists(path) else None


# --- no fault --------------------------------------------------------------------------


def test_without_a_fault_everything_passes(
    proxy: Proxy, client: KazooClient, direct: KazooClient
) -> None:
    heard: list[Any] = []
    client.create("/a", b"1")
    client.get("/a", watch=heard.append)
    direct.set("/a", b"2")
    until(lambda: heard)
    client.create("/large", b"x" * 900_000)
    batch = client.transaction()
    batch.create("/b")
    batch.check("/a", version=1)

    assert batch.commit() == ["/b", True]
    assert client.get("/large")[0] == b"x" * 900_000
    waiting = [client.set_async("/b", str(n).encode()) for n in range(500)]
    assert [pending.get(timeout=PATIENCE_S).version for pending in waiting] == list(range(1, 501))
    session = proxy.session_of(ME)
    assert session is not None
    assert (session.number, session.password) == client.client_id
    assert client.states == []


def test_four_letter_words_pass(proxy: Proxy) -> None:
    host, port = proxy.hosts_of(ME).split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as line:
        line.sendall(b"ruok")
        assert line.recv(4) == b"imok"


def test_clients_have_their_own_ways(proxy: Proxy, client: KazooClient, tally: Tally) -> None:
    second = connected(proxy.hosts_of("billing/2"))
    states: list[str] = []
    second.add_listener(lambda state: states.append(str(state)) and None)

    assert proxy.hosts_of(ME) == proxy.hosts_of(ME) != proxy.hosts_of("billing/2")
    proxy.disconnect("billing/2", tally.add)
    until(lambda: states == ["SUSPENDED", "CONNECTED"])
    second.get("/")
    disconnect(second)
    assert client.states == []
    assert tally == {"connections broken": 1}


def test_no_segment_of_a_round_trip_is_held_back(proxy: Proxy, client: KazooClient) -> None:
    """TCP would wait for a segment to be acknowledged before it sends the next short one."""
    client.get("/")
    (connection,) = proxy._client_routes[ME].routes[0].connections

    for side in (connection.client, connection.server):
        assert side.transport is not None
        line = side.transport.get_extra_info("socket")
        assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_without_a_fault_a_message_is_delivered_at_once() -> None:
    """In the same call: there is no loop that could do it later."""
    delivered: list[bytes] = []
    no_loop: Any = None
    flow = Flow(no_loop, Valve(), delivered.append, delivered.clear)
    flow.is_ready = True

    flow.send(b"request")

    assert delivered == [b"request"]


def test_no_message_overtakes_one_that_was_delayed() -> None:
    """After the end of a delay the order is kept: what is queued goes first."""
    delivered: list[bytes] = []
    timers: list[Callable[[], None]] = []
    loop: Any = SimpleNamespace(
        time=lambda: 0.0,
        call_later=lambda wait_s, call: timers.append(call) or SimpleNamespace(cancel=int),
    )
    valve = Valve()
    flow = Flow(loop, valve, delivered.append, delivered.clear)
    flow.is_ready = True
    valve.delays.append((0.5, Tally().add))
    flow.send(b"first")
    valve.delays.clear()

    flow.send(b"second")

    assert delivered == []
    loop.time = lambda: 1.0
    timers[-1]()
    assert delivered == [b"first", b"second"]


# --- connections that break ------------------------------------------------------------


def test_disconnect_breaks_and_turns_away(
    proxy: Proxy, client: KazooClient, tally: Tally
) -> None:
    session = client.client_id
    began = monotonic()

    proxy.disconnect(ME, tally.add, for_s=0.4)
    until(lambda: client.states[-1:] == ["CONNECTED"])

    assert monotonic() - began >= 0.4
    assert client.states == ["SUSPENDED", "CONNECTED"]
    assert client.client_id == session
    assert tally["connections broken"] == 1
    assert tally["connections refused"] >= 1


def test_disconnecting_an_idle_client_has_no_effect(proxy: Proxy, tally: Tally) -> None:
    proxy.hosts_of(ME)

    proxy.disconnect(ME, tally.add)

    assert not tally


def test_a_server_that_is_down_is_down_behind_the_proxy(tally: Tally) -> None:
    with Proxy([f"{HOST}:{free_ports(1)[0]}"]) as proxy:
        host, port = proxy.hosts_of(ME).split(":")
        with socket.create_connection((host, int(port)), PATIENCE_S) as line:
            line.sendall(b"ruok")
            assert line.recv(4) == b""


# --- cuts ------------------------------------------------------------------------------


def test_a_cut_both_ways_holds_up_requests(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally
) -> None:
    client.create("/a", b"1")

    cut = proxy.cut(ME, tally.add)
    waiting = client.set_async("/a", b"2")
    until(lambda: tally["messages held up"])
    assert value(direct, "/a") == b"1"
    assert not waiting.ready()

    cut.end()
    assert waiting.get(timeout=PATIENCE_S).version == 1
    assert value(direct, "/a") == b"2"
    assert tally["messages held up"] >= 1
    assert tally["bytes held up"] > 8
    assert client.states == []


def test_a_cut_from_zookeeper_holds_up_replies_alone(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally
) -> None:
    client.create("/a", b"1")

    cut = proxy.cut(ME, tally.add, directions=("from",))
    waiting = client.set_async("/a", b"2")
    until(lambda: value(direct, "/a") == b"2")
    until(lambda: tally["messages held up"])
    assert not waiting.ready()
    assert tally["messages held up"] == 1

    cut.end()
    assert waiting.get(timeout=PATIENCE_S).version == 1


def test_a_cut_to_zookeeper_lets_events_pass(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally
) -> None:
    heard: list[Any] = []
    client.create("/a", b"1")
    client.get("/a", watch=heard.append)

    cut = proxy.cut(ME, tally.add, directions=("to",))
    waiting = client.delete_async("/a")
    direct.set("/a", b"2")
    until(lambda: heard and tally["messages held up"])
    assert value(direct, "/a") == b"2"

    cut.end()
    assert waiting.get(timeout=PATIENCE_S)
    assert tally["messages held up"] >= 1


def test_cuts_add_up(proxy: Proxy, client: KazooClient, tally: Tally) -> None:
    first = proxy.cut(ME, tally.add)
    second = proxy.cut(ME, Tally().add, directions=("from",))
    waiting = client.exists_async("/")

    first.end()
    first.end()
    sleep(0.2)
    assert not waiting.ready()

    second.end()
    assert waiting.get(timeout=PATIENCE_S)


def test_a_close_behind_a_cut_is_not_delivered(
    proxy: Proxy, zookeeper: Ensemble, tally: Tally
) -> None:
    before = connections(zookeeper)
    host, port = proxy.hosts_of(ME).split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as line:
        line.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 4000, 0, 16, bytes(16), False))
        assert line.recv(1024)
        cut = proxy.cut(ME, tally.add)
    sleep(0.2)
    assert connections(zookeeper) == before + 1

    cut.end()
    until(lambda: connections(zookeeper) == before)


def test_no_server_sees_a_lost_client_close_its_connection(
    proxy: Proxy, zookeeper: Ensemble, tally: Tally
) -> None:
    """Its connection stays open until its session has expired; its next connection works."""
    before = connections(zookeeper)
    host, port = proxy.hosts_of(ME).split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as line:
        line.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 1000, 0, 16, bytes(16), False))
        assert line.recv(1024)
        proxy.strand(ME, tally.add)
        line.sendall(struct.pack(">iii", 8, -2, 11))
    sleep(0.2)
    assert connections(zookeeper) == before + 1
    assert tally == {"connections left open": 1}

    again = connected(proxy.hosts_of(ME))
    assert again.exists("/")
    disconnect(again)
    until(lambda: connections(zookeeper) == before)


def test_a_write_is_recorded_though_its_client_has_gone(
    zookeeper: Ensemble, direct: KazooClient
) -> None:
    """A member that is killed leaves writes that no client has an answer to."""
    tap, before = Tap(), connections(zookeeper)
    bodies = [Create(f"/left-{number}", b"", OPEN_ACL_UNSAFE, 0).serialize() for number in (1, 2)]
    with Proxy(zookeeper.addresses, tap=tap) as proxy:
        host, port = proxy.hosts_of(ME).split(":")
        with socket.create_connection((host, int(port)), PATIENCE_S) as line:
            line.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 4000, 0, 16, bytes(16), False))
            assert line.recv(1024)
            for xid, body in enumerate(bodies, 1):
                line.sendall(struct.pack(">iii", 8 + len(body), xid, Opcode.CREATE) + body)

        until(lambda: direct.exists("/left-2"))
        until(lambda: connections(zookeeper) == before)

    assert [(write.opcode, write.error) for write in tap.seen] == [(Opcode.CREATE, 0)] * 2


def test_a_connection_begun_during_a_cut_waits_or_is_given_up(
    proxy: Proxy, zookeeper: Ensemble, tally: Tally
) -> None:
    before = connections(zookeeper)
    host, port = proxy.hosts_of(ME).split(":")
    cut = proxy.cut(ME, tally.add, directions=("from",))
    patient = socket.create_connection((host, int(port)), PATIENCE_S)
    patient.sendall(b"ruok")
    with socket.create_connection((host, int(port)), PATIENCE_S) as hasty:
        hasty.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 4000, 0, 16, bytes(16), False))
    moments = len(zookeeper.session_times)
    sleep(0.2)
    until(lambda: connections(zookeeper) == before)

    cut.end()
    assert patient.recv(4) == b"imok"
    patient.close()
    sleep(0.2)
    assert len(zookeeper.session_times) == moments


def test_a_cut_from_one_server_leaves_the_others(
    zookeeper: Ensemble, direct: KazooClient, tally: Tally
) -> None:
    here, elsewhere = zookeeper.servers[0].address, f"{HOST}:{free_ports(1)[0]}"
    with Proxy([here, elsewhere]) as proxy:
        client = connected(proxy.hosts_of(ME, [here]))

        proxy.cut(ME, tally.add, servers=[elsewhere])
        assert client.exists("/")
        assert not tally
        cut = proxy.cut(ME, tally.add, servers=[here])
        waiting = client.exists_async("/")
        until(lambda: tally["messages held up"] >= 1)
        cut.end()
        assert waiting.get(timeout=PATIENCE_S)
        disconnect(client)


# --- delays ----------------------------------------------------------------------------


def test_a_delay_slows_each_way_and_keeps_the_order(
    proxy: Proxy, client: KazooClient, tally: Tally
) -> None:
    client.create("/a")
    delay = proxy.delay(ME, tally.add, by_s=0.1)
    began = monotonic()
    waiting = [client.set_async("/a", b"") for _ in range(NUMBER)]
    versions = [pending.get(timeout=PATIENCE_S).version for pending in waiting]
    took_s = monotonic() - began
    last = client.set_async("/a", b"")

    delay.end()
    client.set("/a", b"")
    delayed = tally["messages delayed"]
    client.set("/a", b"")

    assert versions == list(range(1, NUMBER + 1))
    assert 0.2 <= took_s < 0.1 * NUMBER  # at once, not one after the other
    assert last.get(timeout=PATIENCE_S).version == NUMBER + 1
    assert tally["messages delayed"] == delayed >= 2 * NUMBER


# --- requests and replies that are lost ------------------------------------------------

REQUESTS: dict[str, Callable[[KazooClient], Any]] = {
    "create": lambda client: client.create("/new"),
    "set": lambda client: client.set("/a", b"2"),
    "delete": lambda client: client.delete("/a"),
    "multi": lambda client: _multi(client),
    "get": lambda client: client.get("/a"),
    "exists": lambda client: client.exists("/a"),
    "children": lambda client: client.get_children("/"),
    "sync": lambda client: client.sync("/a"),
}


def _multi(client: KazooClient) -> Any:
    batch = client.transaction()
    batch.create("/new")
    batch.set_data("/a", b"2")
    return batch.commit()


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
def test_a_lost_request_takes_no_effect(
    proxy: Proxy,
    client: KazooClient,
    direct: KazooClient,
    tally: Tally,
    request_of: Callable[[KazooClient], Any],
) -> None:
    client.create("/a", b"1")
    session = client.client_id

    proxy.lose_request(ME, tally.add)
    with pytest.raises(ConnectionLoss):
        request_of(client)

    assert value(direct, "/a") == b"1"
    assert value(direct, "/new") is None
    assert tally == {"requests lost": 1, "connections broken": 1}
    until(lambda: client.states == ["SUSPENDED", "CONNECTED"])
    assert client.set("/a", b"3").version == 1
    assert client.client_id == session


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
def test_a_lost_reply_leaves_the_effect(
    proxy: Proxy,
    client: KazooClient,
    direct: KazooClient,
    tally: Tally,
    request_of: Callable[[KazooClient], Any],
) -> None:
    client.create("/a", b"1")
    twin = next(name for name in REQUESTS if REQUESTS[name] is request_of)

    proxy.lose_reply(ME, tally.add)
    with pytest.raises(ConnectionLoss):
        request_of(client)

    now = value(direct, "/a"), direct.exists("/new") is not None
    assert now == {
        "create": (b"1", True),
        "set": (b"2", False),
        "delete": (None, False),
        "multi": (b"2", True),
    }.get(twin, (b"1", False))
    assert tally == {"replies lost": 1, "connections broken": 1}
    until(lambda: client.states == ["SUSPENDED", "CONNECTED"])
    client.get_children("/")


def test_the_events_of_a_request_arrive_before_its_reply_is_lost(
    proxy: Proxy, client: KazooClient, tally: Tally
) -> None:
    heard: list[Any] = []
    client.create("/a")
    client.get("/a", watch=lambda event: heard.append(str(event.type)))

    proxy.lose_reply(ME, tally.add)
    with pytest.raises(ConnectionLoss):
        client.set("/a", b"2")

    until(lambda: heard)
    assert heard[0] == "CHANGED"


def test_pings_are_not_what_is_lost(proxy: Proxy, zookeeper: Ensemble, tally: Tally) -> None:
    client = connected(proxy.hosts_of(ME), timeout_s=6.0)

    proxy.lose_request(ME, tally.add)
    until(lambda: "lop=PING" in zookeeper.servers[0].four_letter_word("cons", PATIENCE_S))
    assert not tally
    assert client.connected
    with pytest.raises(ConnectionLoss):
        client.exists("/")
    assert tally["requests lost"] == 1
    disconnect(client)


def test_each_loss_meets_one_request(proxy: Proxy, client: KazooClient, tally: Tally) -> None:
    proxy.lose_request(ME, tally.add)
    proxy.lose_reply(ME, tally.add)

    for _ in range(2):
        with pytest.raises(ConnectionLoss):
            client.exists("/")
        until(lambda: client.connected)
    client.exists("/")

    assert tally == {"requests lost": 1, "replies lost": 1, "connections broken": 2}


def test_what_follows_a_lost_request_goes_with_its_connection(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally
) -> None:
    client.create("/a")

    proxy.lose_request(ME, tally.add)
    waiting = [client.set_async("/a", b"") for _ in range(20)]
    for pending in waiting[:1]:
        with pytest.raises(ConnectionLoss):
            pending.get(timeout=PATIENCE_S)
    until(lambda: all(pending.ready() for pending in waiting))

    assert tally["requests lost"] == 1
    done = sum(pending.exception is None for pending in waiting)
    assert direct.exists("/a").version == done


def test_a_loss_that_is_called_off_does_nothing(
    proxy: Proxy, client: KazooClient, tally: Tally
) -> None:
    proxy.lose_request(ME, tally.add).end()

    assert client.exists("/")
    assert not tally


# --- requests that come late -----------------------------------------------------------


@pytest.fixture
def may_land(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Late requests wait for it, so that a busy machine cannot let them land too early."""
    event = Event()
    deliver = ProxiedConnection._deliver_late

    def wait(self: ProxiedConnection, *request: Any) -> None:
        if event.is_set():
            deliver(self, *request)
        else:
            self.route.client_route.loop.call_later(0.01, wait, self, *request)

    monkeypatch.setattr(ProxiedConnection, "_deliver_late", wait)
    return event


def test_a_lost_write_lands_after_its_client_has_come_back_and_read(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally, may_land: Event
) -> None:
    client.create("/a", b"1")

    proxy.lose_request(ME, tally.add, lands_after_s=0.1)
    with pytest.raises(ConnectionLoss):
        client.set("/a", b"2")
    until(lambda: client.connected)
    assert client.get("/a")[0] == b"1"
    assert tally == {"requests lost": 1, "connections broken": 1}

    may_land.set()
    until(lambda: tally["late requests landed"])
    assert client.get("/a")[0] == b"2"
    assert direct.get("/a")[1].version == 1
    assert client.states == ["SUSPENDED", "CONNECTED"]


def test_a_lost_write_lands_while_its_client_is_still_away(
    proxy: Proxy,
    client: KazooClient,
    direct: KazooClient,
    tally: Tally,
    zookeeper: Ensemble,
    may_land: Event,
) -> None:
    client.create("/a", b"1")
    before = connections(zookeeper)

    proxy.lose_request(ME, tally.add, lands_after_s=0.1)
    waiting = client.set_async("/a", b"2")
    until(lambda: tally["requests lost"])
    proxy.disconnect(ME, Tally().add, for_s=2 * PATIENCE_S)
    with pytest.raises(ConnectionLoss):
        waiting.get(timeout=PATIENCE_S)
    may_land.set()
    until(lambda: tally["late requests landed"])

    assert not client.connected
    assert value(direct, "/a") == b"2"
    proxy._client_route(ME).refusals.clear()  # before its time, which no machine could miss
    until(lambda: client.connected and connections(zookeeper) == before)


def test_a_late_write_can_fail(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally, may_land: Event
) -> None:
    proxy.lose_request(ME, tally.add, lands_after_s=0.1)
    with pytest.raises(ConnectionLoss):
        client.create("/a", b"late")
    direct.create("/a", b"early")

    may_land.set()
    until(lambda: tally["late requests refused"])

    assert value(direct, "/a") == b"early"


def test_a_late_write_of_a_session_that_is_over_never_lands(
    proxy: Proxy, direct: KazooClient, tally: Tally, may_land: Event
) -> None:
    client = connected(proxy.hosts_of(ME))

    proxy.lose_request(ME, tally.add, lands_after_s=0.1)
    with pytest.raises(ConnectionLoss):
        client.create("/a", ephemeral=True)
    until(lambda: client.connected)
    disconnect(client)
    may_land.set()
    until(lambda: tally["late requests that found their session over"])

    assert value(direct, "/a") is None


# --- coming and going ------------------------------------------------------------------


def test_nothing_is_left_when_the_proxy_goes(zookeeper: Ensemble) -> None:
    before = connections(zookeeper)
    proxy = Proxy(zookeeper.addresses)
    proxy.start()
    hosts = proxy.hosts_of(ME)
    line = socket.create_connection((HOST, int(hosts.split(":")[1])), PATIENCE_S)
    line.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 4000, 0, 16, bytes(16), False))
    assert line.recv(1024)

    proxy.stop()
    proxy.stop()

    assert is_free(int(hosts.split(":")[1]))
    with suppress(ConnectionResetError):
        assert line.recv(1024) == b""
    line.close()
    until(lambda: connections(zookeeper) == before)


def test_what_a_proxy_cannot_do_is_reported(proxy: Proxy, tally: Tally) -> None:
    with pytest.raises(LookupError, match="has no client 'stranger', but none; ask hosts_of"):
        proxy.cut("stranger", tally.add)
    idle = Proxy([])
    with pytest.raises(RuntimeError, match="does not run; start it before"):
        idle.hosts_of(ME)
    idle.stop()
