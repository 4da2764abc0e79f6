"""What a program promises that is searched, and what is said of one that breaks it.

A turn depends on its memory and on the answers it is given, and on nothing else: no clock,
no random number, no order of a set, no global that changes, no field of a Stat but the
version. Memories that are equal behave alike.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from model.answers import Stat
from model.operations import Ask
from model.program import Ended


class BrokenPromise(Exception):
    """A program cannot be searched; the text says why, and where."""


class NotHashable(BrokenPromise):
    """A memory cannot be compared with others."""

    def __init__(self, name: str, memory: Any, error: TypeError) -> None:
        super().__init__(
            f"the memory of {name}, {memory!r}, cannot be compared with others ({error}); "
            "make it a frozen value of frozen values: tuples in place of lists, dicts and sets"
        )


class NotTheSame(BrokenPromise):
    """One history led to two different asks."""

    def __init__(self, name: str, place: str, came: Any, again: Any) -> None:
        super().__init__(
            f"{name} does not do the same twice {place}: with the same memory and the same "
            f"answers it came to {told(came)}, and then to {told(again)}; a turn may depend on "
            "its memory and its answers alone (no global that changes, no set's order)"
        )


class MemoryLies(BrokenPromise):
    """Two equal memories behave differently."""

    def __init__(
        self, name: str, one: Any, other: Any, answers: tuple[Any, ...], came: Any, differs: Any
    ) -> None:
        history = f"after the answers {answers!r} " if answers else ""
        super().__init__(
            f"two memories of {name} are equal and behave differently:\n"
            f"  {one!r} {history}comes to {told(came)}\n"
            f"  {other!r} {history}comes to {told(differs)}\n"
            "what a turn depends on has to count when memories are compared"
        )


class KeepsOnAsking(BrokenPromise):
    """A turn never ends."""

    def __init__(self, name: str, place: str, times: int) -> None:
        super().__init__(f"{name} has asked {times:,} times in one turn, {place}")


class Forbidden(BrokenPromise):
    """A program looked at something that no world answers for."""


class Busy(BrokenPromise):
    """A program goes on for ever without waiting for anything."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__(
            f"{name} goes on for ever {place} without waiting for a note or an answer"
        )


def told(came: Any) -> str:
    """What running a turn came to, in words."""
    if not came.is_over:
        return repr(came.ask)
    if isinstance(came.memory, Ended):
        return f"its end, {came.memory.reason!r}"
    return f"the end of the turn, with {came.memory!r}"


def refuse_unless_ask(name: str, ask: Any, coroutine: Any) -> None:
    """Say so where something is awaited that no world can answer."""
    if not isinstance(ask, Ask):
        raise Forbidden(
            f"{name} awaits {type(ask).__name__!r} {place_of(coroutine)}, which is not an "
            "operation; protocol code may only await what model.operations and model.asks "
            "provide"
        )


def place_of(coroutine: Any) -> str:
    """Where a suspended coroutine stands: the innermost line of the program's own."""
    found = ""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is None or frame.f_code.co_name == "__await__":
            break
        found = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        coroutine = getattr(coroutine, "cr_await", None)
    return f"at {found}" if found else ""


# --- the clock and the dice ------------------------------------------------------------

CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
DICE = ("random", "randint", "randrange", "choice", "shuffle", "uniform", "getrandbits")


@contextmanager
def guarded(name: str, coroutine: Any) -> Iterator[None]:
    """While a turn runs, the machine's clock and dice are out of its reach."""
    hidden: list[tuple[Any, str, Any]] = []
    for module, words in ((time, CLOCKS), (random, DICE)):
        for word in words:
            hidden.append((module, word, getattr(module, word)))
            setattr(module, word, _refusing(name, f"{module.__name__}.{word}"))
    try:
        yield
    finally:
        for module, word, own in hidden:
            setattr(module, word, own)


def _refusing(name: str, what: str) -> Any:
    def refuse(*given: Any, **named: Any) -> NoReturn:
        frame = sys._getframe(1)
        raise Forbidden(
            f"{name} calls {what}() at {frame.f_code.co_filename}:{frame.f_lineno}; protocol "
            "code asks its world instead: now_ms(), fresh_id()"
        )

    return refuse


class _Unread:
    """Stands for a Stat of which nothing may be read."""

    def __getattribute__(self, field: str) -> Any:
        if field.startswith("__"):
            return object.__getattribute__(self, field)
        frame = sys._getframe(1)
        raise Forbidden(
            f"Stat.{field} is read at {frame.f_code.co_filename}:{frame.f_lineno}; a search "
            "holds znodes to be the same that differ in it, so protocol code may read of a "
            "znode its data, its version, and whether it is mine"
        )


UNREAD: Stat = _Unread()  # type: ignore[assignment]
