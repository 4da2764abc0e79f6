"""Chance decides: which thread runs, when one is preempted, and which one stalls."""

from __future__ import annotations

from math import log
from random import Random

from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.threads.task import Task

MEAN_STEPS = 40
"""Between preemptions."""
STALL_ONE_IN = 60
MEAN_STALL_NS = 4_000_000
LONGEST_STALL_NS = 200_000_000
SALT = 0xD1B54A32D192ED03


class RandomPolicy(FirstInFirstOut):
    """Every runnable thread is as likely as another."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed ^ SALT).random
        self._to_stall = self._gap(STALL_ONE_IN)

    def _gap(self, mean: int) -> int:
        return 1 + int(-log(1.0 - self._random()) * mean)

    def choose(self, step: int, tasks: list[Task]) -> int:
        """Any of them."""
        return int(self._random() * len(tasks))

    def next_preemption(self, step: int) -> int:
        """After a number of steps with a geometric distribution."""
        return step + self._gap(MEAN_STEPS)

    def stall_ns(self, step: int, task: Task) -> int:
        """Now and then some milliseconds, as on a machine with other work."""
        self._to_stall -= 1
        if self._to_stall:
            return 0
        self._to_stall = self._gap(STALL_ONE_IN)
        return min(int(-log(1.0 - self._random()) * MEAN_STALL_NS) + 1, LONGEST_STALL_NS)
