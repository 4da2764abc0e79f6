"""The runners: this process, several processes of this machine, or Spark.

A runner gets a function and its arguments, and yields each result with its argument as soon as it
arrives. It knows nothing of storage and order: so all runners produce the same results.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from multiprocessing.connection import wait as wait_for_end
from types import TracebackType
from typing import Protocol, Self, TypeVar

from watchkeeper.pipeline.errors import PipelineProblem

Given = TypeVar("Given")
Made = TypeVar("Made")

AHEAD = 2
"""Pending calls for each worker, so that none waits for the next."""


class Runner(AbstractContextManager["Runner"], Protocol):
    """Runs calls in any order."""

    name: str
    workers: int
    """How much is done at once."""

    def each(
        self, work: Callable[[Given], Made], given: Iterable[Given]
    ) -> Iterator[tuple[Given, Made]]:
        """The result of each call, as it arrives."""
        ...


class Process:
    """Runs every call in this process."""

    name = "process"
    workers = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def each(
        self, work: Callable[[Given], Made], given: Iterable[Given]
    ) -> Iterator[tuple[Given, Made]]:
        """The result of each call, in order."""
        for task in given:
            yield task, work(task)


class Pool:
    """Runs calls in several processes of this machine.

    They are spawned and not forked: a fork copies locks that another thread holds. They ignore
    Ctrl-C, which is for the parent, and end when the parent has ended, even if it was killed.
    """

    name = "pool"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._others = multiprocessing.active_children()
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=error is None, cancel_futures=True)
        for process in multiprocessing.active_children() if error is not None else ():
            if process not in self._others:
                process.terminate()

    def each(
        self, work: Callable[[Given], Made], given: Iterable[Given]
    ) -> Iterator[tuple[Given, Made]]:
        """The result of each call, as it arrives."""
        try:
            yield from in_flight(
                lambda task: self._pool.submit(work, task), given, AHEAD * self.workers
            )
        except BrokenProcessPool:
            raise PipelineProblem(
                "a process of the pool was ended from outside, perhaps for want of memory; what "
                "was finished is kept, and the same command goes on (with --jobs N for fewer "
                "processes)"
            ) from None


def in_flight(
    submit: Callable[[Given], Future[Made]], given: Iterable[Given], most: int
) -> Iterator[tuple[Given, Made]]:
    """Keep so many calls pending, and yield those that are done."""
    left = iter(given)
    under_way: dict[Future[Made], Given] = {}
    while True:
        for task in left:
            under_way[submit(task)] = task
            if len(under_way) >= most:
                break
        if not under_way:
            return
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            yield under_way.pop(future), future.result()


def _begin() -> None:
    """The first call in a process of a pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a process of a pool was started by another one"
    wait_for_end([parent.sentinel])
    os._exit(1)
