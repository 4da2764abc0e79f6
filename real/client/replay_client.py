"""A client whose connection can be broken on purpose and that can set its watches again.

kazoo never sets watches again after a reconnection; the Java client does, with one
SetWatches request. Brokers and the consumers of the early releases used the Java client, so
the replay of a schedule needs that request.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from kazoo.protocol import serialization as wire

from watchkeeper.model.actor.errors import ConnectionLoss, Failure
from watchkeeper.model.actor.operations import Operation, Sync
from watchkeeper.model.wire.connect import SessionKey
from watchkeeper.real.client.client import Client, PendingRequest
from watchkeeper.real.client.codec import Answers
from watchkeeper.real.client.connection import send

Watch = tuple[str, str]
"""The kind (data, exist or child) and the path."""
KINDS = ("data", "exist", "child")


@dataclass(frozen=True)
class SetWatchesRequest:
    """Opcode 101: set these watches and report those that have missed a change."""

    zxid: int
    """The zxid of the last write that the client has seen; the server compares against it."""
    paths: tuple[tuple[str, ...], ...]
    """The paths of each kind, in the order of KINDS."""
    type: ClassVar[int] = 101

    def serialize(self) -> bytes:
        """The request as bytes."""
        message = bytearray(struct.pack("!q", self.zxid))
        for paths in self.paths:
            message += struct.pack("!i", len(paths))
            for path in paths:
                message += wire.write_string(path)
        return bytes(message)

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> None:
        """The response is empty."""


class _EmptyAnswers(Answers):
    """Translates an empty response."""

    def of(self, operation: Operation[Any], response: Any) -> Any:
        """None, or the exception that came instead."""
        return response if isinstance(response, Exception) else None


class ReplayClient(Client):
    """A client with operations that programs do not have."""

    @property
    def identity(self) -> SessionKey:
        """The session id and password, with which another connection can continue the session."""
        number, password = self._kazoo.client_id
        return SessionKey(number, password)

    def break_connection(self) -> None:
        """Break the connection; kazoo makes another one in the same session."""
        connection = self._connection
        if connection._socket is not None:
            with suppress(OSError):  # it was not connected
                connection._socket.shutdown(socket.SHUT_RDWR)

    def set_watches(self, watches: Iterable[Watch], zxid: int) -> int | Failure:
        """Set these watches again; return the ticket of the answer, or why it was not sent."""
        paths = tuple(
            tuple(f"{self.prefix}{path}" for kind, path in watches if kind == of_kind)
            for of_kind in KINDS
        )
        with self._lock:
            if self.state != "connected":
                return Failure(ConnectionLoss, sent=False)
            pending = PendingRequest(self, Sync("/"), _EmptyAnswers(self.prefix, self.session))
            send(self._kazoo, [(SetWatchesRequest(zxid, paths), pending)])
            return pending.ticket
