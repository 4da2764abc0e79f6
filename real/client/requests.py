"""The requests that kazoo lacks, in the form in which its connection sends and reads them.

kazoo's connection needs of a request its opcode (`type`), its bytes (`serialize`) and how to
read the body of its response (`deserialize`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from kazoo.exceptions import EXCEPTIONS
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import ZnodeStat

from watchkeeper.model.actor.operations import CONTAINER_MS, WatchKind
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import SetWatches, encode_body

INT, LONG = struct.Struct("!i"), struct.Struct("!q")
HEADER = struct.Struct("!i?i")
"""The header of a part of a multi: opcode, whether it is the end, error."""
END = HEADER.pack(-1, True, -1)
KIND_NUMBERS: dict[WatchKind, int] = {
    "child": 1,
    "data": 2,
    "any": 3,
    "persistent": 4,
    "recursive": 5,
}
CREATE_2 = 15
"""The opcode of the result of each create whose opcode is not 1."""


@dataclass(frozen=True)
class PathRequest:
    """A request that is a path and nothing else, with an empty response."""

    path: str
    type: ClassVar[int]

    def serialize(self) -> bytes:
        """The request as bytes."""
        return bytes(wire.write_string(self.path))

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> Any:
        """The response is empty."""


class GetEphemeralsRequest(PathRequest):
    """The ephemerals of this session below a path."""

    type: ClassVar[int] = 103

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[str]:
        """The response: a list of paths."""
        return _strings(data, offset)[0]


class CountDescendantsRequest(PathRequest):
    """The number of znodes below a path."""

    type: ClassVar[int] = 104

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> int:
        """The response: a number."""
        (number,) = INT.unpack_from(data, offset)
        return int(number)


class DeleteContainerRequest(PathRequest):
    """Delete an empty container."""

    type: ClassVar[int] = 20


@dataclass(frozen=True)
class AddWatchRequest(PathRequest):
    """Set a persistent watch on one znode, or on its whole subtree."""

    recursive: bool
    type: ClassVar[int] = 106

    def serialize(self) -> bytes:
        """The request as bytes."""
        return bytes(wire.write_string(self.path)) + INT.pack(self.recursive)


@dataclass(frozen=True)
class CheckWatchesRequest(PathRequest):
    """Whether this session has watches of one kind at a path."""

    kind: WatchKind
    type: ClassVar[int] = 17

    def serialize(self) -> bytes:
        """The request as bytes."""
        return bytes(wire.write_string(self.path)) + INT.pack(KIND_NUMBERS[self.kind])


class RemoveWatchesRequest(CheckWatchesRequest):
    """Remove this session's watches of one kind at a path."""

    type: ClassVar[int] = 18


class SetWatchesRequest(NamedTuple):
    """Set the watches of an earlier connection again, or hear of what has changed since."""

    body: SetWatches

    @property
    def type(self) -> int:
        """The opcode; the old one, unless there are persistent watches, for old servers."""
        wanted = self.body.wanted
        has_persistent = wanted.persistent or wanted.recursive
        return int(Opcode.SET_WATCHES_2 if has_persistent else Opcode.SET_WATCHES)

    def serialize(self) -> bytes:
        """The request as bytes."""
        return encode_body(self.type, self.body)

    @staticmethod
    def deserialize(data: bytes, offset: int) -> None:
        """The response is empty."""


class CreateWithLifetimeRequest(NamedTuple):
    """Create a container, or a znode with a TTL; the response has the Stat too."""

    create: wire.Create
    lifetime_ms: int

    @property
    def type(self) -> int:
        """The opcode."""
        return 19 if self.lifetime_ms == CONTAINER_MS else 21

    def serialize(self) -> bytes:
        """The request as bytes."""
        ttl = b"" if self.lifetime_ms == CONTAINER_MS else LONG.pack(self.lifetime_ms)
        return bytes(self.create.serialize()) + ttl

    @staticmethod
    def deserialize(data: bytes, offset: int) -> str:
        """The response: a path."""
        return str(wire.read_string(data, offset)[0])


class MultiRequest(wire.Transaction):  # type: ignore[misc]
    """A multi, whose creates may have a lifetime."""

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        """The response: a result or an error for each part."""
        return _parts(data, offset, _part_of_multi)


@dataclass(frozen=True)
class MultiReadRequest:
    """Several reads of one state."""

    reads: tuple[Any, ...]
    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        """The request as bytes."""
        parts = [HEADER.pack(read.type, False, -1) + read.serialize() for read in self.reads]
        return b"".join(parts) + END

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        """The response: a result or an error for each read."""
        return _parts(data, offset, _part_of_multi_read)


def _parts(data: bytes, offset: int, read: Any) -> list[Any]:
    parts: list[Any] = []
    kind, is_end, _ = HEADER.unpack_from(data, offset)
    while not is_end:
        offset += HEADER.size
        if kind == -1:
            (code,) = INT.unpack_from(data, offset)
            part, offset = EXCEPTIONS[code](), offset + INT.size
        else:
            part, offset = read(kind, data, offset)
        parts.append(part)
        kind, is_end, _ = HEADER.unpack_from(data, offset)
    return parts


def _part_of_multi(kind: int, data: bytes, offset: int) -> tuple[Any, int]:
    if kind == wire.SetData.type:
        return _stat(data, offset)
    if kind not in (wire.Create.type, CREATE_2):
        return True, offset
    path, offset = wire.read_string(data, offset)
    return path, offset + wire.stat_struct.size * (kind == CREATE_2)


def _part_of_multi_read(kind: int, data: bytes, offset: int) -> tuple[Any, int]:
    if kind == wire.GetChildren.type:
        return _strings(data, offset)
    content, offset = wire.read_buffer(data, offset)
    stat, offset = _stat(data, offset)
    return (content, stat), offset


def _stat(data: bytes, offset: int) -> tuple[ZnodeStat, int]:
    stat = ZnodeStat._make(wire.stat_struct.unpack_from(data, offset))
    return stat, offset + wire.stat_struct.size


def _strings(data: bytes, offset: int) -> tuple[list[str], int]:
    (count,) = INT.unpack_from(data, offset)
    offset += INT.size
    strings: list[str] = []
    for _ in range(max(count, 0)):
        text, offset = wire.read_string(data, offset)
        strings.append(text)
    return strings, offset
