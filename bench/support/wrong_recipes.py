"""Mistakes in copies of kazoo's recipes, one in each.

The source of the installed recipe is taken, one place of it is changed, and the copy stands for
the recipe in `kazoo.client` while a search runs. The programs of `docs/recipes` use it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import kazoo.client


@dataclass(frozen=True, slots=True)
class Mistake:
    """One changed place of a recipe, and the search that has to find it."""

    name: str
    recipe: str
    """The class that is changed."""
    module: str
    right: str
    wrong: str
    program: str
    """The program of `docs.recipes` that uses the recipe."""
    fault: str = "none"
    """The column of its faults."""


LOCK, QUEUE, BARRIER = "kazoo.recipe.lock", "kazoo.recipe.queue", "kazoo.recipe.barrier"
COUNTER, LEASE, PARTY = "kazoo.recipe.counter", "kazoo.recipe.lease", "kazoo.recipe.party"

MISTAKES = (
    Mistake(
        "a contender does not watch its predecessor",
        *("Lock", LOCK),
        "self.client.get(predecessor, self._watch_predecessor)",
        "self.client.get(predecessor)",
        "Lock",
    ),
    Mistake(
        "a contender takes every event for its turn",
        *("Lock", LOCK),
        "                self.wake_event.wait(timeout)\n",
        "                return self.wake_event.wait(timeout)\n",
        "Lock",
        "disconnect",
    ),
    Mistake(
        "a second create, without a look for the first",
        *("Lock", LOCK),
        "if self.create_tried:",
        "if False:",
        "Lock",
        "lost reply",
    ),
    Mistake(
        "the znode of a contender is not ephemeral",
        *("Lock", LOCK),
        "ephemeral=ephemeral, sequence=True",
        "ephemeral=False, sequence=True",
        "Lock",
        "crash",
    ),
    Mistake(
        "the lock is released before the work ends",
        *("Lock", LOCK),
        "    def __enter__(self):\n        self.acquire()\n\n"
        "    def __exit__(self, exc_type, exc_value, traceback):\n        self.release()\n\n\n"
        "class WriteLock",
        "    def __enter__(self):\n        self.acquire()\n        self.release()\n\n"
        "    def __exit__(self, exc_type, exc_value, traceback):\n        pass\n\n\n"
        "class WriteLock",
        "Lock",
    ),
    Mistake(
        "a contender is deaf to the end of its session",
        *("Lock", LOCK),
        "            node = self._find_node()\n",
        "            node = self.node\n",
        "Lock",
        "expiry",
    ),
    Mistake(
        "one holder too many",
        *("Semaphore", LOCK),
        "if len(children) < self.max_leases:",
        "if len(children) <= self.max_leases:",
        "Semaphore",
    ),
    Mistake(
        "counted without the lock that keeps others out",
        *("Semaphore", LOCK),
        "gotten = lock.acquire(blocking=blocking, timeout=w.leftover())",
        "gotten = True",
        "Semaphore",
    ),
    Mistake(
        "read and written without the version",
        *("Counter", COUNTER),
        "self.client.set(self.path, data, version=version)",
        "self.client.set(self.path, data)",
        "Counter",
    ),
    Mistake(
        "an element is returned before its delete is answered",
        *("Queue", QUEUE),
        'self.client.delete(self.path + "/" + name)',
        'self.client.delete_async(self.path + "/" + name)',
        "Queue",
    ),
    Mistake(
        "a retried put, which is not idempotent",
        *("Queue", QUEUE),
        "        self.client.create(path, value, sequence=True)",
        "        self.client.retry(self.client.create, path, value, sequence=True)",
        "Queue",
        "lost reply",
    ),
    Mistake(
        "a lease is looked up and taken without a lock",
        *("NonBlockingLease", LEASE),
        "            with lock:\n",
        "            if lock:\n",
        "NonBlockingLease",
    ),
    Mistake(
        "a member waits without a watch",
        *("DoubleBarrier", BARRIER),
        'self.client.exists(self.path + "/" + "ready", watch=created)',
        'self.client.exists(self.path + "/" + "ready")',
        "DoubleBarrier",
    ),
    Mistake(
        "a member's znode is not ephemeral",
        *("Party", PARTY),
        "self.client.create(self.create_path, self.data, ephemeral=True)",
        "self.client.create(self.create_path, self.data)",
        "Party",
        "crash",
    ),
)


@cache
def copy_of(mistake: Mistake) -> ModuleType:
    """The module of the recipe with the mistake.

    Raises LookupError if the installed kazoo does not have the place exactly once.
    """
    original = importlib.import_module(mistake.module)
    assert original.__file__ is not None, "recipes are files"
    source = Path(original.__file__).read_text()
    places = source.count(mistake.right)
    if places != 1:
        raise LookupError(f"{mistake.module} has {mistake.right!r} {places} times, not once")
    copy = ModuleType(mistake.module)
    copy.__dict__.update(__file__=original.__file__, __package__=original.__package__)
    exec(
        compile(source.replace(mistake.right, mistake.wrong), original.__file__, "exec"),
        vars(copy),
    )
    return copy


@contextmanager
def in_place(mistake: Mistake) -> Iterator[None]:
    """Let every client have the recipe with the mistake."""
    before = getattr(kazoo.client, mistake.recipe)
    setattr(kazoo.client, mistake.recipe, getattr(copy_of(mistake), mistake.recipe))
    try:
        yield
    finally:
        setattr(kazoo.client, mistake.recipe, before)
