"""The znode tree: what a write does to it, and what a read sees.

Rules
  A tree is a value. `write` answers with another tree and shares all that did not
  change. A request that fails still takes a zxid, as on a real server.

Theory of operation
  `write` validates in the order in which ZooKeeper's servers do, and the first check
  that fails names the error: a create with a bad ACL below a missing parent is
  InvalidACL, a delete with a wrong version of a znode with children is BadVersion.

  The operations of a multi see the tree as the earlier ones of the same multi left it,
  and carry one zxid. So does the end of a session, which deletes every ephemeral of it
  in the order of a cloned Java HashSet.

  Reads are not validated at all: a path that cannot exist simply has no znode. The
  empty path is the root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from model.answers import Happening, Seen
from model.errors import (
    BadArguments,
    BadVersion,
    Failure,
    InvalidACL,
    NoAuth,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    TransactionFailed,
)
from model.operations import (
    ADMIN,
    ANY_VERSION,
    CREATE,
    DELETE,
    OPEN,
    READ,
    WRITE,
    Acl,
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
    SetAcl,
    SetData,
)
from model.zookeeper import java, paths
from model.zookeeper.znodes import NOBODY, Znode

SESSION_TABLE_CAPACITY = 16


class Session(Struct, frozen=True):
    """What the ensemble keeps for a client: how long it may be silent, what it has shown."""

    timeout_ms: int
    identities: tuple[tuple[str, str], ...] = ()
    """(scheme, identity) pairs beside `world:anyone`."""


class Tree(Struct, frozen=True):
    """All znodes, the sessions, and the zxid of the last write."""

    nodes: Map[str, Znode]
    sessions: Map[int, Session] = Map()
    ephemerals: Map[int, Map[str, int]] = Map()
    """Session -> path -> how many znodes there had been before, ever."""
    births: int = 0
    zxid: int = 0


class Change(Struct, frozen=True):
    """One thing a write did: watches fire by it."""

    what: Happening
    path: str


class Written(Struct, frozen=True):
    """A write done: the tree now, the answer, and what changed, in order."""

    tree: Tree
    answer: Any
    changes: tuple[Change, ...] = ()


def empty_tree() -> Tree:
    """The tree of a fresh server, with the three znodes it keeps for itself."""
    own = Map[str, int]({"zookeeper": 0})
    kept = Map[str, int]({"config": 0, "quota": 1})
    return Tree(
        nodes=Map(
            {
                "/": Znode(b"", children=own),
                "/zookeeper": Znode(b"", children=kept),
                "/zookeeper/quota": Znode(b""),
                "/zookeeper/config": Znode(b"", acl=(Acl(READ),)),
            }
        )
    )


# --- reads -----------------------------------------------------------------------------


def read(tree: Tree, session: int, operation: Operation[Any]) -> Any:
    """Answer an operation that reads znodes."""
    return READS[type(operation)](tree, session, operation)


def _znode(tree: Tree, path: str) -> Znode | None:
    return tree.nodes.get(path or paths.ROOT)


def _read_exists(tree: Tree, session: int, operation: Exists) -> Seen | Failure | None:
    if "\0" in operation.path:
        return Failure(BadArguments, operation.path)
    znode = _znode(tree, operation.path)
    return None if znode is None else znode.seen_by(session)


def _read_data(tree: Tree, session: int, operation: GetData) -> Seen | Failure:
    znode = _znode(tree, operation.path)
    if znode is None:
        return Failure(NoNode, operation.path)
    if not _allowed(tree, session, znode, READ):
        return Failure(NoAuth, operation.path)
    return znode.seen_by(session)


def _read_children(tree: Tree, session: int, operation: GetChildren) -> tuple[str, ...] | Failure:
    znode = _znode(tree, operation.path)
    if znode is None:
        return Failure(NoNode, operation.path)
    if not _allowed(tree, session, znode, READ):
        return Failure(NoAuth, operation.path)
    return znode.child_names


def _read_acl(tree: Tree, session: int, operation: GetAcl) -> tuple[Acl, ...] | Failure:
    znode = _znode(tree, operation.path)
    if znode is None:
        return Failure(NoNode, operation.path)
    if not _allowed(tree, session, znode, READ | ADMIN):
        return Failure(NoAuth, operation.path)
    return znode.acl


def _read_ephemerals(
    tree: Tree, session: int, operation: GetEphemerals
) -> tuple[str, ...] | Failure:
    mine = tree.ephemerals.get(session)
    if mine is None:
        return ()
    return tuple(sorted(path for path in mine if path.startswith(operation.path)))


READS: dict[type[Operation[Any]], Callable[[Tree, int, Any], Any]] = {
    Exists: _read_exists,
    GetData: _read_data,
    GetChildren: _read_children,
    GetAcl: _read_acl,
    GetEphemerals: _read_ephemerals,
}


# --- rights ----------------------------------------------------------------------------


def _allowed(tree: Tree, session: int, znode: Znode, permissions: int) -> bool:
    if znode.acl is OPEN:
        return True
    identities: tuple[tuple[str, str], ...] | None = None
    for entry in znode.acl:
        if not entry.permissions & permissions:
            continue
        if entry.scheme == "world":
            return True
        if identities is None:
            known = tree.sessions.get(session)
            identities = known.identities if known is not None else ()
        if (entry.scheme, entry.identity) in identities:
            return True
    return False


def _is_valid_acl(acl: tuple[Acl, ...]) -> bool:
    schemes = {"world", "digest", "ip", "auth"}
    return bool(acl) and all(
        entry.scheme in schemes and (entry.scheme != "world" or entry.identity == "anyone")
        for entry in acl
    )


# --- writes ----------------------------------------------------------------------------


def write(tree: Tree, session: int, operation: Operation[Any], *, now_ms: int = 0) -> Written:
    """Do a write on behalf of a session; it takes a zxid whether or not it succeeds."""
    if session not in tree.sessions:
        return Written(tree, Failure(SessionExpired, operation.path))
    zxid = tree.zxid + 1
    if isinstance(operation, Multi):
        done = _multi(tree, session, operation, zxid, now_ms)
    else:
        done = _WRITES[type(operation)](tree, session, operation, zxid, now_ms)
    if type(done.answer) is Failure:
        return Written(replace(tree, zxid=zxid), done.answer)
    return Written(replace(done.tree, zxid=zxid), done.answer, done.changes)


def _multi(tree: Tree, session: int, multi: Multi, zxid: int, now_ms: int) -> Written:
    now = tree
    answers: list[Any] = []
    changes: list[Change] = []
    for index, operation in enumerate(multi.operations):
        done = _WRITES[type(operation)](now, session, operation, zxid, now_ms)
        if type(done.answer) is Failure:
            failure = Failure(TransactionFailed, operation.path, index=index, cause=done.answer)
            return Written(tree, failure)
        now = done.tree
        answers.append(done.answer)
        changes.extend(done.changes)
    return Written(now, tuple(answers), tuple(changes))


def _create(tree: Tree, session: int, operation: Create, zxid: int, now_ms: int) -> Written:
    path = operation.path
    parent_path = paths.parent_of(path)
    if parent_path is None:
        return Written(tree, Failure(BadArguments, path))
    if not _is_valid_acl(operation.acl):
        return Written(tree, Failure(InvalidACL, path))
    parent = tree.nodes.get(parent_path)
    if parent is None:
        return Written(tree, Failure(NoNode, path))
    if not _allowed(tree, session, parent, CREATE):
        return Written(tree, Failure(NoAuth, path))
    if operation.sequential:
        path = f"{path}{_suffix(parent.created)}"
    if not paths.is_valid(path):
        return Written(tree, Failure(BadArguments, path))
    if path in tree.nodes:
        return Written(tree, Failure(NodeExists, path))
    if parent.owner != NOBODY:
        return Written(tree, Failure(NoChildrenForEphemerals, path))
    child = Znode(
        operation.data,
        owner=session if operation.ephemeral else NOBODY,
        acl=operation.acl,
        czxid=zxid,
        mzxid=zxid,
        pzxid=zxid,
        ctime=now_ms,
        mtime=now_ms,
    )
    nodes = tree.nodes.mutate()
    nodes[path] = child
    nodes[parent_path] = parent.with_child(paths.name_of(path), zxid)
    births = tree.births + 1
    ephemerals = tree.ephemerals
    if operation.ephemeral:
        ephemerals = ephemerals.set(session, ephemerals.get(session, Map()).set(path, births))
    grown = Tree(nodes.finish(), tree.sessions, ephemerals, births, tree.zxid)
    return Written(grown, path, (Change(Happening.CREATED, path),))


def _suffix(created: int) -> str:
    """The suffix of a sequential znode: ten digits of a number that Java keeps in 32 bits."""
    wrapped = (created + (1 << 31)) % (1 << 32) - (1 << 31)
    return f"{wrapped:010d}"


def _delete(tree: Tree, session: int, operation: Delete, zxid: int, now_ms: int) -> Written:
    path = operation.path
    parent_path = paths.parent_of(path)
    if parent_path is None or path in paths.RESERVED:
        return Written(tree, Failure(BadArguments, path))
    parent = tree.nodes.get(parent_path)
    if parent is None:
        return Written(tree, Failure(NoNode, path))
    if not _allowed(tree, session, parent, DELETE):
        return Written(tree, Failure(NoAuth, path))
    znode = tree.nodes.get(path)
    if znode is None:
        return Written(tree, Failure(NoNode, path))
    if operation.version not in (ANY_VERSION, znode.version):
        return Written(tree, Failure(BadVersion, path))
    if znode.children:
        return Written(tree, Failure(NotEmpty, path))
    return Written(_without(tree, path, znode, zxid), None, (Change(Happening.DELETED, path),))


def _without(tree: Tree, path: str, znode: Znode, zxid: int) -> Tree:
    parent_path = paths.parent_of(path)
    assert parent_path is not None, "only a znode with a parent is ever deleted"
    nodes = tree.nodes.mutate()
    del nodes[path]
    nodes[parent_path] = nodes[parent_path].without_child(paths.name_of(path), zxid)
    ephemerals = tree.ephemerals
    if znode.owner != NOBODY:
        ephemerals = ephemerals.set(znode.owner, ephemerals[znode.owner].delete(path))
    return Tree(nodes.finish(), tree.sessions, ephemerals, tree.births, tree.zxid)


def _set_data(tree: Tree, session: int, operation: SetData, zxid: int, now_ms: int) -> Written:
    path = operation.path
    znode, failure = _for_write(tree, session, path, operation.version, WRITE)
    if znode is None:
        return Written(tree, failure)
    changed = znode.with_data(operation.data, zxid, now_ms)
    after = replace(tree, nodes=tree.nodes.set(path, changed))
    return Written(after, changed.version, (Change(Happening.CHANGED, path),))


def _check(tree: Tree, session: int, operation: Check, zxid: int, now_ms: int) -> Written:
    znode, failure = _for_write(tree, session, operation.path, operation.version, READ)
    return Written(tree, None if znode is not None else failure)


def _for_write(
    tree: Tree, session: int, path: str, version: int, permission: int
) -> tuple[Znode | None, Failure | None]:
    """The znode to write, or the first reason why not: path, znode, right, version."""
    if not paths.is_valid(path):
        return None, Failure(BadArguments, path)
    znode = tree.nodes.get(path)
    if znode is None:
        return None, Failure(NoNode, path)
    if not _allowed(tree, session, znode, permission):
        return None, Failure(NoAuth, path)
    if version not in (ANY_VERSION, znode.version):
        return None, Failure(BadVersion, path)
    return znode, None


def _set_acl(tree: Tree, session: int, operation: SetAcl, zxid: int, now_ms: int) -> Written:
    path = operation.path
    if not paths.is_valid(path):
        return Written(tree, Failure(BadArguments, path))
    if not _is_valid_acl(operation.acl):
        return Written(tree, Failure(InvalidACL, path))
    znode = tree.nodes.get(path)
    if znode is None:
        return Written(tree, Failure(NoNode, path))
    if not _allowed(tree, session, znode, ADMIN):
        return Written(tree, Failure(NoAuth, path))
    if operation.version not in (ANY_VERSION, znode.aversion):
        return Written(tree, Failure(BadVersion, path))
    changed = znode.with_acl(operation.acl)
    return Written(replace(tree, nodes=tree.nodes.set(path, changed)), changed.aversion)


_WRITES: dict[type[Operation[Any]], Callable[[Tree, int, Any, int, int], Written]] = {
    Create: _create,
    Delete: _delete,
    SetData: _set_data,
    Check: _check,
    SetAcl: _set_acl,
}


# --- sessions --------------------------------------------------------------------------


def open_session(tree: Tree, session: int, settings: Session) -> Tree:
    """Begin a session; it takes a zxid."""
    assert session != NOBODY, "that number means: no session"
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
    for path in gone:
        now = _without(now, path, now.nodes[path], zxid)
    now = replace(
        now,
        sessions=now.sessions.delete(session),
        ephemerals=now.ephemerals.delete(session) if gone else _forgotten(now, session),
        zxid=zxid,
    )
    return Written(now, gone, tuple(Change(Happening.DELETED, path) for path in gone))


def _forgotten(tree: Tree, session: int) -> Map[int, Map[str, int]]:
    if session in tree.ephemerals:
        return tree.ephemerals.delete(session)
    return tree.ephemerals


def ephemerals_of(tree: Tree, session: int) -> tuple[str, ...]:
    """A session's ephemerals in the order in which its end deletes them."""
    mine = tree.ephemerals.get(session)
    if not mine:
        return ()
    capacity = java.grown(SESSION_TABLE_CAPACITY, len(mine))
    return java.in_clone_order(java.in_table_order(mine.items(), capacity))
