"""The model's operations as kazoo requests, and kazoo's responses as the model's answers.

kazoo's public calls check paths, add defaults and wrap answers; a live run has to send
exactly what the simulation sends. So this module uses the requests beneath those calls, in
one table, and defines those that kazoo lacks.
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

from watchkeeper.model.actor import errors
from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Stat, ZnodeView
from watchkeeper.model.actor.operations import (
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
    """Opcode 103: the ephemerals of this session below a path."""

    path: str
    type: ClassVar[int] = 103

    def serialize(self) -> bytes:
        """The request as bytes."""
        return bytes(wire.write_string(self.path))

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[str]:
        """The response: a list of paths."""
        (count,) = struct.unpack_from("!i", data, offset)
        offset += 4
        paths = []
        for _ in range(max(count, 0)):
            path, offset = wire.read_string(data, offset)
            paths.append(path)
        return paths


@dataclass(frozen=True)
class AddWatchRequest:
    """Opcode 106: set a persistent watch on one znode, or on its whole subtree."""

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
    """Opcode 18: remove every watch of this session at a path."""

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
    """Return kazoo's request for an operation; its path is relative to `prefix` (the chroot)."""
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
    return wire.Transaction([request_for(part, prefix, watcher) for part in operation.operations])


REQUESTS: dict[type[Operation[Any]], Callable[[Any, str, Watcher], Any]] = {
    Create: lambda effect, path, _: wire.Create(
        path, effect.data, _acls(effect.acl), _flags(effect)
    ),
    Delete: lambda effect, path, _: wire.Delete(path, effect.version),
    SetData: lambda effect, path, _: wire.SetData(path, effect.data, effect.version),
    SetAcl: lambda effect, path, _: wire.SetACL(path, _acls(effect.acl), effect.version),
    Check: lambda effect, path, _: wire.CheckVersion(path, effect.version),
    Exists: lambda effect, path, watcher: wire.Exists(path, watcher if effect.watch else None),
    GetData: lambda effect, path, watcher: wire.GetData(path, watcher if effect.watch else None),
    GetChildren: lambda effect, path, watcher: wire.GetChildren(
        path, watcher if effect.watch else None
    ),
    GetAcl: lambda effect, path, _: wire.GetACL(path),
    GetEphemerals: lambda effect, path, _: GetEphemeralsRequest(path),
    Sync: lambda effect, path, _: wire.Sync(path),
    AddWatch: lambda effect, path, _: AddWatchRequest(path, effect.recursive),
    RemoveWatches: lambda effect, path, _: RemoveWatchesRequest(path),
    Multi: _multi,
}
"""Operation -> its request."""


# --- answers ---------------------------------------------------------------------------


class Answers:
    """Translates the responses of one session; which ephemerals are its own depends on it."""

    def __init__(self, prefix: str, session: int) -> None:
        self.prefix = prefix
        self.session = session

    def of(self, operation: Operation[Any], response: Any) -> Any:
        """Return the answer to an operation, or a Failure."""
        if isinstance(response, Exception):
            return failure(operation, response)
        kind = type(operation)
        if kind is Multi:
            return self._of_multi(operation, response)  # type: ignore[arg-type]
        if kind is Create or kind is Sync:
            return self._local(response)
        if kind in WITHOUT_RESULT:
            return None
        if kind is SetData:
            return response.version
        if kind is SetAcl:
            return response.aversion
        if kind is Exists:
            return None if response is None else self._view(None, response)
        if kind is GetData:
            return self._view(*response)
        if kind is GetAcl:
            entries, _ = response
            return tuple(Acl(entry.perms, entry.id.scheme, entry.id.id) for entry in entries)
        if kind is GetEphemerals:
            return tuple(sorted(map(self._local, response)))
        assert kind is GetChildren, f"{kind.__name__} has no answer here"
        return tuple(response)

    def _of_multi(self, multi: Multi, responses: list[Any]) -> Any:
        for index, (part, response) in enumerate(zip(multi.operations, responses, strict=True)):
            if isinstance(response, Exception) and not _is_rolled_back(response):
                cause = failure(part, response)
                return Failure(errors.TransactionFailed, part.path, index=index, cause=cause)
        return tuple(map(self.of, multi.operations, responses))

    def _local(self, path: str) -> str:
        """A path without the chroot; kazoo has already removed it from a path in a multi."""
        return path[len(self.prefix) :] or "/" if path.startswith(self.prefix) else path

    def _view(self, data: bytes | None, stat: ZnodeStat) -> ZnodeView:
        mine = stat.ephemeralOwner != 0 and stat.ephemeralOwner == self.session
        return ZnodeView(data, stat.version, mine, Stat(*stat))


WITHOUT_RESULT = frozenset({Delete, Check, AddWatch, RemoveWatches})


def _is_rolled_back(error: Exception) -> bool:
    """Whether this part of a multi only failed because another part failed."""
    return isinstance(error, exceptions.RolledBackError | exceptions.RuntimeInconsistency)


FAILURES: dict[int, type[errors.ZooKeeperError]] = {
    kind.code: kind for kind in errors.ZooKeeperError.__subclasses__() if kind.code
}
"""ZooKeeper's error code -> the model's class."""


def failure(operation: Operation[Any], error: Exception) -> Failure:
    """Return the Failure for an error of kazoo; raises UnknownError if there is none."""
    code = getattr(error, "code", None)
    if isinstance(error, exceptions.ConnectionClosedError):
        return Failure(errors.ConnectionLoss, operation.path)
    kind = FAILURES.get(code) if isinstance(code, int) else None
    if kind is None:
        raise UnknownError(operation, error) from error
    return Failure(kind, operation.path)


class UnknownError(RuntimeError):
    """kazoo raised an error that corresponds to no error of ZooKeeper."""

    def __init__(self, operation: Operation[Any], error: Exception) -> None:
        super().__init__(
            f"{type(operation).__name__} at {operation.path} ended with {error!r}, which is no "
            "error that a server of ZooKeeper answers with"
        )
