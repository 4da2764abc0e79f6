"""What a process has of its operating system: its number, its exit, its signals, and refusals.

A refusal is a sentence with what to do instead. `allow` of a world names what it permits all the
same: `files` (writing files), `processes` (forks and subprocesses), `sockets` (real ones).
"""

from __future__ import annotations

import atexit
import builtins
import importlib
import io
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from watchkeeper.virtual.threads.current import current_scheduler, current_task
from watchkeeper.virtual.threads.errors import ProcessExit, Refused
from watchkeeper.virtual.threads.lock import NS
from watchkeeper.virtual.threads.process import Process, identity_of
from watchkeeper.virtual.threads.scheduler import Scheduler

_getpid = os.getpid
_getppid = os.getppid
_find_and_load = importlib._bootstrap._find_and_load  # type: ignore[attr-defined]
_exit = os._exit
_kill = os.kill
_register = atexit.register
_unregister = atexit.unregister
_signal = signal.signal
_getsignal = signal.getsignal
_alarm = signal.alarm
_open = builtins.open
_os_open = os.open
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PARENT_PID = 1_000


def getpid() -> int:
    """The number of the process."""
    task = current_task()
    return _getpid() if task is None else task.process.pid


def getppid() -> int:
    """The number of the process that has started this one."""
    return _getppid() if current_task() is None else PARENT_PID


def exit_now(status: int, /) -> None:
    """End the process without any clean-up."""
    if current_task() is None:
        _exit(status)
    raise ProcessExit(status)


# --- imports ---------------------------------------------------------------------------


def find_and_load(name: str, import_: Callable[..., Any]) -> Any:
    """Import a module that is not loaded yet; its switch points do not count."""
    scheduler = current_scheduler()
    if scheduler is None:
        return _find_and_load(name, import_)
    return scheduler.without_points(lambda: _find_and_load(name, import_))


# --- atexit ----------------------------------------------------------------------------


def register(function: Callable[..., object], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function when the process ends by itself."""
    task = current_task()
    if task is None:
        return _register(function, *args, **kwargs)
    call = _AtExit(function, args, kwargs)
    task.process.at_exit.append(call)
    return function


def unregister(function: Callable[..., object], /) -> None:
    """Do not call a function at the end of the process."""
    task = current_task()
    if task is None:
        _unregister(function)
        return
    kept = [
        call
        for call in task.process.at_exit
        if not (isinstance(call, _AtExit) and call.function == function)
    ]
    task.process.at_exit[:] = kept


class _AtExit:
    def __init__(
        self, function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.function = function
        self._args = args
        self._kwargs = kwargs

    def __call__(self) -> object:
        return self.function(*self._args, **self._kwargs)


# --- signals ---------------------------------------------------------------------------


def set_handler(number: int, handler: Any, /) -> Any:
    """Have a signal of the process handled; returns what handled it before."""
    task = current_task()
    if task is None:
        return _signal(number, handler)
    handlers = task.process.signal_handlers
    before = handlers.get(number, signal.SIG_DFL)
    handlers[number] = handler
    return before


def handler_of(number: int, /) -> Any:
    """What handles a signal of the process."""
    task = current_task()
    if task is None:
        return _getsignal(number)
    return task.process.signal_handlers.get(number, signal.SIG_DFL)


def alarm(seconds: int, /) -> int:
    """Send the process SIGALRM after so many seconds; returns what was left of the last one."""
    task = current_task()
    scheduler = current_scheduler()
    if task is None or scheduler is None:
        return _alarm(seconds)
    process, left = task.process, 0
    if process.alarm is not None and not process.alarm.is_over:
        left = -(-(process.alarm.at_ns - scheduler.now_ns) // NS)
        process.alarm.cancel()
    if seconds:
        process.alarm = scheduler.call_later(
            seconds * NS, lambda: deliver(scheduler, process, signal.SIGALRM)
        )
    return left


def kill(pid: int, number: int, /) -> None:
    """Send a signal to a process of the world."""
    scheduler = current_scheduler()
    if scheduler is None or scheduler.running is None:
        _kill(pid, number)
        return
    for process in scheduler.processes:
        if process.pid == pid and process.is_alive:
            if number:
                deliver(scheduler, process, number)
            scheduler.switch_point()
            return
    raise ProcessLookupError(3, "No such process")


def raise_signal(number: int, /) -> None:
    """Send a signal to the own process."""
    task = current_task()
    if task is None:
        signal_raise(number)
    else:
        kill(task.process.pid, number)


signal_raise = signal.raise_signal


def deliver(scheduler: Scheduler, process: Process, number: int) -> None:
    """Let the main thread of a process handle a signal, or end the process."""
    handler = process.signal_handlers.get(number, signal.SIG_DFL)
    main = process.main_task
    if handler == signal.SIG_IGN or main is None:
        return
    if number == signal.SIGINT and handler in (signal.SIG_DFL, signal.default_int_handler):
        handler = signal.default_int_handler
    if callable(handler):
        main.signals.append(lambda: handler(number, None))
        scheduler.wake(main)
    elif number == signal.SIGSTOP:
        scheduler.pause(process)
    elif number == signal.SIGCONT:
        scheduler.resume(process)
    elif number not in (signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH):
        scheduler.crash(process)


# --- refusals --------------------------------------------------------------------------


def _allows(what: str) -> bool:
    scheduler = current_scheduler()
    return scheduler is None or scheduler.running is None or what in scheduler.allowed


def refusing(name: str, real: Callable[..., Any], what: str, advice: str) -> Callable[..., Any]:
    """A function that raises Refused in a world that does not allow it."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if _allows(what):
            return real(*args, **kwargs)
        raise Refused(
            f"{name} cannot be called in virtual time: {advice}, or permit it by allow=[{what!r}]"
        )

    refuse.__name__ = name.rpartition(".")[2]
    return refuse


FORKS = "start a process of the world by world.process(...) instead"
FILES = "a file would carry something from one run into the next; keep it in memory"


def open_file(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
    """Open a file; only for reading, unless the world allows files."""
    if not isinstance(mode, str) or not set(mode) & set("wax+") or _allows("files"):
        return _noted(_open(file, mode, *args, **kwargs))
    if file == os.devnull:
        return _open(file, mode, *args, **kwargs)
    raise Refused(
        f"{os.fspath(file) if not isinstance(file, int) else file!r} cannot be opened for "
        f"writing in virtual time: {FILES}, or permit it by allow=['files']"
    )


def _noted(file: Any) -> Any:
    """The file, which its process closes at its end; what a buffer holds is for its owner."""
    task = current_task()
    if task is not None and isinstance(file, io.FileIO):
        task.process.raw_files.add(file)
    return file


def open_descriptor(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
    """Open a file by its flags; only for reading, unless the world allows files."""
    if flags & WRITING and path != os.devnull and not _allows("files"):
        raise Refused(
            f"{os.fspath(path)!r} cannot be opened for writing in virtual time: {FILES}, or "
            "permit it by allow=['files']"
        )
    descriptor = _os_open(path, flags, *args, **kwargs)
    task = current_task()
    if task is not None:
        task.process.files[descriptor] = identity_of(descriptor)
    return descriptor


class RefusingPopen(subprocess.Popen[Any]):
    """`subprocess.Popen`, refused within a world."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not _allows("processes"):
            raise Refused(
                f"a subprocess cannot be started in virtual time: {FORKS}, or permit it by "
                "allow=['processes']"
            )
        super().__init__(*args, **kwargs)
