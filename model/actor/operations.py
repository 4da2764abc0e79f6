"""The operations of ZooKeeper, as values that protocol code awaits.

Rules
  Every class here is a frozen value. Awaiting it yields the value to the driver that runs
  the coroutine, and the driver sends the answer back. Nothing here knows which world
  answers, and nothing here does I/O.

How it works
  `Effect.__await__` is the only place where protocol code meets a world. A driver calls
  `coroutine.send(answer)` and receives the next effect. An answer that is a `Failure` is
  raised as a new exception where the operation was awaited; inside a pipelined batch it is
  handed over as a value, since the other operations of the batch have answers of their own.

  An operation has a *purpose*. Worlds do not need it to answer; faults are triggered by it
  ("when billing/1 requests to claim") and traces show it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from msgspec import Struct

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import ZnodeView

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
    "find coordinator",
    "check fence",
    "commit",
    "announce topic",
    "administer",
    "elect",
    "raise epoch",
    "read cluster",
    "create state",
    "write state",
    "write isr",
    "announce isr",
    "reassign",
    "elect preferred",
    "read settings",
    "read cluster id",
    "create topic",
    "delete topic",
    "compact",
    "other",
]
"""The purposes of operations. Scenario files use these words to trigger faults.

To compact is what a broker does with segments of its own logs.
"""

QUIET_PURPOSES: frozenset[Purpose] = frozenset({"commit", "find coordinator", "check fence"})
"""The purposes of operations that an idle member makes without ceasing to be idle."""

ANY_VERSION = -1
"""With this version, deletes, sets and checks compare no versions."""

UNLIMITED_MS, CONTAINER_MS = 0, -1
"""The lifetime of a znode that only a delete ends, and of a container, which the server deletes
once its last child is gone."""

WatchKind = Literal["child", "data", "any", "persistent", "recursive"]
"""The kinds of watches that a client may check or remove; `any` stands for all of them."""


class Effect(Struct, Generic[T], frozen=True):
    """Anything that a program awaits; its driver answers it."""

    def __await__(self) -> Generator[Effect[Any], Any, T]:
        answer: Any = yield self
        if type(answer) is Failure:
            raise answer.error()
        return answer  # type: ignore[no-any-return]


class Operation(Effect[T], frozen=True):
    """A request to ZooKeeper. Each has a path and a purpose."""

    if TYPE_CHECKING:

        @property
        def path(self) -> str:
            """The path of the operation."""

        @property
        def purpose(self) -> Purpose:
            """The purpose of the operation."""


class Acl(Struct, frozen=True):
    """An entry of an access control list: permissions for an identity of a scheme."""

    permissions: int
    scheme: str = "world"
    identity: str = "anyone"


READ, WRITE, CREATE, DELETE, ADMIN = 1, 2, 4, 8, 16
OPEN = (Acl(READ | WRITE | CREATE | DELETE | ADMIN),)


class Create(Operation[str], frozen=True):
    """Create a znode; returns its path, which has a number added if `sequential`.

    A positive lifetime is a TTL: the server deletes the znode when it has had neither a change
    nor a child for so long. Raises NodeExists, NoNode (no parent), NoChildrenForEphemerals,
    InvalidACL, NoAuth.
    """

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False
    acl: tuple[Acl, ...] = OPEN
    purpose: Purpose = "other"
    lifetime_ms: int = UNLIMITED_MS


class Delete(Operation[None], frozen=True):
    """Delete a znode without children. Raises NoNode, NotEmpty, BadVersion, NoAuth."""

    path: str
    version: int = ANY_VERSION
    purpose: Purpose = "other"


class SetData(Operation[int], frozen=True):
    """Replace a znode's data; returns the new version. Raises NoNode, BadVersion, NoAuth."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION
    purpose: Purpose = "other"


class SetAcl(Operation[int], frozen=True):
    """Replace a znode's access control list; returns its new ACL version."""

    path: str
    acl: tuple[Acl, ...]
    version: int = ANY_VERSION
    purpose: Purpose = "other"


class Check(Operation[None], frozen=True):
    """Refuse the multi unless the znode has this version. Only inside of `Multi`."""

    path: str
    version: int = ANY_VERSION
    purpose: Purpose = "other"


class Exists(Operation[ZnodeView | None], frozen=True):
    """Return the view of a znode, or None; a watch is set whether or not it exists."""

    path: str
    watch: bool = False
    purpose: Purpose = "other"


class GetData(Operation[ZnodeView], frozen=True):
    """Read a znode; raises NoNode, and sets a watch only if the znode exists."""

    path: str
    watch: bool = False
    purpose: Purpose = "other"


class GetChildren(Operation[tuple[str, ...]], frozen=True):
    """List the names of the children, in no meaningful order: sort them. Raises NoNode."""

    path: str
    watch: bool = False
    purpose: Purpose = "other"


