"""Every schedule within a number of delays of the default one, by replay.

How it works
  The default schedule runs the thread that has waited longest, until it waits. A *delay* passes
  over the thread that would run: it is preempted, or the next one is chosen. The search runs the
  default schedule, notes each point where a delay was possible, and then runs each schedule with
  one delay more, behind the last delay that it has: so no schedule comes twice. Emmi, Qadeer,
  Rakamaric, "Delay-bounded scheduling", POPL 2011.

  Once no schedule is left the search was complete within its bound: no order of threads with so
  few delays violates anything. It says nothing about other moments of the network or other
  faults: those are the seed's.
"""

from __future__ import annotations

from watchkeeper.virtual.schedule.recorded import DecisionPoint, Recorded
from watchkeeper.virtual.threads.task import Schedule


class DelayBounded:
    """The schedules that are still to be run."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.runs = 0
        self._waiting: list[tuple[Schedule, int, int]] = [(Schedule(), 0, 0)]
        """Schedule, its delays, and the step of the last one."""
        self._current: tuple[Schedule, int, int] | None = None
        self._policy: Recorded | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every schedule within the bound was run."""
        return not self._waiting and self._current is None

    def next(self) -> Recorded | None:
        """The policy of the next run; None if there is no schedule left."""
        if not self._waiting:
            return None
        self._current = self._waiting.pop()
        self._policy = Recorded(self._current[0], notes_points=True)
        return self._policy

    def finished(self) -> None:
        """The run is over: its points with one delay more are runs to come."""
        assert self._current is not None, "a run was begun"
        assert self._policy is not None, "a run was begun"
        (schedule, delays, last), self._current = self._current, None
        self.runs += 1
        for point in reversed(self._policy.points):
            if point.step <= last:
                break
            for more in range(1, min(max(point.choices, 2), self.bound - delays + 1)):
                following = (_with(schedule, point, more), delays + more, point.step)
                self._waiting.append(following)


def _with(schedule: Schedule, point: DecisionPoint, delays: int) -> Schedule:
    choices, preemptions = dict(schedule.choices), list(schedule.preemptions)
    if point.choices:
        choices[point.step] = delays
    else:
        preemptions.append(point.step)
    return Schedule(choices, preemptions)
