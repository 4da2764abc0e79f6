"""Locks that are virtual in a world and real elsewhere.

One object is both: modules make locks when they are imported, and use them within a world and
outside of it. A lock of the operating system that is held by one virtual thread while another
one wants it would block the process for ever, since both are one thread to the system.

What a world has left in a lock is void in the next one.

A run takes and gives back a lock some eight hundred times for every hundred requests of kazoo, so
the way of a lock that is free is written out in each method: a call of Python costs as much as
all that the way does. To look up which world runs here costs half as much again, so a lock that
a world has made asks its maker first: while one of the maker's threads runs, it is the one that
uses the lock, since what a world makes stays in it.
"""

from __future__ import annotations

import _thread
import threading
from collections import deque
from typing import Any

from watchkeeper.virtual.threads.current import here
from watchkeeper.virtual.threads.scheduler import Scheduler
from watchkeeper.virtual.threads.task import Task

real_lock = _thread.allocate_lock
Condition: Any = threading.Condition
_make_condition = Condition.__init__
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


class Mutex:
    """What both kinds of locks have in common: who holds one, and who waits for it."""

    __slots__ = ("__weakref__", "_count", "_maker", "_real", "_scheduler", "_waiters", "holder")

    def __init__(self) -> None:
        self._real: Any = None
        """The lock of the operating system, made when it is needed first."""
        self._maker = scheduler = here.scheduler
        """The world that has made it."""
        self._scheduler: Scheduler | None = scheduler
        """The world that what follows is of."""
        self._count = 0
        """How often its holder has taken it."""
        self._waiters: tuple[Task, ...] = ()
        self.holder: Task | None = None
        """The thread that has taken it; any thread may give a `Lock` back."""

    def _join(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._count = 0
        self.holder = None
        self._waiters = ()

    def _wait(self, scheduler: Scheduler, timeout_ns: int | None) -> bool:
        if timeout_ns == 0:
            return False
        ends_ns = None if timeout_ns is None else scheduler.now_ns + timeout_ns
        task = scheduler.running
        assert task is not None, "calls of the calendar wait for no lock"
        while self._count:
            left_ns = None if ends_ns is None else ends_ns - scheduler.now_ns
            if left_ns is not None and left_ns <= 0:
                return False
            self._waiters = (*self._waiters, task) if self._waiters else (task,)
            task.wanted = self
            try:
                scheduler.block("a lock", left_ns)
            finally:
                task.wanted = None
                if self._waiters:
                    self._waiters = tuple(each for each in self._waiters if each is not task)
        self._count = 1
        self.holder = task
        return True

    def _wake(self, scheduler: Scheduler) -> None:
        waiters, self._waiters = self._waiters, ()
        for task in waiters:
            scheduler.wake(task)

    def _at_fork_reinit(self) -> None:
        self._real = None
        self._maker = None
        self._scheduler = None


class Lock(Mutex):
    """What `threading.Lock()` makes."""

    __slots__ = ()

    def _outside(self) -> Any:
        if self._real is None:
            self._real = real_lock()
        return self._real

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; returns whether that is done."""
        scheduler = self._maker
        if scheduler is None or scheduler.running is None:
            scheduler = here.scheduler
            if scheduler is None:
                return bool(self._outside().acquire(blocking, timeout))
            if self._scheduler is not scheduler:
                self._join(scheduler)
        if timeout != -1:
            timeout_of(blocking, timeout)
        if blocking:
            scheduler.step = step = scheduler.step + 1
            if step >= scheduler.point_at:
                scheduler.take_point()
        if self._count:
            return self._wait(scheduler, timeout_of(blocking, timeout))
        self._count = 1
        self.holder = scheduler.running
        return True

    def __enter__(self) -> bool:
        scheduler = self._maker
        if scheduler is None or scheduler.running is None:
            scheduler = here.scheduler
            if scheduler is None:
                return bool(self._outside().__enter__())
            if self._scheduler is not scheduler:
                self._join(scheduler)
        scheduler.step = step = scheduler.step + 1
        if step >= scheduler.point_at:
            scheduler.take_point()
        if self._count:
            return self._wait(scheduler, None)
        self._count = 1
        self.holder = scheduler.running
        return True

    def release(self, kind: object = None, error: object = None, trace: object = None) -> None:
        """Give the lock back; raises RuntimeError if it is free.

        The arguments are those of `__exit__`, which is this method.
        """
        scheduler = self._maker
        if scheduler is None or scheduler.running is None:
            scheduler = here.scheduler
            if scheduler is None:
                self._outside().release()
                return
            if self._scheduler is not scheduler:
                self._join(scheduler)
        if not self._count:
            if scheduler.is_torn_down:
                return  # an unwound `acquire` has not taken it again
            raise RuntimeError("release unlocked lock")
        self._count = 0
        self.holder = None
        if self._waiters:
            self._wake(scheduler)

    def locked(self) -> bool:
        """Whether it is held."""
        scheduler = self._maker
        if scheduler is None or scheduler.running is None:
            scheduler = here.scheduler
            if scheduler is None:
                return bool(self._outside().locked())
        return self._scheduler is scheduler and self._count > 0

    # A condition looks for these three, and has slower ways of its own to the same ends.

    _is_owned = locked

    def _release_save(self) -> Any:
        self.release()

    def _acquire_restore(self, state: Any) -> None:
        self.acquire()

    acquire_lock = acquire
    release_lock = release
    locked_lock = locked
    __exit__ = release

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked() else 'unlocked'} lock at {id(self):#x}>"


class RLock(Mutex):
    """What `threading.RLock()` makes."""

    __slots__ = ()

    def _outside(self) -> Any:
        if self._real is None:
            self._real = real_rlock()
        return self._real

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock, or take it once more; returns whether that is done."""
        scheduler = self._maker
        if scheduler is None or scheduler.running is None:
            scheduler = here.scheduler
            if scheduler is None:
                return bool(self._outside().acquire(blocking, timeout))
            if self._scheduler is not scheduler:
                self._join(scheduler)
        if self._count and self.holder is scheduler.running:
            self._count += 1
            return True
        if timeout != -1:
            timeout_of(blocking, timeout)
        if blocking:
            scheduler.step = step = scheduler.step + 1
            if step >= scheduler.point_at:
                scheduler.take_point()
        if self._count:
            return self._wait(scheduler, timeout_of(blocking, timeout))
        self._count = 1
        self.holder = scheduler.running
        return True

    def __enter__(self) -> bool:
        scheduler = self._maker
        if scheduler is None or scheduler.running is None:
            scheduler = here.scheduler
            if scheduler is None:
                return bool(self._outside().__enter__())
            if self._scheduler is not scheduler:
                self._join(scheduler)
        if self._count and self.holder is scheduler.running:
            self._count += 1
            return True
        scheduler.step = step = scheduler.step + 1
        if step >= scheduler.point_at:
            scheduler.take_point()
        if self._count:
            return self._wait(scheduler, None)
        self._count = 1
        self.holder = scheduler.running
        return True

    def release(self, kind: object = None, error: object = None, trace: object = None) -> None:
        """Give the lock back once; raises RuntimeError if another thread holds it."""
        scheduler = self._maker
        if scheduler is None or scheduler.running is None:
            scheduler = here.scheduler
            if scheduler is None:
                self._outside().release()
                return
        count = self._count
        if not count or self.holder is not scheduler.running or self._scheduler is not scheduler:
            raise RuntimeError("cannot release un-acquired lock")
        if count > 1:
            self._count = count - 1
            return
        self._count = 0
        self.holder = None
        if self._waiters:
            self._wake(scheduler)

    def locked(self) -> bool:
        """Whether a thread holds it."""
        scheduler = here.scheduler
        if scheduler is None:
            real = self._outside()
            if hasattr(real, "locked"):
                return bool(real.locked())
            if real._is_owned() or not real.acquire(False):
                return True
            real.release()
            return False
        return self._scheduler is scheduler and bool(self._count)

    def _is_owned(self) -> bool:
        scheduler = self._maker
        if scheduler is None or scheduler.running is None:
            scheduler = here.scheduler
            if scheduler is None:
                return bool(self._outside()._is_owned())
        if self._scheduler is not scheduler:
            return False
        return self.holder is scheduler.running and self._count > 0

    def _recursion_count(self) -> int:
        if here.scheduler is None:
            return int(self._outside()._recursion_count())
        return self._count if self._is_owned() else 0

    def _release_save(self) -> Any:
        """For conditions: give it back wholly."""
        scheduler = self._maker
        if scheduler is None or scheduler.running is None:
            scheduler = here.scheduler
            if scheduler is None:
                return self._outside()._release_save()
        count = self._count
        if not count or self.holder is not scheduler.running or self._scheduler is not scheduler:
            raise RuntimeError("cannot release un-acquired lock")
        self._count = 0
        self.holder = None
        if self._waiters:
            self._wake(scheduler)
        return count

    def _acquire_restore(self, state: Any) -> None:
        if here.scheduler is None:
            self._outside()._acquire_restore(state)
            return
        self.__enter__()
        self._count = state

    __exit__ = release

    def __repr__(self) -> str:
        return f"<{'locked' if self.locked() else 'unlocked'} reentrant lock at {id(self):#x}>"


# A run enters and leaves conditions some three hundred times for every fifty requests of kazoo.
# The way of one whose lock is free is that of its lock, written out once more.


def make_condition(condition: Any, lock: Any = None) -> None:
    """`Condition.__init__`: which methods a lock has is known, if it is one of these."""
    if lock is None:
        lock = threading.RLock()
    if type(lock) is not RLock and type(lock) is not Lock:
        _make_condition(condition, lock)
        return
    condition._lock = lock
    condition.acquire = lock.acquire
    condition.release = lock.release
    condition._release_save = lock._release_save
    condition._acquire_restore = lock._acquire_restore
    condition._is_owned = lock._is_owned
    condition._waiters = deque()


def enter_condition(condition: Any) -> Any:
    """`Condition.__enter__`."""
    lock = condition._lock
    try:
        scheduler = lock._maker
    except AttributeError:  # a lock of another kind
        return lock.__enter__()
    if scheduler is not None and not lock._count:
        task, step = scheduler.running, scheduler.step + 1
        if task is not None and step < scheduler.point_at:
            scheduler.step = step
            lock._count = 1
            lock.holder = task
            return True
    return lock.__enter__()


def leave_condition(condition: Any, kind: object, error: object, trace: object) -> Any:
    """`Condition.__exit__`, whose own way packs its arguments and unpacks them again."""
    lock = condition._lock
    try:
        scheduler = lock._maker
    except AttributeError:  # a lock of another kind
        return lock.__exit__(kind, error, trace)
    if scheduler is not None and lock._count == 1 and not lock._waiters:
        task = scheduler.running
        if task is not None and lock.holder is task:
            lock._count = 0
            lock.holder = None
            return None
    return lock.__exit__(kind, error, trace)


def notify_all(condition: Any) -> None:
    """`Condition.notify_all`, which has nothing to do where no thread waits, as nearly always."""
    if condition._waiters or type(condition) is not Condition or not condition._is_owned():
        condition.notify(len(condition._waiters))
