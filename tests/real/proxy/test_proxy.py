"""Each fault of the proxy does exactly what it says to a real client of a real server."""

from __future__ import annotations

import socket
import statistics
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic, perf_counter, sleep
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss

from real.ensemble import Ensemble
from real.ports import HOST, free_ports, is_free
from real.proxy import Proxy
from tests.live import OFTEN, until

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

ME = "billing/1"
LONG_S = 4.0
"""The session timeout of clients that must not lose patience, the longest there is."""


class Tally(Counter[str]):
    """What a fault did."""

    def add(self, what: str, number: int = 1) -> None:
        """Count something."""
        self[what] += number


def connect(hosts: str, timeout_s: float = LONG_S) -> KazooClient:
    client = KazooClient(hosts, timeout=timeout_s, connection_retry=OFTEN)
    client.start(timeout=10)
    return client


def leave(client: KazooClient) -> None:
    client.stop()
    client.close()


@pytest.fixture
def direct(zookeeper: Ensemble) -> Iterator[KazooClient]:
    """A client that no fault can reach; it sees what is true. Everything goes afterwards."""
    client = connect(zookeeper.hosts)
    yield client
    for name in set(client.get_children("/")) - {"zookeeper"}:
        client.delete(f"/{name}", recursive=True)
    leave(client)


@pytest.fixture
def proxy(zookeeper: Ensemble, direct: KazooClient) -> Iterator[Proxy]:
    with Proxy(zookeeper.addresses) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: Proxy) -> Iterator[KazooClient]:
    """A client of the proxy, with the states it goes through."""
    client = connect(proxy.hosts_of(ME))
    client.states = []
    client.add_listener(lambda state: client.states.append(str(state)) and None)
    yield client
    leave(client)


@pytest.fixture
def tally() -> Tally:
    return Tally()


def connections(zookeeper: Ensemble) -> int:
    """How many connections the server has, but for the one that asks."""
    said = zookeeper.servers[0].ask("srvr")
    return int(said.partition("Connections: ")[2].split()[0]) - 1


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
    assert [one.get(timeout=10).version for one in waiting] == list(range(1, 501))
    session = proxy.session_of(ME)
    assert session is not None
    assert (session.number, session.password) == client.client_id
    assert client.states == []


def test_four_letter_words_pass(proxy: Proxy) -> None:
    host, port = proxy.hosts_of(ME).split(":")
    with socket.create_connection((host, int(port)), 5) as line:
        line.sendall(b"ruok")
        assert line.recv(4) == b"imok"


def test_clients_have_their_own_ways(proxy: Proxy, client: KazooClient, tally: Tally) -> None:
    other = connect(proxy.hosts_of("billing/2"))
    states: list[str] = []
    other.add_listener(lambda state: states.append(str(state)) and None)

    assert proxy.hosts_of(ME) == proxy.hosts_of(ME) != proxy.hosts_of("billing/2")
    proxy.disconnect("billing/2", tally.add)
    until(lambda: states == ["SUSPENDED", "CONNECTED"])
    other.get("/")
    leave(other)
    assert client.states == []
    assert tally == {"connections broken": 1}


def round_trips_ms(hosts: str, number: int = 300) -> float:
    """The median of so many reads over a plain socket."""
    host, port = hosts.split(":")
    with socket.create_connection((host, int(port)), 5) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 4000, 0, 16, bytes(16), False))
        line.recv(1024)
        took = []
        for xid in range(1, number + 1):
            began = perf_counter()
            line.sendall(struct.pack(">iiii1s?", 14, xid, 3, 1, b"/", False))
            line.recv(1024)
            took.append(perf_counter() - began)
        line.sendall(struct.pack(">iii", 8, number + 1, -11))
        line.recv(1024)
    return statistics.median(took) * 1000


def test_it_adds_little_to_a_round_trip(proxy: Proxy, zookeeper: Ensemble) -> None:
    hosts = proxy.hosts_of(ME)

    added = [round_trips_ms(hosts) - round_trips_ms(zookeeper.hosts) for _ in range(5)]

    assert min(added) < 0.3


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


def test_disconnecting_nobody_has_no_effect(proxy: Proxy, tally: Tally) -> None:
    proxy.hosts_of(ME)

    proxy.disconnect(ME, tally.add)

    assert not tally


def test_a_server_that_is_down_is_down_behind_the_proxy(tally: Tally) -> None:
    with Proxy([f"{HOST}:{free_ports(1)[0]}"]) as proxy:
        host, port = proxy.hosts_of(ME).split(":")
        with socket.create_connection((host, int(port)), 5) as line:
            line.sendall(b"ruok")
            assert line.recv(4) == b""


# --- cuts ------------------------------------------------------------------------------


