"""Frames: the encoding of a value's fields, after their total size.

A request or a response is a `WireStruct`: a frozen value with a table of its fields in the
order of the wire. Writing, reading, the size on the wire and the page of the reference all
derive from that table. `size_on_wire` also works with ranges of a series, which have no
encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, NamedTuple

from msgspec import Struct

from watchkeeper.model.log.format.errors import InvalidFrameSize
from watchkeeper.model.log.format.fields import INT32, FieldType, Frame, Reader

HEAD_BYTES = INT32.smallest_bytes
"""The size of the size field of a frame."""
LARGEST_FRAME_BYTES = 100 * 1024 * 1024
"""The default of `max.socket.request.bytes`."""


class Field(NamedTuple):
    """One field: its attribute, its type and its description."""

    name: str
    kind: FieldType
    description: str


class WireStruct(Struct, frozen=True):
    """A value that is encoded as its fields, in the order of `layout`."""

    layout: ClassVar[tuple[Field, ...]] = ()
    header_bytes: ClassVar[int] = 0
    """The size of what precedes the fields in a frame."""


@cache
def struct_type(kind: type[WireStruct]) -> FieldType:
    """Return the field type of a `WireStruct` class."""
    layout = kind.layout

    def parts(value: WireStruct) -> Iterator[bytes]:
        for name, field, _ in layout:
            yield from field.parts(getattr(value, name))

    def read(reader: Reader) -> Any:
        return kind(**{name: field.read(reader) for name, field, _ in layout})

    def size(value: WireStruct) -> int:
        return sum(field.size_of(getattr(value, name)) for name, field, _ in layout)

    smallest = sum(field.smallest_bytes for _, field, _ in layout)
    return FieldType(f"the fields of {kind.__name__}", smallest, size, parts, read)


def size_on_wire(value: WireStruct) -> int:
    """Return the size of a request or response as a frame, with its size field."""
    return value.header_bytes + struct_type(type(value)).size_of(value)


def encode_frame(head: bytes, value: WireStruct) -> bytes:
    """Encode a value as a frame: its size, the `head`, and its fields."""
    parts = [head, *struct_type(type(value)).parts(value)]
    return b"".join((*INT32.parts(sum(map(len, parts))), *parts))


def frame_size(frame: Frame, *, limit_bytes: int = LARGEST_FRAME_BYTES) -> int:
    """Return the number of bytes after the size field; raise `InvalidFrameSize` if excessive."""
    size_bytes = int.from_bytes(frame[:HEAD_BYTES], signed=True)
    if len(frame) < HEAD_BYTES:
        raise InvalidFrameSize("a frame", f"{len(frame)} bytes, and its size takes {HEAD_BYTES}")
    if not 0 < size_bytes <= limit_bytes:
        raise InvalidFrameSize("a frame", f"{size_bytes} bytes, 1 to {limit_bytes} are taken")
    return size_bytes
