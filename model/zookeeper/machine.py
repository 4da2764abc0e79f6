"""One ZooKeeper server that is never late and never fails: tree and watches together."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from model.answers import Fired
from model.errors import Failure, NoWatcher, SessionExpired, Unimplemented
from model.operations import (
    READ,
    Acl,
    AddWatch,
    Exists,
    GetChildren,
    GetData,
    Operation,
    RemoveWatches,
    Sync,
    Write,
)
from model.zookeeper import writes
from model.zookeeper.reads import READS
from model.zookeeper.rights import is_allowed
from model.zookeeper.tree import Session, Tree, Written, empty_tree
from model.zookeeper.watches import Kind, Watches


class Service(Struct, frozen=True):
    """The whole state of the service."""

    tree: Tree = field(default_factory=empty_tree)
    watches: Watches = field(default_factory=Watches)


class Applied(Struct, frozen=True):
    """An operation done: the state now, the answer, and who hears what, in order.

    Everything in `fired` reaches the client that asked before its answer does.
    """

    service: Service
    answer: Any
    fired: tuple[tuple[int, Fired], ...] = ()


def apply(
    service: Service, session: int, operation: Operation[Any], *, now_ms: int = 0
) -> Applied:
    """Do one operation for a session, whose one connection leaves the watches."""
    if isinstance(operation, Write):
        return _settle(service, writes.write(service.tree, session, operation, now_ms=now_ms))
    if session not in service.tree.sessions:
        return Applied(service, Failure(SessionExpired, operation.path))
    watches, answer = serve(service.tree, service.watches, session, session, operation)
    return Applied(replace(service, watches=watches), answer)


def serve(
    tree: Tree, watches: Watches, session: int, client: int, operation: Operation[Any]
) -> tuple[Watches, Any]:
    """Answer an operation that changes no znode, leaving the watch it asks for.

    A failed read leaves none; `exists` leaves one even where there is no znode.
    """
    kind = type(operation)
    read = READS.get(kind)
    if read is not None:
        answer = read(tree, session, operation)
        if kind in LEAVES and operation.watch and type(answer) is not Failure:  # type: ignore[attr-defined]
            watches = watches.leave(client, LEAVES[kind], operation.path)
        return watches, answer
    if isinstance(operation, AddWatch):
        staying: Kind = "recursive" if operation.recursive else "persistent"
        return watches.leave(client, staying, operation.path), None
    if isinstance(operation, RemoveWatches):
        left = watches.drop_path(client, operation.path)
        return left, None if left is not watches else Failure(NoWatcher, operation.path)
    if isinstance(operation, Sync):
        return watches, operation.path
    return watches, Failure(Unimplemented, operation.path)


LEAVES: dict[type[Operation[Any]], Kind] = {
    Exists: "data",
    GetData: "data",
    GetChildren: "child",
}
"""Which watch a read leaves if it is asked to."""


def open_session(service: Service, session: int, timeout_ms: int = 6000) -> Service:
    """Begin a session."""
    tree = writes.open_session(service.tree, session, Session(timeout_ms))
    return replace(service, tree=tree)


def close_session(service: Service, session: int) -> Applied:
    """End a session, by its own wish or by expiry: its ephemerals go, and its watches."""
    done = _settle(service, writes.close_session(service.tree, session))
    watches = done.service.watches.drop_client(session)
    return replace(done, service=replace(done.service, watches=watches))


def drop_connection(service: Service, session: int) -> Service:
    """Break a session's connection: its watches go, its ephemerals stay."""
    return replace(service, watches=service.watches.drop_client(session))


def _settle(service: Service, written: Written) -> Applied:

    def may_read(session: int, acl: tuple[Acl, ...]) -> bool:
        return is_allowed(service.tree, session, acl, READ)

    watches, heard = service.watches.fire(written.changes, may_read)
    return Applied(Service(written.tree, watches), written.answer, tuple(heard))
