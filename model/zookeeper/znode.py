"""A znode: its data, its counters, and the names of its children."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from watchkeeper.model.actor.events import Stat, ZnodeView
from watchkeeper.model.actor.operations import OPEN, UNLIMITED_MS, Acl
from watchkeeper.model.zookeeper import java_hash_order

NO_SESSION = 0
"""The owner of a persistent znode."""

CHILD_TABLE_CAPACITY = 8


V = TypeVar("V")


class Remembered(Generic[V]):
    """A value that is computed at its first use. (`cached_property` takes a lock in 3.11.)"""

    def __init__(self, compute: Callable[[Any], V]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Remembered[V]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> V: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> V | Remembered[V]:
        if instance is None:
            return self
        # From now on the attribute is found in the instance, before this is called.
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


class Znode(Struct, frozen=True, dict=True, eq=False):
    """One znode. Equality compares what a program can distinguish: data, version, owner, ACL.

    `created` counts all children ever created here. It is the suffix of a sequential child,
    while the visible cversion counts deletions too.
    """

    data: bytes | None
    owner: int = NO_SESSION
    version: int = 0
    acl: tuple[Acl, ...] = OPEN
    children: Map[str, int] = Map()
    """Name -> number of children that were created before it."""
    child_table: int = CHILD_TABLE_CAPACITY
    created: int = 0
    aversion: int = 0
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    ctime: int = 0
    mtime: int = 0
    lifetime_ms: int = UNLIMITED_MS

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Znode
            and self.data == other.data
            and self.owner == other.owner
            and self.version == other.version
            and self.acl == other.acl
        )

    def __hash__(self) -> int:
        return hash((self.data, self.owner, self.version, self.acl))

    @Remembered
    def stat(self) -> Stat:
        """The Stat that a client reads."""
        return Stat(
            czxid=self.czxid,
            mzxid=self.mzxid,
            ctime=self.ctime,
            mtime=self.mtime,
            version=self.version,
            cversion=2 * self.created - len(self.children),
            aversion=self.aversion,
            ephemeral_owner=self.owner,
            data_length=len(self.data) if self.data is not None else 0,
            num_children=len(self.children),
            pzxid=self.pzxid,
        )

    @Remembered
    def child_names(self) -> tuple[str, ...]:
        """The names of the children in the order a server lists them."""
        return java_hash_order.in_table_order(self.children.items(), self.child_table)

    def seen_by(self, session: int) -> ZnodeView:
        """Return the view of this znode in a session."""
        if self.owner != NO_SESSION and self.owner == session:
            return self._seen_by_owner
        return self._seen_by_others

    @Remembered
    def _seen_by_owner(self) -> ZnodeView:
        return ZnodeView(self.data, self.version, True, self.stat)

    @Remembered
    def _seen_by_others(self) -> ZnodeView:
        return ZnodeView(self.data, self.version, False, self.stat)

    def with_child(self, name: str, zxid: int) -> Znode:
        """This znode after a child was created."""
        children = self.children.set(name, self.created)
        table = java_hash_order.grown(self.child_table, len(children))
        created = self.created + 1
        return replace(self, children=children, child_table=table, created=created, pzxid=zxid)

    def without_child(self, name: str, zxid: int) -> Znode:
        """This znode after a child was deleted."""
        return replace(self, children=self.children.delete(name), pzxid=zxid)

    def with_data(self, data: bytes | None, zxid: int, now_ms: int) -> Znode:
        """This znode after its data was replaced, even by equal data."""
        return replace(self, data=data, version=self.version + 1, mzxid=zxid, mtime=now_ms)

    def with_acl(self, acl: tuple[Acl, ...]) -> Znode:
        """This znode after its access control list was replaced."""
        return replace(self, acl=acl, aversion=self.aversion + 1)
