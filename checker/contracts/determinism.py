"""Keeps clocks and random numbers out of a turn, and names the line that calls one.

`guarded` is fast: it replaces the functions that are called most. `watched` sees every call
of a function that is not written in Python, by whatever name it was imported, and is slow; so
of the two runs that every history gets, one is watched.

The garbage collector is off meanwhile: it may run at any line, and what it calls (Hypothesis,
for one, has it read a clock) is not the program's doing.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from types import FrameType
from typing import Any

from watchkeeper.checker.contracts.contracts import Forbidden
from watchkeeper.checker.contracts.source_lines import is_library, own_frame

CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
RANDOM = ("random", "randint", "randrange", "choice", "shuffle", "uniform", "getrandbits")

WATCHED = {
    **{("time", name): f"time.{name}" for name in CLOCKS},
    ("time", "localtime"): "time.localtime",
    ("time", "gmtime"): "time.gmtime",
    ("time", "ctime"): "time.ctime",
    ("time", "process_time"): "time.process_time",
    ("time", "sleep"): "time.sleep",
    ("datetime", "now"): "datetime.now",
    ("datetime", "utcnow"): "datetime.utcnow",
    ("datetime", "today"): "datetime.today",
    ("date", "today"): "date.today",
    ("Random", "random"): "random.random",
    ("Random", "getrandbits"): "random.getrandbits",
    ("posix", "urandom"): "os.urandom",
    ("nt", "urandom"): "os.urandom",
    ("_uuid", "generate_time_safe"): "uuid.uuid1",
}
"""Module or class, and name -> what a program has called, by the name it knows."""
FILES_AND_SOCKETS = {
    ("_io", "open"): "open",
    ("io", "open"): "open",
    ("posix", "open"): "os.open",
    ("nt", "open"): "os.open",
    ("socket", "connect"): "socket.connect",
    ("socket", "connect_ex"): "socket.connect",
    ("socket", "bind"): "socket.bind",
    ("_socket", "getaddrinfo"): "socket.getaddrinfo",
}
"""The same, of what may have another content, or another answer, in the next run."""
DIFFERS = {("builtins", "id"): "id", ("builtins", "hash"): "hash"}
"""The same, of what gives another number in each process; libraries may well call it."""


@contextmanager
def without_collector() -> Iterator[None]:
    """Meanwhile no garbage is collected."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def guarded(name: str) -> Iterator[None]:
    """While a turn runs, the clock and the dice are not where they used to be."""
    hidden: list[tuple[Any, str, Any]] = []
    with without_collector():
        for module, words in ((time, CLOCKS), (random, RANDOM)):
            for word in words:
                own = getattr(module, word)
                hidden.append((module, word, own))
                setattr(module, word, _refusing(name, f"{module.__name__}.{word}", own))
        try:
            yield
        finally:
            for module, word, own in hidden:
                setattr(module, word, own)


def _refusing(name: str, what: str, own: Any) -> Any:
    """Refuses callers in this thread; other threads, which run no turn, get the original."""
    turn = get_ident()

    def refuse(*given: Any, **named: Any) -> Any:
        if get_ident() == turn:
            raise refusal(name, what, sys._getframe(1))
        return own(*given, **named)

    return refuse


def refusal(name: str, what: str, frame: FrameType) -> Forbidden:
    """What is said of a call; `frame` is where it was made, or somewhere below."""
    own = own_frame(frame)
    instead = "protocol code uses effects instead: now_ms(), sleep(), fresh_id()"
    if what in DIFFERS.values():
        instead = "its answer differs from one process to the next"
    elif what in FILES_AND_SOCKETS.values():
        instead = "the next run may find something else there; read it before the run"
    return Forbidden(
        f"{name} calls {what}() at {own.f_code.co_filename}:{own.f_lineno}; {instead}"
    )


Watched = Mapping[tuple[str, str], str]


def _refuses_all(frame: FrameType) -> bool:
    return True


@contextmanager
def watched(
    name: str,
    words: Watched = WATCHED,
    refuses: Callable[[FrameType], bool] = _refuses_all,
) -> Iterator[None]:
    """While a turn runs, every call out of Python is looked at.

    `words` are the functions that it may not call; `refuses` says whether that goes for calls
    from a frame.
    """
    refused: list[Forbidden] = []

    def look(frame: FrameType, event: str, called: Any) -> None:
        if event != "c_call":
            return
        owner = str(getattr(called, "__module__", None) or getattr(called, "__qualname__", ""))
        word = (owner.partition(".")[0], called.__name__)
        what = words.get(word)
        if what is None and word in DIFFERS:
            code = frame.f_code
            if code.co_name != "__hash__" and not is_library(code.co_filename):
                what = DIFFERS[word]
        if what is not None and refuses(frame):
            refused.append(refusal(name, what, frame))
            raise refused[0]

    before = sys.getprofile()
    with without_collector():
        sys.setprofile(look)
        try:
            yield
        finally:
            sys.setprofile(before)
    if refused:
        raise refused[0]
