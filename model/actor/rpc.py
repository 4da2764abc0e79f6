"""Calls of clients to brokers: one request to an address, and its response.

Requests and responses are values (`model/log/format/requests.py`); the driver carries them.
In `real/` they become frames on a TCP connection that is kept open; in `sim/` they take the
time that their sizes need. A connection is made when it is first needed, and again after it
broke.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

from msgspec import Struct

from watchkeeper.model.actor.operations import Effect

T = TypeVar("T")


class CallError(Exception):
    """A request to a broker failed."""

    meaning = "the request failed"

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return f"{self.address}: {self.meaning}"


class Unreachable(CallError):
    """No connection could be made: the request was not sent."""

    meaning = "there is no connection to the broker"


class Disconnected(CallError):
    """The connection broke after the request had left: it may have been served."""

    meaning = "the connection broke before the response came"


class TimedOut(CallError):
    """No response came in time; the connection is given up, the request may have been served."""

    meaning = "no response came in time"


class CallFailure(Struct, frozen=True):
    """A failed call as a value: the error, and the address."""

    kind: type[CallError]
    address: str

    def error(self) -> CallError:
        """Make the exception that this failure stands for."""
        return self.kind(self.address)


class Call(Effect[Any], frozen=True):
    """Send a request to the broker at an address (`host:port`) and wait for its response.

    In 0.7 a produce request has no response: it is answered with None as soon as it has been
    handed to the connection, and a connection that died unnoticed swallows it.
    """

    address: str
    request: Any
    timeout_ms: int = 30_000
    send_buffer_bytes: int | None = None
    """The send buffer of a connection that is made for it; None: the default of the system."""

    def __await__(self) -> Generator[Effect[Any], Any, Any]:
        answer: Any = yield self
        if type(answer) is CallFailure:
            raise answer.error()
        return answer


class HangUp(Effect[None], frozen=True):
    """Close the connection to an address, if there is one."""

    address: str
