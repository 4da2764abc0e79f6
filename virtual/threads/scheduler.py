"""Threads in virtual time: one thread of the operating system, a clock, and every switch.

How it works
  Each virtual thread is a greenlet. The hub, the greenlet that called `run`, picks one of the
  runnable threads and switches to it; the thread runs until it blocks, ends, or is preempted at
  a switch point, and switches back; or to the next runnable thread, if nothing else is due. So at
  any moment one thread runs, and which one is decided here alone, by a `Policy`.

  Time passes in three ways. A turn of a thread costs `TURN_NS`. Reading a clock costs a little,
  and more for a thread that does nothing else, so that a loop that waits for a moment gets
  there. And when no thread is runnable, the clock jumps to the next entry of the calendar.

  Each decision has a number, its *step*. What the policy decides other than the default (the
  thread that has waited longest, no preemption, no stall) is kept as a `Schedule`. Together with
  the seed it is the whole run: replayed, it gives the same one.

  A process that crashes must not unwind: its `finally` blocks would release locks and send
  messages. Its greenlets are never switched to again, and are kept until the verdict is known,
  since Python throws into a greenlet that nothing refers to. `tear_down` ends them then.
"""

from __future__ import annotations

import asyncio.events
import gc
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

from watchkeeper.virtual.threads import current
from watchkeeper.virtual.threads.calendar import Calendar, Entry, Timer
from watchkeeper.virtual.threads.errors import ProcessExit, Teardown, VirtualTimeError
from watchkeeper.virtual.threads.process import Process
from watchkeeper.virtual.threads.task import BLOCKED, OVER, RUNNABLE, Policy, Schedule, Task
from watchkeeper.virtual.threads.teardown import unwind_all

TURN_NS = 10_000
"""What a turn of a thread costs."""
CLOCK_READ_NS = 200
FREE_CLOCK_READS = 200
"""How many reads of a clock without a wait cost little; a loop that polls has more."""
POLL_NS = 1_000_000
"""What a turn of a thread costs that polls, by a clock or at switch points."""
MOST_POINTS_A_TURN = 2_000
"""After so many switch points without a wait, a thread counts as polling."""
NEVER = 1 << 62
FIRST_IDENT = 1_000_001
FIRST_PID = 1_001
WALL_START_NS = 1_767_225_600 * 1_000_000_000
"""The world's date at its begin: 2026-01-01, midnight UTC."""

_get_running_loop = asyncio.events._get_running_loop
_set_running_loop = asyncio.events._set_running_loop
T = TypeVar("T")


