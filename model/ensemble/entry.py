"""One entry of an ensemble's history: a write, or the begin or end of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.zookeeper.tree import Tree, Written

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.server import Server


# The attributes of an enum are found slowly, and each write reads this one.
_CLOSE_SESSION = Opcode.CLOSE_SESSION


class Entry(Struct):
    """A write in the order of the leader, and what follows from it."""

    before: Tree
    """The tree that the write found."""
    written: Written
    """The tree that it left, the answer, and the changes."""
    session: int
    xid: int
    """The client's number for the request; 0 if a server made it."""
    opcode: int
    operation: Any
    """The operation; the timeout in ms for the begin of a session, None for its end."""
    wall_ms: int
    origin: Server | None = None
    """The server whose client waits for the answer."""
    done: Callable[[Entry], None] | None = None
    """Called when the origin has applied the entry."""

    @property
    def zxid(self) -> int:
        """The number of the entry."""
        return self.written.tree.zxid

    @property
    def ends_session(self) -> bool:
        """Whether it is the end of a session."""
        return self.opcode == _CLOSE_SESSION
