"""Stops a program that computes, or waits outside of virtual time, for too long.

Virtual time stands still while a thread computes. A loop without end, or a wait in C code that
nothing replaces, would hang the run. In the main thread of the operating system a timer of the
system interrupts it, a wait for a real lock too; in another thread an exception is set from
outside, which takes effect at the next line of Python.
"""

from __future__ import annotations

import _thread
import ctypes
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from watchkeeper.virtual.threads.errors import Stuck
from watchkeeper.virtual.threads.scheduler import Scheduler

_start = threading.Thread.start
_set_handler = signal.signal
_set_timer = signal.setitimer
_sleep = time.sleep
_ident = _thread.get_ident
_main_ident = threading.main_thread().ident
OWN = "watchkeeper/virtual"


class Watchdog:
    """Watches one run, from `with` to its end."""

    def __init__(self, scheduler: Scheduler, *, limit_s: float) -> None:
        self._scheduler = scheduler
        self._limit_s = limit_s
        self._before_ring = (-1, -1)
        """The turns and the time when the timer rang last."""
        self._ident = _ident()
        self._before: Any = None
        self._is_over = False
        self._uses_timer = self._ident == _main_ident

    def __enter__(self) -> Watchdog:
        if self._uses_timer:
            self._before = _set_handler(signal.SIGALRM, self._look)
            _set_timer(signal.ITIMER_REAL, self._limit_s, self._limit_s)
        else:
            thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
            _start(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        if self._uses_timer:
            _set_timer(signal.ITIMER_REAL, 0)
            _set_handler(signal.SIGALRM, self._before)

    def _look(self, number: int, frame: FrameType | None) -> None:
        """The timer has rung: has a thread had a turn since it rang last?"""
        if self._has_moved():
            return
        raise Stuck(self._sentence(frame))

    def _has_moved(self) -> bool:
        before, self._before_ring = (
            self._before_ring,
            (self._scheduler.turn, self._scheduler.now_ns),
        )
        return before != self._before_ring

    def _watch(self) -> None:
        while not self._is_over:
            _sleep(self._limit_s)
            if not self._is_over and not self._has_moved():
                sentence = self._sentence(sys._current_frames().get(self._ident))
                error = _stuck(sentence)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._ident), ctypes.py_object(error)
                )
                return

    def _sentence(self, frame: FrameType | None) -> str:
        task = self._scheduler.running
        name = "the world" if task is None else f"{task.name} of {task.process.name}"
        while frame is not None and OWN in frame.f_code.co_filename:
            frame = frame.f_back
        where = "an unknown line"
        if frame is not None:
            code = frame.f_code
            where = f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}"
        return (
            f"{name} has computed for {self._limit_s:g} s of real time at {where}: virtual time "
            "stands still meanwhile; let the loop wait by time.sleep, an event or a queue, or "
            "raise watchdog_s if it has that much to compute"
        )


def _stuck(sentence: str) -> type[Stuck]:
    """A class of exceptions with this text: from outside only a class can be set."""
    return type("Stuck", (Stuck,), {"__str__": lambda self: sentence})
