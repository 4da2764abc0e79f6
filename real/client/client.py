"""One client of a real ZooKeeper: kazoo, with everything it says in one queue.

Why one queue
  kazoo hands replies, watch events and changes of its state to three threads, and then a
  program can see newer data before the event that announces it. Here all of them are put
  into one queue by the thread that reads the socket, in the order in which they came.

Why a lock
  kazoo begins the next session by itself, and a request that is queued at that moment
  runs in it; one that is queued while the connection is down runs when it is back. A
  program must never be answered by a session it does not know of. So a request is handed
  to kazoo under a lock that whoever takes down a change of state holds too, and whatever
  kazoo still had queued at such a change is refused.
"""

from __future__ import annotations

import logging
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

from model.answers import Fired, Happening
from model.errors import ConnectionLoss, Failure, SessionExpired
from model.operations import Operation
from real.connection import Connection, ready, send
from real.requests import Answers, UnknownError, request_for

State = Literal["new", "connected", "suspended", "expired", "closed"]

HAPPENINGS = {
    EventType.CREATED: Happening.CREATED,
    EventType.DELETED: Happening.DELETED,
    EventType.CHANGED: Happening.CHANGED,
    EventType.CHILD: Happening.CHILDREN,
}

FIRST_RETRY_S, LONGEST_RETRY_S = 0.05, 1.0


class Said(NamedTuple):
    """Something that came from ZooKeeper, and when."""

    at_ns: int
    life: int
    """The number of the session that it belongs to, from 1."""
    what: Any
    """A Reply, a Fired, or the new state of the connection."""


class Reply(NamedTuple):
    """The answer to a request."""

    ticket: int
    answer: Any
    zxid: int


class _Now:
    """Stands in for a queue of kazoo's: what is put in is done at once, by whoever puts it."""

    def put(self, call: Callable[[], object]) -> None:
        call()


class Everybody(dict[str, Any]):
    """Stands in for kazoo's tables of watchers: whatever fires, whoever left it, one is told.

    kazoo forgets a watcher when it has fired, so that it cannot serve watches that stay; and
    which watches there are is the server's affair.
    """

    def __init__(self, fired: Callable[[WatchedEvent], None]) -> None:
        super().__init__()
        self.fired = fired

    def __missing__(self, path: str) -> set[Any]:
        """Where kazoo puts the watcher of a read; nobody looks there."""
        return set()

    def pop(self, path: str, default: Any = None) -> Any:
        """Whom kazoo calls for an event."""
        return [self.fired]


