"""The service: one tree of znodes as a value, with what every operation makes of it.

It is `model.zookeeper`, taken as it is. Trees are numbered by what a program can tell
apart (data, version, owner), and each operation on a tree is done once. Every session that
there can be is open in every tree; whether it is alive its process knows (`local`).

Two things are not told apart: the version of a znode that only says how often something
was written (`unversioned` names them by path), and the order of children, which is fixed
and means nothing. How many children a znode ever had counts only where there was a
sequential one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from zlib import crc32

from immutables import Map
from msgspec.structs import replace

from explore.local import Cast
from explore.numbering import Numbering
from explore.promises import UNREAD
from model.answers import Seen
from model.errors import Failure
from model.operations import WRITES, Create, Exists, GetChildren, Multi, Operation, Sync
from model.zookeeper import writes
from model.zookeeper.reads import READS
from model.zookeeper.tree import Session, Tree, empty_tree
from model.zookeeper.znodes import Znode

Key = tuple[Map[str, Znode], tuple[tuple[str, int], ...]]

TIMEOUT_MS = 6000


class Done(NamedTuple):
    """An operation done: the tree's number now, the answer, what changed."""

    tree: int
    answer: Any
    cast: Cast = ()
    deleted: tuple[tuple[str, int], ...] = ()
    """Ephemerals that it deleted, with their owners."""


class Service:
    """Every tree that was met, and what operations make of them."""

    def __init__(
        self, sessions: Iterable[int], unversioned: Callable[[str], bool] | None = None
    ) -> None:
        self.trees: list[Tree] = []
        self.unversioned = unversioned or (lambda path: False)
        self._keys: Numbering[Key] = Numbering()
        self._done: dict[tuple[int, int, Operation[Any]], Done] = {}
        self._ended: dict[tuple[int, int], Done] = {}
        tree = empty_tree()
        for session in sessions:
            tree = writes.open_session(tree, session, Session(TIMEOUT_MS))
        self.first = self._number(tree, ())

    def apply(self, tree: int, session: int, operation: Operation[Any]) -> Done:
        """Do an operation for a session that is alive."""
        key = (tree, session, operation)
        done = self._done.get(key)
        if done is None:
            done = self._done[key] = self._apply(tree, session, operation)
        return done

    def end(self, tree: int, session: int) -> Done:
        """End a session: its ephemerals go. Its number can be used again."""
        key = (tree, session)
        done = self._ended.get(key)
        if done is None:
            before = self.trees[tree]
            written = writes.close_session(before, session)
            after = writes.open_session(written.tree, session, Session(TIMEOUT_MS))
            number = self._number(after, self._keys[tree][1])
            done = self._ended[key] = Done(number, None, written.changes)
        return done

    # --- what is done once -------------------------------------------------------------

    def _apply(self, number: int, session: int, operation: Operation[Any]) -> Done:
        tree = self.trees[number]
        kind = type(operation)
        if kind in WRITES:
            return self._write(number, tree, session, operation)
        if isinstance(operation, Sync):
            return Done(number, operation.path)
        assert kind in READS, f"{kind.__name__} is refused before anybody can ask for it"
        answer = READS[kind](tree, session, operation)
        if type(answer) is Seen:
            data = None if kind is Exists else answer.data  # no server tells it
            answer = Seen(data, answer.version, answer.mine, UNREAD)
        elif kind is GetChildren and type(answer) is tuple:
            answer = tuple(sorted(answer, key=_shuffled))
        return Done(number, answer)

    def _write(self, number: int, tree: Tree, session: int, operation: Operation[Any]) -> Done:
        written = writes.write(tree, session, operation)
        if type(written.answer) is Failure:
            return Done(number, written.answer)
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
        return Done(self._number(after, counters), written.answer, written.changes, deleted)

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


def _shuffled(name: str) -> tuple[int, str]:
    """An order of names that is always the same and not that of the alphabet."""
    return crc32(name.encode()), name
