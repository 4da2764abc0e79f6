"""What each write changes in the tree.

Theory of operation
  `write` validates in the order in which ZooKeeper's servers do, and the first check
  that fails names the error: a create with a bad ACL below a missing parent is
  InvalidACL, a delete with a wrong version of a znode with children is BadVersion. A
  request that fails still takes a zxid.

  The operations of a multi see the tree as the earlier ones of the same multi left it,
  and carry one zxid. So does the end of a session, which deletes every ephemeral of it
  in the order of a cloned Java HashSet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from watchkeeper.model.actor.errors import (
    BadArguments,
    BadVersion,
    Failure,
    NoAuth,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    TransactionFailed,
    Unimplemented,
)
from watchkeeper.model.actor.events import WatchEventType
from watchkeeper.model.actor.operations import (
    ADMIN,
    ANY_VERSION,
    CONTAINER_MS,
    CREATE,
    DELETE,
    OPEN,
    READ,
    UNLIMITED_MS,
    WRITE,
    Acl,
    Check,
    Create,
    Delete,
    DeleteContainer,
    Multi,
    Operation,
    SetAcl,
    SetData,
)
from watchkeeper.model.zookeeper import java_hash_order, paths
from watchkeeper.model.zookeeper.acl import Identities, fault_of, is_allowed, resolved
from watchkeeper.model.zookeeper.lifetimes import LONGEST_TTL_MS
from watchkeeper.model.zookeeper.tree import Change, Session, Tree, Written
from watchkeeper.model.zookeeper.znode import NO_SESSION, Znode


def write(
    tree: Tree,
    session: int,
    operation: Operation[Any],
    *,
    now_ms: int = 0,
    identities: Identities = (),
    has_ttls: bool = True,
) -> Written:
    """Execute a write of a session; it takes a zxid whether or not it succeeds.

    `now_ms` is the leader's wall clock, and `identities` are those of the connection that
    the request came through. Only a DeleteContainer needs no session: servers make it. Without
    `has_ttls`, as Apache's servers are by default, a create with a TTL is Unimplemented.
    """
    kind = type(operation)
    if session not in tree.sessions and kind is not DeleteContainer:
        return Written(tree, Failure(SessionExpired, operation.path))
    by = Author(session, identities, tree.zxid + 1, now_ms, has_ttls)
    done = _WRITES[kind](tree, operation, by)
    if type(done.answer) is Failure:
        return Written(_at_zxid(tree, by.zxid), done.answer)
    if done.tree.zxid == by.zxid:
        return done
    return Written(_at_zxid(done.tree, by.zxid), done.answer, done.changes, done.znodes)


class Author(Struct, frozen=True, gc=False):  # one a write, and never part of a cycle
    """Who writes, and when."""

    session: int
    identities: Identities
    zxid: int
    now_ms: int
    has_ttls: bool


def _at_zxid(tree: Tree, zxid: int) -> Tree:
    if tree.zxid == zxid:
        return tree
    return Tree(tree.nodes, tree.sessions, tree.ephemerals, tree.births, zxid, tree.limited)


def _multi(tree: Tree, multi: Multi, by: Author) -> Written:
    # Each operation sees the tree that the ones before it left; a failure drops them all.
    now = tree
    answers: list[Any] = []
    changes: list[Change] = []
    znodes: list[Znode | None] = []
    for index, operation in enumerate(multi.operations):
        kind = type(operation)
        done = _WRITES[kind](now, operation, by)
        if type(done.answer) is Failure:
            failure = Failure(TransactionFailed, operation.path, index=index, cause=done.answer)
            return Written(tree, failure)
        now = done.tree
        answers.append(done.answer)
        changes.extend(done.changes)
        touched = done.answer if kind is Create else operation.path if kind is SetData else ""
        znodes.append(now.nodes.get(touched))
    return Written(now, tuple(answers), tuple(changes), tuple(znodes))


def _create(tree: Tree, operation: Create, by: Author) -> Written:
    path = operation.path
    if operation.lifetime_ms != UNLIMITED_MS and (refusal := _lifetime_refusal(operation, by)):
        return Written(tree, refusal)
    parent_path = paths.parent_of(path)
    if parent_path is None:
        return Written(tree, Failure(BadArguments, path))
    acl = resolved(by.identities, operation.acl)
    if acl is None:
        return Written(tree, Failure(fault_of(by.identities, operation.acl), path))
    parent = tree.nodes.get(parent_path)
    if parent is None:
        return Written(tree, Failure(NoNode, path))
    if parent.acl is not OPEN and not is_allowed(by.identities, parent.acl, CREATE):
        return Written(tree, Failure(NoAuth, path))
    if operation.sequential:
        path = f"{path}{_suffix(parent.created)}"
    if not paths.is_valid(path):
        return Written(tree, Failure(BadArguments, path))
    if path in tree.nodes:
        return Written(tree, Failure(NodeExists, path))
    if parent.owner != NO_SESSION:
        return Written(tree, Failure(NoChildrenForEphemerals, path))
    child = _new_znode(operation, acl, by)
    nodes = tree.nodes.mutate()
    nodes[path] = child
    nodes[parent_path] = parent.with_child(paths.name_of(path), by.zxid)
    limited = tree.limited
    if child.lifetime_ms != UNLIMITED_MS:
        limited = limited.set(path, None)
    births = tree.births + 1
    grown = Tree(nodes.finish(), tree.sessions, tree.ephemerals, births, by.zxid, limited)
    if operation.ephemeral:
        grown = _with_ephemeral(grown, by.session, path)
    change = Change(WatchEventType.CREATED, path, acl, parent.acl, parent_path)
    return Written(grown, path, (change,))


def _lifetime_refusal(operation: Create, by: Author) -> Failure | None:
    lifetime_ms = operation.lifetime_ms
    if lifetime_ms > 0 and not by.has_ttls:
        return Failure(Unimplemented, operation.path)
    is_known = lifetime_ms == CONTAINER_MS or 0 < lifetime_ms <= LONGEST_TTL_MS
    if operation.ephemeral or not is_known:
        return Failure(BadArguments, operation.path)
    return None


def _new_znode(operation: Create, acl: tuple[Acl, ...], by: Author) -> Znode:
    zxid, now_ms = by.zxid, by.now_ms
    return Znode(
        operation.data,
        owner=by.session if operation.ephemeral else NO_SESSION,
        acl=acl,
        czxid=zxid,
        mzxid=zxid,
        pzxid=zxid,
        ctime=now_ms,
        mtime=now_ms,
        lifetime_ms=operation.lifetime_ms,
    )


def _with_ephemeral(tree: Tree, session: int, path: str) -> Tree:
    mine = tree.ephemerals.get(session, _NO_PATHS).set(path, tree.births)
    sessions, own = tree.sessions, tree.sessions[session]
    table = java_hash_order.grown(own.ephemeral_table, len(mine))
    if table != own.ephemeral_table:
        sessions = sessions.set(session, replace(own, ephemeral_table=table))
    return replace(tree, sessions=sessions, ephemerals=tree.ephemerals.set(session, mine))


_NO_PATHS = Map[str, int]()


def _suffix(created: int) -> str:
    """Return the suffix of a sequential znode: ten digits of a signed 32-bit number."""
    wrapped = (created + (1 << 31)) % (1 << 32) - (1 << 31)
    return f"{wrapped:010d}"


def _delete(tree: Tree, operation: Delete, by: Author) -> Written:
    path = operation.path
    parent_path = paths.parent_of(path)
    if parent_path is None or path in paths.RESERVED:
        return Written(tree, Failure(BadArguments, path))
    parent = tree.nodes.get(parent_path)
    if parent is None:
        return Written(tree, Failure(NoNode, path))
    if not is_allowed(by.identities, parent.acl, DELETE):
        return Written(tree, Failure(NoAuth, path))
    znode = tree.nodes.get(path)
    if znode is None:
        return Written(tree, Failure(NoNode, path))
    if operation.version not in (ANY_VERSION, znode.version):
        return Written(tree, Failure(BadVersion, path))
    if znode.children:
        return Written(tree, Failure(NotEmpty, path))
    change = Change(WatchEventType.DELETED, path, znode.acl, parent.acl, parent_path)
    return Written(_without(tree, path, znode, by.zxid), None, (change,))


def _delete_container(tree: Tree, operation: DeleteContainer, by: Author) -> Written:
    # A server found it empty some time ago; a child may have been created since. Permissions
    # and lifetimes are not compared again: Apache's servers take this request from a client
    # too, for any znode that is neither ephemeral nor a parent.
    path = operation.path
    parent_path = paths.parent_of(path)
    if parent_path is None or path in paths.RESERVED:
        return Written(tree, Failure(BadArguments, path))
    znode, parent = tree.nodes.get(path), tree.nodes.get(parent_path)
    if znode is None or parent is None:
        return Written(tree, Failure(NoNode, path))
    if znode.children:
        return Written(tree, Failure(NotEmpty, path))
    if znode.owner != NO_SESSION:
        return Written(tree, Failure(BadVersion, path))
    change = Change(WatchEventType.DELETED, path, znode.acl, parent.acl, parent_path)
    return Written(_without(tree, path, znode, by.zxid), None, (change,))


def _without(tree: Tree, path: str, znode: Znode, zxid: int) -> Tree:
    parent_path = paths.parent_of(path)
    assert parent_path is not None, "only a znode with a parent is ever deleted"
    nodes = tree.nodes.mutate()
    del nodes[path]
    nodes[parent_path] = nodes[parent_path].without_child(paths.name_of(path), zxid)
    ephemerals = tree.ephemerals
    if znode.owner != NO_SESSION:
        ephemerals = ephemerals.set(znode.owner, ephemerals[znode.owner].delete(path))
    limited = tree.limited
    if znode.lifetime_ms != UNLIMITED_MS:
        limited = limited.delete(path)
    return Tree(nodes.finish(), tree.sessions, ephemerals, tree.births, zxid, limited)


def _set_data(tree: Tree, operation: SetData, by: Author) -> Written:
    path = operation.path
    znode, failure = _for_write(tree, path, operation.version, WRITE, by)
    if znode is None:
        return Written(tree, failure)
    changed = znode.with_data(operation.data, by.zxid, by.now_ms)
    after = _with_nodes(tree, tree.nodes.set(path, changed), by.zxid)
    return Written(after, changed.version, (Change(WatchEventType.CHANGED, path, znode.acl),))


def _with_nodes(tree: Tree, nodes: Map[str, Znode], zxid: int) -> Tree:
    return Tree(nodes, tree.sessions, tree.ephemerals, tree.births, zxid, tree.limited)


def _check(tree: Tree, operation: Check, by: Author) -> Written:
    znode, failure = _for_write(tree, operation.path, operation.version, READ, by)
    return Written(tree, None if znode is not None else failure)


def _for_write(
    tree: Tree, path: str, version: int, permission: int, by: Author
) -> tuple[Znode | None, Failure | None]:
    """Return the znode to write, or the first failed check: path, znode, permission, version."""
    if not paths.is_valid(path):
        return None, Failure(BadArguments, path)
    znode = tree.nodes.get(path)
    if znode is None:
        return None, Failure(NoNode, path)
    if znode.acl is not OPEN and not is_allowed(by.identities, znode.acl, permission):
        return None, Failure(NoAuth, path)
    if version not in (ANY_VERSION, znode.version):
        return None, Failure(BadVersion, path)
    return znode, None


def _set_acl(tree: Tree, operation: SetAcl, by: Author) -> Written:
    path = operation.path
    if not paths.is_valid(path):
        return Written(tree, Failure(BadArguments, path))
    acl = resolved(by.identities, operation.acl)
    if acl is None:
        return Written(tree, Failure(fault_of(by.identities, operation.acl), path))
    znode = tree.nodes.get(path)
    if znode is None:
        return Written(tree, Failure(NoNode, path))
    if not is_allowed(by.identities, znode.acl, ADMIN):
        return Written(tree, Failure(NoAuth, path))
    if operation.version not in (ANY_VERSION, znode.aversion):
        return Written(tree, Failure(BadVersion, path))
    changed = znode.with_acl(acl)
    after = _with_nodes(tree, tree.nodes.set(path, changed), by.zxid)
    return Written(after, changed.aversion)


_WRITES: dict[type[Operation[Any]], Callable[[Tree, Any, Author], Written]] = {
    Create: _create,
    Delete: _delete,
    SetData: _set_data,
    Check: _check,
    SetAcl: _set_acl,
    Multi: _multi,
    DeleteContainer: _delete_container,
}


# --- sessions --------------------------------------------------------------------------


def open_session(tree: Tree, session: int, settings: Session) -> Tree:
    """Begin a session; it takes a zxid."""
    assert session != NO_SESSION, "that number means: no session"
    assert session not in tree.sessions, "a session id is used once"
    sessions = tree.sessions.set(session, settings)
    return replace(tree, sessions=sessions, zxid=tree.zxid + 1)


def close_session(tree: Tree, session: int) -> Written:
    """End a session and delete its ephemerals, all under one zxid; the answer lists them."""
    if session not in tree.sessions:
        return Written(tree, ())
    zxid = tree.zxid + 1
    gone = ephemerals_of(tree, session)
    now = tree
    changes: list[Change] = []
    for path in gone:
        znode = now.nodes[path]
        parent_path = paths.parent_of(path) or paths.ROOT
        parent = now.nodes[parent_path]
        change = Change(WatchEventType.DELETED, path, znode.acl, parent.acl, parent_path)
        changes.append(change)
        now = _without(now, path, znode, zxid)
    now = replace(
        now,
        sessions=now.sessions.delete(session),
        ephemerals=now.ephemerals.delete(session) if gone else _forgotten(now, session),
        zxid=zxid,
    )
    return Written(now, gone, tuple(changes))


def _forgotten(tree: Tree, session: int) -> Map[int, Map[str, int]]:
    if session in tree.ephemerals:
        return tree.ephemerals.delete(session)
    return tree.ephemerals


def ephemerals_of(tree: Tree, session: int) -> tuple[str, ...]:
    """Return a session's ephemerals in the order in which its end deletes them."""
    mine = tree.ephemerals.get(session)
    if not mine:
        return ()
    capacity = tree.sessions[session].ephemeral_table
    return java_hash_order.in_clone_order(java_hash_order.in_table_order(mine.items(), capacity))
