"""The service: every tree of znodes that the search meets, and the effect of every operation.

It executes operations with `model.zookeeper`. Trees are numbered by what a program can tell
apart (data, version, owner), and the result of each operation on a tree is cached. Every
session that can exist is open in every tree; whether it is alive is part of its process.

Two things are abstracted: the version of a znode that only counts writes (`unversioned` says
so by path), and the order of children: one that is not the alphabet's for half of the
processes, and its reverse for the others, so a program that forgets to sort differs from
another one. How many children a znode ever had counts only below znodes with sequential
children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from zlib import crc32

from immutables import Map
from msgspec.structs import replace

from watchkeeper.checker.actors.actor_state import Broadcast
from watchkeeper.checker.contracts.contracts import UNREAD
from watchkeeper.checker.state_space.intern import Interner
from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import ZnodeView
from watchkeeper.model.actor.operations import (
    WRITES,
    Create,
    Exists,
    GetChildren,
    Multi,
    Operation,
    Sync,
)
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.reads import READS
from watchkeeper.model.zookeeper.tree import Session, Tree, empty_tree
from watchkeeper.model.zookeeper.znode import Znode

Key = tuple[Map[str, Znode], tuple[tuple[str, int], ...]]

TIMEOUT_MS = 6000


class Applied(NamedTuple):
    """An operation done: the tree's number now, the answer, what changed."""

    tree: int
    answer: Any
    broadcast: Broadcast = ()
    deleted: tuple[tuple[str, int], ...] = ()
    """Ephemerals that it deleted, with their owners."""


class ZnodeStore:
    """Every tree that was met, and what operations make of them."""

    def __init__(
        self,
        sessions: Iterable[int],
        unversioned: Callable[[str], bool] | None = None,
        *,
        lists_in_reverse: Callable[[int], bool] = lambda session: False,
    ) -> None:
        self.trees: list[Tree] = []
        self.unversioned = unversioned or (lambda path: False)
        self.lists_in_reverse = lists_in_reverse
        """Session -> whether it gets children in the reverse of the other sessions' order."""
        self._keys: Interner[Key] = Interner()
        self._applied: dict[tuple[int, int, Operation[Any]], Applied] = {}
        self._ended: dict[tuple[int, int], Applied] = {}
        tree = empty_tree()
        for session in sessions:
            tree = writes.open_session(tree, session, Session(TIMEOUT_MS))
        self.first = self._number(tree, ())

    def apply(self, tree: int, session: int, operation: Operation[Any]) -> Applied:
        """Do an operation for a session that is alive."""
        key = (tree, session, operation)
        done = self._applied.get(key)
        if done is None:
            done = self._applied[key] = self._apply(tree, session, operation)
        return done

    def end(self, tree: int, session: int) -> Applied:
        """End a session: its ephemerals go. Its number can be used again."""
        key = (tree, session)
        done = self._ended.get(key)
        if done is None:
            before = self.trees[tree]
            written = writes.close_session(before, session)
            after = writes.open_session(written.tree, session, Session(TIMEOUT_MS))
            number = self._number(after, self._keys[tree][1])
            done = self._ended[key] = Applied(number, None, written.changes)
        return done

    # --- what is done once -------------------------------------------------------------

    def _apply(self, number: int, session: int, operation: Operation[Any]) -> Applied:
        tree = self.trees[number]
        kind = type(operation)
        if kind in WRITES:
            return self._write(number, tree, session, operation)
        if isinstance(operation, Sync):
            return Applied(number, operation.path)
        assert kind in READS, f"{kind.__name__} is refused before any program can request it"
        answer = READS[kind](tree, session, operation, ())
        if type(answer) is ZnodeView:
            data = None if kind is Exists else answer.data  # no server returns it
            answer = ZnodeView(data, answer.version, answer.mine, UNREAD)
        elif kind is GetChildren and type(answer) is tuple:
            reverse = self.lists_in_reverse(session)
            answer = tuple(sorted(answer, key=_arbitrary_order, reverse=reverse))
        return Applied(number, answer)

    def _write(self, number: int, tree: Tree, session: int, operation: Operation[Any]) -> Applied:
        written = writes.write(tree, session, operation)
        if type(written.answer) is Failure:
            return Applied(number, written.answer)
        nodes = written.tree.nodes
        for change in written.changes:
            znode = nodes.get(change.path)
            if znode is not None and znode.version and self.unversioned(change.path):
                nodes = nodes.set(change.path, replace(znode, version=0))
        after = replace(written.tree, nodes=nodes)
        deleted = tuple(
            (change.path, tree.nodes[change.path].owner)
            for change in written.changes
            if change.path not in nodes and change.path in tree.nodes
        )
        counters = self._counters(number, after, operation, written.answer)
        return Applied(self._number(after, counters), written.answer, written.changes, deleted)

    def _counters(
        self, number: int, after: Tree, operation: Operation[Any], answer: Any
    ) -> tuple[tuple[str, int], ...]:
        """How many children there have been where sequential ones are made."""
        parts = operation.operations if isinstance(operation, Multi) else (operation,)
        above = {path for path, _ in self._keys[number][1]}
        for part in parts:
            if isinstance(part, Create) and part.sequential:
                above.add(part.path.rpartition("/")[0] or "/")
        kept = [path for path in sorted(above) if path in after.nodes]
        return tuple((path, after.nodes[path].created) for path in kept)

    def _number(self, tree: Tree, counters: tuple[tuple[str, int], ...]) -> int:
        number = self._keys.of((tree.nodes, counters))
        if number == len(self.trees):
            self.trees.append(tree)
        return number


def _arbitrary_order(name: str) -> tuple[int, str]:
    """An order of names that is always the same and not that of the alphabet."""
    return crc32(name.encode()), name