def test_a_cut_both_ways_holds_up_requests(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally
) -> None:
    client.create("/a", b"1")

    cut = proxy.cut(ME, tally.add)
    waiting = client.set_async("/a", b"2")
    sleep(0.3)
    assert value(direct, "/a") == b"1"
    assert not waiting.ready()

    cut.end()
    assert waiting.get(timeout=5).version == 1
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
    sleep(0.2)
    assert not waiting.ready()
    assert tally["messages held up"] == 1

    cut.end()
    assert waiting.get(timeout=5).version == 1


def test_a_cut_to_zookeeper_lets_events_pass(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally
) -> None:
    heard: list[Any] = []
    client.create("/a", b"1")
    client.get("/a", watch=heard.append)

    cut = proxy.cut(ME, tally.add, directions=("to",))
    waiting = client.delete_async("/a")
    direct.set("/a", b"2")
    until(lambda: heard)
    assert value(direct, "/a") == b"2"

    cut.end()
    assert waiting.get(timeout=5)
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
    assert waiting.get(timeout=5)


def test_nobody_hears_of_a_connection_closed_behind_a_cut(
    proxy: Proxy, zookeeper: Ensemble, tally: Tally
) -> None:
    before = connections(zookeeper)
    host, port = proxy.hosts_of(ME).split(":")
    with socket.create_connection((host, int(port)), 5) as line:
        line.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 4000, 0, 16, bytes(16), False))
        assert line.recv(1024)
        cut = proxy.cut(ME, tally.add)
    sleep(0.2)
    assert connections(zookeeper) == before + 1

    cut.end()
    until(lambda: connections(zookeeper) == before)


def test_no_server_sees_the_end_of_a_client_whose_machine_is_lost(
    proxy: Proxy, zookeeper: Ensemble, tally: Tally
) -> None:
    """Its connection is open until its session has expired; its next one is like any other."""
    before = connections(zookeeper)
    host, port = proxy.hosts_of(ME).split(":")
    with socket.create_connection((host, int(port)), 5) as line:
        line.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 1000, 0, 16, bytes(16), False))
        assert line.recv(1024)
        proxy.strand(ME, tally.add)
        line.sendall(struct.pack(">iii", 8, -2, 11))
    sleep(0.2)
    assert connections(zookeeper) == before + 1
    assert tally == {"connections left open": 1}

    again = connect(proxy.hosts_of(ME))
    assert again.exists("/")
    leave(again)
    until(lambda: connections(zookeeper) == before)


def test_a_connection_begun_during_a_cut_waits_or_is_given_up(
    proxy: Proxy, zookeeper: Ensemble, tally: Tally
) -> None:
    before = connections(zookeeper)
    host, port = proxy.hosts_of(ME).split(":")
    cut = proxy.cut(ME, tally.add, directions=("from",))
    patient = socket.create_connection((host, int(port)), 5)
    patient.sendall(b"ruok")
    with socket.create_connection((host, int(port)), 5) as hasty:
        hasty.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 4000, 0, 16, bytes(16), False))
    moments = len(zookeeper.moments)
    sleep(0.2)
    assert connections(zookeeper) == before

    cut.end()
    assert patient.recv(4) == b"imok"
    patient.close()
    sleep(0.2)
    assert len(zookeeper.moments) == moments


def test_a_cut_from_one_server_leaves_the_others(
    zookeeper: Ensemble, direct: KazooClient, tally: Tally
) -> None:
    here, elsewhere = zookeeper.servers[0].address, f"{HOST}:{free_ports(1)[0]}"
    with Proxy([here, elsewhere]) as proxy:
        client = connect(proxy.hosts_of(ME, [here]))

        proxy.cut(ME, tally.add, servers=[elsewhere])
        assert client.exists("/")
        assert not tally
        cut = proxy.cut(ME, tally.add, servers=[here])
        waiting = client.exists_async("/")
        until(lambda: tally["messages held up"] >= 1)
        cut.end()
        assert waiting.get(timeout=5)
        leave(client)


# --- delays ----------------------------------------------------------------------------


def test_a_delay_slows_each_way_and_keeps_the_order(
    proxy: Proxy, client: KazooClient, tally: Tally
) -> None:
    client.create("/a")
    delay = proxy.delay(ME, tally.add, by_s=0.1)
    began = monotonic()
    waiting = [client.set_async("/a", b"") for _ in range(20)]
    versions = [one.get(timeout=5).version for one in waiting]
    took = monotonic() - began
    last = client.set_async("/a", b"")

    delay.end()
    client.set("/a", b"")
    began = monotonic()
    client.set("/a", b"")

    assert versions == list(range(1, 21))
    assert 0.2 <= took < 1.0
    assert last.get(timeout=5).version == 21
    assert monotonic() - began < 0.1
    assert tally["messages delayed"] >= 40


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
    twin = next(one for one in REQUESTS if REQUESTS[one] is request_of)

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


