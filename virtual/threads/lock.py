"""Locks that are virtual in a world and real elsewhere.

One object is both: modules make locks when they are imported, and use them within a world and
outside of it. A lock of the operating system that is held by one virtual thread while another
one wants it would block the process for ever, since both are one thread to the system.

What a world has left in a lock is void in the next one.
"""

from __future__ import annotations

import _thread
from typing import Any

from watchkeeper.virtual.threads.current import current_scheduler
from watchkeeper.virtual.threads.scheduler import Scheduler
from watchkeeper.virtual.threads.task import Task

real_lock = _thread.allocate_lock
real_rlock = _thread.RLock

NS = 1_000_000_000


def timeout_of(blocking: bool, timeout: float) -> int | None:
    """Nanoseconds of a timeout as locks have it; None for no end.

    Raises ValueError for one that makes no sense, as real locks do.
    """
    if not blocking:
        if timeout != -1:
            raise ValueError("can't specify a timeout for a non-blocking call")
        return 0
    if timeout == -1:
        return None
    if timeout < 0:
        raise ValueError("timeout value must be a non-negative number")
    return int(timeout * NS)


class Lock:
    """What `threading.Lock()` makes."""

    __slots__ = ("__weakref__", "_is_held", "_real", "_scheduler", "_waiters", "holder")

    def __init__(self) -> None:
        self._real: Any = None
        self._scheduler: Scheduler | None = None
        self._is_held = False
        self._waiters: list[Task] = []
        self.holder: Task | None = None
        """The thread that has taken it; any thread may give it back."""

    def _outside(self) -> Any:
        if self._real is None:
            self._real = real_lock()
        return self._real

    def _join(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_held = False
        self.holder = None
        self._waiters = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; returns whether that is done."""
        scheduler = current_scheduler()
        if scheduler is None:
            return bool(self._outside().acquire(blocking, timeout))
        if self._scheduler is not scheduler:
            self._join(scheduler)
        if timeout != -1:
            timeout_of(blocking, timeout)
        if blocking:
            scheduler.switch_point()
        if not self._is_held:
            self._is_held = True
            self.holder = scheduler.running
            return True
        return self._wait(scheduler, timeout_of(blocking, timeout))

    def _wait(self, scheduler: Scheduler, timeout_ns: int | None) -> bool:
        if timeout_ns == 0:
            return False
        ends_ns = None if timeout_ns is None else scheduler.now_ns + timeout_ns
        task = scheduler.running
        assert task is not None, "calls of the calendar wait for no lock"
        while self._is_held:
            left_ns = None if ends_ns is None else ends_ns - scheduler.now_ns
            if left_ns is not None and left_ns <= 0:
                return False
            self._waiters.append(task)
            task.wanted = self
            try:
                scheduler.block("a lock", timeout_ns=left_ns)
            finally:
                task.wanted = None
                if task in self._waiters:
                    self._waiters.remove(task)
        self._is_held = True
        self.holder = task
        return True

    def release(self) -> None:
        """Give the lock back; raises RuntimeError if it is free."""
        scheduler = current_scheduler()
        if scheduler is None:
            self._outside().release()
            return
        if self._scheduler is not scheduler:
            self._join(scheduler)
        if not self._is_held:
            if scheduler.is_torn_down:
                return  # an unwound `acquire` has not taken it again
            raise RuntimeError("release unlocked lock")
        self._is_held = False
        self.holder = None
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for task in waiters:
                scheduler.wake(task)

    def locked(self) -> bool:
        """Whether it is held."""
        scheduler = current_scheduler()
        if scheduler is None:
            return bool(self._outside().locked())
        return self._scheduler is scheduler and self._is_held

    def _at_fork_reinit(self) -> None:
        self._real = None
        self._scheduler = None

    acquire_lock = acquire
    release_lock = release
    locked_lock = locked

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked() else 'unlocked'} lock at {id(self):#x}>"


class RLock:
    """What `threading.RLock()` makes."""

    __slots__ = ("__weakref__", "_count", "_lock", "_real")

    def __init__(self) -> None:
        self._real: Any = None
        self._lock = Lock()
        self._count = 0

    def _outside(self) -> Any:
        if self._real is None:
            self._real = real_rlock()
        return self._real

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock, or take it once more; returns whether that is done."""
        scheduler = current_scheduler()
        if scheduler is None:
            return bool(self._outside().acquire(blocking, timeout))
        lock = self._lock
        if self._count and lock._scheduler is scheduler and lock.holder is scheduler.running:
            self._count += 1
            return True
        if not lock.acquire(blocking, timeout):
            return False
        self._count = 1
        return True

    def release(self) -> None:
        """Give the lock back once; raises RuntimeError if another thread holds it."""
        scheduler = current_scheduler()
        if scheduler is None:
            self._outside().release()
            return
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._lock.release()

    def locked(self) -> bool:
        """Whether a thread holds it."""
        if current_scheduler() is None:
            real = self._outside()
            if hasattr(real, "locked"):
                return bool(real.locked())
            if real._is_owned() or not real.acquire(False):
                return True
            real.release()
            return False
        return self._lock.locked()

    def _is_owned(self) -> bool:
        scheduler = current_scheduler()
        if scheduler is None:
            return bool(self._outside()._is_owned())
        if self._lock._scheduler is not scheduler:
            return False
        return bool(self._count) and self._lock.holder is scheduler.running

    def _recursion_count(self) -> int:
        if current_scheduler() is None:
            return int(self._outside()._recursion_count())
        return self._count if self._is_owned() else 0

    def _release_save(self) -> Any:
        """For conditions: give it back wholly."""
        if current_scheduler() is None:
            return self._outside()._release_save()
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        count, self._count = self._count, 0
        self._lock.release()
        return count

    def _acquire_restore(self, state: Any) -> None:
        scheduler = current_scheduler()
        if scheduler is None:
            self._outside()._acquire_restore(state)
            return
        self._lock.acquire()
        self._count = state

    def _at_fork_reinit(self) -> None:
        self._real = None
        self._lock._at_fork_reinit()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked() else 'unlocked'} reentrant lock at {id(self):#x}>"
