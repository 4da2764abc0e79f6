"""The worlds that run the threads of a process, behind one door.

A world runs a thread, and whatever that starts, until it is over; what it raises is raised.
To add a world, write one more function and put it into `WORLDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.support.patience import PATIENCE_S
from watchkeeper.model.actor.events import Notification
from watchkeeper.model.actor.program import Program
from watchkeeper.model.actor.tasks import TaskFunction
from watchkeeper.real.process.tasks import Tasks
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.engine.latency_profile import DEFAULT
from watchkeeper.sim.engine.random_streams import Streams
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.rpc import Calls
from watchkeeper.sim.process.tasks import Tasks as SimulatedThreads
from watchkeeper.sim.zookeeper.network import Network


class Heard:
    """What the process around some threads has heard of them."""

    def __init__(self) -> None:
        self.notes: list[Notification] = []
        self.failed: list[tuple[str, Exception]] = []


World = Callable[[TaskFunction, Heard], None]


def live(thread: TaskFunction, heard: Heard) -> None:
    """On an event loop."""

    async def work() -> None:
        threads = Tasks(remind=heard.notes.append, failed=lambda *what: heard.failed.append(what))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await threads.run(thread(), "main")
        finally:
            await threads.end()

    asyncio.run(work())


async def nothing(zk: Any, me: None, state: None) -> None:
    """The program of a process that is its threads alone."""


def simulated(thread: TaskFunction, heard: Heard) -> None:
    """In virtual time."""
    kernel = Kernel(Streams(7), DEFAULT)
    node = Node(kernel, "process", Program(nothing, None, None))
    node.is_alive = True
    calls = Calls(kernel, Network(kernel))
    done: list[bool] = []

    async def main() -> None:
        await thread()
        done.append(True)

    SimulatedThreads(node, calls).start("main", main())
    kernel.run_until(int(PATIENCE_S * 1_000_000))
    assert done, f"it was not over within {PATIENCE_S:g} s"
    heard.notes.extend(node.inbox)


WORLDS: dict[str, World] = {"live": live, "simulated": simulated}


def run(world: str, thread: Callable[[], Any]) -> Heard:
    """Run a thread in a world; what was heard of it."""
    heard = Heard()
    WORLDS[world](thread, heard)
    return heard
