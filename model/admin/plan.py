"""The plan of an administrative change: its writes, their conditions, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from watchkeeper.model.audit.control_plane import ControlPlane
from watchkeeper.model.registry import paths

MOST_BYTES = 1_000_000
"""The most data of one transaction, just below ZooKeeper's limit for a request."""
TOO_MUCH = "the change does not fit into one transaction of ZooKeeper; divide it"


class Refused(Exception):
    """The cluster does not allow a change as it is now. Nothing was written."""


class BadRequest(Refused):
    """A change that no cluster would allow, or of something that does not exist."""


class WriteKind(StrEnum):
    """What a write does, and when ZooKeeper refuses it."""

    CHECK = "check"
    """Nothing; refused unless the znode has this version."""
    CREATE = "create"
    """Creates a znode; refused if it exists."""
    CREATE_NUMBERED = "create numbered"
    """Creates a znode to whose path ZooKeeper appends a number."""
    SET = "set"
    """Sets the data of a znode; refused unless it has this version."""


@dataclass(frozen=True, slots=True)
class Write:
    """One operation of the transaction that carries a plan out."""

    kind: WriteKind
    path: str
    data: bytes = b""
    version: int | None = None
    """The version that the znode has to have; None for what is created."""
    conflict: str = ""
    """Why ZooKeeper refuses it, if it does."""

    def __str__(self) -> str:
        at = "" if self.version is None else f" at version {self.version}"
        data = self.data.decode("utf-8", "replace")
        return f"{self.kind} {self.path}{at}{f': {data}' if data else ''}"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        value: dict[str, Any] = {"kind": self.kind.value, "path": self.path}
        if self.version is not None:
            value["version"] = self.version
        if self.kind is not WriteKind.CHECK:
            value["data"] = self.data.decode("utf-8", "replace")
        return value


@dataclass(frozen=True, slots=True)
class Placed:
    """The replicas of a partition, before and after a change."""

    partition: str
    before: tuple[int, ...]
    """Empty for a partition that is new."""
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """One change: all of its writes are made, or none."""

    action: str
    writes: tuple[Write, ...] = ()
    placed: tuple[Placed, ...] = ()
    details: tuple[str, ...] = ()
    """What changes, where that is no placement: a line each."""
    left_out: tuple[str, ...] = ()
    """What was requested and is not in the plan, each with the reason."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if sum(len(write.data) + len(write.path) for write in self.writes) > MOST_BYTES:
            raise Refused(TOO_MUCH)

    @property
    def changes(self) -> tuple[Write, ...]:
        """The writes that change something."""
        return tuple(write for write in self.writes if write.kind is not WriteKind.CHECK)


def check(control: ControlPlane, path: str, what: str) -> Write:
    """The condition that a znode is unchanged since it was read."""
    version = control.snapshot.nodes[path].stat.version
    conflict = f"{what} changed meanwhile; look at it, and repeat the command"
    return Write(WriteKind.CHECK, path, version=version, conflict=conflict)


def set_data(control: ControlPlane, path: str, data: bytes, what: str) -> Write:
    """Set the data of a znode, provided that it is unchanged since it was read."""
    version = control.snapshot.nodes[path].stat.version
    conflict = f"{what} changed meanwhile; look at it, and repeat the command"
    return Write(WriteKind.SET, path, data, version, conflict)


def create(control: ControlPlane, path: str, data: bytes, conflict: str) -> Iterator[Write]:
    """Create a znode, and those above it that are missing."""
    yield from create_parents(control, path)
    yield Write(WriteKind.CREATE, path, data, conflict=conflict)


def create_parents(control: ControlPlane, path: str) -> Iterator[Write]:
    """Create the znodes above a path that are missing."""
    parts = path.split("/")[1:-1]
    for at in range(len(parts)):
        above = "/" + "/".join(parts[: at + 1])
        if not _exists(control, above):
            conflict = f"{above} was created meanwhile; repeat the command"
            yield Write(WriteKind.CREATE, above, conflict=conflict)


def _exists(control: ControlPlane, path: str) -> bool:
    nodes = control.snapshot.nodes
    return path in nodes or any(one.startswith(f"{path}/") for one in nodes)


def once(writes: Iterator[Write]) -> tuple[Write, ...]:
    """Leave out a write that is there already: several znodes may have one missing parent."""
    return tuple(dict.fromkeys(writes))


def controller_notes(control: ControlPlane) -> tuple[str, ...]:
    """A note if no broker would carry a change out."""
    if paths.CONTROLLER in control.snapshot.nodes:
        return ()
    return ("no broker is the controller; one that becomes it carries the change out",)
