"""The first frame of each side: a client requests a session, and a server grants one or not."""

from __future__ import annotations

import struct

from msgspec import Struct

from watchkeeper.model.wire.fields import FieldReader, boolean, buffer

_REQUEST, _RESPONSE = struct.Struct(">iqiq"), struct.Struct(">iiq")


class ConnectRequest(Struct, frozen=True):
    """A client requests a new session, or to continue one."""

    protocol: int
    last_zxid: int
    """The last zxid that the client has seen."""
    timeout_ms: int
    session: int
    """The session to continue; 0 for a new one."""
    password: bytes
    read_only: bool | None
    """Whether a server without a quorum would do; None from clients before 3.4."""


class SessionKey(Struct, frozen=True):
    """The id and password with which another connection can continue a session."""

    number: int
    password: bytes


class ConnectResponse(Struct, frozen=True):
    """A server grants a session; a timeout of 0 says that it is over."""

    protocol: int
    timeout_ms: int
    session: int
    password: bytes
    read_only: bool | None
    """Whether the server takes no writes; None to clients that did not send the flag."""

    @property
    def key(self) -> SessionKey | None:
        """What continues the session that is granted; None if it is refused."""
        return SessionKey(self.session, self.password) if self.timeout_ms > 0 else None


def decode_connect_request(payload: bytes) -> ConnectRequest:
    """Read a client's first frame; raises Malformed."""
    fields = FieldReader(payload)
    protocol, last_zxid = fields.int32(), fields.int64()
    timeout_ms, session, password = fields.int32(), fields.int64(), fields.buffer() or b""
    read_only = None if fields.is_at_end else fields.boolean()
    return ConnectRequest(protocol, last_zxid, timeout_ms, session, password, read_only)


def encode_connect_request(request: ConnectRequest) -> bytes:
    """Write a client's first frame."""
    head = _REQUEST.pack(request.protocol, request.last_zxid, request.timeout_ms, request.session)
    return head + buffer(request.password) + _flag(request.read_only)


def decode_connect_response(payload: bytes) -> ConnectResponse:
    """Read a server's first frame; raises Malformed."""
    fields = FieldReader(payload)
    protocol, timeout_ms, session = fields.int32(), fields.int32(), fields.int64()
    password = fields.buffer() or b""
    read_only = None if fields.is_at_end else fields.boolean()
    return ConnectResponse(protocol, timeout_ms, session, password, read_only)


def encode_connect_response(response: ConnectResponse) -> bytes:
    """Write a server's first frame."""
    head = _RESPONSE.pack(response.protocol, response.timeout_ms, response.session)
    return head + buffer(response.password) + _flag(response.read_only)


def _flag(read_only: bool | None) -> bytes:
    return b"" if read_only is None else boolean(read_only)
