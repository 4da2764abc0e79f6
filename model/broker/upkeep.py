"""What a broker does from time to time with its logs, and the locks that it does it under."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

from watchkeeper.model.actor.tasks import Take, put
from watchkeeper.model.log.base_log import BaseLog
from watchkeeper.model.log.log_manager import Logs
from watchkeeper.model.log.segments import Segment

T = TypeVar("T")
L = TypeVar("L", bound=BaseLog)


class Upkeep(Generic[L]):
    """The logs of a broker, with what is due from time to time."""

    def __init__(self, logs: Logs[L]) -> None:
        self.logs = logs

    async def flush_due(self) -> None:
        """Flush what was not flushed for as long as its settings say."""
        await self.logs.flush_due()

    async def delete_old(self) -> tuple[Segment, ...]:
        """Delete what is too old or too much."""
        deleted: list[Segment] = []
        for log in self.logs.all():
            deleted += await self.locked(log, partial(self.logs.delete_old_segments, log))
        return tuple(deleted)

    async def locked(self, log: L, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work under the lock of a log."""
        return await alone(log.folder, work)


async def alone(what: str, work: Callable[[], Awaitable[T]]) -> T:
    """Do some work under a lock of this name."""
    lock = f"lock/{what}"
    await put(lock, True, 1)
    try:
        done = await work()
    except Exception:  # not where the process ends: nothing can be asked any more then
        await Take(lock)
        raise
    await Take(lock)
    return done
