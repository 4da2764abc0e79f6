"""A connection as a service without threads has it: bytes come by calls, and leave at once."""

from __future__ import annotations

from collections.abc import Callable

from watchkeeper.virtual.network.endpoint import Address, Endpoint


class Stream:
    """The service's end of a connection; it has the methods of asyncio's transports."""

    __slots__ = ("_endpoint", "_is_paused", "_said_closed", "closed", "received")

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._is_paused = False
        self._said_closed = False
        self.received: Callable[[bytes], object] = _ignore
        """Called with the bytes that arrive."""
        self.closed: Callable[[], object] = _ignore_end
        """Called once when the other end closes the connection."""
        endpoint.changed = self._changed

    @property
    def peer(self) -> Address:
        """The address and port of the other end."""
        return self._endpoint.remote

    def _changed(self) -> None:
        endpoint = self._endpoint
        while endpoint.arrived and not self._is_paused and not endpoint.is_closed:
            self.received(endpoint.read(endpoint.arrived_bytes))
        if endpoint.has_ended and not endpoint.arrived and not self._said_closed:
            self._said_closed = True
            self.closed()
            endpoint.close()

    def write(self, data: bytes) -> None:
        """Send bytes; a closed connection takes none."""
        if not self._endpoint.is_shut and self._endpoint.error is None:
            self._endpoint.send(data)

    def close(self) -> None:
        """Close the connection behind what was sent."""
        self._said_closed = True
        self._endpoint.close()

    def abort(self) -> None:
        """Break the connection."""
        self._said_closed = True
        self._endpoint.abort()

    def pause_reading(self) -> None:
        """Let what arrives wait."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Take what arrives again."""
        self._is_paused = False
        self._changed()

    def get_write_buffer_size(self) -> int:
        """How many bytes the other end has not read."""
        return self._endpoint.under_way


def _ignore(data: bytes) -> None:
    """A service that takes nothing."""


def _ignore_end() -> None:
    """A service that does not mind."""
