"""What writes did below a run's root, as the rows of a trace tell it, and whose is what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from model.describe import text


class Agreed(NamedTuple):
    """Something that the service agreed upon."""

    zxid: int
    session: int
    at_us: int
    """The moment of the run, as well as it is known."""
    kind: str
    """An event's: session opened, session closed, session expired, applied, refused."""
    detail: dict[str, Any]


@dataclass(slots=True)
class Ledger:
    """Changes are told to it in the order in which they were made."""

    root: str
    owners: dict[str, int] = field(default_factory=dict)
    """Ephemeral -> the session whose it is; paths are written without the root."""

    def created(self, path: str, owner: int, data: bytes | None) -> Iterator[list[Any]]:
        """A znode was made; `owner` is 0 unless it is an ephemeral."""
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
        """A znode has other data."""
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
        """The path below the root; empty for what is not the run's."""
        return path[len(self.root) :] if path.startswith(f"{self.root}/") else ""
