"""ZooKeeper's client protocol, as far as benches speak it: requests as bytes, answers as values.

It shares no code with the product's own implementation, so that a mistake there cannot be made
twice, and it writes whatever a bench wants to write, well-formed or not. Values are plain tuples
and lists; a Stat is a `Stat`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, NamedTuple

INT, LONG, HEAD = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">ii")
REPLY_HEAD = struct.Struct(">iqi")
STAT = struct.Struct(">qqqqiiiqiiq")
CONNECT = struct.Struct(">iqiq")


class Op(IntEnum):
    """The opcodes of requests."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN_2 = 12
    CHECK = 13
    MULTI = 14
    CREATE_2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    MULTI_READ = 22
    CLOSE = -11
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    COUNT_DESCENDANTS = 104
    SET_WATCHES_2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107


EVENT_XID, PING_XID, AUTH_XID, SET_WATCHES_XID = -1, -2, -4, -8

Text = str | bytes | None
AclEntry = tuple[int, Text, Text]
OPEN: tuple[AclEntry, ...] = ((31, "world", "anyone"),)


class Stat(NamedTuple):
    """A znode's Stat, in the order of its fields on the wire."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    owner: int
    data_length: int
    children: int
    pzxid: int


class Undecoded(Exception):
    """An answer has another form than its request calls for."""


# --- writing ---------------------------------------------------------------------------------


def buffer(value: Text) -> bytes:
    """A string or buffer with its length; None has the length -1."""
    if value is None:
        return b"\xff\xff\xff\xff"
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return INT.pack(len(data)) + data


def vector(items: Iterable[bytes]) -> bytes:
    """Encoded items with their number."""
    listed = list(items)
    return INT.pack(len(listed)) + b"".join(listed)


def acl(entries: Iterable[AclEntry] | None) -> bytes:
    """A list of ACL entries; None is a list of length -1."""
    if entries is None:
        return b"\xff\xff\xff\xff"
    return vector(
        INT.pack(perms) + buffer(scheme) + buffer(name) for perms, scheme, name in entries
    )


def framed(payload: bytes) -> bytes:
    """A payload with the length that goes before it."""
    return INT.pack(len(payload)) + payload


def request(xid: int, opcode: int, body: bytes = b"") -> bytes:
    """A request in its frame."""
    return framed(HEAD.pack(xid, opcode) + body)


def create(path: Text, data: Text, entries: Iterable[AclEntry] | None, flags: int) -> bytes:
    """The body of a create, create2 or createContainer."""
    return buffer(path) + buffer(data) + acl(entries) + INT.pack(flags)


def with_watch(path: Text, watch: bool) -> bytes:
    """The body of a read that may set a watch."""
    return buffer(path) + bytes([watch])


def with_int(path: Text, number: int) -> bytes:
    """The body of a delete, check, addWatch, removeWatches or checkWatches."""
    return buffer(path) + INT.pack(number)


def multi(parts: Iterable[tuple[int, bytes]]) -> bytes:
    """The body of a multi or multiRead, of opcodes and bodies."""
    heads = (INT.pack(opcode) + b"\x00" + INT.pack(-1) + body for opcode, body in parts)
    return b"".join(heads) + INT.pack(-1) + b"\x01" + INT.pack(-1)


def connect_request(
    session: int, password: bytes, timeout_ms: int, last_zxid: int = 0, *, read_only: bool | None
) -> bytes:
    """The first frame of a connection."""
    tail = b"" if read_only is None else bytes([read_only])
    return framed(CONNECT.pack(0, last_zxid, timeout_ms, session) + buffer(password) + tail)


# --- reading ---------------------------------------------------------------------------------


class Reader:
    """Reads fields one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def _unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        try:
            values = form.unpack_from(self.data, self.at)
        except struct.error:
            raise Undecoded(f"{self.data.hex()} ends at {self.at}") from None
        self.at += form.size
        return values

    def int32(self) -> int:
        """The next four bytes as a number."""
        return int(self._unpack(INT)[0])

    def int64(self) -> int:
        """The next eight bytes as a number."""
        return int(self._unpack(LONG)[0])

    def boolean(self) -> bool:
        """The next byte."""
        self.at += 1
        return bool(self.data[self.at - 1])

    def buffer(self) -> bytes | None:
        """The next buffer; None if its length is -1."""
        length = self.int32()
        if length == -1:
            return None
        if not 0 <= length <= len(self.data) - self.at:
            raise Undecoded(f"{self.data.hex()} has a length of {length} before {self.at}")
        self.at += length
        return self.data[self.at - length : self.at]

    def string(self) -> str | None:
        """The next string."""
        data = self.buffer()
        return None if data is None else data.decode("utf-8", "surrogateescape")

    def strings(self) -> list[str | None]:
        """A list of strings."""
        return [self.string() for _ in range(self.int32())]

    def acl(self) -> list[tuple[int, str | None, str | None]]:
        """A list of ACL entries."""
        return [(self.int32(), self.string(), self.string()) for _ in range(self.int32())]

    def stat(self) -> Stat:
        """A Stat."""
        return Stat(*self._unpack(STAT))

    def end(self) -> None:
        """Check that nothing is left."""
        if self.at != len(self.data):
            raise Undecoded(f"{self.data.hex()} goes on after {self.at}")


