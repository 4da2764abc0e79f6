"""One client of a live ZooKeeper: kazoo, with everything it reports in one queue.

Why one queue
  kazoo passes replies, watch events and state changes to three threads, and then a program
  can see newer data before the event that announces it. Here the thread that reads the
  socket puts all of them into one queue, in the order of their arrival.

Why a lock
  kazoo starts the next session by itself. A request that is queued at that moment runs in
  the new session; one that is queued while the connection is down runs when it is back. A
  program must never be answered by a session that it does not know of. So a request is
  passed to kazoo under a lock that a state change takes too, and a state change refuses
  whatever kazoo still had queued.
"""

from __future__ import annotations

import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionClosedError, SessionExpiredError
from kazoo.exceptions import ConnectionLoss as KazooConnectionLoss
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import Callback, EventType, KazooState, WatchedEvent
from kazoo.retry import KazooRetry

from watchkeeper.model.actor.errors import ConnectionLoss, Failure, SessionExpired, Unimplemented
from watchkeeper.model.actor.events import Fired, WatchEventType
from watchkeeper.model.actor.operations import GetEphemerals, Operation
from watchkeeper.model.zookeeper.armed_watches import ArmedWatches
from watchkeeper.model.zookeeper.watches import Wanted
from watchkeeper.real.client.attempts import AttemptLimit
from watchkeeper.real.client.codec import Answers, UnknownError, request_for, watches_request
from watchkeeper.real.client.connection import Connection, ready, send
from watchkeeper.real.client.server_version import lists_ephemerals
from watchkeeper.real.client.session_gate import SessionGate

State = Literal["new", "connected", "suspended", "expired", "closed"]

WATCH_EVENTS = {
    EventType.CREATED: WatchEventType.CREATED,
    EventType.DELETED: WatchEventType.DELETED,
    EventType.CHANGED: WatchEventType.CHANGED,
    EventType.CHILD: WatchEventType.CHILDREN,
}

FIRST_RETRY_S, LONGEST_RETRY_S = 0.05, 1.0


class ClientEvent(NamedTuple):
    """Something that came from ZooKeeper, and when."""

    at_ns: int
    generation: int
    """The session it belongs to: 1 for the client's first session, 2 for the next, and so on."""
    content: Any
    """A Reply, a Fired, or the new state of the connection."""
    zxid: int = 0
    """The zxid of the change, if it is a Fired; 0 from a server older than 3.9."""


class Reply(NamedTuple):
    """The answer to a request; `ticket` is the number that `submit` returned."""

    ticket: int
    answer: Any
    zxid: int


class _InlineQueue:
    """Replaces a queue of kazoo's: the caller of `put` runs the item immediately."""

    def put(self, call: Callable[[], object]) -> None:
        call()


class WatcherTable(dict[str, Any]):
    """Replaces kazoo's tables of watchers: every event is passed to one function.

    kazoo forgets a watcher once it has fired, which does not work for persistent watches. Which
    watches exist is known to the server; this client does not track them.
    """

    def __init__(self, fired: Callable[[WatchedEvent], None]) -> None:
        super().__init__()
        self.fired = fired

    def __missing__(self, path: str) -> set[Any]:
        """Where kazoo adds the watcher of a read; the set is discarded."""
        return set()

    def pop(self, path: str, default: Any = None) -> Any:
        """The watchers that kazoo calls for an event."""
        return [self.fired]


class InlineHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's handler without its two worker threads."""

    def __init__(self, limit: AttemptLimit) -> None:
        super().__init__()
        self._limit = limit
        self.completion_queue = self.callback_queue = _InlineQueue()
        self._last_event: WatchedEvent | None = None

    def start(self) -> None:
        """Mark the handler as running; there is no thread to start."""
        self._running = True

    def stop(self) -> None:
        """Mark the handler as stopped; there is no thread to stop."""
        self._running = False

    def create_connection(
        self, *arguments: Any, timeout: float = math.inf, **options: Any
    ) -> Any:
        """Connect to a server, within the limit of one attempt."""
        timeout = self._limit.of(timeout)
        return super().create_connection(*arguments, timeout=timeout, **options)

    def select(
        self, reading: list[Any], writing: list[Any], _: list[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Wait for sockets; `poll` instead of `select` allows descriptors above 1023."""
        return *ready(reading, writing, timeout), []

    def dispatch_callback(self, callback: Callback) -> None:
        """Call a watcher; two watches at one path produce one call for one event."""
        (event,) = callback.args
        if event is not self._last_event:
            self._last_event = event
            callback.func(event)


class PendingRequest:
    """Receives the answer to one request from kazoo and emits it."""

    __slots__ = ("answers", "client", "generation", "operation", "ticket")

    def __init__(self, client: Client, operation: Operation[Any], answers: Answers) -> None:
        self.client = client
        self.operation = operation
        self.answers = answers
        self.generation = client.generation
        self.ticket = client.next_ticket()

    def set(self, response: Any) -> None:
        """Translate the response of a server and emit it."""
        try:
            answer = self.answers.of(self.operation, response)
            self.client.note_watches(self.operation, answer)
        except UnknownError as error:  # for the program's thread; this one is kazoo's
            answer = error
        self.client.emit(Reply(self.ticket, answer, self.client.last_zxid), self.generation)

    set_exception = set


class NoAnswer:
    """Receives the answer to a request that no program has made."""

    def set(self, response: Any) -> None:
        """Nothing: if the connection breaks, the next one begins with the same request."""

    set_exception = set


class Client:
    """A ZooKeeper client; `on_event` gets each ClientEvent and must return quickly."""

    def __init__(
        self,
        hosts: str,
        chroot: str,
        timeout_ms: int,
        on_event: Callable[[ClientEvent], None],
        options: Mapping[str, Any] | None = None,
        *,
        resends_watches: bool = False,
        waits_for_program: bool = False,
    ) -> None:
        """`options` are passed to kazoo unchanged: `auth_data`, `use_ssl`, `ca` and so on.

        A client that resends its watches sets them again at every reconnection within a session,
        as Java's client does and kazoo does not; a program that relies on that needs it.
        One that waits for its program opens no further session until `open_session` is called.
        """
        self.prefix = chroot
        self.on_event = on_event
        self.state: State = "new"
        self.generation = 0
        self.slowest_ns = 0
        """The longest time that `on_event` has blocked kazoo's thread."""
        self._lock = threading.Lock()
        self._tickets = 0
        self._armed = ArmedWatches() if resends_watches else None
        """The watches that are set, by paths without the chroot; None if it resends none."""
        self._gate = SessionGate(is_used=waits_for_program)
        self._lists_ephemerals: bool | None = None
        """Whether the connected server knows `getEphemerals`; None before it is looked up."""
        logger = logging.getLogger("watchkeeper.kazoo")
        logger.setLevel(logging.CRITICAL)
        limit = AttemptLimit()
        self._kazoo = KazooClient(
            hosts,
            timeout=timeout_ms / 1000,
            handler=InlineHandler(limit),
            connection_retry=KazooRetry(
                max_tries=-1, delay=FIRST_RETRY_S, max_delay=LONGEST_RETRY_S, ignore_expire=False
            ),
            logger=logger,
            **(options or {}),
        )
        self._connection = Connection(self._kazoo, limit)
        self._kazoo.add_listener(self._state_changed)

    @property
    def granted_ms(self) -> int:
        """The session timeout that the server has granted; 0 before the first session."""
        return self._connection.granted_ms

    @property
    def session(self) -> int:
        """ZooKeeper's session id; 0 without a session."""
        return int(self._kazoo._session_id or 0)

    @property
    def last_zxid(self) -> int:
        """The zxid of the last write that a server has reported."""
        return int(self._kazoo.last_zxid)

    def start(self) -> None:
        """Begin to connect; returns immediately."""
        self._kazoo.start_async()

    def open_session(self) -> None:
        """Let kazoo open the next session, if the last one has ended."""
        self._gate.open()

    def close(self) -> None:
        """End the session and every thread."""
        self._gate.open_for_ever()
        self._kazoo.stop()
        self._kazoo.close()
        self.state = "closed"

    def abandon(self) -> None:
        """Disconnect like a killed process: the session lives until it expires."""
        if self.state == "closed":
            return
        self._gate.open_for_ever()
        self._kazoo._stopped.set()
        connection = self._connection
        if connection._socket is not None:
            with suppress(OSError):  # it was not connected
                connection._socket.shutdown(socket.SHUT_RDWR)
        if connection.connection_stopped.wait(LONGEST_RETRY_S):
            self._kazoo.close()
        self.state = "closed"

    def make_chroot(self) -> bool:
        """Create the missing znodes of the chroot; False if the session broke."""
        try:
            self._kazoo.ensure_path(self.prefix)
        except (KazooConnectionLoss, ConnectionClosedError, SessionExpiredError):
            return False
        return True

    # --- requests ------------------------------------------------------------------------

    def submit(
        self, operations: tuple[Operation[Any], ...], generation: int
    ) -> list[int] | Failure:
        """Send requests of one session back to back; return their tickets.

        Returns a Failure instead if nothing was sent: the session is over, or there is no
        connection.
        """
        path = operations[0].path if operations else ""
        unknown = self._unknown_to_server(operations)
        with self._lock:
            if self.generation != generation or self.state in ("expired", "closed"):
                return Failure(SessionExpired, path)
            if self.state != "connected":
                return Failure(ConnectionLoss, path, sent=False)
            answers = Answers(self.prefix, self.session)
            pending = [PendingRequest(self, operation, answers) for operation in operations]
            requests = [
                (request_for(one.operation, self.prefix, self._fired), one)
                for one in pending
                if type(one.operation) not in unknown
            ]
            if requests:
                send(self._kazoo, requests)
            for one in pending:
                if type(one.operation) in unknown:
                    answer = Failure(Unimplemented, one.operation.path)
                    self.emit(Reply(one.ticket, answer, self.last_zxid), generation)
            return [one.ticket for one in pending]

    def _unknown_to_server(self, operations: tuple[Operation[Any], ...]) -> tuple[type, ...]:
        """Return the kinds of operations that must not be sent: the server would hang up."""
        if not any(type(operation) is GetEphemerals for operation in operations):
            return ()
        if self._lists_ephemerals is None:
            self._lists_ephemerals = lists_ephemerals(self._kazoo)
        return () if self._lists_ephemerals else (GetEphemerals,)

    def next_ticket(self) -> int:
        """Return a number that no other request has."""
        self._tickets += 1
        return self._tickets

    # --- events: in kazoo's thread ---------------------------------------------------------

    def emit(self, content: Any, generation: int, *, zxid: int = 0) -> None:
        """Pass on what has arrived in the session of this generation."""
        now = time.monotonic_ns()
        self.on_event(ClientEvent(now, generation, content, zxid))
        self.slowest_ns = max(self.slowest_ns, time.monotonic_ns() - now)

    def _fired(self, event: WatchedEvent) -> None:
        if event.type in WATCH_EVENTS:
            path = event.path[len(self.prefix) :] if self.prefix else event.path
            fired = Fired(WATCH_EVENTS[event.type], path or "/")
            if self._armed is not None:
                self._armed.note_event(fired)
            self.emit(fired, self.generation, zxid=self._connection.frame_zxid)

    def _state_changed(self, state: str) -> None:
        with self._lock:
            if state == KazooState.CONNECTED:
                watchers = WatcherTable(self._fired)
                # kazoo replaces its tables when a session ends: set them at every connection.
                self._kazoo._data_watchers = self._kazoo._child_watchers = watchers
                # Reconnecting within a session keeps its generation.
                if self.state in ("new", "expired"):
                    self.generation += 1
                    if self._armed is not None:
                        self._armed.clear()
                else:
                    self._resend_watches()
                self.state = "connected"
                self._lists_ephemerals = None  # the next server may have another version
            elif state == KazooState.SUSPENDED:
                self.state = "suspended"
                self._refuse_queued()
            else:
                self.state = "expired"
                self._gate.session_ended()
            self.emit(self.state, self.generation)
        # This thread would open the next session: it has none now that it must keep alive.
        self._gate.wait()

    def note_watches(self, operation: Operation[Any], answer: Any) -> None:
        """An answer has come: watches may have been set, or removed."""
        if self._armed is not None:
            self._armed.note_reply(operation, answer)

    def _resend_watches(self) -> None:
        """Set the watches of the broken connection again, before any other request."""
        wanted = Wanted() if self._armed is None else self._armed.wanted()
        if wanted != Wanted():
            request = watches_request(wanted, self.prefix, self.last_zxid)
            send(self._kazoo, [(request, NoAnswer())])

    def _refuse_queued(self) -> None:
        """Fail the requests that kazoo queued last: they must not run on the next connection."""
        queued = self._kazoo._queue
        while queued:
            _, result = queued.popleft()
            if result is not None:
                result.set_exception(KazooConnectionLoss())
