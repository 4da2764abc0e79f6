"""Runs each test of kazoo's suite in a world of its own, in virtual time.

A test's own function, its `setUp` and its `tearDown` are one process of the world; the servers
are the world's. Imported before kazoo, since virtual time replaces names that kazoo binds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest
from bench.support.zookeepers import Kind

from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.virtual.schedule.random_policy import RandomPolicy
from watchkeeper.virtual.threads.watchdog import Watchdog
from watchkeeper.virtual.world.run import prepare
from watchkeeper.virtual.world.world import World, WorldSettings

SEED = int(os.environ.get("SEED", "0"))
LONGEST_S = 600.0
"""Virtual seconds after which a test hangs."""
WATCHDOG_S = 30.0
SETTINGS = WorldSettings(
    until_s=LONGEST_S,
    servers=int(os.environ["ZOOKEEPER_CLUSTER_SIZE"]),
    zookeeper=EnsembleSettings(tick_ms=2_000, connections_per_address=0, read_only_mode=True),
    allow=("files", "processes"),
)

for handler in ("gevent", "eventlet"):
    # Tests that take any handler that they find take kazoo's default one.
    sys.modules[handler] = None  # type: ignore[assignment]
prepare()


class Hangs(Exception):
    """A test has not ended within its virtual time."""


class WorldsServers:
    """The servers of the world that runs."""

    kind: Kind = "python"
    output = ""
    pids = ()

    def __init__(self, world: World) -> None:
        self._world = world
        self.addresses = tuple(world.hosts.split(","))
        self.hosts = world.hosts

    def kill(self, number: int) -> None:
        """End one of the servers."""
        ensemble = self._world.zookeeper.ensemble
        ensemble.quorum.kill(ensemble.servers[number])

    def restart(self, number: int) -> None:
        """Start it again."""
        ensemble = self._world.zookeeper.ensemble
        ensemble.quorum.start(ensemble.servers[number])

    def stop(self) -> None:
        """Nothing: the servers end with their world."""


class Worlds:
    """Makes a world for each test."""

    def __init__(self) -> None:
        self.world: World | None = None

    def servers(self) -> WorldsServers:
        """The servers of the test that runs."""
        assert self.world is not None, "the suite takes its servers within a test"
        return WorldsServers(self.world)

    def run(self, test: Callable[[], object], forget: Callable[[], object]) -> None:
        """Run a test in virtual time; raises what it raises."""
        world = self.world = World(RandomPolicy(SEED), seed=SEED, settings=SETTINGS)
        raised: list[BaseException] = []
        has_ended: list[bool] = []

        def body() -> None:
            try:
                test()
            except BaseException as error:
                # pytest's ways to skip and to fail are no exceptions of a thread.
                raised.append(error)
            has_ended.append(True)
            world.scheduler.stop_requested = True

        world.process("test", body)
        try:
            with Watchdog(world.scheduler, limit_s=WATCHDOG_S):
                world.run()
            if raised:
                raise raised[0]
            if not has_ended:
                raise Hangs(f"Hangs: {where_it_waits(world)}")
        finally:
            forget()
            world.tear_down()
            self.world = None


def where_it_waits(world: World) -> str:
    """What the main thread waits for, or why it has ended."""
    for task in world.scheduler.processes[0].tasks:
        return f"{task.name} waits for {task.blocked_on} at {world.now_s:.1f} s"
    return f"the process has ended: {world.scheduler.processes[0].ending}"


WORLDS = Worlds()


def put_into_worlds(items: list[pytest.Item], forget: Callable[[], object]) -> None:
    """Let each test run in a world."""
    for item in items:
        item.runtest = in_world(item.runtest, forget)  # type: ignore[method-assign]


def in_world(test: Callable[[], object], forget: Callable[[], object]) -> Callable[[], None]:
    """The same test, in a world."""
    return lambda: WORLDS.run(test, forget)