class GetAcl(Operation[tuple[Acl, ...]], frozen=True):
    """Read a znode's access control list."""

    path: str
    purpose: Purpose = "other"


class GetEphemerals(Operation[tuple[str, ...]], frozen=True):
    """List the paths of the own session's ephemerals that begin with `path` (opcode 103).

    Servers before 3.6 hang up on it, so the client of such a server does not send it, and
    answers Unimplemented by itself.
    """

    path: str
    purpose: Purpose = "other"


class AddWatch(Operation[None], frozen=True):
    """Set a watch that stays: on this znode, or on all below it too."""

    path: str
    recursive: bool = False
    purpose: Purpose = "other"


class RemoveWatches(Operation[None], frozen=True):
    """Remove the watches of one kind that this connection has at the path. Raises NoWatcher."""

    path: str
    purpose: Purpose = "other"
    kind: WatchKind = "any"


class CheckWatches(Operation[None], frozen=True):
    """Succeed if this connection has a watch of this kind at the path. Raises NoWatcher."""

    path: str
    purpose: Purpose = "other"
    kind: WatchKind = "any"


class CountDescendants(Operation[int], frozen=True):
    """Return the number of znodes below a znode, at any depth. Raises NoNode."""

    path: str
    purpose: Purpose = "other"


class DeleteContainer(Operation[None], frozen=True):
    """Delete an empty container, or a znode whose TTL has passed. Servers request it."""

    path: str
    purpose: Purpose = "other"


class Sync(Operation[str], frozen=True):
    """Bring the connected server up to date with its leader; returns the path."""

    path: str
    purpose: Purpose = "other"


PartOfMulti = Create | Delete | SetData | Check
"""The operations of a multi."""


class Multi(Operation[tuple[Any, ...]], frozen=True):
    """Do all of these operations or none; returns the result of each.

    Raises TransactionFailed with the index and the cause of the first failure.
    """

    operations: tuple[PartOfMulti, ...]
    purpose: Purpose = "other"

    @property
    def path(self) -> str:
        """The path of the first operation that writes, for traces and errors."""
        for operation in self.operations:
            if not isinstance(operation, Check):
                return operation.path
        return self.operations[0].path if self.operations else ""


Write = (Create, Delete, SetData, SetAcl, Multi, DeleteContainer)
"""The operations that take a zxid, even when they fail."""
WRITES: frozenset[type[Operation[Any]]] = frozenset(Write)
"""The same as a set of classes."""


PartOfMultiRead = GetData | GetChildren
"""The operations of a multi read."""


class MultiRead(Operation[tuple[Any, ...]], frozen=True):
    """Make several reads of one state; returns a result or a Failure for each."""

    operations: tuple[PartOfMultiRead, ...]
    purpose: Purpose = "other"

    @property
    def path(self) -> str:
        """The path of the first read, for traces and errors."""
        return self.operations[0].path if self.operations else ""


class Pipelined(Effect[tuple[Any, ...]], frozen=True):
    """Make independent requests in one batch; returns a result or a Failure for each.

    A lost connection or session is raised for the whole batch: how many of its operations
    took effect is then unknown.
    """

    operations: tuple[Operation[Any], ...]

    @property
    def purpose(self) -> Purpose:
        """The purpose of its first operation."""
        return self.operations[0].purpose if self.operations else "other"

    @property
    def purposes(self) -> tuple[Purpose, ...]:
        """The purposes of its operations, each once, in order."""
        return tuple(dict.fromkeys(operation.purpose for operation in self.operations))


class ZooKeeper:
    """The ZooKeeper API of a program: each method returns an operation to await.

    It holds no state. The classes of operations say what they return and raise.
    """

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
        """Return the view of a znode, or None if it does not exist."""
        return Exists(path, watch, purpose)

    def get(self, path: str, *, watch: bool = False, purpose: Purpose = "other") -> GetData:
        """Read a znode."""
        return GetData(path, watch, purpose)

    def get_children(
        self, path: str, *, watch: bool = False, purpose: Purpose = "other"
    ) -> GetChildren:
        """List the names of the children of a znode."""
        return GetChildren(path, watch, purpose)

    def get_ephemerals(self, prefix: str, *, purpose: Purpose = "other") -> GetEphemerals:
        """List the paths of the own session's ephemerals that begin with `prefix`."""
        return GetEphemerals(prefix, purpose)

    def add_watch(
        self, path: str, *, recursive: bool = False, purpose: Purpose = "other"
    ) -> AddWatch:
        """Set a watch that stays when it fires."""
        return AddWatch(path, recursive, purpose)

    def sync(self, path: str, *, purpose: Purpose = "other") -> Sync:
        """Let the connected server catch up with the leader."""
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
        """Make all of these requests in one batch."""
        return Pipelined(tuple(operations))
