"""A server's end of a connection: bytes come in, and events go out.

AWAITING_CONNECT   the first four bytes are a length, or a four-letter word as text
CONNECTING         the connect request has come; requests may follow before the answer
OPEN               the session is granted
CLOSED             a word has come, a session was refused, or the stream makes no sense:
                   nothing more is read

A word has a meaning only as the first four bytes. Later it is a length of 1.6 GB, as are four
letters that are no word, and no frame is so long. A second connect request is a request like
others: its first bytes are an xid of 0 and an opcode.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from watchkeeper.model.wire.connect import (
    ConnectRequest,
    ConnectResponse,
    decode_connect_request,
    encode_connect_response,
)
from watchkeeper.model.wire.fields import Malformed
from watchkeeper.model.wire.frames import HEADER_BYTES, FrameDecoder, frame
from watchkeeper.model.wire.requests import Request, decode_request


class ConnectionState(Enum):
    """What a server expects of a client next."""

    AWAITING_CONNECT = "awaiting a connect request"
    CONNECTING = "connecting"
    OPEN = "open"
    CLOSED = "closed"


WORDS = frozenset(
    b"conf cons crst dirs dump envi gtmk hash isro mntr ruok srst srvr stat stmk wchc wchp "
    b"wchs".split()
)
"""The four-letter words that Apache's servers know; not every server answers each of them."""


# The attributes of an enum are found slowly, and each request reads these.
_AWAITING_CONNECT = ConnectionState.AWAITING_CONNECT
_CLOSED = ConnectionState.CLOSED


class Word(Struct, frozen=True):
    """A client has sent a four-letter word in place of a connect request."""

    name: bytes


class ProtocolError(Struct, frozen=True):
    """The stream makes no sense from here on; the connection has to be closed."""

    reason: str


Event = ConnectRequest | Request | Word | ProtocolError


class ServerConnection:
    """The state of one connection; see the table at the top of this module."""

    __slots__ = ("_first", "_frames", "state")

    def __init__(self, *, most_bytes: int = 0xFFFFF) -> None:
        """`most_bytes` is the largest request that is taken (`jute.maxbuffer`)."""
        self.state = ConnectionState.AWAITING_CONNECT
        self._frames = FrameDecoder(most_bytes)
        self._first: bytes | None = b""
        """The first bytes, until there are enough to tell a length from a word; then None."""

    def receive(self, data: bytes) -> list[Event]:
        """Take bytes of the client; return what they say, in order."""
        if self.state is _CLOSED:
            return []
        if self._first is not None:
            data = self._first + data
            if len(data) < HEADER_BYTES:
                self._first = data
                return []
            self._first = None
            if data[:HEADER_BYTES] in WORDS:
                self.state = ConnectionState.CLOSED
                return [Word(data[:HEADER_BYTES])]
        events: list[Event] = []
        try:
            for payload in self._frames.each(data):
                events.append(self._event(payload))
        except Malformed as error:
            self.state = ConnectionState.CLOSED
            events.append(ProtocolError(str(error)))
        return events

    def _event(self, payload: bytes) -> Event:
        if self.state is _AWAITING_CONNECT:
            request = decode_connect_request(payload)
            self.state = ConnectionState.CONNECTING
            return request
        return decode_request(payload)

    def accept(self, response: ConnectResponse) -> bytes:
        """The frame that answers the connect request."""
        assert self.state is ConnectionState.CONNECTING, "one answer, after a connect request"
        is_granted = response.timeout_ms > 0
        self.state = ConnectionState.OPEN if is_granted else ConnectionState.CLOSED
        return frame(encode_connect_response(response))
