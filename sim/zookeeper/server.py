"""One server of a simulated ensemble: its connections, its own state of the tree, its watches.

A server answers reads from the tree as it has it, which may be older than the leader's.
Writes go to the leader and come back when this server has applied them. What it sends to
one client arrives in order, so a client never sees newer data before the event that
announces it, and hears every event of its own write before the answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from watchkeeper.model.actor.errors import Failure, Unimplemented
from watchkeeper.model.actor.events import Fired
from watchkeeper.model.actor.operations import (
    READ,
    WRITES,
    Acl,
    AddWatch,
    CheckWatches,
    CountDescendants,
    Exists,
    GetAcl,
    GetChildren,
    GetData,
    GetEphemerals,
    MultiRead,
    Operation,
    Pipelined,
    RemoveWatches,
    Sync,
)
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.zookeeper.acl import is_allowed
from watchkeeper.model.zookeeper.java_hash_order import in_salted_order
from watchkeeper.model.zookeeper.standalone import serve, serve_data
from watchkeeper.model.zookeeper.tree import Tree
from watchkeeper.model.zookeeper.watches import Wanted, Watches, set_watches
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.engine.random_streams import Stream
from watchkeeper.sim.zookeeper.batch import Batch
from watchkeeper.sim.zookeeper.connection import CLOSE, PING, Connection, Request

if TYPE_CHECKING:
    from watchkeeper.sim.zookeeper.ensemble import Ensemble, Entry

State = Literal["leading", "following", "looking", "down"]
SERVING = ("leading", "following")
"""The states in which a server takes requests."""

READS = frozenset(
    {
        Exists,
        GetData,
        GetChildren,
        GetAcl,
        GetEphemerals,
        CountDescendants,
        MultiRead,
        Sync,
        AddWatch,
        CheckWatches,
        RemoveWatches,
    }
)


JAVA_ORDER_PER_CENT = 50
"""How many servers list children as ZooKeeper's own do. The service promises no order, so the
others list them in one of their own."""


def _listing_salt(chance: Stream) -> int:
    """Draw what decides the order in which a server lists children; 0 for Java's."""
    return 0 if chance.chance(JAVA_ORDER_PER_CENT) else 1 + chance.bits(31)


@lru_cache(maxsize=64)
def _salted(names: tuple[str, ...], salt: int) -> tuple[str, ...]:
    """List children in the order of a salt. Each member of a group lists the same children."""
    return in_salted_order(names, salt)


