"""A state of a search as people browse it: how all stand, and what may happen next."""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.model.counterexample.counterexample import ProcessSnapshot, ScheduledStep


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
class Choice:
    """A step that is enabled in a state."""

    scheduled: ScheduledStep
    violates: tuple[str, ...] = ()
    """The properties that are violated by the step itself, or in the state after it."""
    is_idle: bool = False
    """Whether it may come any number of times, and nothing waits for it."""
    leads_to: int = -1
    """The number of the state after it, in a graph of all states; -1 without one."""


@dataclass(frozen=True, slots=True)
class BrowsedState:
    """A state, and the steps that are enabled in it."""

    snapshots: dict[str, ProcessSnapshot]
    znodes: tuple[BrowsedZnode, ...]
    choices: tuple[Choice, ...]
    disabled: tuple[str, ...]
    """Why other processes have no step, a sentence each."""
    violates: tuple[str, ...] = ()
    """The properties that the state violates."""
    is_at_rest: bool = False
    """Whether nothing has to come any more."""


StateGraph = tuple[BrowsedState, ...]
"""All states of a search, the first one first; choices lead to states by their numbers."""
