"""A part of ZooKeeper's tree as it was read: a value, and how far it can be trusted.

Who reads it (`real/snapshot.py`) reads everything, and then finds out whether any of it
has changed in the meantime. If nothing has, all of it stood in the tree together, at
the moment of `zxid`. Offsets change all the time in a healthy group, so a commit between
the two looks spoils nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from model import registry
from model.answers import Stat


@dataclass(frozen=True, slots=True)
class Znode:
    """What was read of one znode."""

    data: bytes | None
    stat: Stat

    @property
    def session(self) -> int:
        """The session that it will vanish with; 0 for a persistent one."""
        return self.stat.ephemeral_owner


@dataclass(frozen=True)
class Snapshot:
    """Znodes by their paths, and what is not known of them."""

    nodes: Mapping[str, Znode]
    zxid: int = 0
    """The last change that the server had applied when all had been read."""
    took_ms: int = 0
    """How long the reading took, the second look included."""
    attempts: int = 1
    """How often everything was read until nothing changed meanwhile."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Path -> why it could not be read."""
    changed: tuple[str, ...] = ()
    """What changed while it was read, offsets aside: it need never have stood together."""

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        children: dict[str, list[str]] = {}
        for path in sorted(self.nodes):
            above, _, name = path.rpartition("/")
            children.setdefault(above, []).append(name)
        return children

    def children(self, path: str) -> list[str]:
        """The names below a path, sorted."""
        return self._children.get(path, [])

    def data(self, path: str) -> bytes | None:
        """What a znode holds; it has to be there."""
        return self.nodes[path].data

    def doubts(self, group: str | None) -> list[str]:
        """Why what was read of the brokers, and of this group, is not certain."""
        rows = [*sorted(self.unread.items())]
        rows += [(path, "changed while it was read") for path in self.changed]
        return [f"{path} {why}" for path, why in rows if registry.group_of(path) in (None, group)]

    @property
    def newest_ms(self) -> int | None:
        """When the last of what was read was written, by the clock of ZooKeeper's leader."""
        return max((one.stat.mtime for one in self.nodes.values()), default=None)


def is_steady(path: str) -> bool:
    """Whether a change of this znode while others are read spoils what they say together."""
    return registry.parse_offset(path) is None and not registry.is_above_offsets(path)


def same(before: Stat, after: Stat | None) -> bool:
    """Whether a znode, and the list of its children, is the one that was read."""
    return after is not None and (before.czxid, before.mzxid, before.pzxid) == (
        after.czxid,
        after.mzxid,
        after.pzxid,
    )


def snapshot_of(nodes: Iterable[tuple[str, bytes | None, int]]) -> Snapshot:
    """A snapshot of znodes given by path, data and session, for whoever has no ZooKeeper."""
    return Snapshot(
        {
            path: Znode(data, Stat(1, 1, 0, 0, 0, 0, 0, session, len(data or b""), 0, 1))
            for path, data, session in nodes
        }
    )
