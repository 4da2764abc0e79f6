"""What the proxy reads of a message: which request it is, or which request it answers.

A message is a frame with its length, since the proxy passes on what it does not change.
`model.wire` knows the protocol; here is what a proxy has to tell apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from watchkeeper.model.wire.connect import SessionKey, decode_connect_response
from watchkeeper.model.wire.fields import Malformed
from watchkeeper.model.wire.frames import HEADER_BYTES, FrameDecoder, frame
from watchkeeper.model.wire.opcodes import WRITES
from watchkeeper.model.wire.replies import Reply, decode_reply
from watchkeeper.model.wire.requests import HEADER

LONGEST = 64 * 1024 * 1024
"""The limit of a frame; a larger length means no frame (a four-letter word, for instance)."""
BODY = HEADER_BYTES + HEADER.size
"""Where the body of a request begins."""


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The xid and the opcode of a request."""

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


def head_of(message: bytes) -> RequestHead | None:
    """The head of a request; None if the message is too short."""
    if len(message) < BODY:
        return None
    return RequestHead(*HEADER.unpack_from(message, HEADER_BYTES))


def renumbered(message: bytes, xid: int) -> bytes:
    """The same request with another xid."""
    _, opcode = HEADER.unpack_from(message, HEADER_BYTES)
    return frame(HEADER.pack(xid, opcode) + message[BODY:])


def reply_of(message: bytes) -> Reply | None:
    """The answer or event in a message; None if it is neither."""
    try:
        return decode_reply(message[HEADER_BYTES:])
    except Malformed:
        return None


def session_of(message: bytes) -> SessionKey | None:
    """The session that a server's first message grants; None if it refuses the session."""
    try:
        return decode_connect_response(message[HEADER_BYTES:]).key
    except Malformed:
        return None


class MessageStream:
    """Splits what one side sends into messages."""

    __slots__ = ("_frames", "is_raw")

    def __init__(self) -> None:
        self._frames = FrameDecoder(LONGEST)
        self.is_raw = False
        """Whether this is no stream of frames; its bytes are then returned as they come."""

    def feed(self, data: bytes) -> list[bytes]:
        """Add received bytes; return the messages that are complete."""
        if self.is_raw:
            return [data]
        found: list[bytes] = []
        try:
            found.extend(map(frame, self._frames.each(data)))
        except Malformed:
            self.is_raw = True
            found.append(self._frames.kept)
        return found
