"""Traces as text that a person can review: who asked what, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event

LEFT_OUT = frozenset({EventKind.FETCHED, EventKind.WAITING, EventKind.HOSTING})
"""Kinds that say nothing about the conversation with ZooKeeper."""


def transcript(events: Iterable[Event], *, from_us: int, to_us: int) -> str:
    """The conversation between two moments, a line an event, times from the first on."""
    lines = [
        f"{(event.t_us - from_us) / 1000:9.3f} ms  {event.node:12} {event.kind:21} "
        f"{line_of(event)}"
        for event in events
        if from_us <= event.t_us <= to_us and event.kind not in LEFT_OUT
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def line_of(event: Event) -> str:
    """What an event says, in one line."""
    detail = dict(event.detail)
    words = [event.place] if event.partition else []
    purpose = detail.pop("purpose", None)
    words += [_operation(detail)] if "op" in detail else []
    words += [f"{key}={_value(value)}" for key, value in detail.items()]
    if purpose is not None:
        words.append(f"[{purpose}]")
    return " ".join(word for word in words if word)


def _operation(detail: dict[str, Any]) -> str:
    name = detail.pop("op")
    detail.pop("number", None)
    parts = detail.pop("parts", None)
    if parts is None:
        return f"{name} {detail.pop('path', '')}".rstrip()
    return f"{name}({', '.join(' '.join(part) for part in parts)})"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_value(item)}' for key, item in value.items())}}}"
    return str(value)
