"""The worlds that run the threads of a process, behind one door.

A world runs a thread, and whatever that starts, until it is over; what it raises is raised.
To add a world, write one more function and put it into `WORLDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from model.answers import Note
from model.threads import Thread
from real.threads import Threads

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


WORLDS: dict[str, World] = {"live": live}


def run(world: str, thread: Callable[[], Any]) -> Heard:
    """Run a thread in a world; what was heard of it."""
    heard = Heard()
    WORLDS[world](thread, heard)
    return heard
