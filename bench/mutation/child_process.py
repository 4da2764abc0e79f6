"""A child process that imports an edited module in place of the original.

The parent imports nothing of watchkeeper, only the packages that watchkeeper needs, because
these take most of the time. Each child is a fork of it and imports watchkeeper anew, with the
edited module, so no object of the original module exists there.
"""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, TypeVar

from bench.mutation.catalogue import Mutant

T = TypeVar("T")
R = TypeVar("R")

NEEDED = ("numpy", "networkx", "simpy", "msgspec", "pydantic", "yaml", "immutables", "rich")
NEEDED_BY_TESTS = ("pytest", "hypothesis", "xdist.scheduler", "_pytest.pytester")
MOST_BYTES = 4 * 2**30
MOST_CPU_S = 900
"""The CPU time of a child, whatever it does."""


class RunsOn(BaseException):
    """A killer has used up its CPU time: the mutant loops.

    It is no Exception, so that no handler of the judged code takes it.
    """


def load_needed(*, tests: bool) -> None:
    """Import what children share."""
    for name in (*NEEDED, *(NEEDED_BY_TESTS if tests else ())):
        import_module(name)


class EditedModule(MetaPathFinder, Loader):
    """Imports one module from an edited source."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name = name
        self.path = path
        self.code = compile(source, str(path), "exec")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the edited module, and no other."""
        if fullname != self.name:
            return None
        return spec_from_file_location(fullname, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the edited source."""
        exec(self.code, module.__dict__)


def import_edited(mutant: Mutant) -> None:
    """Have this process import a mutant in place of its module."""
    import_source(mutant.module.imported_as, mutant.module.path, mutant.source())


def import_source(name: str, path: Path, source: str) -> None:
    """Have this process import a module from a source; it must not be imported yet."""
    assert name not in sys.modules, f"{name} is imported already"
    sys.meta_path.insert(0, EditedModule(name, path, source))


@contextmanager
def within_cpu(seconds: float) -> Iterator[None]:
    """Raise RunsOn once the block has taken so much CPU time, and again each second."""

    def end(number: int, frame: FrameType | None) -> None:
        raise RunsOn

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


# --- children --------------------------------------------------------------------------


def in_children(
    work: Callable[[T], R], tasks: Sequence[T], jobs: int
) -> Iterator[tuple[T, R | None]]:
    """Do each task in a child of its own; None for a child that ended without a result."""
    context = get_context("fork")
    waiting = list(reversed(tasks))
    running: dict[Connection, tuple[T, Any]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            task = waiting.pop()
            ours, theirs = context.Pipe(duplex=False)
            child = context.Process(target=_send, args=(theirs, work, task))
            child.start()
            theirs.close()
            running[ours] = (task, child)
        for ready in wait(list(running)):
            assert isinstance(ready, Connection), "only pipes are waited for"
            task, child = running.pop(ready)
            result: R | None
            try:
                result = ready.recv()
            except EOFError:
                result = None
            ready.close()
            child.join()
            yield task, result


def _send(pipe: Connection, work: Callable[[T], R], task: T) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    pipe.send(work(task))
    pipe.close()