class OneThread(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's handler without its two worker threads."""

    def __init__(self) -> None:
        super().__init__()
        self.completion_queue = self.callback_queue = _Now()
        self._last_event: WatchedEvent | None = None

    def start(self) -> None:
        """Begin; there is nothing to start."""
        self._running = True

    def stop(self) -> None:
        """End; there is nothing to stop."""
        self._running = False

    def select(
        self, reading: list[Any], writing: list[Any], _: list[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Wait for sockets."""
        return *ready(reading, writing, timeout), []

    def dispatch_callback(self, callback: Callback) -> None:
        """Call a watcher; one that had two watches at a path hears of one event once."""
        (event,) = callback.args
        if event is not self._last_event:
            self._last_event = event
            callback.func(event)


class Asked:
    """Takes the answer to a request from kazoo, and says it."""

    __slots__ = ("answers", "client", "life", "operation", "ticket")

    def __init__(self, client: Client, operation: Operation[Any], answers: Answers) -> None:
        self.client = client
        self.operation = operation
        self.answers = answers
        self.life = client.life
        self.ticket = client.next_ticket()

    def set(self, response: Any) -> None:
        """Take what a server has answered."""
        try:
            answer = self.answers.of(self.operation, response)
        except UnknownError as error:  # for the program's thread; this one is kazoo's
            answer = error
        self.client.say(Reply(self.ticket, answer, self.client.last_zxid), self.life)

    set_exception = set


class Client:
    """A client. What it hears goes to `hear`, which must not take long."""

    def __init__(
        self,
        hosts: str,
        chroot: str,
        timeout_ms: int,
        hear: Callable[[Said], None],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """`options` go to kazoo as they are: `auth_data`, `use_ssl`, `ca` and so on."""
        self.prefix = chroot
        self.hear = hear
        self.state: State = "new"
        self.life = 0
        self.slowest_ns = 0
        """The longest that a call of ours has kept a thread of kazoo's."""
        self._lock = threading.Lock()
        self._tickets = 0
        logger = logging.getLogger("watchkeeper.kazoo")
        logger.setLevel(logging.CRITICAL)
        self._kazoo = KazooClient(
            hosts,
            timeout=timeout_ms / 1000,
            handler=OneThread(),
            connection_retry=KazooRetry(
                max_tries=-1, delay=FIRST_RETRY_S, max_delay=LONGEST_RETRY_S, ignore_expire=False
            ),
            logger=logger,
            **(options or {}),
        )
        self._connection = Connection(self._kazoo)
        self._kazoo.add_listener(self._changed)

    @property
    def granted_ms(self) -> int:
        """The session timeout that the server has granted; 0 before there was a session."""
        return self._connection.granted_ms

    @property
    def session(self) -> int:
        """The session, as ZooKeeper numbers it; 0 for none."""
        return int(self._kazoo._session_id or 0)

    @property
    def last_zxid(self) -> int:
        """The number of the last write that a server has told of."""
        return int(self._kazoo.last_zxid)

    def start(self) -> None:
        """Begin to connect."""
        self._kazoo.start_async()

    def close(self) -> None:
        """End the session and every thread."""
        self._kazoo.stop()
        self._kazoo.close()
        self.state = "closed"

    def abandon(self) -> None:
        """Leave as a process does that is killed: the session goes on until it expires."""
        if self.state == "closed":
            return
        self._kazoo._stopped.set()
        connection = self._connection
        if connection._socket is not None:
            with suppress(OSError):  # it was not connected
                connection._socket.shutdown(socket.SHUT_RDWR)
        if connection.connection_stopped.wait(LONGEST_RETRY_S):
            self._kazoo.close()
        self.state = "closed"

    def make_chroot(self) -> bool:
        """Make the znodes of the chroot where they are missing; False if the session broke."""
        try:
            self._kazoo.ensure_path(self.prefix)
        except (KazooConnectionLoss, ConnectionClosedError, SessionExpiredError):
            return False
        return True

    # --- asking ------------------------------------------------------------------------

    def submit(self, operations: tuple[Operation[Any], ...], life: int) -> list[int] | Failure:
        """Send requests of a session back to back; their tickets, or why none was sent."""
        path = operations[0].path if operations else ""
        with self._lock:
            if self.life != life or self.state in ("expired", "closed"):
                return Failure(SessionExpired, path)
            if self.state != "connected":
                return Failure(ConnectionLoss, path, sent=False)
            answers = Answers(self.prefix, self.session)
            requests = [
                (request_for(one, self.prefix, self._fired), Asked(self, one, answers))
                for one in operations
            ]
            send(self._kazoo, requests)
            return [asked.ticket for _, asked in requests]

    def next_ticket(self) -> int:
        """A number for a request that no other has had."""
        self._tickets += 1
        return self._tickets

    # --- hearing: in kazoo's thread -----------------------------------------------------

    def say(self, what: Any, life: int) -> None:
        """Say what has come, of the session of this number."""
        now = time.monotonic_ns()
        self.hear(Said(now, life, what))
        self.slowest_ns = max(self.slowest_ns, time.monotonic_ns() - now)

    def _fired(self, event: WatchedEvent) -> None:
        if event.type in HAPPENINGS:
            path = event.path[len(self.prefix) :] if self.prefix else event.path
            self.say(Fired(HAPPENINGS[event.type], path or "/"), self.life)

    def _changed(self, state: str) -> None:
        with self._lock:
            if state == KazooState.CONNECTED:
                everybody = Everybody(self._fired)
                self._kazoo._data_watchers = self._kazoo._child_watchers = everybody
                if self.state in ("new", "expired"):
                    self.life += 1
                self.state = "connected"
            elif state == KazooState.SUSPENDED:
                self.state = "suspended"
                self._refuse_queued()
            else:
                self.state = "expired"
            self.say(self.state, self.life)

    def _refuse_queued(self) -> None:
        """Requests that kazoo took in the last moment must not wait for the next connection."""
        queued = self._kazoo._queue
        while queued:
            _, result = queued.popleft()
            if result is not None:
                result.set_exception(KazooConnectionLoss())
