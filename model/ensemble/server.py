"""One server of an ensemble: what it has applied, its clients' watches, and its connections.

A server answers reads from its own tree, which may be older than the leader's. It sends what
an entry fires before it answers the entry, and applies entries in order, so on one connection
no newer data comes before the event that announces it.

A server that stands still keeps what it receives. If the others miss it meanwhile, it is
*deposed*: when it goes on, it answers reads from its old tree for a moment, closes a connection
that writes, and then looks for the leader.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from watchkeeper.model.actor.operations import READ, Acl
from watchkeeper.model.ensemble.connection import Connection
from watchkeeper.model.ensemble.entry import Entry
from watchkeeper.model.ensemble.sessions import Sessions
from watchkeeper.model.ensemble.words import Statistics
from watchkeeper.model.zookeeper.acl import is_allowed
from watchkeeper.model.zookeeper.watches import Watches

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.clock import Transport
    from watchkeeper.model.ensemble.ensemble import Ensemble


class ServerState(StrEnum):
    """What a server does."""

    STANDALONE = "standalone"
    LEADING = "leader"
    FOLLOWING = "follower"
    LOOKING = "looking"
    """It runs and has no leader: it closes each connection."""
    READ_ONLY = "read-only"
    """It runs, has no leader, and serves reads to clients that accept that."""
    DOWN = "down"


SERVING = frozenset({ServerState.STANDALONE, ServerState.LEADING, ServerState.FOLLOWING})


# The attributes of an enum are found slowly, and each request reads this one.
_READ_ONLY = ServerState.READ_ONLY


class Server:
    """A server of an ensemble."""

    def __init__(self, ensemble: Ensemble, index: int) -> None:
        self.ensemble = ensemble
        self.number = index + 1
        """Its number in the ensemble, from 1."""
        self.state = ServerState.LOOKING
        self.is_paused = False
        self.is_deposed = False
        self.looking_since_ms = 0.0
        self.sessions = ensemble.sessions
        """The sessions whose signs of life count here: the leader's, or those that only this
        server knows while it is read-only."""
        self.is_connected = True
        """Whether it receives what the leader commits."""
        self.tree = ensemble.committed
        self.watches = Watches()
        self.connections: dict[int, Connection] = {}
        self.by_session: dict[int, Connection] = {}
        """Session -> its connection here."""
        self._hosts: Counter[str] = Counter()
        self.lag_ms = 0.0
        self.statistics = Statistics(ensemble.clock)
        self._behind: deque[tuple[float, Entry | Callable[[], None]]] = deque()
        """What is committed and not applied here: when it is due, and the entry or a `sync`."""
        self._last_number = 0
        self._backlog: list[Callable[[], None]] = []
        """What has arrived while the server stood still."""

    @property
    def is_serving(self) -> bool:
        """Whether it takes requests."""
        return self.state in SERVING

    @property
    def is_read_only(self) -> bool:
        """Whether it serves reads alone, since it has no leader."""
        return self.state is _READ_ONLY

    @property
    def has_sessions(self) -> bool:
        """Whether it takes sessions: it serves, or it serves reads alone."""
        return self.is_serving or self.is_read_only

    @property
    def is_following(self) -> bool:
        """Whether it follows a leader; no other server can lag."""
        return self.state is ServerState.FOLLOWING

    @property
    def is_running(self) -> bool:
        """Whether its process exists."""
        return self.state is not ServerState.DOWN

    # --- connections -------------------------------------------------------------------

    def accept(self, transport: Transport, host: str, *, port: int = 0) -> Connection | None:
        """Take a connection from an address; None if it was closed at once."""
        most = self.ensemble.settings.connections_per_address
        if most and self._hosts[host] >= most:
            self.statistics.rejected += 1
            transport.abort()
            return None
        if not self.is_running or self.ensemble.faults.refuses(self):
            transport.abort()
            return None
        self._last_number += 1
        self._hosts[host] += 1
        connection = Connection(self, self._last_number, transport, host, port)
        self.connections[connection.number] = connection
        return connection

    def forget(self, connection: Connection) -> None:
        """A connection has ended: its watches go with it."""
        if self.connections.pop(connection.number, None) is None:
            return
        self.watches = self.watches.drop_client(connection.number)
        if self.by_session.get(connection.session) is connection:
            del self.by_session[connection.session]
        self._hosts[connection.host] -= 1
        if not self._hosts[connection.host]:
            del self._hosts[connection.host]

    def use(self, session: int, connection: Connection) -> None:
        """A session goes on over this connection; the one that it had here is closed."""
        self.end_connection_of(session, "its session goes on over another connection")
        self.by_session[session] = connection

    def end_connection_of(self, session: int, reason: str) -> None:
        """Close the connection of a session to this server, if it has one."""
        connection = self.by_session.get(session)
        if connection is not None:
            connection.hang_up(reason)

    def hang_up_on_all(self, reason: str = "the server stops") -> int:
        """Close every connection; returns how many there were."""
        connections = list(self.connections.values())
        for connection in connections:
            connection.hang_up(reason)
        return len(connections)

    def or_later(self, call: Callable[[], None]) -> bool:
        """Keep a call until the server goes on, if it stands still; returns whether it does."""
        if self.is_paused:
            self._backlog.append(call)
        return self.is_paused

    # --- the way to the leader ---------------------------------------------------------

    def or_at_leader(self, call: Callable[[], None]) -> None:
        """Make a call at the leader; if it is out of reach, never: the connection will close."""
        leader = self.ensemble.leader
        if leader is None or not self.is_connected:
            return
        if not leader.or_later(call):
            call()

    def has_moved(self, connection: Connection, *, is_write: bool) -> bool:
        """Whether a session takes no such request here, since it goes on elsewhere.

        The old connection of a session that has moved still reads, on a follower, and finds out
        when it writes.
        """
        if self.is_deposed:
            return is_write
        if len(self.ensemble.servers) == 1:
            return False
        owner = self.ensemble.owners.get(connection.session)
        if owner is None or owner.server is self:
            return False
        return is_write or self.state is ServerState.LEADING

    # --- applying ----------------------------------------------------------------------

    def follow(self, entry: Entry) -> None:
        """Apply an entry that is committed: now, or later if this server lags."""
        if self._behind or self.is_paused or (self.lag_ms and self.is_following):
            self._apply_later(entry)
        else:
            self._apply(entry)

    def lag(self, by_ms: float) -> None:
        """From now on, apply later what is committed; 0 catches up at once."""
        self.lag_ms = by_ms
        if not by_ms:
            self._behind = deque((0.0, what) for _, what in self._behind)
            self.catch_up()

    def once_applied(self, call: Callable[[], None]) -> None:
        """Make a call once everything that is committed now has been applied here."""
        if self._behind:
            self._apply_later(call)
        else:
            call()

    def _apply_later(self, what: Entry | Callable[[], None]) -> None:
        due_ms = self.ensemble.clock.now_ms() + self.lag_ms
        if self._behind:
            due_ms = max(due_ms, self._behind[-1][0])
        self._behind.append((due_ms, what))
        self.ensemble.clock.call_later(due_ms - self.ensemble.clock.now_ms(), self.catch_up)

    def catch_up(self) -> None:
        """Apply what is due."""
        if self.is_paused:
            return
        now_ms = self.ensemble.clock.now_ms()
        while self._behind and self._behind[0][0] <= now_ms:
            what = self._behind.popleft()[1]
            if isinstance(what, Entry):
                self._apply(what)
            else:
                what()
        if self._behind:
            self.ensemble.clock.call_later(self._behind[0][0] - now_ms, self.catch_up)
        self.ensemble.flush()

    def apply_all(self) -> None:
        """Apply everything that is committed, due or not: a leader has to have it."""
        while self._behind:
            what = self._behind.popleft()[1]
            if isinstance(what, Entry):
                self._apply(what)

    def load(self) -> None:
        """Take over the tree of the leader, as a server does when it begins to follow."""
        self._behind.clear()
        self.tree = self.ensemble.committed

    def _apply(self, entry: Entry) -> None:
        written = entry.written
        self.tree = written.tree
        if written.changes:
            self.watches, fired = self.watches.fire(written.changes, self._may_read)
            for number, event in fired:
                self.connections[number].notify(event, entry.zxid)
        if entry.origin is self and entry.done is not None:
            entry.done(entry)
        if entry.ends_session:
            self.end_connection_of(entry.session, "its session has ended")

    def _may_read(self, number: int, acl: tuple[Acl, ...]) -> bool:
        return is_allowed(self.connections[number].identities, acl, READ)

    # --- what the quorum and faults do with it -----------------------------------------

    def enter(self, state: ServerState) -> None:
        """Change the state; a server that stops serving closes its connections."""
        if state is self.state:
            return
        if self.is_read_only:
            self._end_local_sessions()
        self.state = state
        self.is_deposed = False
        if state is ServerState.LOOKING:
            self.looking_since_ms = self.ensemble.clock.now_ms()
        if state is ServerState.READ_ONLY:
            self.sessions = Sessions(
                self.ensemble.clock, self.ensemble.settings.tick_ms, self._expire_local
            )
        elif state not in SERVING:
            self.is_connected = False
            self._behind.clear()
            self.hang_up_on_all("the server has no leader")
        self.ensemble.recorder.changed(self, state)

    def _end_local_sessions(self) -> None:
        self.sessions.stop()
        self.hang_up_on_all("the server is no longer read-only")
        self.sessions = self.ensemble.sessions

    def _expire_local(self, session: int) -> None:
        self.end_connection_of(session, "its session has ended")

    def depose(self) -> None:
        """The others have missed this server; it learns of it when it goes on."""
        self.is_deposed = True
        self.is_connected = False
        self._behind.clear()

    def work_off(self) -> None:
        """Handle what arrived while the server stood still."""
        waiting, self._backlog = self._backlog, []
        for call in waiting:
            call()
        self.catch_up()

    def die(self) -> None:
        """The process is gone, with all that it had not sent."""
        self.is_paused = False
        self._backlog.clear()
        for connection in list(self.connections.values()):
            connection.vanish()
        self.enter(ServerState.DOWN)
        self.watches = Watches()
        self.lag_ms = 0.0
