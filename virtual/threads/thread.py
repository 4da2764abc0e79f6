"""`threading.Thread` in virtual time: what starts, ends and counts threads.

The class stays as it is, so subclasses and `isinstance` work. Four of its methods and some
functions of `threading` ask whether a world runs here.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from watchkeeper.virtual.threads.current import current_scheduler, current_task
from watchkeeper.virtual.threads.errors import Teardown
from watchkeeper.virtual.threads.lock import NS
from watchkeeper.virtual.threads.process import Process
from watchkeeper.virtual.threads.scheduler import Scheduler
from watchkeeper.virtual.threads.task import Task

Thread = threading.Thread
_start = Thread.start
_join = Thread.join
_is_alive = Thread.is_alive
_get_ident = _thread.get_ident
_start_new_thread = _thread.start_new_thread
_enumerate = threading.enumerate
_active_count = threading.active_count
_main_thread = threading.main_thread
_native_id = threading.get_native_id
_new_name = threading._newname  # type: ignore[attr-defined]
MAIN = "MainThread"
"""The name of a process's first thread."""
TASK = "_virtual_task"
"""The attribute of a Thread that has its task."""


def start(self: Thread) -> None:
    """Start the thread; raises RuntimeError if it was started before."""
    scheduler = current_scheduler()
    if scheduler is None or scheduler.running is None:
        _start(self)
        return
    if not getattr(self, "_initialized", False):
        raise RuntimeError("thread.__init__() not called")
    if self._started.is_set():  # type: ignore[attr-defined]
        raise RuntimeError("threads can only be started once")
    process = scheduler.running.process
    task = scheduler.start(process, self.name, lambda: _run(self), is_daemon=self.daemon)
    _adopt(self, task)
    scheduler.switch_point()


def _adopt(thread: Thread, task: Task) -> None:
    task.thread = thread
    thread.__dict__[TASK] = task
    thread._ident = task.ident  # type: ignore[attr-defined]
    thread._native_id = task.ident  # type: ignore[attr-defined]
    thread._started.set()  # type: ignore[attr-defined]
    threading._active[task.ident] = thread  # type: ignore[attr-defined]


def _run(thread: Thread) -> None:
    task: Task = thread.__dict__[TASK]
    scheduler = current_scheduler()
    assert scheduler is not None, "a task runs within its world"
    try:
        thread.run()
    except (SystemExit, Teardown):
        pass
    except Exception as error:
        task.error = error
        scheduler.deaths.append((task, error))
        if threading.excepthook is not scheduler.excepthook_before:  # the program has set it
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), thread)))
    finally:
        threading._active.pop(task.ident, None)  # type: ignore[attr-defined]


def start_main(scheduler: Scheduler, process: Process, target: Callable[[], object]) -> Task:
    """Start a process's main thread, which ends by calling what `atexit` has kept."""
    thread = Thread(name=MAIN, daemon=False, target=target)
    task = scheduler.start(process, MAIN, lambda: _run_main(scheduler, process, thread))
    _adopt(thread, task)
    return task


def _run_main(scheduler: Scheduler, process: Process, thread: Thread) -> None:
    try:
        _run(thread)
        for task in [task for task in process.tasks if not task.is_daemon][1:]:
            _wait_for_end(scheduler, task, None)
        while process.at_exit:
            process.at_exit.pop()()
    finally:
        threading._active.pop(thread.ident, None)  # type: ignore[attr-defined]


def join(self: Thread, timeout: float | None = None) -> None:
    """Wait until the thread has ended, or for so many seconds."""
    task: Task | None = self.__dict__.get(TASK)
    scheduler = current_scheduler()
    if task is None:
        _join(self, timeout)
        return
    if scheduler is None:  # its run is over, and so is the thread
        return
    if task is scheduler.running:
        raise RuntimeError("cannot join current thread")
    scheduler.switch_point()
    _wait_for_end(scheduler, task, None if timeout is None else int(max(timeout, 0) * NS))


def _wait_for_end(scheduler: Scheduler, task: Task, timeout_ns: int | None) -> None:
    running = scheduler.running
    assert running is not None, "only threads join threads"
    if task.is_over:
        return
    task.joiners.append(running)
    try:
        scheduler.block(f"the end of {task.name}", timeout_ns)
    finally:
        if running in task.joiners:
            task.joiners.remove(running)


def is_alive(self: Thread) -> bool:
    """Whether the thread has started and not ended."""
    task: Task | None = self.__dict__.get(TASK)
    return _is_alive(self) if task is None else not task.is_over


def get_ident() -> int:
    """The number of the running thread."""
    task = current_task()
    return _get_ident() if task is None else task.ident


def get_native_id() -> int:
    """The number of the running thread, as the operating system has it."""
    task = current_task()
    return _native_id() if task is None else task.ident


def start_new_thread(
    function: Callable[..., object],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    /,
) -> int:
    """Start a thread that has no `Thread`."""
    scheduler = current_scheduler()
    if scheduler is None or scheduler.running is None:
        return _start_new_thread(function, args, dict(kwargs or {}))
    process = scheduler.running.process
    task = scheduler.start(
        process, function.__name__, lambda: function(*args, **(kwargs or {})), is_daemon=True
    )
    scheduler.switch_point()
    return task.ident


def new_name(template: str = "Thread-%d") -> str:
    """The name of a new thread, counted in each process from 1 on."""
    task = current_task()
    if task is None:
        return str(_new_name(template))
    task.process.named_threads += 1
    return template % task.process.named_threads


def enumerate_threads() -> list[Thread]:
    """The living threads of the process."""
    task = current_task()
    if task is None:
        return [thread for thread in _enumerate() if TASK not in thread.__dict__]
    return [each.thread for each in task.process.tasks if each.thread is not None]


def active_count() -> int:
    """How many threads of the process live."""
    return len(enumerate_threads())


def main_thread() -> Thread:
    """The first thread of the process."""
    task = current_task()
    if task is None or task.process.main_task is None:
        return _main_thread()
    thread = task.process.main_task.thread
    return thread if isinstance(thread, Thread) else _main_thread()


def forget_threads(scheduler: Scheduler) -> None:
    """Remove what a run has left among the threads that `threading` knows."""
    active = threading._active  # type: ignore[attr-defined]
    for ident in [ident for ident, thread in active.items() if TASK in thread.__dict__]:
        if active[ident].__dict__[TASK].process in scheduler.processes:
            del active[ident]
