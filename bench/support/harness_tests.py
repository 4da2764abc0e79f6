"""Twenty tests of programs that use ZooKeeper, for either harness.

They are no tests of this project: `zookeeper_harness` lets pytest run them in a process of its
own, with `HARNESS=kazoo` on `kazoo.testing`, which starts Apache's servers, and with
`HARNESS=watchkeeper` on the fixture `zookeeper`. The moment of the first answered request goes
into the file `FIRST_ANSWER`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any, Protocol

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError, NoAuthError, NodeExistsError, NotEmptyError
from kazoo.security import make_digest_acl

KIND = os.environ["HARNESS"]
SERVERS = int(os.environ["SERVERS"])
FIRST = Path(os.environ["FIRST_ANSWER"])
WAIT_S = 30.0


class Harness(Protocol):
    """What the tests need of either."""

    client: KazooClient

    def another(self) -> KazooClient:
        """A second client."""

    def expire(self) -> None:
        """End the session of the client."""

    def lose_connection(self) -> None:
        """Break the connection of the client."""


class ByKazoo:
    """`kazoo.testing`: its cluster lives as long as the process."""

    def __init__(self) -> None:
        from kazoo.testing import KazooTestHarness

        self._harness = KazooTestHarness()
        self._harness.setup_zookeeper()
        self.client = self._harness.client

    def another(self) -> KazooClient:
        client = self._harness._get_client()
        client.start()
        return client

    def expire(self) -> None:
        self._harness.expire_session(Event)

    def lose_connection(self) -> None:
        self._harness.lose_connection(Event)

    def end(self) -> None:
        self._harness.teardown_zookeeper()


class ByWatchkeeper:
    """The fixture of this project, or three servers in its place."""

    def __init__(self, zookeeper: Any) -> None:
        self._zookeeper = zookeeper
        self.client = zookeeper.client()

    def another(self) -> KazooClient:
        return self._zookeeper.client()

    def expire(self) -> None:
        self._zookeeper.expire(self.client)

    def lose_connection(self) -> None:
        self._zookeeper.disconnect(self.client)

    def end(self) -> None:
        """The fixture ends what is left."""


@pytest.fixture(scope="session")
def zookeeper_of_session() -> Iterator[Any]:
    """The servers of the fixture `zookeeper`: as many as the other harness has."""
    from watchkeeper.testing import ZooKeeper

    with ZooKeeper(SERVERS) as zookeeper:
        yield zookeeper


@pytest.fixture
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    """The harness that is measured, with a client that is connected."""
    made = ByKazoo() if KIND == "kazoo" else ByWatchkeeper(request.getfixturevalue("zookeeper"))
    made.client.exists("/")
    if not FIRST.exists():
        FIRST.write_text(str(time.monotonic()))
    yield made
    made.end()


def test_create_and_get(harness: Harness) -> None:
    harness.client.create("/a", b"1")
    assert harness.client.get("/a")[0] == b"1"


def test_exists_already(harness: Harness) -> None:
    harness.client.create("/a")
    with pytest.raises(NodeExistsError):
        harness.client.create("/a")


def test_versions(harness: Harness) -> None:
    harness.client.create("/a")
    harness.client.set("/a", b"1", version=0)
    with pytest.raises(BadVersionError):
        harness.client.set("/a", b"2", version=0)


def test_children(harness: Harness) -> None:
    for name in "cab":
        harness.client.create(f"/{name}")
    assert sorted(harness.client.get_children("/")) == ["a", "b", "c"]


def test_not_empty(harness: Harness) -> None:
    harness.client.ensure_path("/a/b")
    with pytest.raises(NotEmptyError):
        harness.client.delete("/a")


def test_sequence(harness: Harness) -> None:
    paths = [harness.client.create("/a-", sequence=True) for _ in range(5)]
    assert paths == sorted(paths)


def test_ephemeral_goes_with_its_client(harness: Harness) -> None:
    other = harness.another()
    other.create("/a", ephemeral=True)
    other.stop()
    assert harness.client.exists("/a") is None


def test_data_watch(harness: Harness) -> None:
    seen: list[Any] = []
    came = Event()
    harness.client.create("/a", b"1")

    @harness.client.DataWatch("/a")
    def changed(data: bytes, stat: Any) -> None:
        seen.append(data)
        if data == b"2":
            came.set()

    harness.client.set("/a", b"2")
    assert came.wait(WAIT_S)


def test_children_watch(harness: Harness) -> None:
    came = Event()

    @harness.client.ChildrenWatch("/")
    def changed(children: list[str]) -> None:
        if "a" in children:
            came.set()

    harness.client.create("/a")
    assert came.wait(WAIT_S)


def test_transaction(harness: Harness) -> None:
    transaction = harness.client.transaction()
    transaction.create("/a")
    transaction.check("/a", 0)
    transaction.set_data("/a", b"1")
    assert len(transaction.commit()) == 3


def test_lock(harness: Harness) -> None:
    other = harness.another()
    with harness.client.Lock("/lock", "one"):
        assert not other.Lock("/lock", "two").acquire(blocking=False)


def test_semaphore(harness: Harness) -> None:
    with harness.client.Semaphore("/semaphore", max_leases=2):
        assert harness.another().Semaphore("/semaphore", max_leases=2).acquire(blocking=False)


def test_counter(harness: Harness) -> None:
    counter = harness.client.Counter("/counter")
    for _ in range(10):
        counter += 1
    assert counter.value == 10


def test_queue(harness: Harness) -> None:
    queue = harness.client.Queue("/queue")
    queue.put(b"1")
    assert queue.get() == b"1"


def test_election(harness: Harness) -> None:
    led: list[bool] = []
    harness.client.Election("/election", "me").run(lambda: led.append(True))
    assert led


def test_access(harness: Harness) -> None:
    harness.client.create("/a", acl=[make_digest_acl("ann", "secret", all=True)])
    with pytest.raises(NoAuthError):
        harness.client.get("/a")


def states_of(client: KazooClient) -> list[str]:
    seen: list[str] = []
    client.add_listener(seen.append)
    return seen


def until(holds: Any) -> None:
    ends = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.005)


def test_lost_session(harness: Harness) -> None:
    seen = states_of(harness.client)
    harness.expire()
    until(lambda: KazooState.LOST in seen)


def test_ephemerals_of_a_lost_session(harness: Harness) -> None:
    other = harness.another()
    harness.client.create("/a", ephemeral=True)
    harness.expire()
    until(lambda: other.exists("/a") is None)


def test_lost_connection(harness: Harness) -> None:
    seen = states_of(harness.client)
    harness.lose_connection()
    until(lambda: KazooState.SUSPENDED in seen and seen[-1] == KazooState.CONNECTED)


def test_ephemerals_outlive_a_connection(harness: Harness) -> None:
    harness.client.create("/a", ephemeral=True)
    harness.lose_connection()
    assert harness.client.retry(harness.client.exists, "/a")
