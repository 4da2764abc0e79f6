"""What all programs have: a client that tries again, turns, and what a careful user gives up.

An error of a request is what a careful user makes of it: the attempt is given up, and begun
again a moment later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, LockTimeout
from kazoo.handlers.threading import KazooTimeoutError

from watchkeeper.virtual.world.world import World

NAMES = ("ann", "bob", "cid")
ROUNDS = 3
GIVEN_UP = (KazooException, KazooTimeoutError, LockTimeout)
LONG_S = 45.0
"""After so long a process stops, whatever it has reached."""

Prepare = Callable[[World], None]
Body = Callable[[Any, World, str], object]
Connect = Callable[[World, str], AbstractContextManager[Any]]
"""Makes the client of a process, by the world and the name."""


@contextmanager
def client_of(world: World) -> Iterator[Any]:
    """A started client, which tries again for as long as a run lasts."""
    client = KazooClient(hosts=world.hosts, timeout=4.0)
    while True:
        try:
            client.start(timeout=15)
            break
        except KazooTimeoutError:
            if world.now_s > LONG_S:
                raise
    try:
        yield client
    finally:
        with suppress(*GIVEN_UP):
            client.stop()
            client.close()


def persist(world: World, attempt: Callable[[], object]) -> bool:
    """Try until it succeeds, or until the process has had its time; whether it has succeeded."""
    while world.now_s < LONG_S:
        try:
            attempt()
            return True
        except GIVEN_UP:
            time.sleep(0.3)
    return False


def rounds(
    world: World,
    name: str,
    done: dict[str, int],
    body: Body,
    connect: Connect,
    failures: tuple[type[Exception], ...],
) -> None:
    """Call `body` until it has succeeded `ROUNDS` times."""
    with connect(world, name) as client:
        while done.get(name, 0) < ROUNDS and world.now_s < LONG_S:
            try:
                body(client, world, name)
            except failures:
                time.sleep(0.3)
                continue
            done[name] = done.get(name, 0) + 1


def in_rounds(
    body: Body,
    connect: Connect = lambda world, name: client_of(world),
    failures: tuple[type[Exception], ...] = GIVEN_UP,
) -> Prepare:
    """A world in which each process calls `body` some rounds, and all of them get there.

    `body` gets what `connect` makes; an attempt that ends by one of the failures is begun again.
    """

    def prepare(world: World) -> None:
        done: dict[str, int] = {}
        for name in NAMES:
            world.process(name, rounds, world, name, done, body, connect, failures)

        def all_got_their_turns() -> bool:
            alive = {process.name for process in world.scheduler.processes if process.is_alive}
            return all(done.get(name, 0) >= ROUNDS for name in NAMES if name in alive)

        world.eventually(all_got_their_turns, within_s=40)

    return prepare


def living(world: World) -> list[str]:
    """The names of the processes that live."""
    return [process.name for process in world.scheduler.processes if process.is_alive]
