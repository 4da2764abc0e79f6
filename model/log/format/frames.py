"""Frames: values that travel as their fields, after the size of them all.

A request or a response is a `Laid`: a frozen value with a table of its fields in the order
of the wire. That table is all there is: writing, reading, the size on the wire and the page
of the reference come from it. `size_on_wire` works for pieces of series too, which have no
encoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, NamedTuple

from msgspec import Struct

from model.log.errors import InvalidFrameSize
from model.log.fields import INT32, Frame, Kind, Reader

HEAD_BYTES = INT32.smallest_bytes
"""What says how large a frame is."""
LARGEST_FRAME_BYTES = 100 * 1024 * 1024
"""`max.socket.request.bytes` as it is shipped."""


class Field(NamedTuple):
    """One field: which attribute of the value it is, of which kind, and what it says."""

    name: str
    kind: Kind
    says: str


class Laid(Struct, frozen=True):
    """A value that travels as its fields, in the order of `layout`."""

    layout: ClassVar[tuple[Field, ...]] = ()
    head_bytes: ClassVar[int] = 0
    """What precedes the fields when the value is a frame of its own."""


@cache
def fields_of(kind: type[Laid]) -> Kind:
    """A value of this class, as a kind of field."""
    layout = kind.layout

    def parts(value: Laid) -> Iterator[bytes]:
        for name, field, _ in layout:
            yield from field.parts(getattr(value, name))

    def read(reader: Reader) -> Any:
        return kind(**{name: field.read(reader) for name, field, _ in layout})

    def size(value: Laid) -> int:
        return sum(field.size_of(getattr(value, name)) for name, field, _ in layout)

    smallest = sum(field.smallest_bytes for _, field, _ in layout)
    return Kind(f"the fields of {kind.__name__}", smallest, size, parts, read)


def size_on_wire(value: Laid) -> int:
    """How many bytes a request or a response takes as a frame, the size before it included."""
    return value.head_bytes + fields_of(type(value)).size_of(value)


def frame_of(head: bytes, value: Laid) -> bytes:
    """Write a value as a frame: the size of what follows, what precedes it, its fields."""
    parts = [head, *fields_of(type(value)).parts(value)]
    return b"".join((*INT32.parts(sum(map(len, parts))), *parts))


def frame_size(frame: Frame, *, limit_bytes: int = LARGEST_FRAME_BYTES) -> int:
    """How many bytes follow the first four of a frame; refused if they are too many."""
    size_bytes = int.from_bytes(frame[:HEAD_BYTES], signed=True)
    if len(frame) < HEAD_BYTES:
        raise InvalidFrameSize("a frame", f"{len(frame)} bytes, and its size takes {HEAD_BYTES}")
    if not 0 < size_bytes <= limit_bytes:
        raise InvalidFrameSize("a frame", f"{size_bytes} bytes, 1 to {limit_bytes} are taken")
    return size_bytes
