"""As much of ZooKeeper's protocol as it takes to tell one message from another.

Either side sends frames: a length, then so many bytes. The first frame each way opens the
session; after it a request begins with its number (xid) and its kind (opcode), a reply
with the number it answers, the last zxid the server has applied, and an error. Some
numbers are no program's: events, pings, what a client library sends on its own account.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

LENGTH = struct.Struct(">i")
REQUEST = struct.Struct(">iii")
REPLY = struct.Struct(">iiqi")
CONNECTED = struct.Struct(">iiiqi")

LONGEST = 64 * 1024 * 1024
"""No frame is longer; what claims to be, a four-letter word for one, is not a frame."""

CREATE, DELETE, SET_DATA, SET_ACL, MULTI, CREATE_2 = 1, 2, 5, 7, 14, 15
CREATE_SESSION, CLOSE_SESSION, ERROR = -10, -11, -1
WRITES = frozenset({CREATE, DELETE, SET_DATA, SET_ACL, MULTI, CREATE_2, 16, 19, 20, 21})
"""The kinds of request that change something."""
WORDS = {
    CREATE: "create",
    CREATE_2: "create",
    DELETE: "delete",
    SET_DATA: "set",
    SET_ACL: "set acl",
    MULTI: "multi",
    ERROR: "failed",
}
"""What a trace calls them."""


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request."""

    xid: int
    opcode: int

    @property
    def is_of_program(self) -> bool:
        """Whether a program asked for it: no ping, no watches or credentials sent again."""
        return self.xid > 0

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.opcode in WRITES


@dataclass(frozen=True, slots=True)
class Session:
    """What a client needs to go on with a session from elsewhere."""

    number: int
    password: bytes


def request_of(frame: bytes) -> Request | None:
    """The head of a request; None if the frame is too short to be one."""
    if len(frame) < REQUEST.size:
        return None
    _, xid, opcode = REQUEST.unpack_from(frame)
    return Request(xid, opcode)


def reply_of(frame: bytes) -> tuple[int, int] | None:
    """Which request a frame answers and with what error; None if it is no reply."""
    if len(frame) < REPLY.size:
        return None
    _, xid, _, error = REPLY.unpack_from(frame)
    return xid, error


def zxid_of(reply: bytes) -> int:
    """The last zxid that a server had applied when it replied."""
    return int(REPLY.unpack_from(reply)[2])


def renumbered(frame: bytes, xid: int) -> bytes:
    """The same request under another number."""
    return frame[: LENGTH.size] + LENGTH.pack(xid) + frame[2 * LENGTH.size :]


def session_of(frame: bytes) -> Session | None:
    """The session that a server's first frame grants; None if it refuses one."""
    if len(frame) < CONNECTED.size:
        return None
    _, _, timeout_ms, number, length = CONNECTED.unpack_from(frame)
    if timeout_ms <= 0 or length < 0:
        return None
    return Session(number, frame[CONNECTED.size : CONNECTED.size + length])


class Fields:
    """Reads the fields of a record one after the other."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.at = 0

    def number(self) -> int:
        """An int."""
        (value,) = LENGTH.unpack_from(self.body, self.at)
        self.at += LENGTH.size
        return int(value)

    def buffer(self) -> bytes | None:
        """Bytes with their length before them; None for a length of -1."""
        length = self.number()
        if length < 0:
            return None
        piece = self.body[self.at : self.at + length]
        self.at += length
        return piece

    def string(self) -> str:
        """A text."""
        return (self.buffer() or b"").decode("utf-8", "replace")

    def flag(self) -> bool:
        """A boolean."""
        value = self.body[self.at] != 0
        self.at += 1
        return value

    def pass_over_acl(self) -> None:
        """A list of who may do what, which nobody here wants to know."""
        for _ in range(max(self.number(), 0)):
            self.number()
            self.string()
            self.string()


class Frames:
    """Cuts what arrives in pieces into whole frames, each with its length before it."""

    __slots__ = ("_rest", "is_raw")

    def __init__(self) -> None:
        self._rest = b""
        self.is_raw = False
        """Whether this is no stream of frames; its bytes are then passed on as they come."""

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are whole now."""
        if self.is_raw:
            return [data]
        found = []
        rest = self._rest + data if self._rest else data
        at = 0
        while at + LENGTH.size <= len(rest):
            (length,) = LENGTH.unpack_from(rest, at)
            if not 0 <= length <= LONGEST:
                self.is_raw = True
                found.append(rest[at:])
                at = len(rest)
                break
            end = at + LENGTH.size + length
            if end > len(rest):
                break
            found.append(rest[at:end])
            at = end
        self._rest = rest[at:]
        return found
