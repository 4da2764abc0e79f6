"""A schedule once more: its decisions at their steps, and the default everywhere else."""

from __future__ import annotations

from typing import NamedTuple

from watchkeeper.virtual.schedule.first_in_first_out import FirstInFirstOut
from watchkeeper.virtual.threads.scheduler import NEVER, Scheduler
from watchkeeper.virtual.threads.task import Schedule, Task


class DecisionPoint(NamedTuple):
    """A step at which another decision was possible."""

    step: int
    choices: int
    """How many runnable threads there were; 0 for a preemption."""


class Recorded(FirstInFirstOut):
    """Replays a schedule, and notes what else could have been decided."""

    def __init__(self, schedule: Schedule, *, notes_points: bool = False) -> None:
        self._choices = dict(schedule.choices)
        self._preemptions = sorted(schedule.preemptions, reverse=True)
        self._stalls_ns = dict(schedule.stalls_ns)
        self._notes_points = notes_points
        self.points: list[DecisionPoint] = []

    def begin(self, scheduler: Scheduler) -> None:
        """A run begins."""
        if self._notes_points:
            self.points.clear()

    def choose(self, step: int, tasks: list[Task]) -> int:
        """What was chosen; the last thread if there are fewer now."""
        if self._notes_points:
            self.points.append(DecisionPoint(step, len(tasks)))
        return min(self._choices.get(step, 0), len(tasks) - 1)

    def next_preemption(self, step: int) -> int:
        """The next preemption of the schedule."""
        while self._preemptions and self._preemptions[-1] <= step:
            self._preemptions.pop()
        if self._notes_points:
            return step + 1
        return self._preemptions[-1] if self._preemptions else NEVER

    def preempts(self, step: int) -> bool:
        """Whether the schedule has a preemption here."""
        if self._notes_points:
            self.points.append(DecisionPoint(step, 0))
            return bool(self._preemptions) and self._preemptions[-1] == step
        return True

    def stall_ns(self, step: int, task: Task) -> int:
        """The stall of the schedule."""
        return self._stalls_ns.get(step, 0)
