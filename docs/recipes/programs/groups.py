"""Parties, and partitions that are divided among members."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from docs.recipes.programs.clients import GIVEN_UP, LONG_S, NAMES, client_of, living, persist

from watchkeeper.virtual.world.world import World


def party(world: World) -> None:
    """In the end the party has the members that have joined and live, each once."""
    _party(world, "Party")


def shallow_party(world: World) -> None:
    """In the end the party has the members that have joined and live, each once."""
    _party(world, "ShallowParty")


def _party(world: World, recipe: str) -> None:
    seen: dict[str, list[str]] = {}

    def member(world: World, name: str) -> None:
        with client_of(world) as client:
            group = getattr(client, recipe)("/party", name)
            if not persist(world, group.join):
                return
            while world.now_s < LONG_S:
                with suppress(*GIVEN_UP):
                    seen[name] = sorted(group)
                time.sleep(3)

    def complete() -> bool:
        alive = sorted(name for name in NAMES if name in living(world))
        return bool(alive) and all(seen.get(name) == alive for name in alive)

    for name in NAMES:
        world.process(name, member, world, name)
    world.eventually(complete, within_s=30, name="the party is complete")


def set_partitioner(world: World) -> None:
    """Each partition has at most one owner, and in the end exactly one."""
    partitions = ("p0", "p1", "p2", "p3")
    owned: dict[str, tuple[str, ...]] = {}

    def member(world: World, name: str) -> None:
        with client_of(world) as client:
            share = None
            while world.now_s < LONG_S:
                try:
                    share = step(client, name, share)
                except GIVEN_UP:
                    time.sleep(0.3)

    def step(client: Any, name: str, share: Any) -> Any:
        """What kazoo's documentation shows as the loop of a member."""
        if share is None:
            return client.SetPartitioner(
                "/set", set=partitions, identifier=name, time_boundary=0.5
            )
        owned[name] = tuple(sorted(share)) if share.acquired else ()
        if share.failed:
            share.finish()
            return None
        if share.release:
            share.release_set()
        elif share.allocating:
            share.wait_for_acquire(5)
        else:
            time.sleep(0.2)
        return share

    def covered() -> bool:
        held = [each for name in living(world) for each in owned.get(name, ())]
        return sorted(held) == sorted(partitions)

    for name in NAMES:
        world.process(name, member, world, name)
    world.eventually(covered, within_s=30, name="each partition has one owner")
