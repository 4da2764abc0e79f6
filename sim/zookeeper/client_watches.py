"""The watches a client of Java believes it has left, so that it can leave them again."""

from __future__ import annotations

from typing import Any

from model.answers import Fired, Happening
from model.errors import Failure
from model.operations import (
    AddWatch,
    Exists,
    GetChildren,
    GetData,
    Pipelined,
    RemoveWatches,
)
from model.zookeeper.watches import Wanted


class ArmedWatches:
    """Paths by kind of watch, in the order in which they were left."""

    __slots__ = ("_child", "_data", "_exist", "_persistent", "_recursive")

    def __init__(self) -> None:
        self._data: dict[str, None] = {}
        self._exist: dict[str, None] = {}
        self._child: dict[str, None] = {}
        self._persistent: dict[str, None] = {}
        self._recursive: dict[str, None] = {}

    def clear(self) -> None:
        """The session is over, and so are its watches."""
        for table in self._tables():
            table.clear()

    def _tables(self) -> tuple[dict[str, None], ...]:
        return self._data, self._exist, self._child, self._persistent, self._recursive

    def note_reply(self, ask: Any, answer: Any) -> None:
        """An answer has come: watches have been left, or taken back."""
        if type(ask) is Pipelined:
            if type(answer) is tuple:
                for part, one in zip(ask.operations, answer, strict=True):
                    self.note_reply(part, one)
        elif isinstance(ask, RemoveWatches):
            if type(answer) is not Failure:
                for table in self._tables():
                    table.pop(ask.path, None)
        elif isinstance(ask, AddWatch):
            (self._recursive if ask.recursive else self._persistent)[ask.path] = None
        elif isinstance(ask, Exists | GetData | GetChildren) and ask.watch:
            self._note_read(ask, answer)

    def _note_read(self, ask: Exists | GetData | GetChildren, answer: Any) -> None:
        if type(answer) is Failure:
            return
        if isinstance(ask, GetChildren):
            self._child[ask.path] = None
        elif answer is None:
            self._exist[ask.path] = None
        else:
            self._data[ask.path] = None

    def note_event(self, event: Fired) -> None:
        """A watch has fired and is used up."""
        if event.what is Happening.CHILDREN:
            self._child.pop(event.path, None)
            return
        self._data.pop(event.path, None)
        self._exist.pop(event.path, None)
        if event.what is Happening.DELETED:
            self._child.pop(event.path, None)

    def wanted(self) -> Wanted:
        """All of them."""
        return Wanted(
            tuple(self._data),
            tuple(self._exist),
            tuple(self._child),
            tuple(self._persistent),
            tuple(self._recursive),
        )
