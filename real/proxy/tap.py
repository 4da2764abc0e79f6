"""Records what passes the proxy: every answered write, even if its client got no reply.

The log of an external ZooKeeper cannot be read. But all requests of a run's members pass
through the proxy, and so do the replies, each with the zxid of the write. The tap cannot see
what no member requested, namely the end of an expired session; an observer can, by the
ephemerals that disappear (`watchkeeper.real.world.observer`).

No log says which watches fired. Their events pass here too; since ZooKeeper 3.9 each carries
the zxid of the change.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from watchkeeper.model.actor.events import WatchEventType
from watchkeeper.model.actor.operations import Create, Delete, DeleteContainer, Multi, SetData
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Row
from watchkeeper.model.wire.connect import SessionKey
from watchkeeper.model.wire.opcodes import CREATES, Opcode
from watchkeeper.model.wire.replies import Reply, decode_body, decode_event
from watchkeeper.model.wire.requests import EVENT_XID, HEADER, decode_request
from watchkeeper.real.proxy.messages import BODY, head_of, reply_of
from watchkeeper.real.trace.write_events import WORDS, WriteEvents

if TYPE_CHECKING:
    from watchkeeper.real.proxy.connection import ProxiedConnection


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A write, or the close of a session, that a server has answered."""

    session: int
    zxid: int
    asked_ns: int
    answered_ns: int
    opcode: int
    request: bytes
    reply: bytes
    error: int

    @property
    def is_refused(self) -> bool:
        """Whether it failed; a multi reports that in its parts."""
        if self.error or self.opcode != Opcode.MULTI:
            return bool(self.error)
        return any(opcode == Opcode.ERROR for opcode, _ in decode_body(self.opcode, self.reply))

    def event(self, ledger: WriteEvents) -> tuple[str, dict[str, Any]]:
        """The event of the trace: its kind and detail."""
        if self.opcode == Opcode.CLOSE_SESSION:
            return EventKind.SESSION_CLOSED, {"did": ledger.ended(self.session)}
        if self.is_refused:
            return EventKind.REFUSED, {"op": WORDS[self.opcode]}
        did = list(self._changes(self.session, ledger))
        return EventKind.APPLIED, {"op": WORDS[self.opcode], "did": did}

    def deletes(self, root: str) -> Iterator[str]:
        """The paths that it deleted, relative to the root."""
        if not self.is_refused and self.opcode != Opcode.CLOSE_SESSION:
            for row in self._changes(0, WriteEvents(root)):
                if row[0] == "deleted":
                    yield row[1]

    def _changes(self, session: int, ledger: WriteEvents) -> Iterator[list[Any]]:
        """The changes of a request that succeeded, as rows of an event's detail."""
        operation = decode_request(HEADER.pack(0, self.opcode) + self.request).body
        if type(operation) is Multi:
            results = decode_body(Opcode.MULTI, self.reply)
            for part, (opcode, result) in zip(operation.operations, results, strict=True):
                yield from _changes(part, _created_path(opcode, result), session, ledger)
        else:
            result = decode_body(self.opcode, self.reply) if self.reply else None
            yield from _changes(operation, _created_path(self.opcode, result), session, ledger)


def _created_path(opcode: int, result: Any) -> str | None:
    """The path that a create answered with: the server names a sequential znode."""
    if opcode not in CREATES:
        return None
    path: str | None = result[0] if type(result) is tuple else result
    return path


def _changes(
    operation: Any, created: str | None, session: int, ledger: WriteEvents
) -> Iterator[list[Any]]:
    kind = type(operation)
    if kind is Create:
        owner = session if operation.ephemeral else 0
        yield from ledger.created(created or operation.path, owner, operation.data)
    elif kind is Delete or kind is DeleteContainer:
        yield from ledger.deleted(operation.path)
    elif kind is SetData:
        yield from ledger.changed(operation.path, operation.data)


class SessionGrant(NamedTuple):
    """A server has granted a session, new or continued."""

    at_ns: int
    client: str
    server: str
    session: int


