"""One ZooKeeper server that is never late and never fails: tree and watches together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from model.answers import Fired
from model.errors import Failure, NoWatcher, SessionExpired, Unimplemented
from model.operations import (
    AddWatch,
    Exists,
    GetChildren,
    GetData,
    Operation,
    RemoveWatches,
    Sync,
    Write,
)
from model.zookeeper import tree as trees
from model.zookeeper.tree import Session, Tree, Written, empty_tree
from model.zookeeper.watches import Kind, Watches


@dataclass(frozen=True, slots=True)
class Service:
    """The whole state of the service."""

    tree: Tree = field(default_factory=empty_tree)
    watches: Watches = field(default_factory=Watches)


@dataclass(frozen=True, slots=True)
class Applied:
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
        return _settle(service, trees.write(service.tree, session, operation, now_ms=now_ms))
    if session not in service.tree.sessions:
        return Applied(service, Failure(SessionExpired, operation.path))
    watches, answer = serve(service.tree, service.watches, session, session, operation)
    return Applied(replace(service, watches=watches), answer)


def serve(
    tree: Tree, watches: Watches, session: int, client: int, operation: Operation[Any]
) -> tuple[Watches, Any]:
    """Answer an operation that changes no znode, leaving the watch it asks for."""
    if isinstance(operation, AddWatch):
        return watches.leave(client, _staying_kind(operation), operation.path), None
    if isinstance(operation, RemoveWatches):
        left = watches.drop_path(client, operation.path)
        return left, None if left is not watches else Failure(NoWatcher, operation.path)
    if isinstance(operation, Sync):
        return watches, operation.path
    if not trees.is_read(operation):
        return watches, Failure(Unimplemented, operation.path)
    answer = trees.read(tree, session, operation)
    kind = watch_left(operation, answer)
    if kind is not None:
        watches = watches.leave(client, kind, operation.path)
    return watches, answer


def _staying_kind(operation: AddWatch) -> Kind:
    return "recursive" if operation.recursive else "persistent"


def watch_left(operation: Operation[Any], answer: Any) -> Kind | None:
    """The watch that a read with this answer leaves: a failed one leaves none.

    `exists` leaves one even where there is no znode.
    """
    if not isinstance(operation, Exists | GetData | GetChildren) or not operation.watch:
        return None
    if type(answer) is Failure:
        return None
    return "child" if isinstance(operation, GetChildren) else "data"


def open_session(service: Service, session: int, timeout_ms: int = 6000) -> Service:
    """Begin a session."""
    tree = trees.open_session(service.tree, session, Session(timeout_ms))
    return replace(service, tree=tree)


def close_session(service: Service, session: int) -> Applied:
    """End a session, by its own wish or by expiry: its ephemerals go, and its watches."""
    done = _settle(service, trees.close_session(service.tree, session))
    watches = done.service.watches.drop_client(session)
    return replace(done, service=replace(done.service, watches=watches))


def drop_connection(service: Service, session: int) -> Service:
    """Break a session's connection: its watches go, its ephemerals stay."""
    return replace(service, watches=service.watches.drop_client(session))


def _settle(service: Service, written: Written) -> Applied:
    watches, heard = service.watches.fire(written.changes)
    return Applied(Service(written.tree, watches), written.answer, tuple(heard))
