"""A znode: its data, its counters, and the names of its children."""

from __future__ import annotations

from functools import cached_property

from immutables import Map
from msgspec import Struct
from msgspec.structs import replace

from model.answers import Seen, Stat
from model.operations import OPEN, Acl
from model.zookeeper import java

NOBODY = 0
"""The owner of a znode that is no ephemeral."""

CHILD_TABLE_CAPACITY = 8


class Znode(Struct, frozen=True, dict=True, eq=False):
    """One znode. Its identity is what a program may tell apart: data, version, owner.

    `created` counts the children ever created here; the suffix of a sequential child is
    this number, while the visible cversion counts deletions too.
    """

    data: bytes | None
    owner: int = NOBODY
    version: int = 0
    acl: tuple[Acl, ...] = OPEN
    children: Map[str, int] = Map()
    """Name -> how many had been created before it."""
    child_table: int = CHILD_TABLE_CAPACITY
    created: int = 0
    aversion: int = 0
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    ctime: int = 0
    mtime: int = 0

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

    @cached_property
    def stat(self) -> Stat:
        """The Stat a client reads."""
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

    @cached_property
    def child_names(self) -> tuple[str, ...]:
        """The names of the children in the order a server lists them."""
        return java.in_table_order(self.children.items(), self.child_table)

    def seen_by(self, session: int) -> Seen:
        """This znode as a session sees it."""
        if self.owner != NOBODY and self.owner == session:
            return self._seen_by_owner
        return self._seen_by_others

    @cached_property
    def _seen_by_owner(self) -> Seen:
        return Seen(self.data, self.version, True, self.stat)

    @cached_property
    def _seen_by_others(self) -> Seen:
        return Seen(self.data, self.version, False, self.stat)

    def with_child(self, name: str, zxid: int) -> Znode:
        """This znode after a child was created."""
        children = self.children.set(name, self.created)
        table = java.grown(self.child_table, len(children))
        created = self.created + 1
        return replace(self, children=children, child_table=table, created=created, pzxid=zxid)

    def without_child(self, name: str, zxid: int) -> Znode:
        """This znode after a child was deleted."""
        return replace(self, children=self.children.delete(name), pzxid=zxid)

    def with_data(self, data: bytes | None, zxid: int, now_ms: int) -> Znode:
        """This znode after its data was replaced, by the same data perhaps."""
        return replace(self, data=data, version=self.version + 1, mzxid=zxid, mtime=now_ms)

    def with_acl(self, acl: tuple[Acl, ...]) -> Znode:
        """This znode after its access control list was replaced."""
        return replace(self, acl=acl, aversion=self.aversion + 1)
