"""Watchers of children, of data and of a tree."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from docs.recipes.programs.clients import LONG_S, client_of, living, persist
from kazoo.recipe.cache import TreeCache
from kazoo.recipe.watchers import PatientChildrenWatch

from watchkeeper.virtual.world.world import World

CHANGES = 5


def children_watch(world: World) -> None:
    """The watcher has seen the last children."""

    def watch(client: Any, seen: list[Any]) -> None:
        client.ChildrenWatch("/watched", lambda children: seen.append(sorted(children)))

    _watch(world, watch, _children_of)


def patient_children_watch(world: World) -> None:
    """The watcher has seen the last children, each time they were calm."""

    def watch(client: Any, seen: list[Any]) -> None:
        while True:
            result = PatientChildrenWatch(client, "/watched", time_boundary=0.2).start()
            children, changed = result.get()
            seen.append(sorted(children))
            changed.wait()

    _watch(world, watch, _children_of)


def data_watch(world: World) -> None:
    """The watcher has seen the last data."""

    def watch(client: Any, seen: list[Any]) -> None:
        client.DataWatch("/watched", lambda data, stat: seen.append(data))

    _watch(world, watch, lambda world: _node(world).data)


def tree_cache(world: World) -> None:
    """The cache has the last children."""

    def watch(client: Any, seen: list[Any]) -> None:
        cache = TreeCache(client, "/watched")
        cache.start()
        while True:
            seen.append(sorted(cache.get_children("/watched") or ()))
            time.sleep(0.3)

    _watch(world, watch, _children_of)


def _node(world: World) -> Any:
    return world.zookeeper.ensemble.head.nodes["/watched"]


def _children_of(world: World) -> list[str]:
    nodes = world.zookeeper.ensemble.head.nodes
    return sorted(path.rpartition("/")[2] for path in nodes if path.startswith("/watched/"))


def _watch(
    world: World, watch: Callable[[Any, list[Any]], None], truth: Callable[[World], Any]
) -> None:
    seen: list[Any] = []
    done: list[bool] = []

    def writer(world: World) -> None:
        with client_of(world) as client:
            persist(world, lambda: client.ensure_path("/watched"))
            for at in range(CHANGES):
                persist(world, lambda at=at: client.ensure_path(f"/watched/{at}"))  # type: ignore[misc]
                persist(world, lambda at=at: client.set("/watched", b"%d" % at))  # type: ignore[misc]
                time.sleep(0.1)
            done.append(True)

    def watcher(world: World) -> None:
        with client_of(world) as client:
            persist(world, lambda: client.ensure_path("/watched"))
            persist(world, lambda: watch(client, seen))
            while world.now_s < LONG_S:
                time.sleep(0.5)

    def is_current() -> bool:
        if "watcher" not in living(world) or ("writer" in living(world) and not done):
            return "watcher" not in living(world)
        return bool(seen) and seen[-1] == truth(world)

    world.process("writer", writer, world)
    world.process("watcher", watcher, world)
    world.eventually(is_current, within_s=30, name="the watcher has seen the last state")
