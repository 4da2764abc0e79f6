"""One ZooKeeper server that never fails: tree and watches together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from immutables import Map
from msgspec import Struct, field
from msgspec.structs import replace

from watchkeeper.model.actor.errors import Failure, NoWatcher, SessionExpired, Unimplemented
from watchkeeper.model.actor.events import Fired
from watchkeeper.model.actor.operations import (
    READ,
    Acl,
    AddWatch,
    CheckWatches,
    Exists,
    GetChildren,
    GetData,
    Operation,
    RemoveWatches,
    Sync,
    Write,
)
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.acl import Identities, is_allowed
from watchkeeper.model.zookeeper.reads import READS
from watchkeeper.model.zookeeper.tree import Session, Tree, Written, empty_tree
from watchkeeper.model.zookeeper.watches import Kind, Watches


class Server(Struct, frozen=True):
    """The whole state of a server."""

    tree: Tree = field(default_factory=empty_tree)
    watches: Watches = field(default_factory=Watches)
    identities: Map[int, Identities] = Map()
    """Session -> what its connection has proved, beside `world:anyone`."""


class Applied(Struct, frozen=True):
    """The result of an operation: the server, the answer, and the fired watches in order.

    `fired` has pairs of session and notification. A client receives its notifications
    before the answer to its own operation.
    """

    server: Server
    answer: Any
    fired: tuple[tuple[int, Fired], ...] = ()


def apply(server: Server, session: int, operation: Operation[Any], *, now_ms: int = 0) -> Applied:
    """Execute one operation of a session."""
    own = server.identities.get(session, ())
    if isinstance(operation, Write):
        written = writes.write(server.tree, session, operation, now_ms=now_ms, identities=own)
        return _with_watches_fired(server, written)
    if session not in server.tree.sessions:
        return Applied(server, Failure(SessionExpired, operation.path))
    watches, answer = serve(server.tree, server.watches, session, session, operation, own)
    return Applied(replace(server, watches=watches), answer)


def serve(
    tree: Tree,
    watches: Watches,
    session: int,
    client: int,
    operation: Operation[Any],
    identities: Identities = (),
) -> tuple[Watches, Any]:
    """Answer an operation that changes no znode, and set the watch that it requests.

    A failed read sets none; `exists` sets one even if there is no znode. `client` is the
    owner of the watches: the connection of the session, which has these identities. The
    reads of a MultiRead set no watches.
    """
    kind = type(operation)
    read = READS.get(kind)
    if read is not None:
        answer = read(tree, session, operation, identities)
        if kind in SETS and operation.watch and type(answer) is not Failure:  # type: ignore[attr-defined]
            watches = watches.set(client, SETS[kind], operation.path)
        return watches, answer
    if isinstance(operation, AddWatch):
        staying: Kind = "recursive" if operation.recursive else "persistent"
        return watches.set(client, staying, operation.path), None
    if isinstance(operation, RemoveWatches):
        left = watches.drop_path(client, operation.path, operation.kind)
        return left, None if left is not watches else Failure(NoWatcher, operation.path)
    if isinstance(operation, CheckWatches):
        is_there = watches.has_any(client, operation.path, operation.kind)
        return watches, None if is_there else Failure(NoWatcher, operation.path)
    if isinstance(operation, Sync):
        return watches, operation.path
    return watches, Failure(Unimplemented, operation.path)


def serve_data(
    tree: Tree, watches: Watches, session: int, client: int, reads: Sequence[GetData]
) -> tuple[Watches, list[Any]]:
    """Answer reads of data in their order, as `serve` does one by one without identities.

    The watches change once: a member of a group of a thousand reads a thousand registrations
    in one batch.
    """
    read = READS[GetData]
    answers = [read(tree, session, operation, ()) for operation in reads]
    watched = [
        operation.path
        for operation, answer in zip(reads, answers, strict=True)
        if operation.watch and type(answer) is not Failure
    ]
    return watches.set_each(client, SETS[GetData], watched), answers


SETS: dict[type[Operation[Any]], Kind] = {
    Exists: "data",
    GetData: "data",
    GetChildren: "child",
}
"""The kind of watch that each read sets if its `watch` is true."""


def open_session(server: Server, session: int, timeout_ms: int = 6000) -> Server:
    """Begin a session."""
    tree = writes.open_session(server.tree, session, Session(timeout_ms))
    return replace(server, tree=tree)


def close_session(server: Server, session: int) -> Applied:
    """End a session, closed or expired: its ephemerals and its watches are deleted."""
    done = _with_watches_fired(server, writes.close_session(server.tree, session))
    return replace(done, server=drop_connection(done.server, session))


def drop_connection(server: Server, session: int) -> Server:
    """Break the connection of a session: watches and identities are lost, ephemerals stay."""
    identities = server.identities
    if session in identities:
        identities = identities.delete(session)
    return Server(server.tree, server.watches.drop_client(session), identities)


def authenticate(server: Server, session: int, scheme: str, identity: str) -> Server:
    """Give the connection of a session one more identity."""
    own = server.identities.get(session, ())
    if (scheme, identity) in own:
        return server
    identities = server.identities.set(session, (*own, (scheme, identity)))
    return replace(server, identities=identities)


def _with_watches_fired(server: Server, written: Written) -> Applied:

    def may_read(session: int, acl: tuple[Acl, ...]) -> bool:
        return is_allowed(server.identities.get(session, ()), acl, READ)

    watches, heard = server.watches.fire(written.changes, may_read)
    after = Server(written.tree, watches, server.identities)
    return Applied(after, written.answer, tuple(heard))
