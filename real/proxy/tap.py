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

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Row
from watchkeeper.real.proxy.zk_frames import (
    CLOSE_SESSION,
    CREATE,
    CREATE_2,
    DELETE,
    ERROR,
    MULTI,
    REPLY,
    REQUEST,
    SET_DATA,
    WORDS,
    Fields,
    Session,
    reply_of,
    request_of,
    zxid_of,
)
from watchkeeper.real.trace.write_events import WriteEvents

if TYPE_CHECKING:
    from watchkeeper.real.proxy.connection import ProxiedConnection

CREATES = frozenset({CREATE, CREATE_2, 19, 21})
EPHEMERAL = 1


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
        """Whether it failed; a multi reports that in its first part."""
        is_multi = self.opcode == MULTI and not self.error
        return bool(self.error) or (is_multi and Fields(self.reply).number() == ERROR)

    def event(self, ledger: WriteEvents) -> tuple[str, dict[str, Any]]:
        """The event of the trace: its kind and detail."""
        if self.opcode == CLOSE_SESSION:
            return EventKind.SESSION_CLOSED, {"did": ledger.ended(self.session)}
        if self.is_refused:
            return EventKind.REFUSED, {"op": WORDS.get(self.opcode, "create")}
        did = list(_changes(self.opcode, self.session, Fields(self.request), self.reply, ledger))
        return EventKind.APPLIED, {"op": WORDS.get(self.opcode, "create"), "did": did}

    def deletes(self, root: str) -> Iterator[str]:
        """The paths that it deleted, relative to the root."""
        if not self.is_refused and self.opcode != CLOSE_SESSION:
            for row in _changes(
                self.opcode, 0, Fields(self.request), self.reply, WriteEvents(root)
            ):
                if row[0] == "deleted":
                    yield row[1]


def _changes(
    opcode: int, session: int, request_sent: Fields, reply: bytes, ledger: WriteEvents
) -> Iterator[list[Any]]:
    """The changes of a request that succeeded, as rows of an event's detail."""
    if opcode == MULTI:
        yield from _multi_changes(session, request_sent, ledger)
    elif opcode in CREATES:
        path, data = request_sent.string(), request_sent.buffer()
        request_sent.pass_over_acl()
        owner = session if request_sent.number() & EPHEMERAL else 0
        made = Fields(reply).string() if reply else path  # the server names a sequential znode
        yield from ledger.created(made, owner, data)
    elif opcode == DELETE:
        path = request_sent.string()
        request_sent.number()
        yield from ledger.deleted(path)
    elif opcode == SET_DATA:
        path, data = request_sent.string(), request_sent.buffer()
        request_sent.number()
        yield from ledger.changed(path, data)
    else:  # a version check, or a change of an ACL
        request_sent.string()
        request_sent.number()


def _multi_changes(
    session: int, request_sent: Fields, ledger: WriteEvents
) -> Iterator[list[Any]]:
    """The changes of the parts of a multi."""
    while (opcode := request_sent.number()) != ERROR:
        request_sent.flag()
        request_sent.number()
        yield from _changes(opcode, session, request_sent, b"", ledger)


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

EVENT_TYPES = {1: "created", 2: "deleted", 3: "changed", 4: "children"}
"""Type of a watch event -> its name in a trace; other types are about the session."""
EVENT = -1


@dataclass(slots=True)
class Tap:
    """Records what passes; called from the proxy's one thread."""

    seen: list[AnsweredRequest] = field(default_factory=list)
    granted: list[SessionGrant] = field(default_factory=list)
    fired: list[WatchFired] = field(default_factory=list)
    _pending: dict[tuple[int, int], tuple[int, int, bytes]] = field(default_factory=dict)

    def request_sent(self, connection: ProxiedConnection, frame: bytes) -> None:
        """A client's frame is on its way to a server."""
        request = request_of(frame)
        if request is not None and (request.is_write or request.opcode == CLOSE_SESSION):
            body = frame[REQUEST.size :]
            self._pending[connection.number, request.xid] = (
                time.monotonic_ns(),
                request.opcode,
                body,
            )

    def is_waiting(self, connection: ProxiedConnection) -> bool:
        """Whether a server has yet to answer a write that came over this connection."""
        return any(number == connection.number for number, _ in self._pending)

    def session_granted(self, connection: ProxiedConnection, session: Session) -> None:
        """A server has granted a session, new or continued."""
        client, server = connection.route.client_route.name, connection.route.server
        self.granted.append(SessionGrant(time.monotonic_ns(), client, server, session.number))

    def opened(self) -> dict[int, int]:
        """Session -> when it was first granted (monotonic clock, ns)."""
        return {grant.session: grant.at_ns for grant in reversed(self.granted)}

    def reply_received(self, connection: ProxiedConnection, frame: bytes) -> None:
        """A frame has come from a server."""
        head = reply_of(frame)
        if head is None or connection.session is None:
            return
        zxid = zxid_of(frame)
        if head[0] == EVENT:
            self._add_event(connection, connection.session, zxid, Fields(frame[REPLY.size :]))
        else:
            self._add_answer(connection, connection.session, zxid, head, frame)

    def _add_event(
        self, connection: ProxiedConnection, session: Session, zxid: int, event: Fields
    ) -> None:
        what = EVENT_TYPES.get(event.number())
        event.number()  # skip the state of the session
        if what is not None:
            client, server = connection.route.client_route.name, connection.route.server
            now = time.monotonic_ns()
            fired = WatchFired(
                now, client, server, session.number, max(zxid, 0), what, event.string()
            )
            self.fired.append(fired)

    def _add_answer(
        self,
        connection: ProxiedConnection,
        session: Session,
        zxid: int,
        head: tuple[int, int],
        frame: bytes,
    ) -> None:
        found = self._pending.pop((connection.number, head[0]), None)
        if found is None:
            return
        asked_ns, opcode, body = found
        self.seen.append(
            AnsweredRequest(
                session.number,
                zxid,
                asked_ns,
                time.monotonic_ns(),
                opcode,
                body,
                frame[REPLY.size :],
                head[1],
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
