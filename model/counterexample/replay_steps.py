"""The single actions of a replay, in order, each with the result that is expected.

An action names sessions by the numbers of the schedule; the replay keeps the mapping to its
own sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Command, Fired, ZnodeView
from watchkeeper.model.actor.operations import (
    GetChildren,
    GetEphemerals,
    Multi,
    Operation,
    SetData,
)
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.text import described_answer, in_words

BEFORE = 0
"""The step number of what happens before the first step of a schedule."""


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One action of a replay."""

    step: int
    """The step of the schedule, from 1; a step may consist of several actions."""
    node: str
    does: StepKind
    about: Any = None
    """The operation, notification or partition, or the watches that are set again."""
    answer: Any = None
    """The expected answer of an operation."""
    session: int = 0
    """The session that it concerns."""
    session_after: int = 0
    """The session of the process afterwards."""
    events: Mapping[int, tuple[Fired, ...]] = field(default_factory=dict)
    """Session -> the events that it receives."""
    late_requests: tuple[Operation[Any], ...] = ()
    """The delayed writes, in the order in which they may be executed."""
    order: Command | None = None
    """The order that the application gives afterwards, and whose result it waits for."""

    @property
    def place(self) -> str:
        """Its place in the schedule, for messages."""
        return f"step {self.step}" if self.step else "before the first step"


@dataclass(frozen=True, slots=True)
class ExpectedZnode:
    """A znode that is expected at the end of a schedule."""

    path: str
    data: bytes | None
    version: int | None
    """None where any version will do."""
    session: int
    """The session of an ephemeral; 0 for a persistent znode."""


def agree(operation: Any, expected: Any, actual: Any) -> bool:
    """Whether two answers are equal, as far as the checker tells them apart.

    The order of names in a list means nothing, and how often an offset was written neither.
    """
    if isinstance(operation, Multi) and type(expected) is tuple and type(actual) is tuple:
        return len(expected) == len(actual) and all(
            map(agree, operation.operations, expected, actual)
        )
    is_list = isinstance(operation, GetChildren | GetEphemerals)
    if is_list and type(expected) is tuple and type(actual) is tuple:
        return sorted(expected) == sorted(actual)
    if type(actual) is not Failure and paths.parse_offset(operation.path) is not None:
        if isinstance(operation, SetData):
            return type(expected) is int
        if type(expected) is ZnodeView and type(actual) is ZnodeView:
            return (expected.data, expected.mine) == (actual.data, actual.mine)
    return bool(expected == actual)


def differs(action: ReplayStep, expected: Any, actual: Any) -> str:
    """Return the sentence for an answer that differs."""
    return (
        f"{action.place}, {action.node}: {describe(action.about)} is answered with "
        f"{described_answer(actual)}; the schedule says {described_answer(expected)}"
    )


def describe(about: Any) -> str:
    """Describe an operation, a notification or a partition."""
    return in_words(about) or "nothing"
