"""Snapshots of suspended coroutines: the position and the variables of each frame.

A loop within a turn that requests the same and is answered the same returns to where it was,
though its history is longer each time. Equal snapshots show this. The iterator of a `for` is
not visible in a frame, but its variable is. A loop that counts without any variable, as over
`itertools.repeat`, looks as if it never ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

Snapshot = tuple[tuple[str, int, Any], ...]
DEEPEST = 12


def snapshot_of(coroutine: Any) -> Snapshot:
    """Every frame of a suspended coroutine, the outermost first."""
    frames = []
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is None:
            break
        held = tuple((name, _seen(value)) for name, value in sorted(frame.f_locals.items()))
        frames.append((frame.f_code.co_qualname, frame.f_lasti, held))
        coroutine = coroutine.cr_await
    return tuple(frames)


def _seen(value: Any, depth: int = 0) -> Any:
    """A value by what it holds; what cannot be looked into is like nothing but itself."""
    if value is None or isinstance(value, bool | int | float | str | bytes | Enum | type):
        return value
    if depth > DEEPEST:
        return object()
    if isinstance(value, tuple | list):
        return (type(value).__name__, *(_seen(item, depth + 1) for item in value))
    if isinstance(value, Mapping):
        pairs = value.items()
        return ("mapping", *((_seen(k, depth + 1), _seen(v, depth + 1)) for k, v in pairs))
    if isinstance(value, Struct):
        return _fields(value, value.__struct_fields__, depth)
    if callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    names = [*getattr(type(value), "__slots__", ()), *getattr(value, "__dict__", {})]
    if not names and type(value).__module__ == "builtins":
        return object()
    return _fields(value, names, depth)


def _fields(value: Any, names: Any, depth: int) -> Any:
    held = ((name, _seen(getattr(value, name), depth + 1)) for name in names if name != "stat")
    return (type(value).__qualname__, *held)
