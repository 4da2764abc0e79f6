"""Barriers: a process that waits for others."""

from __future__ import annotations

import time

from docs.recipes.programs.clients import LONG_S, NAMES, client_of, living, persist
from kazoo.exceptions import LockTimeout

from watchkeeper.virtual.world.world import World


def barrier(world: World) -> None:
    """One process makes the barrier and removes it; the others pass only then."""
    state = {"made": False, "removed": False}
    passed: list[str] = []

    def keeper(world: World) -> None:
        with client_of(world) as client:
            persist(world, client.Barrier("/barrier").create)
            state["made"] = True
            time.sleep(1)
            state["removed"] = True
            persist(world, client.Barrier("/barrier").remove)

    def waiter(world: World, name: str) -> None:
        with client_of(world) as client:
            while not state["made"] and world.now_s < LONG_S:
                time.sleep(0.05)

            def wait() -> None:
                if not client.Barrier("/barrier").wait(10):
                    raise LockTimeout("the barrier stands")
                assert state["removed"], f"{name} has passed a barrier that stands"
                passed.append(name)

            persist(world, wait)

    world.process("keeper", keeper, world)
    for name in NAMES[:2]:
        world.process(name, waiter, world, name)

    def all_pass() -> bool:
        is_left = not state["removed"] and "keeper" not in living(world)
        return is_left or {*passed} >= {*living(world)} & {*NAMES}

    world.eventually(all_pass, within_s=40)


def double_barrier(world: World) -> None:
    """All enter before one goes on, and all leave, unless one crashes before it has entered."""
    entered: list[str] = []
    left: list[str] = []
    begun: list[str] = []

    def member(world: World, name: str) -> None:
        if name in entered or (name in begun and entered):
            return  # it starts anew after a crash, and its place at the barrier was counted
        with client_of(world) as client:
            gate = client.DoubleBarrier("/double", len(NAMES), name)
            begun.append(name)
            while not gate.participating and world.now_s < LONG_S:
                gate.enter()
            if not gate.participating:
                return
            assert {*begun} == {*NAMES}, f"{name} is alone behind the barrier"
            entered.append(name)
            time.sleep(0.1)
            gate.leave()
            left.append(name)

    def all_leave() -> bool:
        alive = living(world)
        is_short = any(name not in entered for name in NAMES if name not in alive)
        return is_short or all(name in left for name in alive)

    for name in NAMES:
        world.process(name, member, world, name)
    world.eventually(all_leave, within_s=40)
