"""Which clients are notified of which change.

A server keeps watches per connection: a client whose connection breaks loses them all.
There are four kinds. Two fire once: *data* watches (set by `exists` and `get`) and
*child* watches (set by `get_children`). Two stay: *persistent* watches, and
*recursive* ones that also cover every znode below theirs. A client may have all four at one
path; each is set, fires and is removed without the others.

  change of N     data on N   child on N   child on N's parent   persistent   recursive
  created         CREATED     -            CHILDREN              both         CREATED
  data replaced   CHANGED     -            -                     CHANGED      CHANGED
  deleted         DELETED     DELETED      CHILDREN              both         DELETED

A client is notified of one change of one path once, however many watches it has there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from watchkeeper.model.actor.events import Fired, WatchEventType
from watchkeeper.model.actor.operations import OPEN, Acl, WatchKind
from watchkeeper.model.zookeeper.paths import ROOT, parent_of
from watchkeeper.model.zookeeper.tree import Change, Tree

Kind = Literal["data", "child", "persistent", "recursive"]
Table = Map[str, Map[int, None]]
"""Path -> the clients that watch it."""

Reader = Callable[[int, tuple[Acl, ...]], bool]
"""Whether a client may read what has this access control list."""

KINDS: tuple[Kind, ...] = ("data", "child", "persistent", "recursive")
KINDS_OF: dict[WatchKind, tuple[Kind, ...]] = {
    "any": KINDS,
    "data": ("data",),
    "child": ("child",),
    "persistent": ("persistent",),
    "recursive": ("recursive",),
}
"""The kinds of watches that a client may check or remove at once."""
_NO_SESSIONS: Map[int, None] = Map()
_NOTHING: Map[tuple[str, str], None] = Map()


class Watches(Struct, frozen=True):
    """Every watch of one server."""

    data: Table = Map()
    child: Table = Map()
    persistent: Table = Map()
    recursive: Table = Map()
    paths: Map[int, Map[tuple[str, str], None]] = Map()
    """Client -> the (kind, path) pairs it has watches at."""

    def set(self, client: int, kind: Kind, path: str) -> Watches:
        """Set a watch; no change if the client has it already."""
        table: Table = getattr(self, kind)
        there = table.get(path, _NO_SESSIONS)
        if client in there:
            return self
        mine = self.paths.get(client, _NOTHING).set((kind, path), None)
        table = table.set(path, there.set(client, None))
        return self._with(kind, table, self.paths.set(client, mine))

    def set_each(self, client: int, kind: Kind, paths: Iterable[str]) -> Watches:
        """Set a watch at each path, as `set` does, with one change of each table."""
        mine = self.paths.get(client, _NOTHING)
        new = {(kind, path): None for path in paths if (kind, path) not in mine}
        if not new:
            return self
        # A mutation copies an inner node of the table once, and not for each path below it.
        table = getattr(self, kind).mutate()
        for _, path in new:
            table[path] = table.get(path, _NO_SESSIONS).set(client, None)
        return self._with(kind, table.finish(), self.paths.set(client, mine.update(new)))

    def _with(
        self, kind: str, table: Table, paths: Map[int, Map[tuple[str, str], None]]
    ) -> Watches:
        """These watches with another table of one kind."""
        # Nearly all watches are of the two kinds that fire once; `replace` takes keywords.
        if kind == "data":
            return Watches(table, self.child, self.persistent, self.recursive, paths)
        if kind == "child":
            return Watches(self.data, table, self.persistent, self.recursive, paths)
        return replace(self, paths=paths, **{kind: table})

    def has(self, client: int, kind: Kind, path: str) -> bool:
        """Whether this client has such a watch."""
        return (kind, path) in self.paths.get(client, _NOTHING)

    def drop_client(self, client: int) -> Watches:
        """Drop every watch of a client, whose connection is gone."""
        mine = self.paths.get(client)
        if mine is None:
            return self
        tables: dict[str, Any] = {}
        for kind, path in mine:
            if kind not in tables:
                tables[kind] = getattr(self, kind).mutate()
            others = tables[kind][path].delete(client)
            if others:
                tables[kind][path] = others
            else:
                del tables[kind][path]
        changed = {kind: table.finish() for kind, table in tables.items()}
        return replace(self, paths=self.paths.delete(client), **changed)

    def has_any(self, client: int, path: str, kind: WatchKind) -> bool:
        """Whether this client has a watch of this kind, which may be `any`, at the path."""
        return any(self.has(client, one, path) for one in KINDS_OF[kind])

    def drop_path(self, client: int, path: str, kind: WatchKind = "any") -> Watches:
        """Drop every watch of a client at one path, or those of one kind."""
        now = self
        for one in KINDS_OF[kind]:
            if now.has(client, one, path):
                now = now._without(client, one, path)
        return now

    def _without(self, client: int, kind: str, path: str) -> Watches:
        table: Table = getattr(self, kind)
        there = table[path].delete(client)
        mine = self.paths[client].delete((kind, path))
        table = table.set(path, there) if there else table.delete(path)
        paths = self.paths.set(client, mine) if mine else self.paths.delete(client)
        return self._with(kind, table, paths)

    def fire(
        self, changes: Iterable[Change], may_read: Reader
    ) -> tuple[Watches, list[tuple[int, Fired]]]:
        """Fire the watches on these changes; returns pairs of client and notification, in order.

        A client without permission to read the znode is not notified, but its watch is used
        up all the same.
        """
        now = self
        fired: list[tuple[int, Fired]] = []
        for change in changes:
            what, path = change.what, change.path
            if path in now.data or path in now.child or now.persistent or now.recursive:
                now = now._fire_at(Fired(what, path), _ONCE[what], change.acl, may_read, fired)
            parent = change.parent
            if parent and (parent in now.child or now.persistent):
                event = Fired(WatchEventType.CHILDREN, parent)
                now = now._fire_at(event, ("child",), change.parent_acl, may_read, fired)
        return now, fired

    def may_fire(self, changes: Iterable[Change]) -> bool:
        """Whether one of these changes may fire a watch."""
        if self.persistent or self.recursive:
            return True
        data, child = self.data, self.child
        for change in changes:
            path = change.path
            if path in data or path in child or change.parent in child:
                return True
        return False

    def _fire_at(
        self,
        event: Fired,
        once: tuple[Kind, ...],
        acl: tuple[Acl, ...],
        may_read: Reader,
        fired: list[tuple[int, Fired]],
    ) -> Watches:
        now, path = self, event.path
        clients: set[int] = set()
        for kind in once:
            table: Table = getattr(now, kind)
            for client in list(table.get(path, ())):
                clients.add(client)
                now = now._without(client, kind, path)
        clients.update(self.persistent.get(path, ()))
        if self.recursive and event.what is not WatchEventType.CHILDREN:
            for above in _self_and_above(path):
                clients.update(self.recursive.get(above, ()))
        # A server notifies in no fixed order; sorted, equal runs have equal traces.
        notified = sorted(clients)
        if acl is not OPEN:
            notified = [client for client in notified if may_read(client, acl)]
        fired.extend([(client, event) for client in notified])
        return now


_ONCE: dict[WatchEventType, tuple[Kind, ...]] = {
    WatchEventType.CREATED: ("data",),
    WatchEventType.CHANGED: ("data",),
    WatchEventType.DELETED: ("data", "child"),
}


def _self_and_above(path: str) -> Iterator[str]:
    while path != ROOT:
        yield path
        path = parent_of(path) or ROOT
    yield ROOT


class Wanted(Struct, frozen=True):
    """The watches that a client had when its connection broke, to be set again."""

    data: tuple[str, ...] = ()
    exist: tuple[str, ...] = ()
    child: tuple[str, ...] = ()
    persistent: tuple[str, ...] = ()
    recursive: tuple[str, ...] = ()


def set_watches(
    watches: Watches, tree: Tree, client: int, wanted: Wanted, relative_zxid: int
) -> tuple[Watches, list[Fired]]:
    """Set a client's watches again, or fire those whose znode has changed meanwhile.

    A change is one after `relative_zxid`, the last zxid that the client has seen. A znode
    that was created and deleted while the client was disconnected goes unnoticed.
    Java's client does this at every
    reconnection; kazoo does not.
    """
    now = watches
    missed: list[Fired] = []

    def look(path: str, event: WatchEventType | None, kind: Kind) -> None:
        nonlocal now
        if event is None:
            now = now.set(client, kind, path)
        else:
            missed.append(Fired(event, path))

    for path in wanted.data:
        look(path, _missed_data(tree, path, relative_zxid), "data")
    for path in wanted.exist:
        look(path, WatchEventType.CREATED if path in tree.nodes else None, "data")
    for path in wanted.child:
        look(path, _missed_children(tree, path, relative_zxid), "child")
    for path in wanted.persistent:
        now = now.set(client, "persistent", path)
    for path in wanted.recursive:
        now = now.set(client, "recursive", path)
    return now, missed


def _missed_data(tree: Tree, path: str, zxid: int) -> WatchEventType | None:
    znode = tree.nodes.get(path)
    if znode is None:
        return WatchEventType.DELETED
    return WatchEventType.CHANGED if znode.mzxid > zxid else None


def _missed_children(tree: Tree, path: str, zxid: int) -> WatchEventType | None:
    znode = tree.nodes.get(path)
    if znode is None:
        return WatchEventType.DELETED
    return WatchEventType.CHILDREN if znode.pzxid > zxid else None
