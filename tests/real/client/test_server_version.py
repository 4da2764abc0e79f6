"""A member on a ZooKeeper before 3.6, which hangs up on a request that it does not know.

The servers of the slow test come from Maven Central; the others run here, behind a front.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from tests.support.live.maven import classpath_of
from tests.support.live.old_server import OldServer
from tests.support.live_zookeeper import LONG_MS, connected, disconnect, until
from watchkeeper import Broker, Consumer
from watchkeeper.real.client.server_version import lists_ephemerals
from watchkeeper.real.ports import free_ports
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.java import find_java

pytestmark = pytest.mark.usefixtures("nothing_left_behind")

NUMBERS = count(1)
CONFIG = {"zookeeper.session.timeout.ms": LONG_MS}


def shared(hosts: str) -> tuple[int, int]:
    """Let two consumers share four partitions, and one take over; return how many sessions
    each has had."""
    given: dict[str, Any] = {"group": "billing", "topics": {"clicks": 1}, "config": CONFIG}
    with (
        Broker(hosts, id=7, host="one.example", topics={"clicks": 4}) as broker,
        Consumer(hosts, **given) as first,
    ):
        broker.ready()
        first.ready()
        with Consumer(hosts, **given) as second:
            until(lambda: len(first.owned) == len(second.owned) == 2)
        until(lambda: len(first.owned) == 4)
        assert first.status.failed_turns == second.status.failed_turns == 0
        return first.status.sessions, second.status.sessions


@pytest.mark.parametrize("version", ["3.4.6", "3.5.10", None, "not a version"])
def test_a_server_never_gets_a_request_that_it_does_not_know(
    zookeeper: Ensemble, version: str | None
) -> None:
    """Nor does a server that does not tell its version."""
    with OldServer(zookeeper.addresses[0], version=version) as front:
        assert shared(f"{front.address}/old/{next(NUMBERS)}") == (1, 1)
        assert front.hung_up == 0


def test_a_server_that_claims_to_be_new_gets_it(zookeeper: Ensemble) -> None:
    """The front hangs up then: so the test above can fail."""
    with OldServer(zookeeper.addresses[0], version="3.6.0") as front:
        hosts = f"{front.address}/old/{next(NUMBERS)}"
        given: dict[str, Any] = {"group": "billing", "topics": {"clicks": 1}, "config": CONFIG}
        with Consumer(hosts, **given):
            until(lambda: front.hung_up > 0)


@contextmanager
def client_of(hosts: str) -> Iterator[KazooClient]:
    client = connected(hosts)
    try:
        yield client
    finally:
        disconnect(client)


def test_this_server_knows_it(zookeeper: Ensemble) -> None:
    with client_of(zookeeper.hosts) as client:
        assert lists_ephemerals(client)
    assert not lists_ephemerals(client)  # without a connection


# --- real ones -------------------------------------------------------------------------

ARTIFACTS = (
    "org.apache.zookeeper:zookeeper:{version}",
    "io.dropwizard.metrics:metrics-core:3.2.6",
    "org.xerial.snappy:snappy-java:1.1.10.7",
)
MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
SETTINGS = """tickTime=200
dataDir={folder}
clientPort={port}
clientPortAddress=127.0.0.1
maxSessionTimeout=60000
admin.enableServer=false
"""


@contextmanager
def old_zookeeper(version: str, folder: Path) -> Iterator[str]:
    """Run a server of a version on the loopback; it ends with the block."""
    [port] = free_ports(1)
    settings = folder / "zoo.cfg"
    settings.write_text(SETTINGS.format(folder=folder / "data", port=port))
    command = [str(find_java()), "-Dzookeeper.jmx.log4j.disable=true"]
    classpath = classpath_of((name.format(version=version) for name in ARTIFACTS), folder)
    command += ["-cp", classpath, MAIN_CLASS, str(settings)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "lists"), [("3.4.14", False), ("3.5.10", False), ("3.6.4", True)]
)
def test_members_share_on_old_servers(tmp_path: Path, version: str, lists: bool) -> None:
    with old_zookeeper(version, tmp_path) as hosts:
        with client_of(hosts) as client:
            assert client.command(b"srvr").startswith(f"Zookeeper version: {version}")
            assert lists_ephemerals(client) is lists
        assert shared(hosts) == (1, 1)
