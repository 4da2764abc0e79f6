"""What protocol code may ask of ZooKeeper.

Rules
  Every class here is a frozen value. Awaiting it yields that value to whichever driver
  runs the coroutine, and the driver sends the answer back. Nothing here knows which
  world answers, and nothing here may do I/O.

How it works
  `Ask.__await__` is the only place where protocol code meets a world. A driver calls
  `coroutine.send(answer)` and receives the next ask. An answer that is a `Failure` is
  raised, afresh, where the operation was awaited; inside a pipelined batch it is handed
  over as a value, since the other operations of the batch have answers of their own.

  An operation says what it is *for* (`purpose`). Worlds do not read it to answer; faults
  aim at it ("when billing/1 asks to claim") and traces show it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Struct

from model.answers import Seen
from model.errors import Failure

T = TypeVar("T")

Purpose = Literal[
    "register",
    "fence",
    "watch members",
    "watch brokers",
    "watch topics",
    "read self",
    "read members",
    "read brokers",
    "read partitions",
    "read claims",
    "await owner",
    "release",
    "claim",
    "read offsets",
    "commit",
    "announce topic",
    "administer",
    "other",
]
"""What an operation is for. Scenario files aim faults at these words."""

ANY_VERSION = -1
"""Deletes, sets and checks that name this version do not compare versions."""


class Ask(Struct, Generic[T], frozen=True):
    """Anything a program awaits: the driver answers it."""

    def __await__(self) -> Generator[Ask[Any], Any, T]:
        answer: Any = yield self
        if type(answer) is Failure:
            raise answer.error()
        return answer  # type: ignore[no-any-return]


class Operation(Ask[T], frozen=True):
    """A request that travels to ZooKeeper. Every one has a path and a purpose."""

    if TYPE_CHECKING:

        @property
        def path(self) -> str:
            """The path it is about."""

        @property
        def purpose(self) -> Purpose:
            """What it is for."""


class Acl(Struct, frozen=True):
    """A right granted: to `world:anyone`, or to a digest the session has shown."""

    permissions: int
    scheme: str = "world"
    identity: str = "anyone"


READ, WRITE, CREATE, DELETE, ADMIN = 1, 2, 4, 8, 16
OPEN = (Acl(READ | WRITE | CREATE | DELETE | ADMIN),)


class Create(Operation[str], frozen=True):
    """Create a znode; answered with its path, which a sequential one only learns so."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False
    acl: tuple[Acl, ...] = OPEN
    purpose: Purpose = "other"


class Delete(Operation[None], frozen=True):
    """Delete a znode that has no children."""

    path: str
    version: int = ANY_VERSION
    purpose: Purpose = "other"


class SetData(Operation[int], frozen=True):
    """Replace a znode's data; answered with the version it has now."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION
    purpose: Purpose = "other"


class SetAcl(Operation[int], frozen=True):
    """Replace a znode's access control list; answered with its new ACL version."""

    path: str
    acl: tuple[Acl, ...]
    version: int = ANY_VERSION
    purpose: Purpose = "other"


class Check(Operation[None], frozen=True):
    """Refuse the multi it stands in unless the znode has this version."""

    path: str
    version: int = ANY_VERSION
    purpose: Purpose = "other"


class Exists(Operation[Seen | None], frozen=True):
    """Look whether there is a znode; a watch is left whether or not there is."""

    path: str
    watch: bool = False
    purpose: Purpose = "other"


class GetData(Operation[Seen], frozen=True):
    """Read a znode; a watch is left if there is one."""

    path: str
    watch: bool = False
    purpose: Purpose = "other"


class GetChildren(Operation[tuple[str, ...]], frozen=True):
    """List the names below a znode, in no order that means anything."""

    path: str
    watch: bool = False
    purpose: Purpose = "other"


class GetAcl(Operation[tuple[Acl, ...]], frozen=True):
    """Read a znode's access control list."""

    path: str
    purpose: Purpose = "other"


class GetEphemerals(Operation[tuple[str, ...]], frozen=True):
    """List the paths of my session's ephemerals that begin with `path` (opcode 103)."""

    path: str
    purpose: Purpose = "other"


