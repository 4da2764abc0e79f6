"""The watches a client of Java believes it has left, so that it can leave them again."""

from __future__ import annotations

from typing import Any

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Fired, WatchEventType
from watchkeeper.model.actor.operations import (
    AddWatch,
    Exists,
    GetChildren,
    GetData,
    Pipelined,
    RemoveWatches,
    WatchKind,
)
from watchkeeper.model.zookeeper.watches import Wanted


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

    def _tables_of(self, kind: WatchKind) -> tuple[dict[str, None], ...]:
        if kind == "any":
            return self._tables()
        if kind == "data":
            return self._data, self._exist
        one = {
            "child": self._child,
            "persistent": self._persistent,
            "recursive": self._recursive,
        }
        return (one[kind],)

    def note_reply(self, effect: Any, answer: Any) -> None:
        """An answer has come: watches have been left, or taken back."""
        if type(effect) is Pipelined:
            if type(answer) is tuple:
                for part, reply in zip(effect.operations, answer, strict=True):
                    self.note_reply(part, reply)
        elif isinstance(effect, RemoveWatches):
            if type(answer) is not Failure:
                for table in self._tables_of(effect.kind):
                    table.pop(effect.path, None)
        elif isinstance(effect, AddWatch):
            (self._recursive if effect.recursive else self._persistent)[effect.path] = None
        elif isinstance(effect, Exists | GetData | GetChildren) and effect.watch:
            self._note_read(effect, answer)

    def _note_read(self, effect: Exists | GetData | GetChildren, answer: Any) -> None:
        if type(answer) is Failure:
            return
        if isinstance(effect, GetChildren):
            self._child[effect.path] = None
        elif answer is None:
            self._exist[effect.path] = None
        else:
            self._data[effect.path] = None

    def note_event(self, event: Fired) -> None:
        """A watch has fired and is used up."""
        if event.what is WatchEventType.CHILDREN:
            self._child.pop(event.path, None)
            return
        self._data.pop(event.path, None)
        self._exist.pop(event.path, None)
        if event.what is WatchEventType.DELETED:
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
