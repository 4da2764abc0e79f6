"""What a world runs: a program is a first memory and a turn that is taken again and again.

    async def turn(zk: ZooKeeper, me: Me, memory: Memory) -> Memory | Ended: ...

A turn begins with nothing but its memory, asks its world for everything else, and ends
with the memory of the next turn. An error that it does not catch ends the turn too, and
then the memory is what it was before. So what a program knows beyond one turn is in its
memory, and memory must hold only what stays true when a turn is cut short.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from model.operations import ZooKeeper


@dataclass(frozen=True, slots=True)
class Ended:
    """A program is over. `failed` says that its operator would be alarmed."""

    reason: str
    failed: bool = False


Turn = Callable[[ZooKeeper, Any, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Program:
    """A program and who runs it: `turn(zk, me, memory)`, from a first memory."""

    turn: Turn
    me: Any
    first_memory: Any
