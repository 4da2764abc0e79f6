"""The field types of requests and responses, all big-endian.

Frames come from other programs and are not trusted. A `Reader` reads no byte beyond the frame,
and rejects a count that the rest of the frame cannot hold. So a value never takes more memory
than a few times its frame.

In a simulation a message set may be ranges of a series, which have a size and no encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from watchkeeper.model.log.format.contents import Contents, size_of
from watchkeeper.model.log.format.errors import FieldOverflow, LogError

Frame = bytes | bytearray | memoryview
"""A buffer of fields; it is read without a copy."""


class Reader:
    """Reads fields from a frame, one after the other."""

    def __init__(self, frame: Frame, what: str, error: type[LogError]) -> None:
        self.frame = frame
        self.at = 0
        self.end = len(frame)
        self.what = what
        self.error = error

    @property
    def left_bytes(self) -> int:
        """The number of bytes not read yet."""
        return self.end - self.at

    def malformed(self, detail: str) -> LogError:
        """Return the error for a defect at the present position."""
        return self.error(f"byte {self.at} of a {self.what}", detail)

    def truncated(self, size_bytes: int, what: str) -> LogError:
        """Return the error for a field that is longer than the rest of the frame."""
        return self.malformed(f"{what} of {size_bytes} bytes, and {self.left_bytes} are left")

    def take(self, size_bytes: int, what: str) -> Frame:
        """Read `size_bytes`, without a copy if the frame is a view."""
        if not 0 <= size_bytes <= self.left_bytes:
            raise self.truncated(size_bytes, what)
        begin = self.at
        self.at += size_bytes
        return self.frame[begin : self.at]

    def finish(self) -> None:
        """Check that the whole frame was read."""
        if self.left_bytes:
            raise self.malformed(f"{self.left_bytes} bytes follow where it ought to end")


class FieldType(NamedTuple):
    """The type of a field: its name, and how to measure, write and read it."""

    name: str
    smallest_bytes: int
    size_of: Callable[[Any], int]
    parts: Callable[[Any], Iterator[bytes]]
    read: Callable[[Reader], Any]


# --- numbers and strings ---------------------------------------------------------------


def _integer(name: str, form: struct.Struct) -> FieldType:
    """Return the type of a signed integer."""

    def parts(value: int) -> Iterator[bytes]:
        try:
            yield form.pack(value)
        except struct.error as error:
            raise FieldOverflow(f"{value} as {name}", str(error)) from None

    size_bytes, unpack = form.size, form.unpack_from

    def read(reader: Reader) -> int:
        at = reader.at
        if at + size_bytes > reader.end:
            raise reader.truncated(size_bytes, name)
        reader.at = at + size_bytes
        value: int = unpack(reader.frame, at)[0]
        return value

    return FieldType(name, form.size, lambda value: form.size, parts, read)


INT8 = _integer("int8", struct.Struct(">b"))
INT16 = _integer("int16", struct.Struct(">h"))
INT32 = _integer("int32", struct.Struct(">i"))
INT64 = _integer("int64", struct.Struct(">q"))


def _string() -> FieldType:
    """Return the type of a string that cannot be null: its length in bytes, then UTF-8."""

    def parts(value: str) -> Iterator[bytes]:
        encoded = value.encode()
        yield from INT16.parts(len(encoded))
        yield encoded

    def read(reader: Reader) -> str:
        encoded = reader.take(INT16.read(reader), "a string")
        try:
            return str(encoded, "utf-8")
        except UnicodeDecodeError as error:
            raise reader.malformed(f"a string is not UTF-8: {error.reason}") from None

    def size(value: str) -> int:
        return INT16.smallest_bytes + len(value.encode())

    return FieldType("int16 length, UTF-8", INT16.smallest_bytes, size, parts, read)


STRING = _string()
NULL = -1
"""In place of the length of a string that is null."""


def _nullable(text: FieldType) -> FieldType:
    """Return the type of a string that may be null."""

    def parts(value: str | None) -> Iterator[bytes]:
        yield from INT16.parts(NULL) if value is None else text.parts(value)

    def read(reader: Reader) -> str | None:
        at = reader.at
        if INT16.read(reader) == NULL:
            return None
        reader.at = at
        value: str = text.read(reader)
        return value

    def size(value: str | None) -> int:
        return INT16.smallest_bytes if value is None else text.size_of(value)

    return FieldType("int16 length or -1, UTF-8", text.smallest_bytes, size, parts, read)


NULLABLE_STRING = _nullable(STRING)


# --- message sets ----------------------------------------------------------------------


def _encoded(messages: Contents) -> Iterator[bytes]:
    assert isinstance(messages, bytes), "ranges of a series have a size and no encoding"
    yield messages


def _rest() -> FieldType:
    """Return the type of a message set that fills the rest of the frame."""

    def read(reader: Reader) -> bytes:
        return bytes(reader.take(reader.left_bytes, "a message set"))

    return FieldType("message set, to the end", 0, size_of, _encoded, read)


def _message_set() -> FieldType:
    """Return the type of a message set after its size."""

    def parts(value: Contents) -> Iterator[bytes]:
        yield from INT32.parts(size_of(value))
        yield from _encoded(value)

    def read(reader: Reader) -> bytes:
        return bytes(reader.take(INT32.read(reader), "a message set"))

    def size(value: Contents) -> int:
        return INT32.smallest_bytes + size_of(value)

    return FieldType("int32 size, message set", INT32.smallest_bytes, size, parts, read)


REST = _rest()
MESSAGE_SET = _message_set()


# --- sequences -------------------------------------------------------------------------


def counted(number: FieldType, item: FieldType) -> FieldType:
    """Return the type of a sequence of items after their count."""

    def parts(value: tuple[Any, ...]) -> Iterator[bytes]:
        yield from number.parts(len(value))
        for element in value:
            yield from item.parts(element)

    def read(reader: Reader) -> tuple[Any, ...]:
        count = number.read(reader)
        if count < 0 or count * item.smallest_bytes > reader.left_bytes:
            raise reader.malformed(
                f"{count} times {item.name}, and {reader.left_bytes} bytes left"
            )
        return tuple(item.read(reader) for _ in range(count))

    def size(value: tuple[Any, ...]) -> int:
        return number.smallest_bytes + sum(map(item.size_of, value))

    name = f"{number.name} count, then each: {item.name}"
    return FieldType(name, number.smallest_bytes, size, parts, read)


def sized(item: FieldType) -> FieldType:
    """Return the type of a sequence to the end of the frame, each item after its size."""

    def parts(value: tuple[Any, ...]) -> Iterator[bytes]:
        for element in value:
            yield from INT32.parts(item.size_of(element))
            yield from item.parts(element)

    def read(reader: Reader) -> tuple[Any, ...]:
        found = []
        while reader.left_bytes:
            part = reader.take(INT32.read(reader), "a part")
            inner = Reader(part, f"part of a {reader.what}", reader.error)
            found.append(item.read(inner))
            inner.finish()
        return tuple(found)

    def size(value: tuple[Any, ...]) -> int:
        return sum(INT32.smallest_bytes + item.size_of(element) for element in value)

    return FieldType(f"to the end, each: int32 size, {item.name}", 0, size, parts, read)
