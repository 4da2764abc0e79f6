"""A client that breaks its connection when it is told to, and can leave its watches again.

kazoo never leaves watches again; Java's client does so at every reconnection. Brokers, and
consumers of the early releases, were clients of Java.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from kazoo.protocol import serialization as wire

from model.errors import ConnectionLoss, Failure
from model.operations import Operation, Sync
from real.client import Asked, Client
from real.connection import send
from real.requests import Answers
from real.wire import Session

Watch = tuple[str, str]
"""data, exist or child; and the path."""
KINDS = ("data", "exist", "child")


@dataclass(frozen=True)
class SetWatchesRequest:
    """Opcode 101: leave these watches, and tell me of those that have missed something."""

    zxid: int
    """The last write that the client has heard of."""
    paths: tuple[tuple[str, ...], ...]
    """Of each kind."""
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


class _Nothing(Answers):
    """What an empty response is made into."""

    def of(self, operation: Operation[Any], response: Any) -> Any:
        """None, or the exception that came instead."""
        return response if isinstance(response, Exception) else None


class LeavingClient(Client):
    """A client of which more can be asked than a program may."""

    @property
    def identity(self) -> Session:
        """What it takes to go on with its session from elsewhere."""
        number, password = self._kazoo.client_id
        return Session(number, password)

    def break_connection(self) -> None:
        """Break the connection; kazoo makes another one, in the same session."""
        connection = self._connection
        if connection._socket is not None:
            with suppress(OSError):  # it was not connected
                connection._socket.shutdown(socket.SHUT_RDWR)

    def leave_again(self, watches: Iterable[Watch], zxid: int) -> int | Failure:
        """Leave these watches again; the number under which the answer comes."""
        paths = tuple(
            tuple(f"{self.prefix}{path}" for kind, path in watches if kind == one)
            for one in KINDS
        )
        with self._lock:
            if self.state != "connected":
                return Failure(ConnectionLoss, sent=False)
            asked = Asked(self, Sync("/"), _Nothing(self.prefix, self.session))
            send(self._kazoo, [(SetWatchesRequest(zxid, paths), asked)])
            return asked.ticket
