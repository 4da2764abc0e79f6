"""How operations, answers and changes read in a trace."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.events import Command, Fired, WatchEventType, ZnodeView
from watchkeeper.model.actor.operations import (
    ANY_VERSION,
    UNLIMITED_MS,
    Multi,
    MultiRead,
    Operation,
    Pipelined,
)
from watchkeeper.model.zookeeper.tree import Tree, Written

MOST_SHOWN = 16
LONGEST_DATA = 160

WORDS: dict[str, str] = {
    "Create": "create",
    "Delete": "delete",
    "SetData": "set",
    "SetAcl": "set acl",
    "Check": "check",
    "Exists": "exists",
    "GetData": "get",
    "GetChildren": "children",
    "GetAcl": "get acl",
    "GetEphemerals": "ephemerals",
    "AddWatch": "add watch",
    "RemoveWatches": "remove watches",
    "CheckWatches": "check watches",
    "CountDescendants": "count descendants",
    "DeleteContainer": "delete container",
    "Sync": "sync",
    "Multi": "multi",
    "MultiRead": "multi read",
    "Pipelined": "pipelined",
}
"""The word for each class of operation."""


LONGEST_CACHED = 4096
"""Operations and answers with more data are described each time: a cache would keep the data."""


def text(data: bytes | None) -> str | None:
    """Data as text, cut to a length that can be read."""
    return None if data is None else data[:LONGEST_DATA].decode("utf-8", "replace")


def described_operation(operation: Operation[Any] | Pipelined) -> Mapping[str, Any]:
    """The detail of an operation: its word, its path, its purpose, and its parts if it has any.

    Members of a group send the same requests again and again, so details of small ones are
    cached; do not modify them.
    """
    if isinstance(operation, PARTED):
        is_short = all(map(_is_short, operation.operations))
    else:
        is_short = _is_short(operation)
    describe = _described_operation if is_short else _described_operation.__wrapped__
    return describe(operation)


def _is_short(operation: Operation[Any]) -> bool:
    data = getattr(operation, "data", None)
    return data is None or len(data) <= LONGEST_CACHED


@lru_cache(maxsize=16_384)
def _described_operation(operation: Operation[Any] | Pipelined) -> Mapping[str, Any]:
    kind = type(operation)
    detail: dict[str, Any] = {"op": WORDS[kind.__name__], "purpose": operation.purpose}
    if isinstance(operation, PARTED):
        parts = operation.operations
        detail["parts"] = [[WORDS[type(part).__name__], part.path] for part in parts[:MOST_SHOWN]]
        detail["number"] = len(parts)
        return detail
    detail["path"] = operation.path
    if getattr(operation, "version", ANY_VERSION) != ANY_VERSION:
        detail["version"] = operation.version  # type: ignore[attr-defined]
    for word in ("ephemeral", "sequential", "watch"):
        if getattr(operation, word, False):
            detail[word] = True
    if getattr(operation, "lifetime_ms", UNLIMITED_MS) != UNLIMITED_MS:
        detail["lifetime_ms"] = operation.lifetime_ms  # type: ignore[attr-defined]
    return detail


PARTED = (Multi, MultiRead, Pipelined)


def in_words(about: Any) -> str:
    """An operation, an event or a partition in a few words; empty for None."""
    if about is None:
        return ""
    if isinstance(about, Fired):
        return f"{about.path} {about.what.value}"
    if isinstance(about, Command):
        number = f", {about.number} in all" if about.number else ""
        return f"{about.kind.value} {about.topic}{number}".rstrip()
    if not isinstance(about, Operation | Pipelined):
        return str(about)
    return operation_in_words(described_operation(about))


def operation_in_words(detail: Mapping[str, Any]) -> str:
    """An operation in a few words, from its detail in a trace."""
    if "parts" in detail:
        parts = ", ".join(f"{word} {path}" for word, path in detail["parts"])
        return f"{detail['op']} ({parts})"
    return f"{detail.get('op', '')} {detail.get('path', '')}".strip()


def described_answer(answer: Any) -> Any:
    """An answer, short enough to read."""
    kind = type(answer)
    if kind is Failure:
        return {"error": answer.name}
    if kind is ZnodeView:
        return _described_znode(answer.data, answer.version, answer.mine)
    if kind is tuple:
        shown = [described_answer(part) for part in answer[:MOST_SHOWN]]
        return (
            shown
            if len(answer) <= MOST_SHOWN
            else [*shown, f"and {len(answer) - MOST_SHOWN} more"]
        )
    return answer


def _described_znode(data: bytes | None, version: int, mine: bool) -> Mapping[str, Any]:
    """A znode as it was read. The value may be shared: do not modify it."""
    if data is not None and len(data) > LONGEST_CACHED:
        return _znode_detail.__wrapped__(data, version, mine)
    return _znode_detail(data, version, mine)


@lru_cache(maxsize=16_384)
def _znode_detail(data: bytes | None, version: int, mine: bool) -> Mapping[str, Any]:
    return {"data": text(data), "version": version, "mine": mine}


def described_changes(before: Tree, written: Written) -> list[list[Any]]:
    """The changes of a write, a row a znode: kind, path, session, and its new data."""
    return [
        deleted(before, change.path)
        if change.what is WatchEventType.DELETED
        else _made(written.tree, change.what, change.path)
        for change in written.changes
    ]


def deleted(before: Tree, path: str) -> list[Any]:
    """A deletion, with the session whose ephemeral it was (0: none)."""
    znode = before.nodes.get(path)
    return ["deleted", path, znode.owner if znode is not None else 0]


def _made(after: Tree, what: WatchEventType, path: str) -> list[Any]:
    znode = after.nodes.get(path)
    if znode is None:  # created and deleted again by the same multi
        return [what.value, path, 0, None]
    return [what.value, path, znode.owner, text(znode.data)]