def test_pings_are_not_what_is_lost(proxy: Proxy, direct: KazooClient, tally: Tally) -> None:
    client = connect(proxy.hosts_of(ME), timeout_s=0.6)

    proxy.lose_request(ME, tally.add)
    sleep(0.8)
    assert not tally
    assert client.connected
    with pytest.raises(ConnectionLoss):
        client.exists("/")
    assert tally["requests lost"] == 1
    leave(client)


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
    for one in waiting[:1]:
        with pytest.raises(ConnectionLoss):
            one.get(timeout=5)
    until(lambda: all(one.ready() for one in waiting))

    assert tally["requests lost"] == 1
    done = sum(one.exception is None for one in waiting)
    assert direct.exists("/a").version == done


def test_a_loss_that_is_called_off_does_nothing(
    proxy: Proxy, client: KazooClient, tally: Tally
) -> None:
    proxy.lose_request(ME, tally.add).end()

    assert client.exists("/")
    assert not tally


# --- requests that come late -----------------------------------------------------------


def test_a_lost_write_lands_after_its_client_has_come_back_and_read(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally
) -> None:
    client.create("/a", b"1")

    proxy.lose_request(ME, tally.add, lands_after_s=0.5)
    with pytest.raises(ConnectionLoss):
        client.set("/a", b"2")
    until(lambda: client.connected)
    assert client.get("/a")[0] == b"1"
    assert tally == {"requests lost": 1, "connections broken": 1}

    until(lambda: tally["late requests landed"])
    assert client.get("/a")[0] == b"2"
    assert direct.get("/a")[1].version == 1
    assert client.states == ["SUSPENDED", "CONNECTED"]


def test_a_lost_write_lands_while_its_client_is_still_away(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally, zookeeper: Ensemble
) -> None:
    client.create("/a", b"1")
    before = connections(zookeeper)

    proxy.lose_request(ME, tally.add, lands_after_s=0.3)
    waiting = client.set_async("/a", b"2")
    until(lambda: tally["requests lost"])
    proxy.disconnect(ME, Tally().add, for_s=0.8)
    with pytest.raises(ConnectionLoss):
        waiting.get(timeout=5)
    until(lambda: tally["late requests landed"])

    assert not client.connected
    assert value(direct, "/a") == b"2"
    until(lambda: client.connected and connections(zookeeper) == before)


def test_a_late_write_can_fail(
    proxy: Proxy, client: KazooClient, direct: KazooClient, tally: Tally
) -> None:
    proxy.lose_request(ME, tally.add, lands_after_s=0.3)
    with pytest.raises(ConnectionLoss):
        client.create("/a", b"late")
    direct.create("/a", b"early")

    until(lambda: tally["late requests refused"])

    assert value(direct, "/a") == b"early"


def test_a_late_write_of_a_session_that_is_over_never_lands(
    proxy: Proxy, direct: KazooClient, tally: Tally
) -> None:
    client = connect(proxy.hosts_of(ME))

    proxy.lose_request(ME, tally.add, lands_after_s=0.6)
    with pytest.raises(ConnectionLoss):
        client.create("/a", ephemeral=True)
    until(lambda: client.connected)
    leave(client)
    until(lambda: tally["late requests that found their session over"])

    assert value(direct, "/a") is None


# --- coming and going ------------------------------------------------------------------


def test_nothing_is_left_when_the_proxy_goes(zookeeper: Ensemble) -> None:
    before = connections(zookeeper)
    proxy = Proxy(zookeeper.addresses)
    proxy.start()
    hosts = proxy.hosts_of(ME)
    line = socket.create_connection((HOST, int(hosts.split(":")[1])), 5)
    line.sendall(struct.pack(">iiqiqi16s?", 45, 0, 0, 4000, 0, 16, bytes(16), False))
    assert line.recv(1024)

    proxy.stop()
    proxy.stop()

    assert is_free(int(hosts.split(":")[1]))
    with suppress(ConnectionResetError):
        assert line.recv(1024) == b""
    line.close()
    until(lambda: connections(zookeeper) == before)


def test_what_cannot_be_asked_of_a_proxy_is_told(proxy: Proxy, tally: Tally) -> None:
    with pytest.raises(LookupError, match="has no client 'nobody', but none; ask hosts_of"):
        proxy.cut("nobody", tally.add)
    idle = Proxy([])
    with pytest.raises(RuntimeError, match="does not run; start it before"):
        idle.hosts_of(ME)
    idle.stop()
