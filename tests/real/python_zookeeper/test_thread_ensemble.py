"""The ensemble on TCP, in a thread of this process, as kazoo sees it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

from tests.support.live_zookeeper import until
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.python_zookeeper.thread_ensemble import ThreadEnsemble

SETTINGS = EnsembleSettings(tick_ms=200, connections_per_address=0)


@contextmanager
def client_of(hosts: str, **options: float) -> Iterator[KazooClient]:
    client = KazooClient(hosts, **options)
    client.start(timeout=20)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_kazoo_works_against_it() -> None:
    """Create, read, watch, multi, lock: what a program does first."""
    with ThreadEnsemble(settings=SETTINGS) as zookeeper, client_of(zookeeper.hosts) as client:
        seen: list[str] = []
        client.create("/a", b"1")
        client.get("/a", watch=lambda event: seen.append(event.path))
        client.set("/a", b"2")
        transaction = client.transaction()
        transaction.check("/a", 1)
        transaction.create("/a/b", b"")

        assert transaction.commit() == [True, "/a/b"]
        with client.Lock("/lock", "me"):
            assert len(client.get_children("/lock")) == 1
        with pytest.raises(NodeExistsError):
            client.create("/a")
        until(lambda: seen == ["/a"])


def test_each_server_of_three_has_a_port_and_the_same_data() -> None:
    """A client may connect to any of them."""
    with ThreadEnsemble(3, settings=SETTINGS) as zookeeper:
        for number, address in enumerate(zookeeper.addresses):
            with client_of(address) as client:
                client.create(f"/{number}")
                assert len(client.get_children("/")) == number + 2


def test_a_port_in_use_is_a_sentence() -> None:
    """It names the address, and nothing keeps running."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(EnvironmentProblem, match=f"127.0.0.1:{port}, but Address already"):
            ThreadEnsemble(settings=SETTINGS, ports=[port]).start()


def test_a_port_is_free_again_after_the_end() -> None:
    """A second ensemble may take it at once."""
    first = ThreadEnsemble(settings=SETTINGS)
    first.start()
    port = int(first.hosts.rpartition(":")[2])
    with client_of(first.hosts):
        first.stop()

        with ThreadEnsemble(settings=SETTINGS, ports=[port]) as second:
            assert second.hosts == f"127.0.0.1:{port}"


def test_what_is_written_with_a_data_folder_outlives_the_server(tmp_path: object) -> None:
    """Data, versions and ephemerals of living sessions are there after a restart."""
    with (
        ThreadEnsemble(settings=SETTINGS, data=tmp_path) as zookeeper,  # type: ignore[arg-type]
        client_of(zookeeper.hosts) as client,
    ):
        client.create("/a", b"1")
        client.set("/a", b"2")
    with (
        ThreadEnsemble(settings=SETTINGS, data=tmp_path) as zookeeper,  # type: ignore[arg-type]
        client_of(zookeeper.hosts) as client,
    ):
        data, stat = client.get("/a")
        assert (data, stat.version) == (b"2", 1)
