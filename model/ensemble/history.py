"""The trace of everything that clients request of an ensemble, as its servers see it.

A row a request, a response, a watch event, a begin or end of a session or connection, a write
that takes effect, a change of a server, a fault. Each session is a node `client/N`, numbered in
the order in which sessions begin.

The moments are those of the server: a request when it is received, a response and an event when
they are sent. A client learns of them later, or never if its connection breaks. What a client
proves its identity with is not in the trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from watchkeeper.model.actor.errors import Failure, ZooKeeperError
from watchkeeper.model.actor.events import Fired
from watchkeeper.model.actor.operations import Operation
from watchkeeper.model.ensemble.recorder import Silent
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.text import WORDS, deleted, described_changes, described_operation
from watchkeeper.model.trace.trace import NOTHING, Row
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import Auth, Ping, Request, SetWatches, WhoAmI

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.connection import Connection
    from watchkeeper.model.ensemble.ensemble import Ensemble
    from watchkeeper.model.ensemble.entry import Entry
    from watchkeeper.model.ensemble.server import Server

MOST_ROWS = 100_000
"""How many rows are kept, the latest ones; they take some 50 MB."""
SERVICE = "zookeeper"
OTHERS: Mapping[type[Any], str] = {
    Auth: "authenticate",
    SetWatches: "set watches",
    WhoAmI: "who am i",
}
"""The words for requests that are no operations."""
ERRORS = {kind.code: kind.__name__ for kind in ZooKeeperError.__subclasses__() if kind.code}
"""Code of an error -> its name."""
STATES = {"looking": "has no leader", "follower": "following"}
"""Servers' states, where the trace has other words for them."""

# The attributes of an enum are found slowly, and each write reads these.
_CREATE_SESSION, _CLOSE_SESSION = Opcode.CREATE_SESSION, Opcode.CLOSE_SESSION
_APPLIED, _SESSION_CLOSED = EventKind.APPLIED, EventKind.SESSION_CLOSED


