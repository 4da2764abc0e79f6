"""Locks, semaphores, elections and leases."""

from __future__ import annotations

import datetime
import time
from typing import Any

from docs.recipes.programs.clients import NAMES, client_of, living, persist
from kazoo.exceptions import LockTimeout

from watchkeeper.virtual.world.world import World

LEASE = datetime.timedelta(seconds=3)
WORK_S = 0.5
"""What the holder of a lease does; it has two seconds at least, since the end of a lease is
stored in whole seconds."""


def take_lock(client: Any, world: World, name: str) -> None:
    """One holds the lock."""
    with client.Lock("/lock", name), world.section("lock", client):
        time.sleep(0.05)


def read_or_write(client: Any, world: World, name: str) -> None:
    """One process writes, the others read."""
    if name == NAMES[0]:
        with client.WriteLock("/rw", name), world.section("written", client):
            time.sleep(0.05)
    else:
        with client.ReadLock("/rw", name), world.section("read", client, most=2):
            time.sleep(0.05)
            assert_no_writer(world)


def assert_no_writer(world: World) -> None:
    """A reader finds no writer whose session lives."""
    check = world.sections.get("written")
    if check is not None:
        writers = [entry for entry in check.inside if entry.is_safe(world)]
        readers = [entry for entry in world.sections["read"].inside if entry.is_safe(world)]
        mine = world.scheduler.running
        if writers and any(entry.task is mine for entry in readers):
            raise AssertionError(f"{writers[0].name} writes while {mine.process.name} reads")  # type: ignore[union-attr]


def take_semaphore(client: Any, world: World, name: str) -> None:
    """Two hold the semaphore at most."""
    semaphore = client.Semaphore("/semaphore", name, max_leases=2)
    with semaphore, world.section("semaphore", client, most=2):
        time.sleep(0.05)


def election(world: World) -> None:
    """Each process leads once; the call of `run` returns when the leader has done its work."""
    led: dict[str, int] = {}

    def campaign(world: World, name: str) -> None:
        with client_of(world) as client:

            def lead() -> None:
                with world.section("leading", client):
                    time.sleep(0.2)
                    led[name] = led.get(name, 0) + 1

            persist(world, lambda: client.Election("/election", name).run(lead))

    for name in NAMES:
        world.process(name, campaign, world, name)
    world.eventually(
        lambda: all(led.get(name) for name in living(world)), within_s=40, name="each has led"
    )


def take_lease(client: Any, world: World, name: str) -> None:
    """A lease of some seconds, for work that takes half of one."""
    lease = client.NonBlockingLease("/lease", LEASE, name)
    if not lease:
        raise LockTimeout("another holds the lease")
    with world.section("lease", client):
        time.sleep(WORK_S)


def take_one_of_leases(client: Any, world: World, name: str) -> None:
    """Two hold leases at most."""
    lease = client.MultiNonBlockingLease(2, "/leases", LEASE, name)
    if not lease:
        raise LockTimeout("others hold the leases")
    with world.section("leases", client, most=2):
        time.sleep(WORK_S)
