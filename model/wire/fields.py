"""Jute's encoding of fields: big-endian numbers, and what has a length before it.

A length of -1 stands for a missing string, buffer or list. A reader never believes a length:
what goes beyond the end of the frame is `Malformed`, before anything is allocated for it.

Strings, seen on Apache ZooKeeper 3.9.5
  A server decodes UTF-8 as Java does: what is no UTF-8 becomes U+FFFD, and half a surrogate
  pair in three bytes is replaced as one character, where Python would replace each byte. It
  encodes each UTF-16 unit by itself, so a character beyond the basic plane leaves it as two
  characters of three bytes, which the same server would not decode to that character again.
  `java_string` writes this form, for what servers answer; `string` writes UTF-8.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable

from watchkeeper.model.actor.events import Stat
from watchkeeper.model.actor.operations import OPEN, Acl
from watchkeeper.model.zookeeper.acl import NO_IDENTITY

INT32, INT64 = struct.Struct(">i"), struct.Struct(">q")
STAT = struct.Struct(">qqqqiiiqiiq")
MISSING = INT32.pack(-1)
TRUE, FALSE = b"\1", b"\0"
SCHEMES_WITH_IDENTITIES = frozenset({"world", "digest", "ip"})
LAST_OF_BASIC_PLANE = "\uffff"


class Malformed(Exception):
    """Bytes that are not what they should be; the message says what was expected, and where."""


class FieldReader:
    """Reads the fields of a payload one after the other.

    Each method raises Malformed if the payload does not have such a field at this place.
    """

    __slots__ = ("at", "data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    @property
    def is_at_end(self) -> bool:
        """Whether every byte has been read."""
        return self.at >= len(self.data)

    def int32(self) -> int:
        """The next 32-bit number."""
        try:
            (value,) = INT32.unpack_from(self.data, self.at)
        except struct.error:
            raise self._short("a 32-bit number") from None
        self.at += 4
        return value  # type: ignore[no-any-return]

    def int64(self) -> int:
        """The next 64-bit number."""
        try:
            (value,) = INT64.unpack_from(self.data, self.at)
        except struct.error:
            raise self._short("a 64-bit number") from None
        self.at += 8
        return value  # type: ignore[no-any-return]

    def boolean(self) -> bool:
        """The next boolean: any byte but 0 is true."""
        if self.at >= len(self.data):
            raise self._short("a boolean")
        value = self.data[self.at] != 0
        self.at += 1
        return value

    def buffer(self) -> bytes | None:
        """The next bytes with their length; None if they are missing."""
        length = self.int32()
        if length == -1:
            return None
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise Malformed(
                f"at byte {self.at - 4} a length of {length}, but {len(self.data) - self.at} "
                "bytes are left"
            )
        value = self.data[self.at : end]
        self.at = end
        return value

    def string(self) -> str | None:
        """The next string; None if it is missing. Bytes that are no UTF-8 are replaced."""
        value = self.buffer()
        return None if value is None else text_of(value)

    def path(self) -> str:
        """The next string, which must not be missing."""
        value = self.string()
        return self._missing("path") if value is None else value

    def _missing(self, what: str) -> str:
        raise Malformed(f"at byte {self.at - 4} no {what}, but one is needed")

    def count(self) -> int:
        """The length of the list that follows; 0 for a negative one, as servers read it."""
        count = self.int32()
        if count < 0:
            return 0
        if count > len(self.data) - self.at:
            raise Malformed(
                f"at byte {self.at - 4} a list of {count}, but {len(self.data) - self.at} bytes "
                "are left"
            )
        return count

    def paths(self) -> tuple[str, ...]:
        """The next list of strings."""
        return tuple([self.path() for _ in range(self.count())])

    def acl(self) -> tuple[Acl, ...]:
        """The next access control list.

        A missing scheme is read as an unknown one. A missing identity is `NO_IDENTITY`, and
        empty where no server looks at it.
        """
        found = self.data[self.at : self.at + len(_OPEN)]
        if found == _OPEN:  # nearly every znode has this list
            self.at += len(_OPEN)
            return OPEN
        return tuple([self._acl_entry() for _ in range(self.count())])

    def _acl_entry(self) -> Acl:
        permissions, scheme, identity = self.int32(), self.string() or "", self.string()
        if identity is None and scheme in SCHEMES_WITH_IDENTITIES:
            identity = NO_IDENTITY
        return Acl(permissions, scheme, identity or "")

    def stat(self) -> Stat:
        """The next Stat."""
        try:
            values = STAT.unpack_from(self.data, self.at)
        except struct.error:
            raise self._short("a Stat") from None
        self.at += STAT.size
        return Stat(*values)

    def rest(self) -> bytes:
        """Everything that has not been read."""
        value = self.data[self.at :]
        self.at = len(self.data)
        return value

    def _short(self, expected: str) -> Malformed:
        return Malformed(f"at byte {self.at} of {len(self.data)} {expected} should follow")


_HALF_PAIR = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()


def text_of(data: bytes) -> str:
    """Text as Java decodes it from UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _HALF_PAIR.sub(_REPLACEMENT, data).decode("utf-8", "replace")


# --- writing ---------------------------------------------------------------------------

WriteString = Callable[[str | None], bytes]
"""How strings are written: `string` or `java_string`."""


def int32(value: int) -> bytes:
    """A 32-bit number."""
    return INT32.pack(value)


def int64(value: int) -> bytes:
    """A 64-bit number."""
    return INT64.pack(value)


def boolean(value: bool) -> bytes:
    """A boolean."""
    return TRUE if value else FALSE


def buffer(value: bytes | None) -> bytes:
    """Bytes with their length before them."""
    return MISSING if value is None else INT32.pack(len(value)) + value


def string(value: str | None) -> bytes:
    """A string in UTF-8, with its length in bytes before it."""
    if value is None:
        return MISSING
    data = value.encode()
    return INT32.pack(len(data)) + data


def java_string(value: str | None) -> bytes:
    """A string as servers in Java encode it: each UTF-16 unit by itself."""
    if value is None:
        return MISSING
    if not value.isascii() and max(value) > LAST_OF_BASIC_PLANE:
        value = _as_units(value)
    data = value.encode("utf-8", "surrogatepass")
    return INT32.pack(len(data)) + data


def _as_units(value: str) -> str:
    """The same text with each UTF-16 unit as a character of its own."""
    units = value.encode("utf-16-be", "surrogatepass")
    return "".join(
        chr(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True)
    )


def strings(values: Iterable[str], *, write: WriteString = string) -> bytes:
    """A list of strings."""
    parts = [write(value) for value in values]
    return INT32.pack(len(parts)) + b"".join(parts)


def acl(entries: tuple[Acl, ...], *, write: WriteString = string) -> bytes:
    """An access control list."""
    parts = [
        INT32.pack(entry.permissions) + write(entry.scheme) + write(entry.identity)
        for entry in entries
    ]
    return INT32.pack(len(parts)) + b"".join(parts)


def stat(value: Stat) -> bytes:
    """The metadata of a znode: 68 bytes."""
    return STAT.pack(
        value.czxid,
        value.mzxid,
        value.ctime,
        value.mtime,
        value.version,
        value.cversion,
        value.aversion,
        value.ephemeral_owner,
        value.data_length,
        value.num_children,
        value.pzxid,
    )


_OPEN = acl(OPEN)
