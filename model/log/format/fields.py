"""The kinds of field that requests and responses are made of, all big-endian.

Whatever is read comes from elsewhere. A `Reader` takes nothing that is not there and believes
no count that the rest of the frame cannot hold, so what is read never takes more memory
than a few times the frame.

A message set may be pieces of series in a simulation: those have a size and no encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from model.log.contents import Contents, size_of
from model.log.errors import DoesNotFit, LogError

Frame = bytes | bytearray | memoryview
"""What fields are taken from, which is read where it lies."""


class Reader:
    """Takes fields from a frame, one after the other."""

    def __init__(self, frame: Frame, what: str, error: type[LogError]) -> None:
        self.frame = frame
        self.at = 0
        self.end = len(frame)
        self.what = what
        self.error = error

    @property
    def left_bytes(self) -> int:
        """How much was not taken yet."""
        return self.end - self.at

    def wrong(self, detail: str) -> LogError:
        """The error that says what is wrong here."""
        return self.error(f"byte {self.at} of a {self.what}", detail)

    def short_of(self, size_bytes: int, what: str) -> LogError:
        """The error that says that something is not all there."""
        return self.wrong(f"{what} of {size_bytes} bytes, and {self.left_bytes} are left")

    def take(self, size_bytes: int, what: str) -> Frame:
        """Take so many bytes; they are not copied, if the frame is a view."""
        if not 0 <= size_bytes <= self.left_bytes:
            raise self.short_of(size_bytes, what)
        begin = self.at
        self.at += size_bytes
        return self.frame[begin : self.at]

    def finish(self) -> None:
        """Check that everything was taken."""
        if self.left_bytes:
            raise self.wrong(f"{self.left_bytes} bytes follow where it ought to end")


class Kind(NamedTuple):
    """What a field can be: how it is called, measured, written and read."""

    name: str
    smallest_bytes: int
    size_of: Callable[[Any], int]
    parts: Callable[[Any], Iterator[bytes]]
    read: Callable[[Reader], Any]


# --- numbers and strings ---------------------------------------------------------------


def _integer(name: str, form: struct.Struct) -> Kind:
    """A signed number."""

    def parts(value: int) -> Iterator[bytes]:
        try:
            yield form.pack(value)
        except struct.error as error:
            raise DoesNotFit(f"{value} as {name}", str(error)) from None

    size_bytes, unpack = form.size, form.unpack_from

    def read(reader: Reader) -> int:
        at = reader.at
        if at + size_bytes > reader.end:
            raise reader.short_of(size_bytes, name)
        reader.at = at + size_bytes
        value: int = unpack(reader.frame, at)[0]
        return value

    return Kind(name, form.size, lambda value: form.size, parts, read)


INT16 = _integer("int16", struct.Struct(">h"))
INT32 = _integer("int32", struct.Struct(">i"))
INT64 = _integer("int64", struct.Struct(">q"))


def _string() -> Kind:
    """A string, which cannot be null: its length in bytes, then UTF-8."""

    def parts(value: str) -> Iterator[bytes]:
        encoded = value.encode()
        yield from INT16.parts(len(encoded))
        yield encoded

    def read(reader: Reader) -> str:
        encoded = reader.take(INT16.read(reader), "a string")
        try:
            return str(encoded, "utf-8")
        except UnicodeDecodeError as error:
            raise reader.wrong(f"a string is not UTF-8: {error.reason}") from None

    def size(value: str) -> int:
        return INT16.smallest_bytes + len(value.encode())

    return Kind("int16 length, UTF-8", INT16.smallest_bytes, size, parts, read)


STRING = _string()


# --- message sets ----------------------------------------------------------------------


def _encoded(messages: Contents) -> Iterator[bytes]:
    assert isinstance(messages, bytes), "pieces of series have a size and no encoding"
    yield messages


def _rest() -> Kind:
    """A message set that takes all that is left of the frame."""

    def read(reader: Reader) -> bytes:
        return bytes(reader.take(reader.left_bytes, "a message set"))

    return Kind("message set, to the end", 0, size_of, _encoded, read)


def _message_set() -> Kind:
    """A message set after its size."""

    def parts(value: Contents) -> Iterator[bytes]:
        yield from INT32.parts(size_of(value))
        yield from _encoded(value)

    def read(reader: Reader) -> bytes:
        return bytes(reader.take(INT32.read(reader), "a message set"))

    def size(value: Contents) -> int:
        return INT32.smallest_bytes + size_of(value)

    return Kind("int32 size, message set", INT32.smallest_bytes, size, parts, read)


REST = _rest()
MESSAGE_SET = _message_set()


# --- several of one kind ---------------------------------------------------------------


def counted(number: Kind, item: Kind) -> Kind:
    """How many there are, then so many of one kind."""

    def parts(value: tuple[Any, ...]) -> Iterator[bytes]:
        yield from number.parts(len(value))
        for one in value:
            yield from item.parts(one)

    def read(reader: Reader) -> tuple[Any, ...]:
        count = number.read(reader)
        if count < 0 or count * item.smallest_bytes > reader.left_bytes:
            raise reader.wrong(f"{count} times {item.name}, and {reader.left_bytes} bytes left")
        return tuple(item.read(reader) for _ in range(count))

    def size(value: tuple[Any, ...]) -> int:
        return number.smallest_bytes + sum(map(item.size_of, value))

    name = f"{number.name} count, then each: {item.name}"
    return Kind(name, number.smallest_bytes, size, parts, read)


def sized(item: Kind) -> Kind:
    """One of a kind after its size, again and again until the frame ends."""

    def parts(value: tuple[Any, ...]) -> Iterator[bytes]:
        for one in value:
            yield from INT32.parts(item.size_of(one))
            yield from item.parts(one)

    def read(reader: Reader) -> tuple[Any, ...]:
        found = []
        while reader.left_bytes:
            part = reader.take(INT32.read(reader), "a part")
            inner = Reader(part, f"part of a {reader.what}", reader.error)
            found.append(item.read(inner))
            inner.finish()
        return tuple(found)

    def size(value: tuple[Any, ...]) -> int:
        return sum(INT32.smallest_bytes + item.size_of(one) for one in value)

    return Kind(f"to the end, each: int32 size, {item.name}", 0, size, parts, read)
