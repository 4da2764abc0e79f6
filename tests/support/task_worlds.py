"""The worlds that run the threads of a process, behind one door.

A world runs a thread, and whatever that starts, until it is over; what it raises is raised.
To add a world, write one more function and put it into `WORLDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from model.answers import Note
from model.program import Program
from model.threads import Thread
from real.threads import Threads
from sim.calls import Calls
from sim.kernel import Kernel, Network
from sim.node import Node
from sim.profile import DEFAULT
from sim.streams import Streams
from sim.threads import Threads as SimulatedThreads

PATIENCE_S = 20.0


class Heard:
    """What the process around some threads has heard of them."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.failed: list[tuple[str, Exception]] = []


World = Callable[[Thread, Heard], None]


def live(thread: Thread, heard: Heard) -> None:
    """On an event loop."""

    async def work() -> None:
        threads = Threads(
            remind=heard.notes.append, failed=lambda *what: heard.failed.append(what)
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                await threads.run(thread(), "main")
        finally:
            await threads.end()

    asyncio.run(work())


async def nothing(zk: Any, me: None, memory: None) -> None:
    """The program of a process that is its threads alone."""


def simulated(thread: Thread, heard: Heard) -> None:
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
