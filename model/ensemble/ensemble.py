"""An ensemble: one history of writes, and servers that each have applied a part of it.

How it works
  Every write goes to the leader, which executes it on the *head*, the tree with everything
  that it has ordered so far. The entry is *committed* when it is durable and when a majority
  of the servers is connected to the leader; then every connected server applies it, at once
  or later if the server lags. A tree is a persistent value, so to apply an entry is to take
  over its tree, and to fire the watches of this server's clients.

  There are no messages between servers: what is cut, paused or dead is known here, and the
  quorum (`quorum`) decides who leads, who follows, and who closes its connections.

  Nothing here has a clock or does I/O. A world passes a `Clock`, a `Transport` for each
  connection, and, if entries have to be durable, a journal, which calls `durable_up_to`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.operations import DeleteContainer, Operation
from watchkeeper.model.ensemble.clock import Clock, Timer
from watchkeeper.model.ensemble.connection import Connection
from watchkeeper.model.ensemble.entry import Entry
from watchkeeper.model.ensemble.faults import Faults
from watchkeeper.model.ensemble.quorum import Quorum
from watchkeeper.model.ensemble.recorder import SILENT, Recorder
from watchkeeper.model.ensemble.server import Server
from watchkeeper.model.ensemble.session_ids import first_session_id
from watchkeeper.model.ensemble.sessions import Sessions
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.zookeeper import writes
from watchkeeper.model.zookeeper.acl import Identities
from watchkeeper.model.zookeeper.lifetimes import due_by_ttl, due_containers
from watchkeeper.model.zookeeper.tree import Session, Tree, Written, empty_tree

EPOCH_BITS = 32

Journal = Callable[[Entry], None]
"""Takes an entry that has to be durable; `Ensemble.durable_up_to` reports that it is."""


class Ensemble:
    """The servers of one ZooKeeper, and their common history."""

    def __init__(
        self,
        clock: Clock,
        *,
        servers: int = 1,
        settings: EnsembleSettings | None = None,
        tree: Tree | None = None,
        journal: Journal | None = None,
        recorder: Recorder = SILENT,
    ) -> None:
        """`tree` is what an earlier life has left; its sessions get their whole timeout."""
        if servers < 1 or servers % 2 == 0:
            raise ValueError(f"an ensemble has an odd number of servers, not {servers}")
        self.clock = clock
        self.settings = settings or EnsembleSettings()
        self.recorder = recorder
        self.head = tree or empty_tree()
        """The tree with everything that the leader has ordered."""
        self.committed = self.head
        self._journal = journal
        self._held: deque[Entry] = deque()
        """What was ordered while a majority was missing."""
        self._logged: deque[Entry] = deque()
        """What a majority has and is not durable yet."""
        self.faults = Faults()
        self.sessions = Sessions(clock, self.settings.tick_ms, self._expire)
        self.owners: dict[int, Connection] = {}
        """Session -> the connection that it has used last."""
        self.servers = tuple(Server(self, index) for index in range(servers))
        self.quorum = Quorum(self)
        self._last_ids: dict[int, int] = {}
        self._to_flush: list[Connection] = []
        self._container_timer: Timer | None = None
        self.quorum.begin()
        self._look_for_containers_later()

    @property
    def leader(self) -> Server | None:
        """The server that leads, or the only one; None while there is none."""
        return self.quorum.leader

    def begin_epoch(self) -> None:
        """A new leader begins an epoch, and counts from there; a single server has none."""
        if len(self.servers) > 1:
            epoch = (self.head.zxid >> EPOCH_BITS) + 1
            self.head = replace(self.head, zxid=epoch << EPOCH_BITS)
            if not self._logged:
                self.committed = self.head

    # --- writes ------------------------------------------------------------------------

    def submit(
        self,
        operation: Operation[Any],
        opcode: int,
        *,
        session: int,
        xid: int = 0,
        identities: Identities = (),
        origin: Server | None = None,
        done: Callable[[Entry], None] | None = None,
    ) -> None:
        """Order a write; `done` is called when its origin has applied it."""
        wall_ms = self.clock.wall_ms()
        before = self.head
        written = writes.write(
            before,
            session,
            operation,
            now_ms=wall_ms,
            identities=identities,
            has_ttls=self.settings.extended_types,
        )
        self._order(
            Entry(before, written, session, xid, opcode, operation, wall_ms, origin, done)
        )

    def refuse(
        self,
        failure: Failure,
        *,
        session: int,
        xid: int,
        origin: Server,
        done: Callable[[Entry], None],
    ) -> None:
        """Order a write that cannot be executed: it takes its zxid and has no other effect."""
        before = self.head
        written = Written(replace(before, zxid=before.zxid + 1), failure)
        wall_ms = self.clock.wall_ms()
        opcode = Opcode.ERROR
        self._order(Entry(before, written, session, xid, opcode, failure, wall_ms, origin, done))

    def open_session(self, server: Server, timeout_ms: int, done: Callable[[Entry], None]) -> int:
        """Begin a session; returns its id."""
        session = self.next_session_id(server)
        before = self.head
        tree = writes.open_session(before, session, Session(timeout_ms))
        opcode = Opcode.CREATE_SESSION
        wall_ms = self.clock.wall_ms()
        self.sessions.add(session, timeout_ms)
        self._order(
            Entry(
                before, Written(tree, None), session, 0, opcode, timeout_ms, wall_ms, server, done
            )
        )
        return session

    def close_session(
        self,
        session: int,
        *,
        xid: int = 0,
        origin: Server | None = None,
        done: Callable[[Entry], None] | None = None,
    ) -> None:
        """End a session, since its client closes it or since it is overdue."""
        self.sessions.remove(session)
        before = self.head
        if session not in before.sessions:
            return
        written = writes.close_session(before, session)
        wall_ms = self.clock.wall_ms()
        opcode = Opcode.CLOSE_SESSION
        self._order(Entry(before, written, session, xid, opcode, None, wall_ms, origin, done))

    def _expire(self, session: int) -> None:
        self.close_session(session)
        self.flush()

    def _order(self, entry: Entry) -> None:
        self.head = entry.written.tree
        if self._held or not self.quorum.has_majority:
            self._held.append(entry)
        else:
            self._log(entry)

    def _log(self, entry: Entry) -> None:
        if self._journal is None:
            self._commit(entry)
        else:
            self._logged.append(entry)
            self._journal(entry)

    def durable_up_to(self, zxid: int) -> None:
        """The journal has made every entry up to this one durable."""
        while self._logged and self._logged[0].zxid <= zxid:
            self._commit(self._logged.popleft())
        self.flush()

    def log_held(self) -> None:
        """The majority is back: go on with what waited for it."""
        while self._held and self.quorum.has_majority:
            self._log(self._held.popleft())

    def forget_held(self) -> None:
        """The leader steps down: what it could not commit never was."""
        if self._held:
            self._held.clear()
            self.head = self._logged[-1].written.tree if self._logged else self.committed
            self.restart_sessions()

    def restart_sessions(self) -> None:
        """Give every session its whole timeout again."""
        self.sessions.restart(
            (session, known.timeout_ms) for session, known in self.head.sessions.items()
        )

    def _commit(self, entry: Entry) -> None:
        self.committed = entry.written.tree
        if entry.ends_session:
            self.owners.pop(entry.session, None)
        self.recorder.committed(entry)
        for server in self.servers:
            if server.is_connected:
                server.follow(entry)

    def next_session_id(self, server: Server) -> int:
        """An id for a session that begins at a server; none has had it before."""
        last = self._last_ids.get(server.number)
        if last is None:
            last = first_session_id(server.number, self.clock.wall_ms())
        while last in self.head.sessions or last in self.sessions:
            last += 1
        self._last_ids[server.number] = last + 1
        return last

    # --- containers and lifetimes ------------------------------------------------------

    def _look_for_containers_later(self) -> None:
        self._container_timer = self.clock.call_later(
            self.settings.container_check_ms, self._delete_overdue
        )

    def _delete_overdue(self) -> None:
        if self.leader is not None and self.quorum.has_majority:
            overdue = (*due_containers(self.head), *due_by_ttl(self.head, self.clock.wall_ms()))
            for path in overdue:
                self.submit(DeleteContainer(path), Opcode.DELETE_CONTAINER, session=0)
            self.flush()
        self._look_for_containers_later()

    # --- output ------------------------------------------------------------------------

    def will_flush(self, connection: Connection) -> None:
        """A connection has something to send."""
        self._to_flush.append(connection)

    def flush(self) -> None:
        """Send what the connections have to send."""
        while self._to_flush:
            waiting, self._to_flush = self._to_flush, []
            for connection in waiting:
                connection.flush()

    def stop(self) -> None:
        """Close every connection and stop every timer."""
        self.sessions.stop()
        self.quorum.stop()
        if self._container_timer is not None:
            self._container_timer.cancel()
        for server in self.servers:
            server.sessions.stop()
            server.hang_up_on_all()
