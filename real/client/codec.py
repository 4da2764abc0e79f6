"""The model's operations as requests of kazoo, and kazoo's responses as the model's answers.

kazoo's public calls check paths, add defaults and wrap answers; a live run has to ask
exactly what the simulation asks. So the requests beneath those calls are used, one table
of them. Those that kazoo lacks are written here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kazoo import exceptions
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, Id

from model import errors
from model.answers import Seen, Stat
from model.errors import Failure
from model.operations import (
    Acl,
    AddWatch,
    Check,
    Create,
    Delete,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    Operation,
    RemoveWatches,
    SetAcl,
    SetData,
    Sync,
)

EPHEMERAL, SEQUENTIAL = 1, 2


@dataclass(frozen=True)
class GetEphemeralsRequest:
    """Opcode 103: the ephemerals of my own session, below a path."""

    path: str
    type: ClassVar[int] = 103

    def serialize(self) -> bytes:
        """The request as bytes."""
        return bytes(wire.write_string(self.path))

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[str]:
        """The response: paths."""
        (count,) = struct.unpack_from("!i", data, offset)
        offset += 4
        paths = []
        for _ in range(max(count, 0)):
            path, offset = wire.read_string(data, offset)
            paths.append(path)
        return paths


@dataclass(frozen=True)
class AddWatchRequest:
    """Opcode 106: leave a watch that stays, on one znode or on all below it too."""

    path: str
    recursive: bool
    type: ClassVar[int] = 106

    def serialize(self) -> bytes:
        """The request as bytes."""
        return bytes(wire.write_string(self.path)) + struct.pack("!i", self.recursive)

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> None:
        """The response is empty."""


@dataclass(frozen=True)
class RemoveWatchesRequest:
    """Opcode 18: take back every watch of this session at a path."""

    path: str
    type: ClassVar[int] = 18

    def serialize(self) -> bytes:
        """The request as bytes."""
        return bytes(wire.write_string(self.path)) + struct.pack("!i", ANY_KIND)

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> None:
        """The response is empty."""


ANY_KIND = 3

Watcher = Callable[[Any], None]


def request_for(operation: Operation[Any], prefix: str, watcher: Watcher) -> Any:
    """The request of kazoo for an operation; paths are below `prefix`, a chroot or nothing."""
    path = f"{prefix}{operation.path}"
    if prefix and operation.path == "/" and not isinstance(operation, Multi):
        path = prefix  # no path but the root ends in a slash
    return REQUESTS[type(operation)](operation, path, watcher)


def _flags(operation: Create) -> int:
    return EPHEMERAL * operation.ephemeral | SEQUENTIAL * operation.sequential


def _acls(acl: tuple[Acl, ...]) -> list[ACL]:
    return [ACL(entry.permissions, Id(entry.scheme, entry.identity)) for entry in acl]


def _multi(operation: Multi, path: str, watcher: Watcher) -> Any:
    prefix = path[: len(path) - len(operation.path)]
    return wire.Transaction([request_for(one, prefix, watcher) for one in operation.operations])


REQUESTS: dict[type[Operation[Any]], Callable[[Any, str, Watcher], Any]] = {
    Create: lambda ask, path, _: wire.Create(path, ask.data, _acls(ask.acl), _flags(ask)),
    Delete: lambda ask, path, _: wire.Delete(path, ask.version),
    SetData: lambda ask, path, _: wire.SetData(path, ask.data, ask.version),
    SetAcl: lambda ask, path, _: wire.SetACL(path, _acls(ask.acl), ask.version),
    Check: lambda ask, path, _: wire.CheckVersion(path, ask.version),
    Exists: lambda ask, path, watcher: wire.Exists(path, watcher if ask.watch else None),
    GetData: lambda ask, path, watcher: wire.GetData(path, watcher if ask.watch else None),
    GetChildren: lambda ask, path, watcher: wire.GetChildren(
        path, watcher if ask.watch else None
    ),
    GetAcl: lambda ask, path, _: wire.GetACL(path),
    GetEphemerals: lambda ask, path, _: GetEphemeralsRequest(path),
    Sync: lambda ask, path, _: wire.Sync(path),
    AddWatch: lambda ask, path, _: AddWatchRequest(path, ask.recursive),
    RemoveWatches: lambda ask, path, _: RemoveWatchesRequest(path),
    Multi: _multi,
}
"""Operation -> its request."""


# --- answers ---------------------------------------------------------------------------


class Answers:
    """Makes answers of one session's responses: whose an ephemeral is depends on the session."""

    def __init__(self, prefix: str, session: int) -> None:
        self.prefix = prefix
        self.session = session

    def of(self, operation: Operation[Any], response: Any) -> Any:
        """The answer to an operation."""
        if isinstance(response, Exception):
            return failure(operation, response)
        kind = type(operation)
        if kind is Multi:
            return self._of_multi(operation, response)  # type: ignore[arg-type]
        if kind is Create or kind is Sync:
            return self._local(response)
        if kind in NOTHING_TO_SAY:
            return None
        if kind is SetData:
            return response.version
        if kind is SetAcl:
            return response.aversion
        if kind is Exists:
            return None if response is None else self._seen(None, response)
        if kind is GetData:
            return self._seen(*response)
        if kind is GetAcl:
            entries, _ = response
            return tuple(Acl(one.perms, one.id.scheme, one.id.id) for one in entries)
        if kind is GetEphemerals:
            return tuple(sorted(map(self._local, response)))
        assert kind is GetChildren, f"{kind.__name__} has no answer here"
        return tuple(response)

    def _of_multi(self, multi: Multi, responses: list[Any]) -> Any:
        for index, (part, response) in enumerate(zip(multi.operations, responses, strict=True)):
            if isinstance(response, Exception) and not _is_fallout(response):
                cause = failure(part, response)
                return Failure(errors.TransactionFailed, part.path, index=index, cause=cause)
        return tuple(map(self.of, multi.operations, responses))

    def _local(self, path: str) -> str:
        """A path without the chroot; a path in a multi has lost it already."""
        return path[len(self.prefix) :] or "/" if path.startswith(self.prefix) else path

    def _seen(self, data: bytes | None, stat: ZnodeStat) -> Seen:
        mine = stat.ephemeralOwner != 0 and stat.ephemeralOwner == self.session
        return Seen(data, stat.version, mine, Stat(*stat))


NOTHING_TO_SAY = frozenset({Delete, Check, AddWatch, RemoveWatches})


def _is_fallout(error: Exception) -> bool:
    """Whether this stands for an operation of a multi that another one took down."""
    return isinstance(error, exceptions.RolledBackError | exceptions.RuntimeInconsistency)


FAILURES: dict[int, type[errors.ZooKeeperError]] = {
    kind.code: kind for kind in errors.ZooKeeperError.__subclasses__() if kind.code
}
"""The protocol's number of an error -> the model's class."""


def failure(operation: Operation[Any], error: Exception) -> Failure:
    """What a program is told of an error of kazoo."""
    code = getattr(error, "code", None)
    if isinstance(error, exceptions.ConnectionClosedError):
        return Failure(errors.ConnectionLoss, operation.path)
    kind = FAILURES.get(code) if isinstance(code, int) else None
    if kind is None:
        raise UnknownError(operation, error) from error
    return Failure(kind, operation.path)


class UnknownError(RuntimeError):
    """kazoo raised something that stands for no error of ZooKeeper."""

    def __init__(self, operation: Operation[Any], error: Exception) -> None:
        super().__init__(
            f"{type(operation).__name__} at {operation.path} ended with {error!r}, which is no "
            "error that a server of ZooKeeper answers with"
        )
