"""What a world is told that follows a schedule: one thing after the other, each with its answer.

A *cue* says what has to happen next and what is expected to come of it. It names sessions
by numbers of the schedule's own; a world keeps account of which of its sessions that is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from model import registry
from model.answers import Fired, Seen
from model.describe import described_answer, in_words
from model.errors import Failure
from model.operations import GetChildren, GetEphemerals, Multi, Operation, SetData

BEFORE = 0
"""The step of what happens before the first one of a schedule."""


@dataclass(frozen=True, slots=True)
class Cue:
    """One thing that has to happen now."""

    step: int
    """The step of the schedule, from 1; a step may have several cues."""
    node: str
    does: str
    """In the words of the exploration."""
    about: Any = None
    """The operation, the note, the partition, or the watches that are left again."""
    answer: Any = None
    """What an operation is answered with."""
    session: int = 0
    """The session that it is about."""
    session_after: int = 0
    """The one that the process has when it is done."""
    heard: Mapping[int, tuple[Fired, ...]] = field(default_factory=dict)
    """Session -> the events that are sent to it, of each session that can be told."""
    ghosts: tuple[Operation[Any], ...] = ()
    """Writes that are left behind, in the order in which they may arrive."""

    @property
    def place(self) -> str:
        """Where in the schedule it stands, for people."""
        return f"step {self.step}" if self.step else "before the first step"


@dataclass(frozen=True, slots=True)
class Kept:
    """A znode as it is expected to be when a schedule is over."""

    path: str
    data: bytes | None
    version: int | None
    """None where it does not count."""
    session: int
    """Whose ephemeral it is; 0 for nobody's."""


def agree(operation: Any, expected: Any, came: Any) -> bool:
    """Whether two answers say the same, as far as the exploration tells things apart.

    The order of names in a list means nothing, and how often an offset was written neither.
    """
    if isinstance(operation, Multi) and type(expected) is tuple and type(came) is tuple:
        return len(expected) == len(came) and all(
            map(agree, operation.operations, expected, came)
        )
    is_list = isinstance(operation, GetChildren | GetEphemerals)
    if is_list and type(expected) is tuple and type(came) is tuple:
        return sorted(expected) == sorted(came)
    if type(came) is not Failure and registry.parse_offset(operation.path) is not None:
        if isinstance(operation, SetData):
            return type(expected) is int
        if type(expected) is Seen and type(came) is Seen:
            return (expected.data, expected.mine) == (came.data, came.mine)
    return bool(expected == came)


def differs(cue: Cue, expected: Any, came: Any) -> str:
    """The sentence for an answer that is another."""
    return (
        f"{cue.place}, {cue.node}: {told(cue.about)} is answered with "
        f"{described_answer(came)}; the schedule says {described_answer(expected)}"
    )


def told(about: Any) -> str:
    """An ask, a note or a partition in a few words."""
    return in_words(about) or "nothing"
