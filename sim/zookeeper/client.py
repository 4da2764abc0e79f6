"""A ZooKeeper client: one session, one connection at a time, and the events for its program.

  closed -> connecting -> connected -> connecting -> ... -> expired -> connecting -> ...

After kazoo: a client that has sent nothing for half its read timeout (a third of the
session's) sends a ping; if nothing at all comes back for as long again, it drops the
connection, tells its program SUSPENDED and tries the next server. That the session is
dead it only ever learns from a server; while none can be reached it stays SUSPENDED.

A client of Java re-sends its watches when it is connected again (`resends_watches`);
kazoo's does not, and its program must look at everything again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

from watchkeeper.model.actor.errors import ConnectionLoss, Failure, SessionExpired
from watchkeeper.model.actor.events import Fired, Notification, SessionEvent
from watchkeeper.model.actor.operations import Operation, Pipelined
from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.zookeeper.armed_watches import ArmedWatches
from watchkeeper.model.zookeeper.watches import Wanted
from watchkeeper.sim.zookeeper.connection import CLOSE, Connection, Request
from watchkeeper.sim.zookeeper.ensemble import Ensemble
from watchkeeper.sim.zookeeper.heartbeat import Pulse

State = Literal["new", "connecting", "connected", "expired", "closed"]

LONGEST_RETRY_US = 2_000_000


class Loss(NamedTuple):
    """What a fault wants to be lost, and when a lost request lands after all."""

    what: Literal["request", "reply"]
    effect: FaultEffect
    lands_after_us: int | None = None


class Process(Protocol):
    """What a client needs of the process that it belongs to."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def group(self) -> str:
        """The consumer group that it is a member of; empty for none."""

    @property
    def is_deaf(self) -> bool:
        """Whether it is paused, or has not yet looked at what arrived during a pause."""

    def when_awake(self, call: Callable[[], None]) -> None:
        """Call this once the process looks at what has arrived."""

    def deliver(self, notification: Notification) -> None:
        """Put a notification into its inbox."""

    def empty_inbox(self) -> None:
        """Drop the notifications of a session that is over."""


