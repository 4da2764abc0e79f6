"""Probabilistic concurrency testing: priorities by chance, and a few moments where they change.

How it works
  Each thread gets a random priority above `depth`; the runnable thread with the highest one runs
  always. At `depth - 1` random steps the running thread gets a priority below all others. A bug
  that needs `depth` ordering constraints among n threads and k steps shows in one run with a
  probability of at least 1/(n * k^(depth - 1)): Burckhardt, Kothari, Musuvathi, Nagarakatte, "A
  randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010.

  The bound is one of schedules alone: in virtual time a thread that polls or sleeps gives way,
  and the moments of the network do not depend on priorities.
"""

from __future__ import annotations

from random import Random

from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.threads.scheduler import NEVER, Scheduler
from watchkeeper.virtual.threads.task import Task

SALT = 0xA0761D6478BD642F


class Pct(FirstInFirstOut):
    """Runs the thread of the highest priority."""

    prefers_woken = True

    def __init__(self, seed: int, *, depth: int, steps: int) -> None:
        """`steps` is how many steps a run has, about."""
        self._random = Random(seed ^ SALT).random
        draws = [1 + int(self._random() * max(steps, 1)) for _ in range(depth - 1)]
        self._changes = sorted(draws, reverse=True)
        self._lowest = float(depth)
        self._scheduler: Scheduler | None = None

    def begin(self, scheduler: Scheduler) -> None:
        """A run begins."""
        self._scheduler = scheduler

    def started(self, task: Task) -> None:
        """A new thread has a random priority above all that were lowered."""
        task.priority = 1000.0 + self._random()

    def choose(self, step: int, tasks: list[Task]) -> int:
        """The highest priority; of equal ones, the thread that has waited longest."""
        return max(range(len(tasks)), key=lambda index: (tasks[index].priority, -index))

    def next_preemption(self, step: int) -> int:
        """The next change of priorities; one that has come lowers the running thread's."""
        running = self._scheduler.running if self._scheduler is not None else None
        while self._changes and self._changes[-1] <= step:
            self._changes.pop()
            if running is not None:
                self._lower(running)
        return self._changes[-1] if self._changes else NEVER

    def _lower(self, task: Task) -> None:
        self._lowest -= 1.0
        task.priority = self._lowest

    def yielded(self, task: Task) -> None:
        """A thread that polls comes after all others."""
        self._lower(task)

    def woken(self, step: int, task: Task, running: Task | None) -> bool:
        """A thread of a higher priority than the running one takes its place."""
        return running is not None and task.priority > running.priority


def bound(threads: int, steps: int, depth: int) -> float:
    """The least probability that one run shows a bug of this depth."""
    return 1.0 / float(max(threads, 1) * max(steps, 1) ** (depth - 1))
