"""A program: an initial state, and a turn that a world runs again and again.

    async def turn(zk: ZooKeeper, me: Me, state: State) -> State | Ended: ...

A turn begins with nothing but its state, awaits effects for everything else, and returns the
state of the next turn. A ZooKeeper error that it does not catch ends the turn too; then the
state is the one from before. So what a program knows beyond a turn is in its state, and the
state must hold only what stays true when a turn is cut short at any effect. States have to
be immutable, hashable values.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from watchkeeper.model.actor.effects import Partition, Positions
from watchkeeper.model.actor.operations import ZooKeeper


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a program. `failed`: it ended because of an error that needs an operator."""

    reason: str
    failed: bool = False


Turn = Callable[[ZooKeeper, Any, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Program:
    """A turn, the configuration `me` that it is given, and the initial state."""

    turn: Turn
    me: Any
    initial_state: Any


async def _no_turn(zk: ZooKeeper, me: None, state: None) -> None:
    """Do nothing."""


NO_PROGRAM = Program(_no_turn, None, None)
"""The program of a process that has tasks alone."""


class Fetching(Protocol):
    """The fetching side of a member, which its program commands.

    Each world adds `fetch_exactly`, since each has its own way to wait.
    """

    def known_positions(self) -> Positions:
        """Return the offsets up to which the member has read, as far as it knows."""

    def forget(self, partitions: Iterable[Partition] | None) -> None:
        """Forget these positions; None: all of them."""

    def stop(self) -> None:
        """Fetch nothing any more."""
