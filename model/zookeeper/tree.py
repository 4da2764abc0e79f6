"""The znode tree as a value: a write makes another one, which shares all unchanged parts."""

from __future__ import annotations

from typing import Any

from immutables import Map
from msgspec import Struct

from watchkeeper.model.actor.events import WatchEventType
from watchkeeper.model.actor.operations import OPEN, READ, Acl
from watchkeeper.model.zookeeper.znode import Znode

EPHEMERAL_TABLE_CAPACITY = 16


class Session(Struct, frozen=True):
    """A session as the ensemble keeps it; identities belong to its connections instead."""

    timeout_ms: int
    ephemeral_table: int = EPHEMERAL_TABLE_CAPACITY
    """The capacity of the Java hash table of its ephemerals; it never shrinks."""


class Tree(Struct, frozen=True):
    """All znodes, the sessions, and the zxid of the last write."""

    nodes: Map[str, Znode]
    sessions: Map[int, Session] = Map()
    ephemerals: Map[int, Map[str, int]] = Map()
    """Session -> path -> number of znodes that were created before it, in all."""
    births: int = 0
    zxid: int = 0
    limited: Map[str, None] = Map()
    """The paths of the containers and of the znodes with a TTL, so that none is searched for."""


class Change(Struct, frozen=True):
    """One change by a write. It fires watches of clients that have permission to read it."""

    what: WatchEventType
    path: str
    acl: tuple[Acl, ...] = OPEN
    parent_acl: tuple[Acl, ...] = OPEN
    parent: str = ""
    """The path of the parent, whose children changed; empty where only data did."""


class Written(Struct, frozen=True):
    """The result of a write: the tree, the answer, and the changes in order."""

    tree: Tree
    answer: Any
    changes: tuple[Change, ...] = ()
    znodes: tuple[Znode | None, ...] = ()
    """Of a multi alone: the znode after each of its operations; None for a delete and a check."""


def empty_tree() -> Tree:
    """Return the tree of a new server, with the znodes that it reserves for itself."""
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
