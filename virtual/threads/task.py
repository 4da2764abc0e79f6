"""A virtual thread: a greenlet that a scheduler switches to and from, as a policy decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from greenlet import greenlet

if TYPE_CHECKING:
    from watchkeeper.virtual.threads.lock import Mutex
    from watchkeeper.virtual.threads.process import Process
    from watchkeeper.virtual.threads.scheduler import Scheduler


class TaskState(StrEnum):
    """What a virtual thread does."""

    RUNNABLE = "runnable"
    BLOCKED = "blocked"
    OVER = "over"


# The attributes of an enum are found slowly, and every switch reads some.
RUNNABLE, BLOCKED, OVER = TaskState


class Task:
    """One virtual thread of one process."""

    __slots__ = (
        "__weakref__",
        "blocked_on",
        "blocked_since_ns",
        "body",
        "clock_reads",
        "error",
        "greenlet",
        "has_timeout",
        "ident",
        "is_daemon",
        "is_doomed",
        "joiners",
        "local_values",
        "loop",
        "name",
        "priority",
        "process",
        "signals",
        "state",
        "thread",
        "time_out",
        "wanted",
        "was_woken",
    )

    def __init__(
        self,
        name: str,
        process: Process,
        ident: int,
        body: Callable[[], object],
        *,
        is_daemon: bool = False,
    ) -> None:
        self.name = name
        self.process = process
        self.ident = ident
        self.body = body
        self.is_daemon = is_daemon
        self.greenlet: greenlet | None = None
        self.state: TaskState = RUNNABLE
        self.blocked_on = ""
        """What it waits for, in words, while it is blocked."""
        self.wanted: Mutex | None = None
        """The lock that it waits for, if it waits for one."""
        self.blocked_since_ns = 0
        self.has_timeout = False
        """Whether it goes on by itself at some moment."""
        self.time_out: Callable[[], object] = body
        """What the calendar calls at that moment; the scheduler sets it."""
        self.was_woken = False
        self.is_doomed = False
        """Whether it unwinds when it runs next."""
        self.clock_reads = 0
        """How often it has read a clock since it last waited."""
        self.priority = 0.0
        """For policies that order tasks."""
        self.joiners: list[Task] = []
        self.local_values: dict[int, dict[str, Any]] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that has run in it."""
        """Number of a `threading.local` -> this thread's values of it."""
        self.signals: list[Callable[[], object]] = []
        """Handlers that it has to call before it goes on."""
        self.error: BaseException | None = None
        """What has ended it, if it was an exception."""
        self.thread: Any = None
        """Its `threading.Thread`, if it has one."""

    def __repr__(self) -> str:
        return f"<{self.process.name}: {self.name}, {self.state}>"

    @property
    def is_over(self) -> bool:
        """Whether it runs never again, since it has ended or its process has."""
        return self.state is OVER or not self.process.is_alive

    @property
    def waits_for(self) -> Task | None:
        """The thread that has the lock for which this one waits without a limit in time.

        A condition waits for a lock that it has taken itself: that is no other thread.
        """
        if self.state is not BLOCKED or self.has_timeout or self.wanted is None:
            return None
        return None if self.wanted.holder is self else self.wanted.holder


def ring_from(task: Task) -> list[Task]:
    """The threads that wait for each other's locks, from this one on; empty if there are none."""
    ring = [task]
    following = task.waits_for
    while following is not None and following not in ring:
        ring.append(following)
        following = following.waits_for
    return ring if following is task else []


class Policy(Protocol):
    """Decides what a scheduler leaves open.

    Each decision has a step; the default is 0, False, 0.
    """

    def begin(self, scheduler: Scheduler) -> None:
        """A run begins."""

    def started(self, task: Task) -> None:
        """A thread has started."""

    def choose(self, step: int, tasks: list[Task]) -> int:
        """Which of at least two runnable threads runs, as an index; 0 has waited longest."""

    def next_preemption(self, step: int) -> int:
        """The step from which on the running thread is preempted at its next switch point."""

    def preempts(self, step: int) -> bool:
        """Whether the running thread is preempted here; called from that step on."""

    def yielded(self, task: Task) -> None:
        """A thread polls: it would starve the others if it always came first."""

    prefers_woken: bool
    """Whether a thread that wakes may be preferred: if not, `woken` is not called."""

    def woken(self, step: int, task: Task, running: Task | None) -> bool:
        """A thread is runnable: whether the running one is preempted at its next switch point."""

    def stall_ns(self, step: int, task: Task) -> int:
        """For how long a thread that could run does not, as on a busy machine."""


@dataclass(slots=True)
class Schedule:
    """What a policy has decided other than the default, by the number of the step."""

    choices: dict[int, int] = field(default_factory=dict)
    """Step -> which runnable thread ran, where it was not the one that has waited longest."""
    preemptions: list[int] = field(default_factory=list)
    stalls_ns: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.choices) + len(self.preemptions) + len(self.stalls_ns)