class Client:
    """The ZooKeeper client of one process."""

    def __init__(
        self, node: Process, ensemble: Ensemble, session_timeout_us: int, *, resends_watches: bool
    ) -> None:
        self.node = node
        self.ensemble = ensemble
        self.kernel = ensemble.kernel
        self.chance = self.kernel.streams(f"client/{node.name}")
        self.requested_us = session_timeout_us
        self.timeout_us = ensemble.sessions.negotiated_us(session_timeout_us)
        self.state: State = "new"
        self.session = 0
        self.connection: Connection | None = None
        self.last_zxid = 0
        self.armed = ArmedWatches() if resends_watches else None
        self.blocked_until_us = 0
        """A fault keeps this client from connecting until then."""
        self._requests: list[Request] = []
        """What was sent and not answered: one of the program's, and one of each thread's."""
        self.pulse = Pulse(self)
        self._tries = 0
        self._loss: Loss | None = None
        self._appointment = 0
        """Distinguishes the last planned attempt from those that it has overtaken."""
        self._hosts: list[Any] = []
        self._waiting_for_session: Callable[[Any], object] | None = None
        self._waiting_for_connection: Callable[[Any], object] | None = None

    # --- what a program asks -----------------------------------------------------------

    def request(
        self, ask: Operation[Any] | Pipelined, done: Callable[[Any, int], object]
    ) -> None:
        """Send an operation; `done` is called with the answer and its zxid."""
        if self.state != "connected":
            done(self._refusal(ask), 0)
            return
        assert self.connection is not None, "a connected client has a connection"
        request = Request(ask, done)
        self._requests.append(request)
        if self._loss is not None:
            loss, self._loss = self._loss, None
            self._send_and_lose(self.connection, request, loss)
        else:
            connection = self.connection
            self.pulse.sent_us = self.kernel.now_us
            connection.up.send(connection.server.receive, (connection, request))

    def _refusal(self, ask: Operation[Any] | Pipelined) -> Failure:
        path = "" if type(ask) is Pipelined else ask.path  # type: ignore[union-attr]
        if self.state == "expired":
            return Failure(SessionExpired, path)
        return Failure(ConnectionLoss, path, sent=False)

    def new_session(self, done: Callable[[Any], object]) -> None:
        """Get a session; `done` is called when there is one."""
        if self.state == "connected":
            done(None)
            return
        self._waiting_for_session = done
        if self.state in ("new", "expired"):
            self.session = 0
            self.last_zxid = 0
            if self.armed is not None:
                self.armed.clear()
            self.state = "connecting"
            self._tries = 0
            self._connect_soon(0)

    def wait_connected(self, done: Callable[[Any], object]) -> None:
        """Wait for a connection; `done` is called with None, or with the end of the session."""
        if self.state == "connected":
            done(None)
        elif self.state == "expired":
            done(Failure(SessionExpired))
        else:
            self._waiting_for_connection = done

    def close(self, done: Callable[[Any], object]) -> None:
        """End the session; `done` is called when the server has done so."""
        if self.state != "connected" or self.connection is None:
            self.shut()
            done(None)
            return

        def closed(answer: Any, zxid: int) -> None:
            self.shut()
            done(None)

        request = Request(CLOSE, closed)
        self._requests.append(request)
        self._send(self.connection, request)

    def shut(self) -> None:
        """Drop the connection and everything else; the process ends."""
        connection = self.connection
        self.pulse.end()
        self.state = "closed"
        self.connection = None
        self._requests.clear()
        if connection is not None:
            self._hang_up(connection)

    # --- connecting --------------------------------------------------------------------

    def _connect_soon(self, delay_us: int) -> None:
        blocked_us = max(self.blocked_until_us - self.kernel.now_us, 0)
        self._appointment += 1
        self.kernel.after(max(delay_us, blocked_us), self._connect, self._appointment)

    def _connect(self, appointment: int) -> None:
        if self.state != "connecting" or appointment != self._appointment:
            return
        if self.node.is_deaf:
            self.node.when_awake(lambda: self._connect(appointment))
            return
        if self.blocked_until_us > self.kernel.now_us:
            self._connect_soon(0)
            return
        self._tries += 1
        if not self._hosts:
            self._hosts = self.chance.shuffled(self.ensemble.servers)
        server = self._hosts.pop()
        connection = self.connection = Connection(self.ensemble.count_connection(), self, server)
        if server.state == "down":
            connection.down.send(self.closed_by_server, connection)
        else:
            hello = (connection, self.session, self.last_zxid, self.requested_us)
            connection.up.send(server.accept, hello)
        patience = self.timeout_us // len(self.ensemble.servers)
        self.kernel.after(patience, self._give_up, connection)

    def _give_up(self, connection: Connection) -> None:
        """Nothing came of an attempt to connect."""
        if self.connection is connection and self.state == "connecting":
            self._hang_up(connection)
            self.connection = None
            self._retry()

    def _retry(self) -> None:
        """Try the next server at once, and pause when all have been tried."""
        rounds = max(self._tries // len(self.ensemble.servers) - 1, 0)
        pause = 0 if self._hosts else self.chance.draw(self.kernel.profile.reconnect)
        self._connect_soon(min(pause << min(rounds, 8), LONGEST_RETRY_US))

    def established(self, message: tuple[Connection, int, int]) -> None:
        """A server has given us a session, or our session back."""
        connection, session, timeout_us = message
        if self._is_late(connection, self.established, message):
            return
        is_new = session != self.session
        self.session = session
        self.timeout_us = timeout_us
        self.state = "connected"
        self._tries = 0
        self._say(EventKind.CONNECTED, {"at": connection.server.name, "new": is_new})
        self.pulse.begin(connection, timeout_us)
        if is_new:
            self.node.empty_inbox()
        else:
            self._leave_watches_again(connection)
            self.node.deliver(SessionEvent.CONNECTED)
        self._tell_waiting(None)

    def _leave_watches_again(self, connection: Connection) -> None:
        if self.armed is not None:
            wanted = self.armed.wanted()
            if wanted != Wanted():
                self._send(connection, Request(wanted))

    def told_expired(self, connection: Connection) -> None:
        """Learn from a server that the session has expired."""
        if self._is_late(connection, self.told_expired, connection):
            return
        self.pulse.end()
        self.connection = None
        self.state = "expired"
        self._say(EventKind.EXPIRED, {"at": connection.server.name})
        self.node.deliver(SessionEvent.EXPIRED)
        self._tell_waiting(Failure(SessionExpired))

    def _tell_waiting(self, outcome: Any) -> None:
        for_connection, self._waiting_for_connection = self._waiting_for_connection, None
        if for_connection is not None:
            for_connection(outcome)
        if outcome is None and self._waiting_for_session is not None:
            for_session, self._waiting_for_session = self._waiting_for_session, None
            for_session(None)
        elif outcome is not None and self._waiting_for_session is not None:
            waiting, self._waiting_for_session = self._waiting_for_session, None
            self.new_session(waiting)

    # --- losing the connection ---------------------------------------------------------

    def closed_by_server(self, connection: Connection) -> None:
        """The server has closed the connection, or never opened it."""
        if self._is_late(connection, self.closed_by_server, connection):
            return
        self.lose("closed by the server")

    def lose(self, why: str) -> None:
        """Lose the connection: pending requests fail, and the program is notified."""
        connection = self.connection
        if connection is None:
            return
        self.pulse.end()
        self.connection = None
        self._hang_up(connection)
        was_connected = self.state == "connected"
        self.state = "connecting"
        if was_connected:
            self._hosts = []
            self._say(EventKind.SUSPENDED, {"why": why})
            self.node.deliver(SessionEvent.SUSPENDED)
            self._fail_requests()
            self._tries = 0
            self._connect_soon(self.chance.draw(self.kernel.profile.reconnect))
        else:
            self._retry()

    def _fail_requests(self) -> None:
        requests, self._requests = self._requests, []
        for request in requests:
            assert request.client_done is not None, "a request that is kept has a callback"
            path = getattr(request.ask, "path", "")
            request.client_done(Failure(ConnectionLoss, path, sent=True), 0)

    def _hang_up(self, connection: Connection) -> None:
        connection.up.send(connection.server.disconnect, connection)

    # --- losing one message ------------------------------------------------------------

    def lose_next(self, loss: Loss) -> None:
        """The next request, or its reply, is lost and takes the connection with it."""
        self._loss = loss

    def _send_and_lose(self, connection: Connection, request: Request, loss: Loss) -> None:
        connection.loses_requests = False
        if loss.what == "reply":
            connection.reply_to_lose = (request, loss.effect)
            self._send(connection, request)
            return
        loss.effect.add("requests lost")
        if loss.lands_after_us is not None:
            connection.has_late_requests = True
            server = connection.server
            self.kernel.after(loss.lands_after_us, server.receive, (connection, request))
        self.kernel.after(self.ensemble.network.hop_us(), self.cut_off, connection)

    def cut_off(self, connection: Connection) -> None:
        """Both ends learn that a connection is broken."""
        connection.server.disconnect(connection)
        if self.connection is connection:
            self.lose("disconnected")

    # --- what arrives ------------------------------------------------------------------

    def _is_late(self, connection: Connection, again: Callable[[Any], None], what: Any) -> bool:
        """Whether a message is not read now: its connection is gone, or the process is paused."""
        if self.connection is not connection:
            return True
        if self.node.is_deaf:
            self.node.when_awake(lambda: again(what))
            return True
        return False

    def replied(self, message: tuple[Connection, Request, Any, int, int]) -> None:
        """A reply has arrived."""
        connection, request, answer, zxid, seen_zxid = message
        # Nearly every reply is in time; that is found out without a call.
        if (self.connection is not connection or self.node.is_deaf) and self._is_late(
            connection, self.replied, message
        ):
            return
        self.pulse.is_pinged = False
        if seen_zxid > self.last_zxid:
            self.last_zxid = seen_zxid
        done = request.client_done
        if done is None:
            return
        self._requests.remove(request)
        if self.armed is not None and request.ask is not CLOSE:
            self.armed.note_reply(request.ask, answer)
        done(answer, zxid)

    def hear(self, message: tuple[Connection, Fired, int]) -> None:
        """A watch has fired."""
        connection, event, zxid = message
        if self._is_late(connection, self.hear, message):
            return
        self.pulse.is_pinged = False
        if zxid > self.last_zxid:
            self.last_zxid = zxid
        if self.armed is not None:
            self.armed.note_event(event)
        self.node.deliver(event)

    def _send(self, connection: Connection, request: Request) -> None:
        self.pulse.sent_us = self.kernel.now_us
        connection.up.send(connection.server.receive, (connection, request))

    def _say(self, kind: str, detail: dict[str, Any]) -> None:
        self.kernel.write(
            self.node.name, kind, detail, session=self.session, group=self.node.group
        )
