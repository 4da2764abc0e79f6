"""Counters and queues."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from docs.recipes.programs.clients import GIVEN_UP, LONG_S, NAMES, ROUNDS, client_of, living
from kazoo.exceptions import NoNodeError

from watchkeeper.virtual.world.checks import Elements
from watchkeeper.virtual.world.world import World


def counter(world: World) -> None:
    """The counter has what was added: each acknowledged addition once."""
    sure: list[int] = []
    doubt: list[int] = []

    def adder(world: World, name: str) -> None:
        with client_of(world) as client:
            shared = client.Counter("/counter")
            for _ in range(ROUNDS):
                doubt.append(1)
                with suppress(*GIVEN_UP):
                    shared += 1
                    doubt.pop()
                    sure.append(1)
                time.sleep(0.02)

    def counted() -> None:
        node = world.zookeeper.ensemble.head.nodes.get("/counter")
        value = int(node.data or b"0") if node is not None else 0
        assert len(sure) <= value <= len(sure) + len(doubt), (
            f"{len(sure)} additions are acknowledged and {len(doubt)} in doubt, but the counter "
            f"is {value}"
        )

    for name in NAMES:
        world.process(name, adder, world, name)
    world.finally_(counted)


def queue(world: World) -> None:
    """Each element that was put is got once."""

    def take(shared: Any, elements: Elements) -> None:
        elements.excuse()  # until it is known what the get has done
        element = shared.get()
        elements.excused -= 1
        if element is not None:
            elements.took(element, world)
        else:
            time.sleep(0.05)

    _queue(world, "Queue", "/queue", take)


def locking_queue(world: World) -> None:
    """Each element that was put is got and consumed once; it may be got by several."""

    def take(shared: Any, elements: Elements) -> None:
        element = shared.get(2)
        if element is None:
            return
        elements.hold(element)
        if shared.consume():
            elements.took(element, world)

    _queue(world, "LockingQueue", "/queue/entries", take)


def _queue(
    world: World, recipe: str, folder: str, take: Callable[[Any, Elements], object]
) -> None:
    starts = count(1)

    def left() -> list[bytes]:
        nodes = world.zookeeper.ensemble.head.nodes
        return [
            node.data or b"" for path, node in nodes.items() if path.startswith(f"{folder}/entry")
        ]

    elements = world.elements("queue", left)
    finished: list[int] = []

    def is_emptied() -> bool:
        return bool(finished or "producer" not in living(world)) and not left()

    def producer(world: World) -> None:
        start = next(starts)  # a producer that starts anew has elements of its own
        with client_of(world) as client:
            shared = getattr(client, recipe)("/queue")
            for at in range(6):
                element = b"%d.%d" % (start, at)
                elements.put_in_doubt(element)
                with suppress(*GIVEN_UP):
                    shared.put(element)
                    elements.put(element)
                time.sleep(0.01)
        finished.append(start)

    def consumer(world: World) -> None:
        with client_of(world) as client:
            shared = getattr(client, recipe)("/queue")
            while not is_emptied() and world.now_s < LONG_S:
                try:
                    take(shared, elements)
                except NoNodeError:  # the lock of a LockingQueue is gone, and it does not forget
                    shared = getattr(client, recipe)("/queue")
                except GIVEN_UP:
                    time.sleep(0.05)

    world.process("producer", producer, world)
    for name in NAMES[:2]:
        world.process(name, consumer, world)
    world.eventually(is_emptied, within_s=40, name="the queue is emptied")
