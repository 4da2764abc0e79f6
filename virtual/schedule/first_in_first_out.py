"""The default decisions: the thread that has waited longest runs, until it waits."""

from __future__ import annotations

from watchkeeper.virtual.threads.scheduler import NEVER, Scheduler
from watchkeeper.virtual.threads.task import Task


class FirstInFirstOut:
    """A policy that decides nothing; others derive from it."""

    prefers_woken = False

    def begin(self, scheduler: Scheduler) -> None:
        """A run begins."""

    def started(self, task: Task) -> None:
        """A thread has started."""

    def choose(self, step: int, tasks: list[Task]) -> int:
        """The one that has waited longest."""
        return 0

    def next_preemption(self, step: int) -> int:
        """No thread is preempted."""
        return NEVER

    def preempts(self, step: int) -> bool:
        """Yes: the step was chosen before."""
        return True

    def yielded(self, task: Task) -> None:
        """A thread polls."""

    def woken(self, step: int, task: Task, running: Task | None) -> bool:
        """A thread that wakes waits for its turn."""
        return False

    def stall_ns(self, step: int, task: Task) -> int:
        """No thread stalls."""
        return 0
