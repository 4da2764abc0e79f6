"""Programs that use the ZooKeeper driver of OpenStack's tooz, and what has to hold.

tooz is a library of its own: locks, groups and leaders behind one interface, by kazoo underneath.
Three processes use it as its documentation shows, and give an attempt up when it raises an error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import tooz
from docs.recipes.programs.clients import GIVEN_UP, LONG_S, NAMES, Prepare, in_rounds, living
from tooz import coordination

from watchkeeper.virtual.world.world import World

REST_S = 15.0
FAILED = (*GIVEN_UP, tooz.ToozError)
GROUP = b"workers"
PHANTOM = b"leader"
"""The driver keeps its elections in the group, and lists their folder as a member."""


@contextmanager
def coordinator_of(world: World, name: str) -> Iterator[Any]:
    """A started coordinator, with its thread of heartbeats."""
    url = f"zookeeper://{world.hosts}?timeout=4"
    while True:
        coordinator = coordination.get_coordinator(url, name.encode())
        try:
            coordinator.start(start_heart=True)
            break
        except FAILED:
            if world.now_s > LONG_S:
                raise
            time.sleep(0.3)
    try:
        yield coordinator
    finally:
        with suppress(*FAILED):
            coordinator.stop()


def take_lock(coordinator: Any, world: World, name: str) -> None:
    """One holds the lock."""
    with coordinator.get_lock(b"work"), world.section("lock", coordinator._coord):
        time.sleep(0.05)


def join(coordinator: Any) -> None:
    """Join the group, until it is clear that one is in it."""
    while True:
        with suppress(*FAILED):
            with suppress(coordination.GroupAlreadyExist):
                coordinator.create_group(GROUP).get()
            with suppress(coordination.MemberAlreadyExist):
                coordinator.join_group(GROUP).get()
            return
        time.sleep(0.3)


def group(world: World) -> None:
    """Each process joins the group once; in the end all that live are its members."""
    seen: dict[str, list[str]] = {}

    def member(world: World, name: str) -> None:
        with coordinator_of(world, name) as coordinator:
            join(coordinator)
            while True:
                with suppress(*FAILED):
                    members = coordinator.get_members(GROUP).get()
                    seen[name] = sorted(each.decode() for each in members - {PHANTOM})
                time.sleep(2)

    def is_complete() -> bool:
        alive = sorted(living(world))
        for name in alive:
            assert is_restless(world) or seen.get(name) == alive, f"{name} sees {seen.get(name)}"
        return True

    for name in NAMES:
        world.process(name, member, world, name)
    world.finally_(is_complete, name="the group is complete")


def leader(world: World) -> None:
    """Each process campaigns; in the end one of them believes that it leads."""
    leads: set[tuple[str, int]] = set()

    def campaign(world: World, name: str) -> None:
        with coordinator_of(world, name) as coordinator:
            join(coordinator)
            me = (name, os.getpid())
            coordinator.watch_elected_as_leader(GROUP, lambda event: leads.add(me))
            while True:
                with suppress(*FAILED):
                    coordinator.run_watchers()
                time.sleep(1)

    def one_leads() -> bool:
        alive = [(each.name, each.pid) for each in world.scheduler.processes if each.is_alive]
        leading = [name for name, pid in alive if (name, pid) in leads]
        assert is_restless(world) or not alive or len(leading) == 1, f"leaders: {leading}"
        return True

    for name in NAMES:
        world.process(name, campaign, world, name)
    world.finally_(one_leads, name="one believes that it leads")


def is_restless(world: World) -> bool:
    """Whether the last fault is too recent to judge what it has left behind."""
    return world.now_us - world.calm_since_us < REST_S * 1e6


TOOZ_PROGRAMS: dict[str, Prepare] = {
    "get_lock": in_rounds(take_lock, coordinator_of, FAILED),
    "join_group": group,
    "watch_elected_as_leader": leader,
}
"""What of tooz -> the program that uses it."""
