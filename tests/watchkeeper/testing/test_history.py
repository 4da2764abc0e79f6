"""The history of a ZooKeeper for tests: the trace of all requests, and its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest
from kazoo.exceptions import NodeExistsError

from tests.support.live_zookeeper import until
from watchkeeper.model.trace.trace import parse
from watchkeeper.testing import ZooKeeper


@pytest.fixture(params=["in this process", "in its own"])
def zookeeper(request: pytest.FixtureRequest) -> Iterator[ZooKeeper]:
    """One server, by each of the two handles."""
    with ZooKeeper(tick_s=0.1, own_process=request.param == "in its own") as zookeeper:
        yield zookeeper


def test_every_request_has_its_response_and_its_effect(zookeeper: ZooKeeper) -> None:
    """In the order in which the server took part in them."""
    client = zookeeper.client()
    client.create("/a", b"1")
    with pytest.raises(NodeExistsError):
        client.create("/a")
    client.stop()

    kinds = ("request", "applied", "refused", "response", "session opened", "session closed")
    rows = [
        (event.node, event.kind, event.detail.get("op"))
        for event in zookeeper.history.of_kind(*kinds)
    ]

    assert rows[:8] == [
        ("zookeeper/1", "session opened", None),
        ("client/1", "request", "create"),
        ("zookeeper/1", "applied", "create"),
        ("client/1", "response", "create"),
        ("client/1", "request", "create"),
        ("zookeeper/1", "refused", "create"),
        ("client/1", "response", "create"),
        ("client/1", "request", "closesession"),
    ]
    responses = zookeeper.history.of_kind("response")
    assert [event.detail["answer"] for event in responses[:2]] == ["ok", {"error": "NodeExists"}]
    assert [event.zxid for event in responses[:2]] == [2, 3]


def test_a_watch_is_with_the_client_that_had_set_it(zookeeper: ZooKeeper) -> None:
    """It fires before the response to the write that fires it."""
    watcher, writer = zookeeper.client(), zookeeper.client()
    seen: list[str] = []
    watcher.exists("/a", watch=lambda event: seen.append(event.path))
    writer.create("/a")
    until(lambda: seen)

    (fired,) = zookeeper.history.of_kind("watch fired")
    assert (fired.node, fired.detail["what"], fired.detail["path"]) == (
        "client/1",
        "created",
        "/a",
    )
    response = zookeeper.history.of_kind("response")[-1]
    assert fired.seq < response.seq


def test_a_fault_comes_before_what_it_struck(zookeeper: ZooKeeper) -> None:
    """With its verb, its target and, at its end, its effects."""
    client = zookeeper.client()
    zookeeper.expire(client)
    with zookeeper.pause():
        pass

    fault, expiry, suspended = zookeeper.history.of_kind("fault", "session expired", "suspended")[
        :3
    ]
    assert (fault.node, fault.detail["verb"]) == ("client/1", "expire")
    assert expiry.detail["by"] == "client/1"
    assert suspended.node == "client/1"
    (ended,) = zookeeper.history.of_kind("fault ended")
    assert ended.detail["effects"] == {"servers paused": 1}


def test_a_server_is_named_by_its_number_and_the_role_that_it_had() -> None:
    """Another server has the role afterwards."""
    with ZooKeeper(3, tick_s=0.1) as zookeeper:
        leader = zookeeper.wait_for_leader()
        zookeeper.kill("leader")

        (fault,) = zookeeper.history.of_kind("fault")

    assert fault.node == f"zookeeper/{leader}"
    assert (fault.detail["role"], fault.detail["verb"]) == ("leader", "kill")


def test_no_secret_is_in_the_history(zookeeper: ZooKeeper) -> None:
    """A client proves its identity, and the trace says no more than that."""
    client = zookeeper.client()
    client.add_auth("digest", "ann:secret")
    client.create("/a")

    assert "authenticate" in [event.detail.get("op") for event in zookeeper.history]
    assert not [event for event in zookeeper.history if "secret" in str(event.detail)]


def test_pings_are_left_out(zookeeper: ZooKeeper) -> None:
    """They say nothing, and would fill the trace."""
    zookeeper.client(timeout=0.6)
    sleep(0.5)  # long enough for some pings, unless the machine is very busy

    assert "ping" not in [event.detail.get("op") for event in zookeeper.history]


def test_a_history_is_written_as_a_trace_and_a_page(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    """The trace can be read again; the page has a lane for each client and server."""
    zookeeper.client().create("/a", b"1")

    history = zookeeper.history
    trace, page = history.write(tmp_path / "out")

    with trace.open("rb") as file:
        assert list(parse(file, name=str(trace))) == list(history)
    text = page.read_text()
    assert "client/1" in text
    assert "zookeeper/1" in text
