"""What an ensemble reports about itself while it runs, for a history of all requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from watchkeeper.model.actor.events import Fired
    from watchkeeper.model.ensemble.connection import Connection
    from watchkeeper.model.ensemble.entry import Entry
    from watchkeeper.model.ensemble.server import Server
    from watchkeeper.model.wire.requests import Request


class Recorder(Protocol):
    """Receives what happens, in order."""

    def requested(self, connection: Connection, request: Request) -> None:
        """A server has received a request."""

    def answered(self, connection: Connection, request: Request, error: int, zxid: int) -> None:
        """A server has answered a request; `error` is ZooKeeper's code, 0 for success."""

    def fired(self, connection: Connection, event: Fired, zxid: int) -> None:
        """A server has sent a watch event."""

    def committed(self, entry: Entry) -> None:
        """A write, or the begin or end of a session, has taken effect."""

    def connected(self, connection: Connection, *, is_new: bool) -> None:
        """A connection has a session: a new one, or one that it continues."""

    def closed(self, connection: Connection, reason: str) -> None:
        """A server has closed a connection, for this reason."""

    def expired(self, connection: Connection, session: int) -> None:
        """A client has learned that its session has ended."""

    def changed(self, server: Server, state: str) -> None:
        """A server leads, follows, looks for a leader, stands still, or is down."""

    def fault(self, name: str, detail: Mapping[str, Any]) -> None:
        """A fault has been injected; without the detail `lasts`, one has ended."""


class Silent:
    """Records nothing; a recorder of some events takes over the rest."""

    def requested(self, connection: Connection, request: Request) -> None:
        """Record nothing."""

    def answered(self, connection: Connection, request: Request, error: int, zxid: int) -> None:
        """Record nothing."""

    def fired(self, connection: Connection, event: Fired, zxid: int) -> None:
        """Record nothing."""

    def committed(self, entry: Entry) -> None:
        """Record nothing."""

    def connected(self, connection: Connection, *, is_new: bool) -> None:
        """Record nothing."""

    def closed(self, connection: Connection, reason: str) -> None:
        """Record nothing."""

    def expired(self, connection: Connection, session: int) -> None:
        """Record nothing."""

    def changed(self, server: Server, state: str) -> None:
        """Record nothing."""

    def fault(self, name: str, detail: Mapping[str, Any]) -> None:
        """Record nothing."""


SILENT: Recorder = Silent()
"""Records nothing."""
