"""A step of a schedule as the scripts of a page read it, with its answers in a few words."""

from __future__ import annotations

from typing import Any

import msgspec

from watchkeeper.model.counterexample.counterexample import ScheduledStep
from watchkeeper.model.counterexample.step_kind import StepKind

LOST_BY = frozenset(
    {
        StepKind.DISCONNECT,
        StepKind.CRASH,
        StepKind.LOST_REQUEST,
        StepKind.LOST_REPLY,
        StepKind.DELAYED_REQUEST,
        StepKind.SESSION_EXPIRED,
    }
)
"""The steps with which the notifications on their way to a process are lost."""

_ENCODER = msgspec.json.Encoder(order="deterministic")


def step_data(scheduled: ScheduledStep) -> dict[str, Any]:
    """Return a step as the scripts of the page read it."""
    operation, answer = scheduled.operation, scheduled.answer
    return {
        "node": scheduled.node,
        "does": scheduled.does,
        "then": scheduled.then,
        "text": scheduled.text,
        "fault": scheduled.fault or "",
        "operation": operation,
        "answer": short_answer(operation, answer) if _is_answered(scheduled) else "",
        "failed": _failed(answer),
        "full": _json(answer),
        "loses": scheduled.last in LOST_BY,
        "reads": [
            [name, short_answer(name, said), _failed(said), _json(said)]
            for name, said in scheduled.reads
        ],
    }


def _is_answered(scheduled: ScheduledStep) -> bool:
    return scheduled.answer is not None or (
        bool(scheduled.operation) and scheduled.last is StepKind.REPLY
    )


def _failed(answer: Any) -> bool:
    return isinstance(answer, dict) and "error" in answer


def _json(answer: Any) -> str:
    return "" if answer is None else _ENCODER.encode(answer).decode()


def short_answer(operation: str, answer: Any) -> str:
    """Shorten an answer to a few words."""
    word, _, path = operation.partition(" ")
    if answer is None:
        return "there is none" if word == "exists" else "done"
    if answer == path or (word == "multi" and isinstance(answer, list)):
        return "done"
    if isinstance(answer, dict):
        if "error" in answer:
            return str(answer["error"])
        if "data" in answer:
            data = "there is one" if word == "exists" else str(answer["data"])
            return f"{data}, mine" if answer.get("mine") else data
    if isinstance(answer, list):
        return "[" + ", ".join(short_answer("", part) for part in answer) + "]"
    return str(answer)
