"""Sessions: begun, kept alive, moved and ended by the leader.

A session ends when nothing was heard of its client for its timeout. The leader looks at
the end of each tick: a sign of life at `t` moves the end to the next tick after
`t + timeout`. No message tells the client. Without a leader nothing ends, and a new leader
gives every session its full time again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.text import deleted
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.tree import Session
from watchkeeper.sim.zookeeper.connection import Connection, Request
from watchkeeper.sim.zookeeper.server import Server

if TYPE_CHECKING:
    from watchkeeper.sim.zookeeper.ensemble import Ensemble

CLUSTER_BITS = 40
"""Above these bits the number of a session says whose ensemble began it."""
SHORTEST_TICKS = 2
LONGEST_TICKS = 20


class Lease:
    """What the leader keeps about a session."""

    __slots__ = ("connection", "due_us", "ending", "is_watched", "node", "number", "timeout_us")

    def __init__(self, number: int, connection: Connection, timeout_us: int) -> None:
        self.number = number
        self.connection = connection
        self.timeout_us = timeout_us
        self.node: Any = connection.client.node
        self.due_us = 0
        self.ending = False
        self.is_watched = False
        """Whether a look at it is on the calendar."""


class Sessions:
    """The sessions of an ensemble."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self.kernel = ensemble.kernel
        self.leases: dict[int, Lease] = {}
        self._lateness_us = ensemble.chance.sampler(self.kernel.profile.expiry_lateness)
        self._last = ensemble.number << CLUSTER_BITS

    def negotiated_us(self, timeout_us: int) -> int:
        """The timeout a client gets: between 2 and 20 ticks."""
        tick_us = self.ensemble.tick_us
        return min(max(timeout_us, SHORTEST_TICKS * tick_us), LONGEST_TICKS * tick_us)

    # --- beginning and moving ----------------------------------------------------------

    def connect(self, connection: Connection, session: int, timeout_us: int) -> None:
        """A client has connected to one of our servers: begin a session or go on with one."""
        server = connection.server
        ensemble = self.ensemble

        def at_leader() -> None:
            if not session:
                self._open(connection, self.negotiated_us(timeout_us))
            elif session in self.leases and not self.leases[session].ending:
                self._resume(connection, self.leases[session])
            else:
                self._tell_expired(connection)

        if server is ensemble.leader:
            at_leader()
        else:
            ensemble.forward(server, at_leader)

    def _open(self, connection: Connection, timeout_us: int) -> None:
        from watchkeeper.sim.zookeeper.ensemble import Entry

        self._last += 1
        number = self._last
        settings = Session(timeout_us // 1000)
        tree = writes.open_session(self.ensemble.head, number, settings)
        entry = Entry(tree, number, connection.client.node.name, EventKind.SESSION_OPENED)
        entry.detail = {"timeout_ms": timeout_us // 1000, "at": connection.server.name}
        entry.origin = connection.server
        lease = self.leases[number] = Lease(number, connection, timeout_us)

        def done(answer: Any, zxid: int) -> None:
            connection.session = number
            self.prolong(lease)
            connection.down.send(connection.client.established, (connection, number, timeout_us))

        entry.done = done
        self.ensemble.add(entry)
        self.kernel.after(timeout_us, self._end_unless_taken, lease)

    def _end_unless_taken(self, lease: Lease) -> None:
        """Watch a session whose server has not passed it on to its client, and never may.

        The leader counts from the moment at which it opened the session.
        """
        if not lease.due_us:
            lease.due_us = self.kernel.now_us
            self._watch(lease)

    def _resume(self, connection: Connection, lease: Lease) -> None:
        server = connection.server
        before = lease.connection
        if before is not connection and before.server is server:
            server.hang_up(before)
        lease.connection = connection
        connection.session = lease.number
        self.prolong(lease)
        self.kernel.write(
            server.name,
            EventKind.SESSION_MOVED,
            {"by": connection.client.node.name},
            session=lease.number,
        )
        message = (connection, lease.number, lease.timeout_us)
        connection.down.send(connection.client.established, message)

    def _tell_expired(self, connection: Connection) -> None:
        connection.server.disconnect(connection)
        connection.down.send(connection.client.told_expired, connection)

    # --- signs of life -----------------------------------------------------------------

    def touch(self, session: int, server: Server) -> None:
        """A sign of life has reached a server; the leader counts it if it hears of it."""
        lease = self.leases.get(session)
        ensemble = self.ensemble
        leader = ensemble.leader
        if lease is None or leader is None or leader.is_paused or server.is_deposed:
            return
        if not ensemble.network.cuts or ensemble.in_touch(server, leader):
            tick_us = ensemble.tick_us  # as in `_prolong_from`: each request comes here
            until_us = self.kernel.now_us + server.touch_shift_us + lease.timeout_us
            due_us = (until_us // tick_us + 1) * tick_us
            if due_us > lease.due_us:
                lease.due_us = due_us
            if not lease.is_watched:
                self._watch(lease)

    def count_sign(self, session: int, server: Server, at_us: int) -> None:
        """A client that was at rest gave its last sign of life then, through its server."""
        lease = self.leases.get(session)
        if lease is not None and not server.is_deposed:
            self._prolong_from(lease, at_us + server.touch_shift_us)

    def prolong(self, lease: Lease) -> None:
        """Give a session its full time from now."""
        self._prolong_from(lease, self.kernel.now_us)
        if not lease.is_watched:
            self._watch(lease)

    def _prolong_from(self, lease: Lease, sign_us: int) -> None:
        # The leader keeps sessions in one bucket per tick (SessionTrackerImpl), so the end
        # is rounded up to the next tick after the timeout.
        tick_us = self.ensemble.tick_us
        due_us = ((sign_us + lease.timeout_us) // tick_us + 1) * tick_us
        if due_us > lease.due_us:
            lease.due_us = due_us

    def after_election(self) -> None:
        """A new leader knows what was committed, and gives every session its full time."""
        known = self.ensemble.committed.sessions
        for number, lease in list(self.leases.items()):
            if number in known:
                lease.ending = False
                self.prolong(lease)
            else:
                del self.leases[number]

    def end_overdue(self) -> None:
        """The leader wakes from a pause and finds sessions that were due meanwhile.

        Signs of life that lie in its sockets do not help them: it looks at the clock first.
        """
        for lease in list(self.leases.values()):
            if lease.due_us <= self.kernel.now_us and not lease.ending:
                self.end(lease, EventKind.SESSION_EXPIRED)
            elif not lease.is_watched:
                self._watch(lease)

    def _watch(self, lease: Lease) -> None:
        now_us = self.kernel.now_us
        due_us = lease.due_us if lease.due_us > now_us else now_us
        lease.is_watched = True
        self.kernel.at(due_us + self._lateness_us(), self._look, lease)

    def _look(self, lease: Lease) -> None:
        lease.is_watched = False
        leader = self.ensemble.leader
        if leader is None or leader.is_paused or lease.number not in self.leases or lease.ending:
            return
        # The pings of a client at rest are not simulated: count those that would have come.
        client = lease.connection.client
        if client.pulse.is_resting and client.session == lease.number:
            connection = client.connection
            assert connection is not None, "a pulse rests only while there is a connection"
            if not connection.server.is_deposed:
                sign_us = client.pulse.last_sign_us()
                self._prolong_from(lease, sign_us + connection.server.touch_shift_us)
        if lease.due_us > self.kernel.now_us:
            self._watch(lease)
        else:
            self.end(lease, EventKind.SESSION_EXPIRED)

    # --- the end -----------------------------------------------------------------------

    def may_write(self, session: int, connection: Connection) -> bool:
        """Whether a write of this session, over this connection, is let through.

        A session that has moved to another server takes nothing from the old one.
        """
        lease = self.leases.get(session)
        if lease is None or lease.ending:
            return False
        if lease.connection.server is not connection.server and not connection.has_late_requests:
            connection.server.hang_up(connection)
            return False
        return True

    def close(self, connection: Connection, request: Request) -> None:
        """A client says farewell."""
        server = connection.server
        number = connection.session

        def done(answer: Any, zxid: int) -> None:
            connection.down.send(
                connection.client.replied, (connection, request, None, zxid, zxid)
            )

        def at_leader() -> None:
            lease = self.leases.get(number)
            if lease is not None and not lease.ending:
                self.end(lease, EventKind.SESSION_CLOSED, server, done)

        if server is self.ensemble.leader:
            at_leader()
        else:
            self.ensemble.forward(server, at_leader)

    def end(
        self,
        lease: Lease,
        kind: str,
        origin: Server | None = None,
        done: Any = None,
    ) -> None:
        """End a session: delete its ephemerals, and fire the watches on them."""
        from watchkeeper.sim.zookeeper.ensemble import Entry, no_reply

        lease.ending = True
        head = self.ensemble.head
        written = writes.close_session(head, lease.number)
        entry = Entry(written.tree, lease.number, lease.node.name, kind)
        entry.changes = written.changes
        entry.ends_session = True
        entry.origin = origin
        entry.detail = {"did": [deleted(head, path) for path in written.answer]}
        entry.done = done or no_reply
        self.ensemble.add(entry)
