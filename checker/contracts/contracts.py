"""The contract of a program that is searched, and the errors that name a breach.

A turn depends on its state and on the answers it is given, and on nothing else: no clock, no
random number, no order of a set, no global that changes, no field of a Stat but the version.
Equal states behave alike.
"""

from __future__ import annotations

import sys
from typing import Any

from msgspec import NODEFAULT
from msgspec.structs import fields

from watchkeeper.checker.contracts.source_lines import is_library, own_line_of
from watchkeeper.model.actor.events import Stat
from watchkeeper.model.actor.operations import (
    UNLIMITED_MS,
    AddWatch,
    Check,
    CheckWatches,
    CountDescendants,
    Create,
    DeleteContainer,
    Effect,
    Multi,
    MultiRead,
    Pipelined,
    RemoveWatches,
)
from watchkeeper.model.actor.program import Ended


class BrokenContract(Exception):
    """A program cannot be searched; the text says why, and where in the source."""


class NotHashable(BrokenContract):
    """A state cannot be compared with others."""

    def __init__(self, name: str, state: Any, error: TypeError) -> None:
        super().__init__(
            f"the state of {name}, {state!r}, cannot be compared with others ({error}); "
            "make it a frozen value of frozen values: tuples in place of lists, dicts and sets"
        )


class NotDeterministic(BrokenContract):
    """One history led to two different effects."""

    def __init__(self, name: str, place: str, outcome: Any, repeated: Any) -> None:
        super().__init__(
            f"{name} is not deterministic {place}: with the same state and the same answers "
            f"it came to {outcome_text(outcome)}, and then to {outcome_text(repeated)}; "
            "a turn may depend on "
            "its state and its answers alone (no global that changes, no order of a set)"
        )


class UnequalStates(BrokenContract):
    """Two equal states behave differently."""

    def __init__(
        self,
        name: str,
        first: Any,
        other: Any,
        answers: tuple[Any, ...],
        outcome: Any,
        other_outcome: Any,
    ) -> None:
        history = f"after the answers {answers!r} " if answers else ""
        super().__init__(
            f"two states of {name} are equal and behave differently:\n"
            f"  {first!r} {history}comes to {outcome_text(outcome)}\n"
            f"  {other!r} {history}comes to {outcome_text(other_outcome)}\n"
            "a field that a turn depends on has to count when states are compared"
        )


class IteratesOverSet(BrokenContract):
    """A program iterates over a set, whose order differs from one process to the next."""


class TurnNeverEnds(BrokenContract):
    """A turn never ends."""

    def __init__(self, name: str, place: str, times: int) -> None:
        super().__init__(f"{name} has requested {times:,} effects in one turn, {place}")


class Forbidden(BrokenContract):
    """A program uses something that no world can reproduce."""


class NeverWaits(BrokenContract):
    """A program runs for ever without waiting for anything."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__(
            f"{name} runs for ever {place} without waiting for a notification or an answer"
        )


def outcome_text(outcome: Any) -> str:
    """Describe where running a turn has led."""
    if not outcome.is_over:
        return _effect_text(outcome.effect)
    if isinstance(outcome.state, Ended):
        return f"its end, {outcome.state.reason!r}"
    return f"the end of the turn, with {outcome.state!r}"


def _effect_text(effect: Any) -> str:
    """Describe an effect without the fields that have their defaults."""
    if not isinstance(effect, Effect):
        return repr(effect)
    texts = []
    for field in fields(effect):
        value = getattr(effect, field.name)
        if field.default is NODEFAULT or value != field.default:
            texts.append(f"{field.name}={value!r}")
    return f"{type(effect).__name__}({', '.join(texts)})"


def refuse_unless_coroutine(name: str, turn: Any, made: Any) -> None:
    """Raise Forbidden where a turn is not a coroutine."""
    if not hasattr(made, "send") or not hasattr(made, "close"):
        raise Forbidden(
            f"the turn of {name}, {turn!r}, has to be a coroutine function (async def); it "
            f"gives {made!r}"
        )


def refuse_unless_effect(name: str, effect: Any, coroutine: Any) -> None:
    """Raise Forbidden where a turn awaits what no world, or no search, can answer."""
    if not isinstance(effect, Effect):
        raise Forbidden(
            f"{name} awaits {type(effect).__name__!r} {place_of(coroutine)}, which is not an "
            "operation; protocol code may only await what watchkeeper.model.actor.operations "
            "and watchkeeper.model.actor.effects provide"
        )
    for operation in effect.operations if isinstance(effect, Pipelined) else (effect,):
        why = _why_not_explored(operation)
        if why is not None:
            raise Forbidden(
                f"{name} requests {type(operation).__name__} {place_of(coroutine)}, which "
                f"cannot be explored: {why}"
            )


def _why_not_explored(operation: Effect[Any]) -> str | None:
    parts = operation.operations if isinstance(operation, Multi) else (operation,)
    if any(isinstance(part, Create) and part.lifetime_ms != UNLIMITED_MS for part in parts):
        return "the search has no server that deletes containers and znodes with a TTL"
    return NOT_EXPLORED.get(type(operation))


_STAYS = "persistent watches are not modelled; set a watch with each read"
NOT_EXPLORED: dict[type[Effect[Any]], str] = {
    AddWatch: _STAYS,
    CheckWatches: _STAYS,
    RemoveWatches: _STAYS,
    CountDescendants: "the search does not know which writes change the number",
    MultiRead: "the search knows several reads as a pipelined batch alone; await zk.pipelined",
    DeleteContainer: "servers request it, and no program does",
    Check: "it is a part of a multi, and nothing by itself",
}
"""What no search can answer, and why."""


def refuse_or_annotate(name: str, state: Any, answers: tuple[Any, ...], error: Exception) -> None:
    """Turn an error of a turn into Forbidden where it is a breach; annotate any other error."""
    if isinstance(error, BrokenContract):
        return
    message = str(error)
    if (isinstance(error, TypeError) and "await" in message) or message == NO_LOOP:
        raise Forbidden(
            f"{name} awaits at {own_line_of(error)} what is not an operation ({message}); "
            "protocol code may only await what watchkeeper.model.actor.operations and "
            "watchkeeper.model.actor.effects provide"
        ) from error
    error.add_note(f"in a turn of {name}, at {own_line_of(error)}")
    error.add_note(
        f"begun with {state!r}" + (f", after the answers {answers!r}" if answers else "")
    )


NO_LOOP = "no running event loop"
"""What asyncio says of its own awaitables where it does not run."""


def place_of(coroutine: Any) -> str:
    """Return the innermost line of the program's own at which a coroutine is suspended."""
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
    """A Stat of which no field may be read."""

    def __getattribute__(self, field: str) -> Any:
        if field.startswith("__"):
            return object.__getattribute__(self, field)
        frame = sys._getframe(1)
        raise Forbidden(
            f"Stat.{field} is read at {frame.f_code.co_filename}:{frame.f_lineno}; a search "
            "treats znodes that differ only in it as the same; of a znode, protocol code may "
            "read the data, the version, and whether it is mine"
        )


UNREAD: Stat = _Unread()  # type: ignore[assignment]
