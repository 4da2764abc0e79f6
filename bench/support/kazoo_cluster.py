"""A pytest plugin that gives kazoo's test suite its cluster: Apache's servers or ours.

kazoo's harness takes its servers from `kazoo.testing.common.ZookeeperCluster`, which starts
Java from a folder of Apache's distribution. This plugin puts a module in its place before the
harness is imported; the suite itself stays as it is installed. It is not imported by a bench
but loaded by `python -m pytest -p kazoo_cluster`, and reads three environment variables:

    SERVERS_UNDER_TEST   `java`, `python`, or `virtual`: each test in a world in virtual time
    OUTCOMES             the file that takes one JSON line for each test
    SECONDS_A_TEST       after which a test is stopped, and fails as one that hangs
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from bench.support.zookeepers import Wanted, Where, ZooKeeper, begin

WHERE: Where = os.environ["SERVERS_UNDER_TEST"]  # type: ignore[assignment]
if WHERE == "virtual":
    from bench.support import kazoo_virtual
OUTCOMES = Path(os.environ["OUTCOMES"])
SECONDS = int(os.environ["SECONDS_A_TEST"])
LAST_LINES = 100


class Hangs(Exception):
    """A test has used up its time."""


class Node:
    """One server, as the suite sees it."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster = cluster
        self._number = number
        self.running = False

    @property
    def address(self) -> str:
        """Host and port for clients."""
        return self._cluster.started().addresses[self._number]

    @property
    def secure_address(self) -> str:
        """No server here speaks TLS: the address of clients without it."""
        return self.address

    def stop(self) -> None:
        """End this server; its data stays."""
        if self.running:
            self.running = False
            self._cluster.started().kill(self._number)

    def run(self) -> None:
        """Start it again."""
        if not self.running:
            self.running = True
            self._cluster.started().restart(self._number)


class Cluster:
    """What the suite takes for Apache's distribution."""

    def __init__(
        self, *, size: int = 3, configuration_entries: tuple[str, ...] = (), **other: Any
    ) -> None:
        properties = dict(line.split("=", 1) for line in configuration_entries)
        for option in other.get("java_system_properties", ()):
            name, _, value = option.removeprefix("-Dzookeeper.").partition("=")
            properties[name] = value
        self._wanted = Wanted(
            servers=size, tick_ms=2_000, properties=properties, read_only_mode=True
        )
        self._zookeeper: ZooKeeper | None = None
        self._nodes = tuple(Node(self, number) for number in range(size))

    def __getitem__(self, number: int) -> Node:
        return self._nodes[number]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def started(self) -> ZooKeeper:
        """The servers; the suite requests addresses before it starts them."""
        if self._zookeeper is None:
            self.start()
        assert self._zookeeper is not None, "they have just been started"
        return self._zookeeper

    def start(self) -> None:
        """Start all servers, empty if they were ended before."""
        if self._zookeeper is None:
            if WHERE == "virtual":
                self._zookeeper = kazoo_virtual.WORLDS.servers()
            else:
                self._zookeeper = begin(WHERE, self._wanted)
        for node in self._nodes:
            node.running = True

    def terminate(self) -> None:
        """End all servers and remove their data."""
        zookeeper, self._zookeeper = self._zookeeper, None
        if zookeeper is not None:
            zookeeper.stop()
        for node in self._nodes:
            node.running = False

    def get_logs(self) -> list[str]:
        """The last lines that the servers have written."""
        if self._zookeeper is None:
            return []
        return self._zookeeper.output.splitlines(keepends=True)[-LAST_LINES:]


def replace_cluster() -> None:
    """Put this cluster in the place of kazoo's, before the harness is imported."""
    stand_in = ModuleType("kazoo.testing.common")
    stand_in.ZookeeperCluster = Cluster  # type: ignore[attr-defined]
    sys.modules["kazoo.testing.common"] = stand_in


replace_cluster()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put each test into a world, where the servers are virtual."""
    if WHERE == "virtual":
        kazoo_virtual.put_into_worlds(items, terminate_cluster)


def terminate_cluster() -> None:
    """Let the next test take other servers."""
    from kazoo.testing import harness

    if harness.CLUSTER is not None:
        harness.CLUSTER.terminate()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Stop a test that hangs, set-up and clean-up included."""
    if WHERE == "virtual":  # A world has a watchdog of its own, with the same signal.
        return (yield)
    seen = signal.signal(signal.SIGALRM, stop_test)
    signal.alarm(SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, seen)


def stop_test(number: int, frame: FrameType | None) -> None:
    """Fail the test; whatever is stopped next gets as long again."""
    signal.alarm(SECONDS)
    raise Hangs(f"the test has not ended within {SECONDS} s")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write an outcome down at once, since a process that hangs is killed."""
    if report.when == "call" or report.outcome != "passed":
        line = {
            "test": report.nodeid,
            "when": report.when,
            "outcome": report.outcome,
            "seconds": round(report.duration, 3),
            "why": reason_of(report),
        }
        with OUTCOMES.open("a") as file:
            file.write(json.dumps(line) + "\n")


def reason_of(report: pytest.TestReport) -> str:
    """The last line of why a test was skipped or failed."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr or "")
    return next((line for line in text.splitlines() if line.strip()), "")
