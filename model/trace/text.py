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
    AddWatch,
    Check,
    CheckWatches,
    CountDescendants,
    Create,
    Delete,
    DeleteContainer,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    GetEphemerals,
    Multi,
    MultiRead,
    Operation,
    Pipelined,
    RemoveWatches,
    SetAcl,
    SetData,
    Sync,
)
from watchkeeper.model.zookeeper.tree import Tree, Written

MOST_SHOWN = 16
LONGEST_DATA = 160

WORDS: dict[type[Any], str] = {
    Create: "create",
    Delete: "delete",
    SetData: "set",
    SetAcl: "set acl",
    Check: "check",
    Exists: "exists",
    GetData: "get",
    GetChildren: "children",
    GetAcl: "get acl",
    GetEphemerals: "ephemerals",
    AddWatch: "add watch",
    RemoveWatches: "remove watches",
    CheckWatches: "check watches",
    CountDescendants: "count descendants",
    DeleteContainer: "delete container",
    Sync: "sync",
    Multi: "multi",
    MultiRead: "multi read",
    Pipelined: "pipelined",
}
"""The word for each class of operation."""


LONGEST_CACHED = 4096
"""Operations and answers with more data are described each time: a cache would keep the data."""


def text(data: bytes | None) -> str | None:
    """Data as text, cut to a length that can be read."""
    return None if data is None else data[:LONGEST_DATA].decode("utf-8", "replace")


def described_operation(operation: Operation[Any] | Pipelined) -> Mapping[str, Any]:
    """The detail of an operation: its word, its path, its purpose, and its parts if it has any.

    Members of a group send the same requests again and again, so details of small operations
    are cached; do not modify them. To look for one with parts would take as long as to make it.
    """
    if isinstance(operation, PARTED):
        parts = operation.operations
        return {
            "op": WORDS[type(operation)],
            "purpose": operation.purpose,
            "parts": [[WORDS[type(part)], part.path] for part in parts[:MOST_SHOWN]],
            "number": len(parts),
        }
    data = getattr(operation, "data", None)
    if data is not None and len(data) > LONGEST_CACHED:
        return _described_operation.__wrapped__(operation)
    return _described_operation(operation)


@lru_cache(maxsize=16_384)
def _described_operation(operation: Operation[Any]) -> Mapping[str, Any]:
    detail: dict[str, Any] = {
        "op": WORDS[type(operation)],
        "purpose": operation.purpose,
        "path": operation.path,
    }
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
        data = answer.data
        if data is not None and len(data) > LONGEST_CACHED:
            return _znode_detail.__wrapped__(data, answer.version, answer.mine)
        return _znode_detail(data, answer.version, answer.mine)
    if kind is tuple:
        shown = [
            part if part is None or type(part) is str else described_answer(part)
            for part in answer[:MOST_SHOWN]
        ]
        return (
            shown
            if len(answer) <= MOST_SHOWN
            else [*shown, f"and {len(answer) - MOST_SHOWN} more"]
        )
    return answer


@lru_cache(maxsize=16_384)
def _znode_detail(data: bytes | None, version: int, mine: bool) -> Mapping[str, Any]:
    """A znode as it was read. The value may be shared: do not modify it."""
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
    # `_value_` is `value` without the calls of a property, several hundred times in a run.
    znode = after.nodes.get(path)
    if znode is None:  # created and deleted again by the same multi
        return [what._value_, path, 0, None]
    return [what._value_, path, znode.owner, text(znode.data)]