class AddWatch(Operation[None], frozen=True):
    """Leave a watch that stays: on this znode, or on all below it too."""

    path: str
    recursive: bool = False
    purpose: Purpose = "other"


class RemoveWatches(Operation[None], frozen=True):
    """Take back every watch this session left at the path."""

    path: str
    purpose: Purpose = "other"


class Sync(Operation[str], frozen=True):
    """Bring the server I talk to up to date with its leader; answered with the path."""

    path: str
    purpose: Purpose = "other"


PartOfMulti = Create | Delete | SetData | Check
"""What may stand in a multi."""


class Multi(Operation[tuple[Any, ...]], frozen=True):
    """Do all of these or none; answered with the answer of each."""

    operations: tuple[PartOfMulti, ...]
    purpose: Purpose = "other"

    @property
    def path(self) -> str:
        """Where the first operation that writes is aimed, for traces and errors."""
        for operation in self.operations:
            if not isinstance(operation, Check):
                return operation.path
        return self.operations[0].path if self.operations else ""


Write = (Create, Delete, SetData, SetAcl, Multi)
"""The operations that change something and take a zxid, even when they fail."""
WRITES: frozenset[type[Operation[Any]]] = frozenset(Write)
"""The same, to look up an operation's class in."""


class Pipelined(Ask[tuple[Any, ...]], frozen=True):
    """Ask for independent operations at once; answered with a value or a Failure for each.

    What befalls the connection is raised for the whole batch: how much of it was done is
    then not known.
    """

    operations: tuple[Operation[Any], ...]

    @property
    def purpose(self) -> Purpose:
        """The purpose of its first operation."""
        return self.operations[0].purpose if self.operations else "other"

    @property
    def purposes(self) -> tuple[Purpose, ...]:
        """What its operations are for, each purpose once, in order."""
        return tuple(dict.fromkeys(operation.purpose for operation in self.operations))


class ZooKeeper:
    """The door through which a program asks ZooKeeper. It holds no state at all."""

    __slots__ = ()

    def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
        purpose: Purpose = "other",
    ) -> Create:
        """Create a znode."""
        return Create(path, data, ephemeral, sequential, OPEN, purpose)

    def delete(
        self, path: str, *, version: int = ANY_VERSION, purpose: Purpose = "other"
    ) -> Delete:
        """Delete a znode."""
        return Delete(path, version, purpose)

    def set(
        self,
        path: str,
        data: bytes | None,
        *,
        version: int = ANY_VERSION,
        purpose: Purpose = "other",
    ) -> SetData:
        """Replace the data of a znode."""
        return SetData(path, data, version, purpose)

    def exists(self, path: str, *, watch: bool = False, purpose: Purpose = "other") -> Exists:
        """Look whether a znode exists, and perhaps leave a watch."""
        return Exists(path, watch, purpose)

    def get(self, path: str, *, watch: bool = False, purpose: Purpose = "other") -> GetData:
        """Read a znode, and perhaps leave a watch."""
        return GetData(path, watch, purpose)

    def get_children(
        self, path: str, *, watch: bool = False, purpose: Purpose = "other"
    ) -> GetChildren:
        """List the children of a znode, and perhaps leave a watch."""
        return GetChildren(path, watch, purpose)

    def get_ephemerals(self, prefix: str, *, purpose: Purpose = "other") -> GetEphemerals:
        """List my own session's ephemerals below a path."""
        return GetEphemerals(prefix, purpose)

    def add_watch(
        self, path: str, *, recursive: bool = False, purpose: Purpose = "other"
    ) -> AddWatch:
        """Leave a watch that does not end when it fires."""
        return AddWatch(path, recursive, purpose)

    def sync(self, path: str, *, purpose: Purpose = "other") -> Sync:
        """Catch up with the leader."""
        return Sync(path, purpose)

    def multi(
        self,
        operations: Sequence[PartOfMulti],
        *,
        purpose: Purpose = "other",
    ) -> Multi:
        """Do all of these operations or none."""
        return Multi(tuple(operations), purpose)

    def pipelined(self, operations: Sequence[Operation[Any]]) -> Pipelined:
        """Ask for all of these at once."""
        return Pipelined(tuple(operations))
