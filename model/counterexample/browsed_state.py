"""A state of a search as people browse it: how all stand, and what may happen next."""

from __future__ import annotations

from dataclasses import dataclass, field

from watchkeeper.model.counterexample.counterexample import ProcessSnapshot, ScheduledStep

NOT_HELD = -1
"""The number of a state that a graph does not hold."""


@dataclass(frozen=True, slots=True)
class BrowsedZnode:
    """A znode, and whose session it ends with."""

    path: str
    data: str
    owner: str = ""
    """The process whose ephemeral znode it is; empty if it is persistent."""
    is_of_earlier_session: bool = False
    """Whether it belongs to a session that its owner does not use any more."""


@dataclass(frozen=True, slots=True)
class BrowsedClaim:
    """Who has claimed something, and with which session."""

    owner: str
    """The process, or UNKNOWN_OWNER."""
    is_of_earlier_session: bool = False
    """Whether it belongs to a session that its owner does not use any more."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A step that is enabled in a state."""

    scheduled: ScheduledStep
    violates: tuple[str, ...] = ()
    """The properties that are violated by the step itself, or in the state after it."""
    is_idle: bool = False
    """Whether it may come any number of times, and nothing waits for it."""
    leads_to: int = NOT_HELD
    """The number of the state after it in a graph; NOT_HELD where the graph lacks it."""


@dataclass(frozen=True, slots=True)
class BrowsedState:
    """A state, and the steps that are enabled in it."""

    snapshots: dict[str, ProcessSnapshot]
    znodes: tuple[BrowsedZnode, ...]
    choices: tuple[Choice, ...]
    disabled: tuple[str, ...]
    """Why other processes have no step, a sentence each."""
    claims: dict[str, BrowsedClaim] = field(default_factory=dict)
    """What is claimed -> its claim."""
    registry: dict[str, str] = field(default_factory=dict)
    """What the search shows of the registry, as in a step of a counterexample."""
    violates: tuple[str, ...] = ()
    """The properties that the state violates."""
    is_at_rest: bool = False
    """Whether nothing has to come any more."""
    is_complete: bool = True
    """Whether the choices are all that are enabled, and the znodes all there are. Otherwise the
    state is known from a path alone, with the step that the path takes."""


StateGraph = tuple[BrowsedState, ...]
"""States of a search, the first one first; choices lead to states by their numbers."""


@dataclass(frozen=True, slots=True)
class PathInGraph:
    """A path as the choices along it, and a graph that holds its states."""

    graph: StateGraph
    choices: tuple[int, ...]
