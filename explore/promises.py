"""What a program promises that is searched, and what is said of one that breaks it.

A turn depends on its memory and on the answers it is given, and on nothing else: no clock,
no random number, no order of a set, no global that changes, no field of a Stat but the
version. Memories that are equal behave alike.
"""

from __future__ import annotations

import sys
from typing import Any

from msgspec import NODEFAULT
from msgspec.structs import fields

from explore.own_lines import is_library, own_line_of
from model.answers import Stat
from model.operations import AddWatch, Ask, Check, Pipelined, RemoveWatches
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


class OrderOfSet(BrokenPromise):
    """A program goes through a set, whose order differs from one process to the next."""


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
        return _said(came.ask)
    if isinstance(came.memory, Ended):
        return f"its end, {came.memory.reason!r}"
    return f"the end of the turn, with {came.memory!r}"


def _said(ask: Any) -> str:
    """What is asked for, without what goes without saying."""
    if not isinstance(ask, Ask):
        return repr(ask)
    told = []
    for one in fields(ask):
        value = getattr(ask, one.name)
        if one.default is NODEFAULT or value != one.default:
            told.append(f"{one.name}={value!r}")
    return f"{type(ask).__name__}({', '.join(told)})"


def refuse_unless_coroutine(name: str, turn: Any, made: Any) -> None:
    """Say so where a turn is no coroutine."""
    if not hasattr(made, "send") or not hasattr(made, "close"):
        raise Forbidden(
            f"the turn of {name}, {turn!r}, has to be a coroutine function (async def); it "
            f"gives {made!r}"
        )


def refuse_unless_ask(name: str, ask: Any, coroutine: Any) -> None:
    """Say so where something is awaited that no world, or no search, can answer."""
    if not isinstance(ask, Ask):
        raise Forbidden(
            f"{name} awaits {type(ask).__name__!r} {place_of(coroutine)}, which is not an "
            "operation; protocol code may only await what model.operations and model.asks "
            "provide"
        )
    for one in ask.operations if isinstance(ask, Pipelined) else (ask,):
        why = NOT_EXPLORED.get(type(one))
        if why is not None:
            raise Forbidden(
                f"{name} asks for {type(one).__name__} {place_of(coroutine)}, which cannot be "
                f"explored: {why}"
            )


_STAYS = "watches that stay are not modelled; leave one with each read"
NOT_EXPLORED: dict[type[Ask[Any]], str] = {
    AddWatch: _STAYS,
    RemoveWatches: _STAYS,
    Check: "it is a part of a multi, and nothing by itself",
}
"""What no search can answer, and why."""


def refuse_or_note(name: str, memory: Any, answers: tuple[Any, ...], error: Exception) -> None:
    """What an error that is none of ZooKeeper's says of a program; notes go with the others."""
    if isinstance(error, BrokenPromise):
        return
    said = str(error)
    if (isinstance(error, TypeError) and "await" in said) or said == NO_LOOP:
        raise Forbidden(
            f"{name} awaits at {own_line_of(error)} what is not an operation ({said}); protocol "
            "code may only await what model.operations and model.asks provide"
        ) from error
    error.add_note(f"in a turn of {name}, at {own_line_of(error)}")
    error.add_note(
        f"begun with {memory!r}" + (f", after the answers {answers!r}" if answers else "")
    )


NO_LOOP = "no running event loop"
"""What asyncio says of its own awaitables where it does not run."""


def place_of(coroutine: Any) -> str:
    """Where a suspended coroutine stands: the innermost line of the program's own."""
    found = ""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is None or frame.f_code.co_name == "__await__":
            break
        if not found or not is_library(frame.f_code.co_filename):
            found = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        coroutine = getattr(coroutine, "cr_await", None)
    return f"at {found}" if found else ""


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
