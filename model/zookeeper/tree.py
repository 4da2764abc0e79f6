"""The znode tree, as a value: a write makes another, which shares all that did not change."""

from __future__ import annotations

from typing import Any

from immutables import Map
from msgspec import Struct

from model.answers import Happening
from model.operations import OPEN, READ, Acl
from model.zookeeper.znodes import Znode

EPHEMERAL_TABLE_CAPACITY = 16


class Session(Struct, frozen=True):
    """What the ensemble keeps for a client: how long it may be silent, what it has shown."""

    timeout_ms: int
    identities: tuple[tuple[str, str], ...] = ()
    """(scheme, identity) pairs beside `world:anyone`."""
    ephemeral_table: int = EPHEMERAL_TABLE_CAPACITY
    """The capacity of the table that lists its ephemerals; it grows and never shrinks."""


class Tree(Struct, frozen=True):
    """All znodes, the sessions, and the zxid of the last write."""

    nodes: Map[str, Znode]
    sessions: Map[int, Session] = Map()
    ephemerals: Map[int, Map[str, int]] = Map()
    """Session -> path -> how many znodes there had been before, ever."""
    births: int = 0
    zxid: int = 0


class Change(Struct, frozen=True):
    """One thing a write did: watches fire by it, for those who may read what changed."""

    what: Happening
    path: str
    acl: tuple[Acl, ...] = OPEN
    parent_acl: tuple[Acl, ...] = OPEN


class Written(Struct, frozen=True):
    """A write done: the tree now, the answer, and what changed, in order."""

    tree: Tree
    answer: Any
    changes: tuple[Change, ...] = ()


def empty_tree() -> Tree:
    """The tree of a fresh server, with the three znodes it keeps for itself."""
    own = Map[str, int]({"zookeeper": -1})
    kept = Map[str, int]({"quota": -2, "config": -1})
    return Tree(
        nodes=Map(
            {
                "/": Znode(b"", children=own),
                "/zookeeper": Znode(b"", children=kept),
                "/zookeeper/quota": Znode(b""),
                "/zookeeper/config": Znode(b"", acl=(Acl(READ),), aversion=-1),
            }
        )
    )
