"""The part of ZooKeeper's protocol that is needed to tell messages apart.

Each side sends frames: a length, then that many bytes. The first frame of each side opens
the session. After it a request begins with its number (xid) and its kind (opcode); a reply
begins with the xid that it answers, the last zxid that the server has applied, and an error
code. Negative xids belong to events, pings and requests of the client library itself.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

LENGTH = struct.Struct(">i")
REQUEST = struct.Struct(">iii")
REPLY = struct.Struct(">iiqi")
CONNECTED = struct.Struct(">iiiqi")

LONGEST = 64 * 1024 * 1024
"""The limit of a frame; a larger length means no frame (a four-letter word, for instance)."""

CREATE, DELETE, SET_DATA, SET_ACL, MULTI, CREATE_2 = 1, 2, 5, 7, 14, 15
CREATE_SESSION, CLOSE_SESSION, ERROR = -10, -11, -1
WRITES = frozenset({CREATE, DELETE, SET_DATA, SET_ACL, MULTI, CREATE_2, 16, 19, 20, 21})
"""The opcodes that change something."""
WORDS = {
    CREATE: "create",
    CREATE_2: "create",
    DELETE: "delete",
    SET_DATA: "set",
    SET_ACL: "set acl",
    MULTI: "multi",
    ERROR: "failed",
}
"""Opcode -> its name in a trace."""


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request."""

    xid: int
    opcode: int

    @property
    def is_of_program(self) -> bool:
        """Whether a program sent it, not the client library (pings, watches, credentials)."""
        return self.xid > 0

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.opcode in WRITES


@dataclass(frozen=True, slots=True)
class Session:
    """The id and password with which another connection can continue a session."""

    number: int
    password: bytes


def request_of(frame: bytes) -> Request | None:
    """The head of a request; None if the frame is too short."""
    if len(frame) < REQUEST.size:
        return None
    _, xid, opcode = REQUEST.unpack_from(frame)
    return Request(xid, opcode)


def reply_of(frame: bytes) -> tuple[int, int] | None:
    """The xid that a frame answers, and its error code; None if it is no reply."""
    if len(frame) < REPLY.size:
        return None
    _, xid, _, error = REPLY.unpack_from(frame)
    return xid, error


def zxid_of(reply: bytes) -> int:
    """The zxid that a server had applied last when it replied."""
    return int(REPLY.unpack_from(reply)[2])


def renumbered(frame: bytes, xid: int) -> bytes:
    """The same request with another xid."""
    return frame[: LENGTH.size] + LENGTH.pack(xid) + frame[2 * LENGTH.size :]


def session_of(frame: bytes) -> Session | None:
    """The session that a server's first frame grants; None if it refuses the session."""
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
        """The next 32-bit integer."""
        (value,) = LENGTH.unpack_from(self.body, self.at)
        self.at += LENGTH.size
        return int(value)

    def buffer(self) -> bytes | None:
        """The next length-prefixed bytes; None for a length of -1."""
        length = self.number()
        if length < 0:
            return None
        data = self.body[self.at : self.at + length]
        self.at += length
        return data

    def string(self) -> str:
        """The next string."""
        return (self.buffer() or b"").decode("utf-8", "replace")

    def flag(self) -> bool:
        """The next boolean."""
        value = self.body[self.at] != 0
        self.at += 1
        return value

    def pass_over_acl(self) -> None:
        """Skip an access control list."""
        for _ in range(max(self.number(), 0)):
            self.number()
            self.string()
            self.string()


class Frames:
    """Splits a byte stream into frames; each frame includes its length."""

    __slots__ = ("_rest", "is_raw")

    def __init__(self) -> None:
        self._rest = b""
        self.is_raw = False
        """Whether this is no stream of frames; its bytes are then returned as they come."""

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes; return the frames that are complete."""
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