def _multi(reader: Reader) -> list[Any]:
    results: list[Any] = []
    while True:
        opcode, done, error = reader.int32(), reader.boolean(), reader.int32()
        if done:
            return [*results, ("end", opcode, error)]
        body = _ANSWERS[opcode](reader) if opcode in _ANSWERS else ("unknown", opcode)
        results.append((opcode, error, body))


_ANSWERS: dict[int, Callable[[Reader], Any]] = {
    -1: lambda reader: reader.int32(),
    Op.CREATE: lambda reader: reader.string(),
    Op.DELETE: lambda reader: None,
    Op.EXISTS: lambda reader: reader.stat(),
    Op.GET_DATA: lambda reader: (reader.buffer(), reader.stat()),
    Op.SET_DATA: lambda reader: reader.stat(),
    Op.GET_ACL: lambda reader: (reader.acl(), reader.stat()),
    Op.SET_ACL: lambda reader: reader.stat(),
    Op.GET_CHILDREN: lambda reader: reader.strings(),
    Op.SYNC: lambda reader: reader.string(),
    Op.GET_CHILDREN_2: lambda reader: (reader.strings(), reader.stat()),
    Op.CHECK: lambda reader: None,
    Op.MULTI: _multi,
    Op.CREATE_2: lambda reader: (reader.string(), reader.stat()),
    Op.CREATE_CONTAINER: lambda reader: (reader.string(), reader.stat()),
    Op.CREATE_TTL: lambda reader: (reader.string(), reader.stat()),
    Op.MULTI_READ: _multi,
    Op.SASL: lambda reader: reader.buffer(),
    Op.GET_EPHEMERALS: lambda reader: reader.strings(),
    Op.COUNT_DESCENDANTS: lambda reader: reader.int32(),
    Op.WHO_AM_I: lambda reader: [
        (reader.string(), reader.string()) for _ in range(reader.int32())
    ],
    Op.ADD_WATCH: lambda reader: reader.int32(),
}


def answer(opcode: int, body: bytes) -> Any:
    """The body of an answer as a value; raises Undecoded if it has another form."""
    if not body:
        return None
    reader = Reader(body)
    if opcode not in _ANSWERS:
        raise Undecoded(f"opcode {opcode} has no body, but here is {body.hex()}")
    value = _ANSWERS[opcode](reader)
    reader.end()
    return value


class Event(NamedTuple):
    """A watch event."""

    kind: int
    state: int
    path: str | None


def event(body: bytes) -> Event:
    """The body of a notification."""
    reader = Reader(body)
    found = Event(reader.int32(), reader.int32(), reader.string())
    reader.end()
    return found


class Granted(NamedTuple):
    """The answer to a connect request."""

    protocol: int
    timeout_ms: int
    session: int
    password: bytes | None
    read_only: bool | None


def granted(payload: bytes) -> Granted:
    """Decode it; older clients get no `read_only`."""
    reader = Reader(payload)
    protocol, timeout_ms, session = reader.int32(), reader.int32(), reader.int64()
    password = reader.buffer()
    read_only = reader.boolean() if reader.at < len(payload) else None
    reader.end()
    return Granted(protocol, timeout_ms, session, password, read_only)
