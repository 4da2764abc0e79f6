"""What each read returns.

Paths are not validated: a path that cannot exist has no znode. The empty path is the root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from watchkeeper.model.actor.errors import BadArguments, Failure, NoAuth, NoNode
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import (
    ADMIN,
    OPEN,
    READ,
    Acl,
    CountDescendants,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    GetEphemerals,
    MultiRead,
    Operation,
)
from watchkeeper.model.zookeeper import paths
from watchkeeper.model.zookeeper.acl import Identities, is_allowed, readable
from watchkeeper.model.zookeeper.tree import Tree
from watchkeeper.model.zookeeper.znode import Znode


def _znode(tree: Tree, path: str) -> Znode | None:
    return tree.nodes.get(path or paths.ROOT)


def _read_exists(
    tree: Tree, session: int, operation: Exists, identities: Identities
) -> ZnodeView | Failure | None:
    if "\0" in operation.path:
        return Failure(BadArguments, operation.path)
    znode = _znode(tree, operation.path)
    if znode is None:
        return None
    if znode.acl is not OPEN and not is_allowed(identities, znode.acl, READ):
        return Failure(NoAuth, operation.path)
    return znode.seen_by(session)


def _read_data(
    tree: Tree, session: int, operation: GetData, identities: Identities
) -> ZnodeView | Failure:
    znode = tree.nodes.get(operation.path or paths.ROOT)
    if znode is None:
        return Failure(NoNode, operation.path)
    if znode.acl is not OPEN and not is_allowed(identities, znode.acl, READ):
        return Failure(NoAuth, operation.path)
    return znode.seen_by(session)


def _read_children(
    tree: Tree, session: int, operation: GetChildren, identities: Identities
) -> tuple[str, ...] | Failure:
    znode = _znode(tree, operation.path)
    if znode is None:
        return Failure(NoNode, operation.path)
    if not is_allowed(identities, znode.acl, READ):
        return Failure(NoAuth, operation.path)
    return znode.child_names


def _read_acl(
    tree: Tree, session: int, operation: GetAcl, identities: Identities
) -> tuple[Acl, ...] | Failure:
    znode = _znode(tree, operation.path)
    if znode is None:
        return Failure(NoNode, operation.path)
    if not is_allowed(identities, znode.acl, READ | ADMIN):
        return Failure(NoAuth, operation.path)
    return readable(identities, znode.acl)


def _count_descendants(
    tree: Tree, session: int, operation: CountDescendants, identities: Identities
) -> int | Failure:
    path = operation.path
    znode = _znode(tree, path)
    if znode is None:
        return Failure(NoNode, path)
    if not is_allowed(identities, znode.acl, READ):
        return Failure(NoAuth, path)
    if path in ("", paths.ROOT):
        return len(tree.nodes) - len(path)  # by the empty path Apache's servers count the root
    below = [path]
    for parent in below:
        below.extend(f"{parent}/{name}" for name in tree.nodes[parent].children)
    return len(below) - 1


def _read_several(
    tree: Tree, session: int, operation: MultiRead, identities: Identities
) -> tuple[Any, ...]:
    return tuple(
        READS[type(part)](tree, session, part, identities) for part in operation.operations
    )


def _read_ephemerals(
    tree: Tree, session: int, operation: GetEphemerals, identities: Identities
) -> tuple[str, ...] | Failure:
    mine = tree.ephemerals.get(session)
    if mine is None:
        return ()
    prefix = operation.path
    if prefix.strip() in ("", paths.ROOT):
        return tuple(sorted(mine))
    return tuple(sorted([path for path in mine if path.startswith(prefix)]))


READS: dict[type[Operation[Any]], Callable[[Tree, int, Any, Identities], Any]] = {
    Exists: _read_exists,
    GetData: _read_data,
    GetChildren: _read_children,
    GetAcl: _read_acl,
    GetEphemerals: _read_ephemerals,
    CountDescendants: _count_descendants,
    MultiRead: _read_several,
}
