"""Which containers and znodes with a TTL are due to be deleted.

A server looks at intervals (Apache's every minute), and requests a DeleteContainer for each
path that is due. The request looks again: a child may have been created in between.

  container   due when it has no child and once had one; a new one may wait for its first
  TTL         due when it has no child, and its data is older than its TTL

The deletion of a child does not touch a parent's data, so a znode whose TTL passed while it
had children is due as soon as they are gone.
"""

from __future__ import annotations

from collections.abc import Callable

from watchkeeper.model.actor.operations import CONTAINER_MS
from watchkeeper.model.zookeeper.tree import Tree
from watchkeeper.model.zookeeper.znode import Znode

LONGEST_TTL_MS = (1 << 40) - 1
"""The longest TTL that Apache's servers can store, about 34 years."""


def due_containers(tree: Tree) -> tuple[str, ...]:
    """Return the paths of the containers to delete, sorted."""
    return _due(tree, lambda znode: znode.lifetime_ms == CONTAINER_MS and znode.created > 0)


def due_by_ttl(tree: Tree, now_ms: int) -> tuple[str, ...]:
    """Return the paths whose TTL has passed at `now_ms`, sorted."""
    return _due(tree, lambda znode: 0 < znode.lifetime_ms < now_ms - znode.mtime)


def _due(tree: Tree, is_over: Callable[[Znode], bool]) -> tuple[str, ...]:
    # Only znodes with a lifetime are looked at: most trees have none.
    candidates = ((path, tree.nodes[path]) for path in tree.limited)
    due = (path for path, znode in candidates if not znode.children and is_over(znode))
    return tuple(sorted(due))