class History(Silent):
    """A recorder that writes a trace."""

    def __init__(self) -> None:
        self._rows: deque[Row] = deque(maxlen=MOST_ROWS)
        self._ensemble: Ensemble | None = None
        self._begun_ms = 0.0
        self._names: dict[int, str] = {}
        """Session -> the node of its client."""

    def begin(self, ensemble: Ensemble) -> None:
        """Begin anew: forget what was until now, and measure time and number clients from now.

        The sessions that live have clients too.
        """
        self._rows.clear()
        self._names = {}
        self._ensemble = ensemble
        self._begun_ms = ensemble.clock.now_ms()
        for server in ensemble.servers:
            self.changed(server, server.state)
        for session in sorted(ensemble.head.sessions):
            self._name(session)

    @property
    def rows(self) -> Sequence[Row]:
        """The rows of the trace."""
        return list(self._rows)

    def name_of(self, session: int) -> str:
        """The node of a session's client."""
        return self._names.get(session) or self._name(session)

    def _name(self, session: int) -> str:
        name = self._names[session] = f"client/{len(self._names) + 1}"
        self._write(name, EventKind.STARTED, session)
        return name

    def _write(
        self,
        node: str,
        kind: str,
        session: int = 0,
        detail: Mapping[str, Any] = NOTHING,
        *,
        zxid: int = 0,
    ) -> None:
        if self._ensemble is not None:
            t_us = int((self._ensemble.clock.now_ms() - self._begun_ms) * 1000)
            self._rows.append((t_us, node, kind, session, "", "", "", zxid, detail))

    # --- requests ----------------------------------------------------------------------

    def requested(self, connection: Connection, request: Request) -> None:
        """A request has been received; pings are left out."""
        session = connection.session
        if session and type(request.body) is not Ping:
            self._write(
                self.name_of(session), EventKind.REQUEST, session, detail_of(request.body)
            )

    def answered(self, connection: Connection, request: Request, error: int, zxid: int) -> None:
        """A response is sent."""
        session = connection.session
        if session and type(request.body) is not Ping:
            detail = answer_of(word_of(type(request.body)), error)
            name = self.name_of(session)
            self._write(name, EventKind.RESPONSE, session, detail, zxid=max(zxid, 0))

    def fired(self, connection: Connection, event: Fired, zxid: int) -> None:
        """A watch event is sent: it fires and leaves at one moment."""
        session, name = connection.session, self.name_of(connection.session)
        news = {"what": event.what.value, "path": event.path}
        at = _server_name(connection.server)
        self._write(name, EventKind.WATCH_FIRED, session, {**news, "at": at}, zxid=max(zxid, 0))
        self._write(name, EventKind.NOTIFIED, session, news)

    # --- writes and sessions -----------------------------------------------------------

    def committed(self, entry: Entry) -> None:
        """A write, or the begin or end of a session, has taken effect."""
        name = self.name_of(entry.session) if entry.session else SERVICE
        kind, detail = event_of(entry)
        leader = self._ensemble.leader if self._ensemble is not None else None
        at = SERVICE if leader is None else _server_name(leader)
        detail = {"by": name, **detail}
        self._write(at, kind, entry.session, detail, zxid=entry.zxid)
        if kind == _SESSION_CLOSED:
            self._write(name, EventKind.ENDED, entry.session, {"why": "its session is closed"})

    def connected(self, connection: Connection, *, is_new: bool) -> None:
        """A connection has a session."""
        session, at = connection.session, _server_name(connection.server)
        name = self.name_of(session)
        if not is_new:
            self._write(at, EventKind.SESSION_MOVED, session, {"by": name})
        self._write(name, EventKind.CONNECTED, session, {"at": at, "new": is_new})

    def closed(self, connection: Connection, reason: str) -> None:
        """A connection has ended."""
        if connection.session:
            name = self.name_of(connection.session)
            self._write(name, EventKind.SUSPENDED, connection.session, {"why": reason})

    def expired(self, connection: Connection, session: int) -> None:
        """A client has learned that its session has ended."""
        if session in self._names and not self._lives(session):
            name = self.name_of(session)
            self._write(name, EventKind.EXPIRED, session)
            self._write(name, EventKind.ENDED, session, {"why": "its session has expired"})

    def _lives(self, session: int) -> bool:
        return self._ensemble is not None and session in self._ensemble.head.sessions

    # --- servers and faults ------------------------------------------------------------

    def changed(self, server: Server, state: str) -> None:
        """A server has another state."""
        name = _server_name(server)
        if state == "leader":
            self._write(name, EventKind.LEADER_ELECTED)
        else:
            self._write(name, EventKind.SERVER_STATE, 0, {"state": STATES.get(state, str(state))})

    def fault(self, name: str, detail: Mapping[str, Any]) -> None:
        """A fault has been injected or has ended."""
        is_over = detail.get("lasts") is None
        kind = EventKind.FAULT_ENDED if is_over else EventKind.FAULT
        session = detail.get("session")
        if session:
            node = self.name_of(session)
        else:
            node = f"{SERVICE}/{detail['server']}" if detail.get("server") else SERVICE
        self._write(node, kind, 0, {"verb": name, **detail})


def event_of(entry: Entry) -> tuple[str, dict[str, Any]]:
    """The kind and the detail of the event that a committed entry is."""
    written = entry.written
    if entry.opcode == _CREATE_SESSION:
        return EventKind.SESSION_OPENED, {"timeout_ms": entry.operation}
    if entry.opcode == _CLOSE_SESSION:
        kind = EventKind.SESSION_CLOSED if entry.xid else EventKind.SESSION_EXPIRED
        return kind, {"did": [deleted(entry.before, path) for path in written.answer]}
    if isinstance(entry.operation, Failure):
        return EventKind.REFUSED, {"op": "undecodable", "error": entry.operation.name}
    detail = _with_purpose(described_operation(entry.operation))
    if isinstance(written.answer, Failure):
        return EventKind.REFUSED, {**detail, "error": written.answer.name}
    return _APPLIED, {**detail, "did": described_changes(entry.before, written)}


def detail_of(body: Any) -> Mapping[str, Any]:
    """The detail of a request with this body."""
    if isinstance(body, Operation):
        return _with_purpose(described_operation(body))
    word = word_of(type(body))
    return {"op": word, "purpose": word}


def word_of(kind: type[Any]) -> str:
    """The word for requests with this kind of body."""
    if issubclass(kind, Operation):
        return WORDS[kind]
    return OTHERS.get(kind, kind.__name__.lower())


@lru_cache(maxsize=1024)
def answer_of(word: str, error: int) -> Mapping[str, Any]:
    """The detail of an answer, which all equal ones share: do not modify it."""
    answer = {"error": ERRORS.get(error, str(error))} if error else "ok"
    return {"op": word, "purpose": word, "answer": answer}


def _with_purpose(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The detail of an operation; a server knows no purpose of it but what it does."""
    return {**detail, "purpose": detail["op"]}


def _server_name(server: Server) -> str:
    return f"{SERVICE}/{server.number}"
