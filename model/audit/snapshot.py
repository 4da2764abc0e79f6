"""A part of ZooKeeper's tree as it was read: a value, and its certainty.

The reader (`real/client/snapshot.py`) reads everything, and then checks whether any of it has
changed in the meantime. If nothing has, all of it was in the tree together, at `zxid`. Offsets
change all the time in a healthy group, so a commit between the two passes does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from watchkeeper.model.actor.events import Stat
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event


@dataclass(frozen=True, slots=True)
class Znode:
    """A znode as it was read."""

    data: bytes | None
    stat: Stat

    @property
    def session(self) -> int:
        """The session that it is an ephemeral of; 0 for a persistent znode."""
        return self.stat.ephemeral_owner


@dataclass(frozen=True)
class Snapshot:
    """Znodes by path, and the parts that are unknown."""

    nodes: Mapping[str, Znode]
    zxid: int = 0
    """The last change that the server had applied when all had been read."""
    took_ms: int = 0
    """How long the reading took, the second look included."""
    attempts: int = 1
    """How many passes it took until nothing changed."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Path -> why it could not be read."""
    changed: tuple[str, ...] = ()
    """Znodes that changed during the pass, except offsets: they may never have existed together.
    """

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
        """The data of a znode, which has to exist."""
        return self.nodes[path].data

    def doubts(self, group: str | None) -> list[str]:
        """The reasons why the data on brokers, and on this group, is uncertain.

        What only the controller reads is uncertain for the cluster (None), and for no group.
        """
        rows = [*sorted(self.unread.items())]
        rows += [(path, "changed while it was read") for path in self.changed]
        return [
            f"{path} {why}"
            for path, why in rows
            if paths.group_of(path) in (None, group)
            and (group is None or not paths.is_of_controller(path))
        ]

    @property
    def newest_ms(self) -> int | None:
        """When the newest of these znodes was written, by the clock of ZooKeeper's leader."""
        return max((node.stat.mtime for node in self.nodes.values()), default=None)


def is_steady(path: str) -> bool:
    """Whether a change of this znode during a pass makes the pass inconsistent."""
    return paths.parse_offset(path) is None and not paths.is_above_offsets(path)


def same(before: Stat, after: Stat | None) -> bool:
    """Whether a znode, and the list of its children, is unchanged."""
    return after is not None and (before.czxid, before.mzxid, before.pzxid) == (
        after.czxid,
        after.mzxid,
        after.pzxid,
    )


def snapshot_of(nodes: Iterable[tuple[str, bytes | None, int]]) -> Snapshot:
    """A snapshot of znodes given by path, data and session, for callers without a ZooKeeper."""
    return Snapshot(
        {
            path: Znode(data, Stat(1, 1, 0, 0, 0, 0, 0, session, len(data or b""), 0, 1))
            for path, data, session in nodes
        }
    )


def snapshot_after(events: Iterable[Event]) -> Snapshot:
    """The registry after the writes of one ensemble, as its trace shows them from the start."""
    nodes: dict[str, tuple[bytes, int]] = {}
    for event in events:
        if event.kind in (EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED):
            nodes = {path: node for path, node in nodes.items() if node[1] != event.session}
        for did, path, session, *data in (
            event.detail["did"] if event.kind == EventKind.APPLIED else ()
        ):
            if did == "deleted":
                nodes.pop(path, None)
            else:
                nodes[path] = ((data[0] or "").encode(), session)
    return snapshot_of((path, *node) for path, node in nodes.items())