class WatchFired(NamedTuple):
    """A watch event that a server sent to a client."""

    at_ns: int
    client: str
    server: str
    session: int
    zxid: int
    """The zxid of the change; 0 if the server does not report it."""
    what: str
    path: str


ServerAt = tuple[str, int, str]
"""A client, the time of the run in µs, and the server that it connected to."""

EVENT_WORDS = {
    WatchEventType.CREATED: "created",
    WatchEventType.DELETED: "deleted",
    WatchEventType.CHANGED: "changed",
    WatchEventType.CHILDREN: "children",
}
"""What a watch event reports -> its name in a trace."""


@dataclass(slots=True)
class Tap:
    """Records what passes; called from the proxy's one thread."""

    seen: list[AnsweredRequest] = field(default_factory=list)
    granted: list[SessionGrant] = field(default_factory=list)
    fired: list[WatchFired] = field(default_factory=list)
    _pending: dict[tuple[int, int], tuple[int, int, bytes]] = field(default_factory=dict)

    def request_sent(self, connection: ProxiedConnection, frame: bytes) -> None:
        """A client's frame is on its way to a server."""
        head = head_of(frame)
        if head is not None and (head.is_write or head.opcode == Opcode.CLOSE_SESSION):
            self._pending[connection.number, head.xid] = (
                time.monotonic_ns(),
                head.opcode,
                frame[BODY:],
            )

    def is_waiting(self, connection: ProxiedConnection) -> bool:
        """Whether a server has yet to answer a write that came over this connection."""
        return any(number == connection.number for number, _ in self._pending)

    def session_granted(self, connection: ProxiedConnection, session: SessionKey) -> None:
        """A server has granted a session, new or continued."""
        client, server = connection.route.client_route.name, connection.route.server
        self.granted.append(SessionGrant(time.monotonic_ns(), client, server, session.number))

    def opened(self) -> dict[int, int]:
        """Session -> when it was first granted (monotonic clock, ns)."""
        return {grant.session: grant.at_ns for grant in reversed(self.granted)}

    def reply_received(self, connection: ProxiedConnection, frame: bytes) -> None:
        """A frame has come from a server."""
        reply = reply_of(frame)
        if reply is None or connection.session is None:
            return
        if reply.xid == EVENT_XID:
            self._add_event(connection, connection.session, reply)
        else:
            self._add_answer(connection, connection.session, reply)

    def _add_event(
        self, connection: ProxiedConnection, session: SessionKey, reply: Reply
    ) -> None:
        event = decode_event(reply.body)
        if event.what is not None:
            client, server = connection.route.client_route.name, connection.route.server
            fired = WatchFired(
                time.monotonic_ns(),
                client,
                server,
                session.number,
                max(reply.zxid, 0),
                EVENT_WORDS[event.what],
                event.path,
            )
            self.fired.append(fired)

    def _add_answer(
        self, connection: ProxiedConnection, session: SessionKey, reply: Reply
    ) -> None:
        found = self._pending.pop((connection.number, reply.xid), None)
        if found is None:
            return
        asked_ns, opcode, body = found
        now = time.monotonic_ns()
        self.seen.append(
            AnsweredRequest(
                session.number, reply.zxid, asked_ns, now, opcode, body, reply.body, reply.error
            )
        )

    def servers_at(self, begin_ns: int, server_of: Mapping[str, str]) -> Iterator[ServerAt]:
        """Which server each client connected to, and when."""
        for grant in self.granted:
            yield grant.client, max(grant.at_ns - begin_ns, 0) // 1000, server_of[grant.server]

    def rows(
        self, root: str, begin_ns: int, group_of: Mapping[str, str], server_of: Mapping[str, str]
    ) -> Iterator[Row]:
        """The watch events as rows of a trace; `server_of` maps an address to a server's name."""
        for event in self.fired:
            path = event.path.removeprefix(root) or "/"
            detail = {"what": event.what, "path": path, "at": server_of[event.server]}
            yield (
                max(event.at_ns - begin_ns, 0) // 1000,
                event.client,
                EventKind.WATCH_FIRED,
                event.session,
                group_of.get(event.client, ""),
                "",
                "",
                event.zxid,
                detail,
            )
