"""The model's operations as kazoo requests, and kazoo's responses as the model's answers.

kazoo's public calls check paths, add defaults and wrap answers; a live run has to send
exactly what the simulation sends. So this module uses the requests beneath those calls, in
one table, and those of `requests`, which kazoo lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kazoo import exceptions
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, Id
from msgspec.structs import astuple

from watchkeeper.model.actor import errors
from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Stat, ZnodeView
from watchkeeper.model.actor.operations import (
    CONTAINER_MS,
    UNLIMITED_MS,
    Acl,
    AddWatch,
    Check,
    CheckWatches,
    CountDescendants,
    Create,
    Delete,
    DeleteContainer,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    MultiRead,
    Operation,
    RemoveWatches,
    SetAcl,
    SetData,
    Sync,
)
from watchkeeper.model.wire.requests import SetWatches
from watchkeeper.model.zookeeper.watches import Wanted
from watchkeeper.real.client.requests import (
    AddWatchRequest,
    CheckWatchesRequest,
    CountDescendantsRequest,
    CreateWithLifetimeRequest,
    DeleteContainerRequest,
    GetEphemeralsRequest,
    MultiReadRequest,
    MultiRequest,
    RemoveWatchesRequest,
    SetWatchesRequest,
)

EPHEMERAL, SEQUENTIAL, CONTAINER, WITH_TTL, SEQUENTIAL_WITH_TTL = 1, 2, 4, 5, 6


Watcher = Callable[[Any], None]


def request_for(operation: Operation[Any], prefix: str, watcher: Watcher) -> Any:
    """Return kazoo's request for an operation; its path is relative to `prefix` (the chroot)."""
    if isinstance(operation, Multi | MultiRead):
        path = f"{prefix}{operation.path}"
    else:
        path = _absolute(prefix, operation.path)
    return REQUESTS[type(operation)](operation, path, watcher)


def watches_request(wanted: Wanted, prefix: str, last_zxid: int) -> SetWatchesRequest:
    """Return the request that sets these watches again; their paths are relative to `prefix`."""
    lists = ((_absolute(prefix, path) for path in paths) for paths in astuple(wanted))
    return SetWatchesRequest(SetWatches(last_zxid, Wanted(*map(tuple, lists))))


def _absolute(prefix: str, path: str) -> str:
    """A path with the chroot; no path but the root ends in a slash."""
    return prefix if prefix and path == "/" else f"{prefix}{path}"


def _acls(acl: tuple[Acl, ...]) -> list[ACL]:
    return [ACL(entry.permissions, Id(entry.scheme, entry.identity)) for entry in acl]


def _create(operation: Create, path: str, watcher: Watcher) -> Any:
    # The flags are an enumeration: a sequential container has none of its own, and is one
    # because of its opcode.
    lifetime_ms = operation.lifetime_ms
    flags = EPHEMERAL * operation.ephemeral | SEQUENTIAL * operation.sequential
    if lifetime_ms == CONTAINER_MS:
        flags = flags or CONTAINER
    elif lifetime_ms != UNLIMITED_MS:
        flags = SEQUENTIAL_WITH_TTL if operation.sequential else WITH_TTL
    request = wire.Create(path, operation.data, _acls(operation.acl), flags)
    if lifetime_ms == UNLIMITED_MS:
        return request
    return CreateWithLifetimeRequest(request, lifetime_ms)


def _multi(operation: Multi, path: str, watcher: Watcher) -> Any:
    prefix = path[: len(path) - len(operation.path)]
    return MultiRequest([request_for(part, prefix, watcher) for part in operation.operations])


def _multi_read(operation: MultiRead, path: str, watcher: Watcher) -> Any:
    prefix = path[: len(path) - len(operation.path)]
    parts = [request_for(part, prefix, watcher) for part in operation.operations]
    return MultiReadRequest(tuple(parts))


REQUESTS: dict[type[Operation[Any]], Callable[[Any, str, Watcher], Any]] = {
    Create: _create,
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
    RemoveWatches: lambda effect, path, _: RemoveWatchesRequest(path, effect.kind),
    CheckWatches: lambda effect, path, _: CheckWatchesRequest(path, effect.kind),
    CountDescendants: lambda effect, path, _: CountDescendantsRequest(path),
    DeleteContainer: lambda effect, path, _: DeleteContainerRequest(path),
    Multi: _multi,
    MultiRead: _multi_read,
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
        if isinstance(operation, MultiRead):
            return tuple(map(self.of, operation.operations, response))
        if kind is CountDescendants:
            return response
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


WITHOUT_RESULT = frozenset(
    {Delete, Check, AddWatch, RemoveWatches, CheckWatches, DeleteContainer}
)


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