class Server:
    """A server process."""

    def __init__(self, ensemble: Ensemble, index: int) -> None:
        self.ensemble = ensemble
        self.kernel: Kernel = ensemble.kernel
        self.kernel_network = ensemble.network
        self.index = index
        self.name = f"{ensemble.prefix}zookeeper/{index + 1}"
        self.state: State = "looking"
        self.is_paused = False
        self.paused_us = 0
        self.joined_epoch = 0
        self.is_deposed = False
        """Believes itself the leader and is not: it was paused or cut off meanwhile."""
        self.tree: Tree = ensemble.head
        self.watches = Watches()
        self.connections: dict[int, Connection] = {}
        self.generation = 0
        """Changes when the server leaves its leader: what it was yet to apply is void."""
        self.last_logged_us = 0
        self.last_applied_us = 0
        self.forwarded_us = 0
        self.behind: deque[tuple[int, Entry]] = deque()
        """What is committed and when this server takes it over, in order."""
        self.lag_us = 0
        self._lagging: FaultEffect | None = None
        self.touch_shift_us = 0
        """How much later a sign of life reaches the leader through this server."""
        self._salt: int | None = None
        self._free_us = 0
        self._backlog: list[tuple[Callable[[Any], object], Any]] = []

    @property
    def is_serving(self) -> bool:
        """Whether it takes requests."""
        return self.state in SERVING

    # --- what arrives ------------------------------------------------------------------

    def accept(self, message: tuple[Connection, int, int, int]) -> None:
        """A client wants to connect, with a session it has or with none (0)."""
        if self.is_paused:
            self._backlog.append((self.accept, message))
            return
        connection, session, last_zxid, timeout_us = message
        self.take_over(self.generation)
        if not self.is_serving or last_zxid > self.tree.zxid:
            self.refuse(connection)
            return
        connection.is_open_at_server = True
        self.connections[connection.number] = connection
        self.ensemble.sessions.connect(connection, session, timeout_us)

    def refuse(self, connection: Connection) -> None:
        """Close a connection without a word."""
        connection.down.send(connection.client.closed_by_server, connection)

    def receive(self, message: tuple[Connection, Request]) -> None:
        """A request has arrived."""
        if self.is_paused:
            self._backlog.append((self.receive, message))
            return
        connection, request = message
        is_open = connection.is_open_at_server
        if self.state not in SERVING or not (is_open or self._takes_from_broken(connection)):
            return
        self.ensemble.sessions.touch(connection.session, self)
        if connection.unanswered is None or not is_open:
            self._serve(connection, request)
        else:
            connection.behind.append(request)

    def _serve(self, connection: Connection, request: Request) -> None:
        ask = request.ask
        kind = type(ask)
        if kind in READS:
            self._read(connection, request, ask)
        elif kind is Pipelined:
            connection.unanswered = request
            Batch(self, connection, request, ask.operations).go_on()
        elif kind in WRITES:
            connection.unanswered = request
            self.write(
                connection,
                ask,
                lambda answer, zxid: self.reply(connection, request, answer, self.spend(0), zxid),
            )
        elif ask is PING:
            self.reply(connection, request, None, self.kernel.now_us)
        elif ask is CLOSE:
            self.ensemble.sessions.close(connection, request)
        elif kind is Wanted:
            self._leave_again(connection, request, ask)
        else:
            self.reply(connection, request, Failure(Unimplemented, ask.path), self.spend(0))

    def _takes_from_broken(self, connection: Connection) -> bool:
        """Whether requests of a connection that is not open count: it broke behind them."""
        return connection.has_late_requests or not connection.loses_requests

    def disconnect(self, connection: Connection) -> None:
        """A connection has ended: its watches go."""
        connection.is_open_at_server = False
        if self.connections.pop(connection.number, None) is not None:
            self.watches = self.watches.drop_client(connection.number)

    # --- reads -------------------------------------------------------------------------

    def spend(self, cost_us: int) -> int:
        """Take time for something; the moment when it will be done."""
        done_us = self.kernel.now_us
        if done_us < self._free_us:
            done_us = self._free_us
        done_us += cost_us
        self._free_us = done_us
        return done_us

    def look(
        self, connection: Connection, operation: Operation[Any], *, is_awake: bool = False
    ) -> Any:
        """Answer a read from the tree as this server has it.

        `is_awake` says that an earlier read of the same batch has set a watch, so that this
        server wakes already for what is behind.
        """
        if self.behind:
            self.take_over(self.generation)
        if not connection.is_open_at_server:
            return None  # it broke while the read was under way; no client is left to answer
        kind = type(operation)
        if kind is GetEphemerals and not self.ensemble.can_list_ephemerals:
            return Failure(Unimplemented, operation.path)  # what its client says by itself
        watches = self.watches
        self.watches, answer = serve(
            self.tree, watches, connection.session, connection.number, operation
        )
        if self.behind and self.watches is not watches and not is_awake:
            self._wake_for_what_is_behind()
        if kind is GetChildren and type(answer) is tuple:
            return self._listed(answer)
        return answer

    def look_at_data(
        self, connection: Connection, reads: Sequence[GetData], *, is_awake: bool = False
    ) -> list[Any]:
        """Answer reads of data that follow one another in a batch, as `look` does one by one.

        No time passes between them, so what `look` does first for each is done once.
        """
        if self.behind:
            self.take_over(self.generation)
        if not connection.is_open_at_server:
            return [None] * len(reads)
        watches = self.watches
        self.watches, answers = serve_data(
            self.tree, watches, connection.session, connection.number, reads
        )
        if self.behind and self.watches is not watches and not is_awake:
            self._wake_for_what_is_behind()
        return answers

    def _listed(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return children in this server's order, which is drawn when it first lists any."""
        if self._salt is None:
            self._salt = _listing_salt(self.kernel.streams(f"listing/{self.name}"))
        return _salted(names, self._salt) if self._salt else names

    def _wake_for_what_is_behind(self) -> None:
        """A new watch may fire by what is committed and not yet taken over here."""
        for at, _ in self.behind:
            self.kernel.at(at, self.take_over, self.generation)

    def _read(self, connection: Connection, request: Request, operation: Operation[Any]) -> None:
        if type(operation) is Sync and self.state == "following":
            connection.unanswered = request
            self.ensemble.sync(
                self,
                lambda: self.reply(connection, request, operation.path, self.spend(0)),
            )
            return
        answer = self.look(connection, operation)
        self.reply(connection, request, answer, self.spend(self.kernel.profile.read_us))

    def _leave_again(self, connection: Connection, request: Request, wanted: Wanted) -> None:
        self.take_over(self.generation)
        if not connection.is_open_at_server:
            return
        relative_zxid = connection.client.last_zxid
        self.watches, missed = set_watches(
            self.watches, self.tree, connection.number, wanted, relative_zxid
        )
        if self.behind:
            self._wake_for_what_is_behind()
        for event in missed:
            self._notify(connection, event, -1)
        self.reply(connection, request, None, self.kernel.now_us)

    # --- writes ------------------------------------------------------------------------

    def write(
        self,
        connection: Connection,
        operation: Operation[Any],
        done: Callable[[Any, int], object],
    ) -> None:
        """Take a write to the leader; `done` hears the answer when it has come back."""
        self.spend(self.kernel.profile.write_us)
        self.ensemble.submit(self, connection, operation, done)

    def apply(self, entry: Entry) -> None:
        """Take over what the leader has committed, and notify watching clients."""
        self.tree = entry.tree
        if self.watches.may_fire(entry.changes):
            self.watches, heard = self.watches.fire(entry.changes, self._may_read)
            for number, event in heard:
                self._notify(self.connections[number], event, entry.zxid)
        if entry.origin is self:
            entry.done(entry.answer, entry.zxid)
        if entry.ends_session:
            self._end_connections_of(entry.session)

    def _may_read(self, number: int, acl: tuple[Acl, ...]) -> bool:
        return is_allowed((), acl, READ)  # no client of the simulation authenticates

    def _end_connections_of(self, session: int) -> None:
        for connection in list(self.connections.values()):
            if connection.session == session:
                self.hang_up(connection)

    def _notify(self, connection: Connection, event: Fired, zxid: int) -> None:
        at = self.spend(self.kernel.profile.fire_us)
        client = connection.client
        self.kernel.write(
            client.node.name,
            EventKind.WATCH_FIRED,
            {"what": event.what._value_, "path": event.path, "at": self.name},
            session=connection.session,
            group=client.node.group,
            zxid=max(zxid, 0),
        )
        connection.down.send(client.hear, (connection, event, zxid), at)

    # --- answers -----------------------------------------------------------------------

    def reply(
        self, connection: Connection, request: Request, answer: Any, at_us: int, zxid: int = 0
    ) -> None:
        """Send an answer."""
        if connection.reply_to_lose is not None and connection.reply_to_lose[0] is request:
            connection.reply_to_lose[1].add("replies lost")
            connection.client.cut_off(connection)
        elif connection.is_open_at_server:
            seen = self.tree.zxid
            if seen < zxid:
                seen = zxid
            connection.down.send(
                connection.client.replied, (connection, request, answer, zxid, seen), at_us
            )
            if request is connection.unanswered:
                connection.unanswered = None
                if connection.behind:
                    self._serve_behind(connection)

    def _serve_behind(self, connection: Connection) -> None:
        """Serve what came after the request that has been answered, up to the next that waits."""
        while connection.behind and connection.unanswered is None:
            self._serve(connection, connection.behind.pop(0))

    def hang_up(self, connection: Connection) -> None:
        """Close a connection from this side. What is still under way to it is lost."""
        self.disconnect(connection)
        connection.loses_requests = True
        connection.down.send(connection.client.closed_by_server, connection)

    def hang_up_on_all(self) -> int:
        """Close every connection; how many there were."""
        connections = list(self.connections.values())
        for connection in connections:
            self.hang_up(connection)
        return len(connections)

    # --- following ---------------------------------------------------------------------

    def follow(self, entry: Entry) -> None:
        """Take over, in time, what the leader has committed.

        No one of them has to be woken unless a task here waits for its answer or
        watches what it changes; a read takes over first whatever is due by then.
        """
        at_us = self.kernel.now_us + self.kernel_network.hop_us() + self.lag_us
        if at_us < self.last_applied_us:
            at_us = self.last_applied_us
        self.last_applied_us = at_us
        if self._lagging is not None:
            self._lagging.add("commits delayed")
        self.behind.append((at_us, entry))
        if entry.origin is self or entry.ends_session or self.watches.may_fire(entry.changes):
            self.kernel.at(at_us, self.take_over, self.generation)

    def take_over(self, generation: int) -> None:
        """Apply what is due by now, unless the server stands still or hears of nothing."""
        if generation != self.generation or self.is_paused:
            return
        if not self.behind or not self.ensemble.hears_leader(self):
            return
        now, behind = self.kernel.now_us, self.behind
        while behind and behind[0][0] <= now:
            self.apply(behind.popleft()[1])

    # --- falling behind ----------------------------------------------------------------

    def fall_behind(self, by_us: int, effect: FaultEffect) -> None:
        """From now on, learn of what is committed later."""
        self.lag_us = by_us
        self._lagging = effect

    def catch_up(self) -> None:
        """Fall behind no longer."""
        self.lag_us = 0
        self._lagging = None

    # --- standing still ----------------------------------------------------------------

    def work_off_backlog(self) -> None:
        """Go on with what arrived while the server stood still."""
        waiting, self._backlog = self._backlog, []
        for call, message in waiting:
            call(message)

    def forget_backlog(self) -> None:
        """A killed process answers nothing of what had arrived."""
        self._backlog.clear()