class Scheduler:
    """The clock, the calendar and the threads of one run."""

    def __init__(self, policy: Policy, *, seed: int = 0) -> None:
        self.policy = policy
        self.random = Random(seed)
        self.now_ns = 0
        self.running: Task | None = None
        self.turn = 0
        """How many turns threads have had."""
        self.processes: list[Process] = []
        self.deaths: list[tuple[Task, BaseException]] = []
        """The threads that have ended by an exception, in order."""
        self.schedule = Schedule()
        """What was decided other than the default."""
        self.step = 0
        self.network: Any = None
        """The network of the world, for patched sockets."""
        self.lines: dict[tuple[int, int], str] = {}
        """Session and number of a request on its way -> the line of code that it comes from."""
        self.ended: Callable[[Process], object] = _ignore
        """Called when a process has ended."""
        self.after_turn: Callable[[Task], object] | None = None
        """Called after each turn of a thread."""
        self.after_end: Callable[[Task], object] = _ignore
        """Called after the last turn of a thread, and after each once one has died."""
        self.allowed: frozenset[str] = frozenset()
        """What cannot be virtual and is permitted all the same."""
        self.excepthook_before: Any = None
        """What handled the exceptions of threads before the run."""
        self.is_torn_down = False
        self.stop_requested = False
        self.calendar = Calendar()
        self._runnable: list[Task] = []
        self._hub: greenlet | None = None
        self._latest: Any = None
        """The thread whose turn was the last one to begin."""
        self._until_ns = 0
        """The end of the run."""
        self._tasks = 0
        self._preempt_at = NEVER
        self._poll_at = NEVER
        self.point_at = NEVER
        """The smaller of the two: a switch point before it does nothing; locks compare it too."""

    # --- calendar ----------------------------------------------------------------------

    def call_at(self, at_ns: int, call: Callable[[], object]) -> None:
        """Make a call outside of all threads at a moment, in order of moment and insertion."""
        self.calendar.add(at_ns, call)

    def call_later(self, delay_ns: int, call: Callable[[], object]) -> Timer:
        """Make a call outside of all threads once so much time has passed."""
        timer = Timer(self.now_ns + delay_ns, call)
        self.calendar.add(timer.at_ns, timer)
        return timer

    # --- the hub -----------------------------------------------------------------------

    def run(self, until_ns: int) -> None:
        """Run the world until a moment, or until nothing can happen any more.

        Raises what a call of the calendar raises.
        """
        self._hub = getcurrent()
        self._until_ns = until_ns
        self.excepthook_before = threading.excepthook
        is_collecting = gc.isenabled()
        # A collection runs finalizers, and callbacks that read the clock, as Hypothesis has one:
        # at moments that no seed decides.
        gc.disable()
        current.enter(self)
        try:
            # Names of executors' threads would count on from run to run.
            ThreadPoolExecutor._counter = itertools.count().__next__  # type: ignore[attr-defined]
            self.policy.begin(self)
            self._plan_preemption()
            self._loop(until_ns)
        finally:
            current.leave()
            if is_collecting:
                gc.enable()

    def _loop(self, until_ns: int) -> None:
        # Written out: each turn comes here, and a call of Python costs as much as what it does.
        runnable, calendar, entries = self._runnable, self.calendar, self.calendar.entries
        while not self.stop_requested:
            now_ns = self.now_ns
            while entries and entries[0][0] <= now_ns:
                heappop(entries)[2]()
            if not runnable:
                moment_ns = calendar.next_ns()
                if moment_ns is None:
                    return
                if moment_ns > until_ns:
                    self.now_ns = until_ns
                    return
                self.now_ns = moment_ns
                continue
            if now_ns > until_ns:
                return
            task = self._begin_turn()
            if self.running is not None:
                self._enter(task)
                task = self._latest  # threads may have handed turns to each other meanwhile
                self.running = None
            if self.after_turn is not None:
                self.after_turn(task)
            if self.deaths or task.state is OVER or not task.process.is_alive:
                self.after_end(task)

    def _begin_turn(self) -> Task:
        """Choose the thread whose turn comes, and let it be the running one unless it is over."""
        runnable = self._runnable
        if len(runnable) == 1:
            task = runnable.pop()
        else:
            self.step = step = self.step + 1
            index = self.policy.choose(step, runnable)
            if index:
                self.schedule.choices[step] = index
            task = runnable.pop(index)
        self._latest = task
        self.turn += 1
        self.now_ns += TURN_NS
        if task.state is OVER or not task.process.is_alive:
            self.running = None
            return task
        self.running = task
        self._poll_at = poll_at = self.step + MOST_POINTS_A_TURN
        self.point_at = poll_at if poll_at < self._preempt_at else self._preempt_at
        return task

    def _enter(self, task: Task) -> None:
        thread = task.greenlet
        if thread is None:
            task.greenlet = greenlet(self._run_body, parent=self._hub)
            task.greenlet.switch(task)
        else:
            thread.switch()

    def _plan_preemption(self) -> None:
        self._preempt_at = self.policy.next_preemption(self.step)
        self.point_at = min(self._preempt_at, self._poll_at)

    # --- threads -----------------------------------------------------------------------

    def start(
        self, process: Process, name: str, body: Callable[[], object], *, is_daemon: bool = False
    ) -> Task:
        """Start a thread of a process; it runs when the policy chooses it."""
        task = Task(name, process, FIRST_IDENT + self._tasks, body, is_daemon=is_daemon)
        self._tasks += 1
        task.time_out = partial(self._time_out, task)
        process.tasks.append(task)
        self.policy.started(task)
        self._make_runnable(task)
        return task

    def _run_body(self, task: Task) -> None:
        try:
            task.body()
        except Teardown:
            pass
        except ProcessExit as ended:
            self._end(task.process, f"it has ended by os._exit({ended})")
        except BaseException as error:
            task.error = error
            self.deaths.append((task, error))
        finally:
            if not task.is_doomed:
                self._finish(task)

    def _finish(self, task: Task) -> None:
        task.state = OVER
        process = task.process
        if task in process.tasks:
            process.tasks.remove(task)
        for joiner in task.joiners:
            self.wake(joiner)
        if process.is_alive and all(each.is_daemon for each in process.tasks):
            self._end(process, "it has returned")

    def _make_runnable(self, task: Task) -> None:
        task.state = RUNNABLE
        if task.process.is_paused:
            task.process.held.append(task)
            return
        policy = self.policy
        self.step = step = self.step + 1
        stall_ns = policy.stall_ns(step, task)
        if stall_ns:
            self.schedule.stalls_ns[step] = stall_ns
            self.call_later(stall_ns, lambda: self._end_stall(task))
            return
        self._runnable.append(task)
        if policy.prefers_woken and policy.woken(step, task, self.running):
            self._preempt_at = self.point_at = step

    def _end_stall(self, task: Task) -> None:
        if task.process.is_paused:
            task.process.held.append(task)
        elif not task.is_over:
            self._runnable.append(task)

    def block(self, why: str, timeout_ns: int | None) -> bool:
        """Stop the running thread until it is woken; returns False if its time is over first.

        `why` says in words what it waits for; a timeout of None is no end.
        """
        task = self.running
        if task is None:
            raise VirtualTimeError(
                f"a call of the calendar waits for {why}, but only threads can wait"
            )
        if timeout_ns is not None and timeout_ns <= 0:
            self.pass_turn()
            return False
        task.blocked_on = why
        task.blocked_since_ns = now_ns = self.now_ns
        task.state = BLOCKED
        task.was_woken = False
        if timeout_ns is None:
            task.has_timeout = False
            self._switch_away(task)
            return task.was_woken
        task.has_timeout = True
        timer = Timer(now_ns + timeout_ns, task.time_out)
        calendar = self.calendar
        calendar.added = number = calendar.added + 1
        entry: Entry = (timer.at_ns, number, timer)
        heappush(calendar.entries, entry)
        self._switch_away(task)
        timer.cancel()
        return task.was_woken

    def _switch_away(self, task: Task) -> None:
        if task.is_doomed:
            raise Teardown
        task.clock_reads = 0
        # asyncio keeps the running loop for each thread of the operating system.
        loop = _get_running_loop()
        if loop is not None:
            task.loop = loop
            _set_running_loop(None)
        entries = self.calendar.entries
        if (
            self._runnable
            and (not entries or entries[0][0] > self.now_ns)
            and self.now_ns <= self._until_ns
            and self.after_turn is None
            and not self.deaths
            and not self.stop_requested
            and task.process.is_alive
        ):
            # The hub would do no more than let the next thread run: that saves a switch, and
            # calls of the calendar, which may go deep, stay on the stack of the hub.
            following = self._begin_turn()
            if self.running is None:
                self._to_hub()
            elif following is not task:
                self._enter(following)
        else:
            self._to_hub()
        if loop is not None:
            _set_running_loop(loop)
        if task.is_doomed:
            raise Teardown
        while task.signals:
            task.signals.pop(0)()

    def _to_hub(self) -> None:
        assert self._hub is not None, "threads run within `run`"
        self._hub.switch()

    def _time_out(self, task: Task) -> None:
        if task.state is BLOCKED:
            self._make_runnable(task)

    def wake(self, task: Task) -> None:
        """Make a blocked thread runnable; a thread that is not blocked goes on as it does."""
        if task.state is not BLOCKED:
            return
        task.was_woken = True
        self._make_runnable(task)

    def switch_point(self) -> None:
        """Let the policy run other threads before the running one goes on."""
        self.step += 1
        if self.step >= self.point_at:
            self.take_point()

    def without_points(self, call: Callable[[], T]) -> T:
        """Make a call whose switch points do not count, unless a thread waits in it.

        A module is imported by the first run of a process and not by the second one: the two
        would else differ.
        """
        step, turn, point_at = self.step, self.turn, self.point_at
        self.point_at = NEVER
        try:
            return call()
        finally:
            if self.turn == turn:
                self.step, self.point_at = step, point_at

    def take_point(self) -> None:
        """Decide at a switch point whose step has reached `point_at`."""
        if self.running is None:
            return
        if self.running.is_doomed:
            raise Teardown
        if self.step >= self._poll_at:
            self.now_ns += POLL_NS
            self.policy.yielded(self.running)
            self.pass_turn()
            return
        preempts = bool(
            self._runnable or self.calendar.is_due(self.now_ns)
        ) and self.policy.preempts(self.step)
        if preempts:
            self.schedule.preemptions.append(self.step)
        self._plan_preemption()
        if preempts:
            self.pass_turn()

    def pass_turn(self) -> None:
        """Let the other runnable threads run before the running one goes on."""
        task = self.running
        if task is None:
            return
        if task.is_doomed:
            raise Teardown
        if task.process.is_paused:
            task.process.held.append(task)
        else:
            self._runnable.append(task)
        self._switch_away(task)

    def read_clock_ns(self) -> int:
        """Virtual nanoseconds since the begin of the run; reading costs time."""
        task = self.running
        if task is not None:
            task.clock_reads += 1
            if task.clock_reads > FREE_CLOCK_READS:
                reads = task.clock_reads
                self.now_ns += POLL_NS
                self.policy.yielded(task)
                self.pass_turn()
                task.clock_reads = reads
            else:
                self.now_ns += CLOCK_READ_NS
        return self.now_ns

    def wall_ns(self, process: Process | None = None) -> int:
        """Nanoseconds since 1970 by the clock of a process, or of the world."""
        offset_ns = 0 if process is None else process.wall_offset_ns
        return WALL_START_NS + self.now_ns + offset_ns

    # --- processes ---------------------------------------------------------------------

    def add_process(self, name: str) -> Process:
        """A process that has no thread yet."""
        number = len(self.processes) + 1
        process = Process(
            name,
            FIRST_PID + number - 1,
            f"10.0.{number // 250}.{number % 250 + 1}",
            Random(self.random.getrandbits(64)),
        )
        self.processes.append(process)
        return process

    def crash(self, process: Process) -> None:
        """End a process at once: no `finally` of it runs."""
        self._end(process, "it has crashed")
        if self.running is not None and self.running.process is process:
            self._switch_away(self.running)

    def _end(self, process: Process, ending: str) -> None:
        if not process.is_alive:
            return
        process.is_alive = False
        process.ending = ending
        process.held.clear()
        self._runnable[:] = [task for task in self._runnable if task.process is not process]
        for call in process.at_end:
            call()
        process.close_files()
        self.ended(process)

    def pause(self, process: Process) -> None:
        """Let a process stand still; what it has sent still arrives."""
        process.is_paused = True
        for task in [task for task in self._runnable if task.process is process]:
            self._runnable.remove(task)
            process.held.append(task)

    def resume(self, process: Process) -> None:
        """Let a process go on."""
        process.is_paused = False
        held, process.held = process.held, []
        for task in held:
            self._make_runnable(task)

    # --- the end -----------------------------------------------------------------------

    def tear_down(self) -> None:
        """Unwind every thread that has not ended; nothing that they do then has an effect."""
        self.is_torn_down = True
        self._hub = getcurrent()
        current.enter(self)
        try:
            unwind_all(self)
        finally:
            current.leave()
        self.calendar.clear()
        self._runnable.clear()


def _ignore(ended: Process | Task) -> None:
    """Do nothing about the end of a process or a thread."""
