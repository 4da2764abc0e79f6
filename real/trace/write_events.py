"""The changes that writes made below a run's root, as details of trace events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from watchkeeper.model.trace.text import text
from watchkeeper.model.wire.opcodes import CREATES, Opcode

WORDS: dict[int, str] = {
    **dict.fromkeys(CREATES, "create"),
    Opcode.DELETE: "delete",
    Opcode.DELETE_CONTAINER: "delete",
    Opcode.SET_DATA: "set",
    Opcode.SET_ACL: "set acl",
    Opcode.MULTI: "multi",
    Opcode.RECONFIG: "reconfig",
    Opcode.ERROR: "failed",
}
"""Opcode -> its name in a trace."""


class CommittedEvent(NamedTuple):
    """A write or a session event that the service has committed."""

    zxid: int
    session: int
    at_us: int
    """The time of the run, as precisely as it is known."""
    kind: str
    """session opened, session closed, session expired, applied or refused."""
    detail: dict[str, Any]


@dataclass(slots=True)
class WriteEvents:
    """Translates changes, given in the order in which they were committed."""

    root: str
    owners: dict[str, int] = field(default_factory=dict)
    """Ephemeral -> its session; paths are relative to the root."""

    def created(self, path: str, owner: int, data: bytes | None) -> Iterator[list[Any]]:
        """A znode was created; `owner` is 0 unless it is an ephemeral."""
        local = self._local(path)
        if local:
            if owner:
                self.owners[local] = owner
            yield ["created", local, owner, text(data)]

    def deleted(self, path: str) -> Iterator[list[Any]]:
        """A znode was deleted."""
        local = self._local(path)
        if local:
            yield ["deleted", local, self.owners.pop(local, 0)]

    def changed(self, path: str, data: bytes | None) -> Iterator[list[Any]]:
        """The data of a znode was changed."""
        local = self._local(path)
        if local:
            yield ["changed", local, self.owners.get(local, 0), text(data)]

    def ended(self, session: int) -> list[list[Any]]:
        """A session ended, and its ephemerals with it."""
        gone = [path for path, owner in self.owners.items() if owner == session]
        for path in gone:
            del self.owners[path]
        return [["deleted", path, session] for path in gone]

    def _local(self, path: str) -> str:
        """The path relative to the root; empty for a path outside the root."""
        return path[len(self.root) :] if path.startswith(f"{self.root}/") else ""
