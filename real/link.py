<<<<<<< HEAD
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
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss as KazooConnectionLoss
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import Callback, EventType, KazooState, WatchedEvent
from kazoo.retry import KazooRetry

from model.answers import Fired, Happening
from model.errors import ConnectionLoss, Failure, SessionExpired
from model.operations import Operation
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

    def dispatch_callback(self, callback: Callback) -> None:
        """Call a watcher; one that had two watches at a path hears of one event once."""
        (event,) = callback.args
        if event is not self._last_event:
            self._last_event = event
            callback.func(event)


class Link:
    """A client. What it hears goes to `hear`, which must not take long."""

    def __init__(
        self, hosts: str, chroot: str, timeout_ms: int, hear: Callable[[Said], None]
    ) -> None:
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
        )
        self._kazoo.add_listener(self._changed)

    @property
    def session(self) -> int:
        """The session, as ZooKeeper numbers it; 0 for none."""
        return int(self._kazoo._session_id or 0)

    def start(self) -> None:
        """Begin to connect."""
        self._kazoo.start_async()

    def close(self) -> None:
        """End the session and every thread."""
        self._kazoo.stop()
        self._kazoo.close()
        self.state = "closed"

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
            return [self._call(operation, answers) for operation in operations]

    def _call(self, operation: Operation[Any], answers: Answers) -> int:
        self._tickets += 1
        ticket, life = self._tickets, self.life
        result = self._kazoo.handler.async_result()

        def done(outcome: Any) -> None:
            response = outcome.exception or outcome.value
            try:
                answer = answers.of(operation, response)
            except UnknownError as error:  # for the program's thread; this one is kazoo's
                answer = error
            self._say(Reply(ticket, answer, self._kazoo.last_zxid), life)

        result.rawlink(done)
        self._kazoo._call(request_for(operation, self.prefix, self._fired), result)
        return ticket

    # --- hearing: in kazoo's thread -----------------------------------------------------

    def _say(self, what: Any, life: int) -> None:
        now = time.monotonic_ns()
        self.hear(Said(now, life, what))
        self.slowest_ns = max(self.slowest_ns, time.monotonic_ns() - now)

    def _fired(self, event: WatchedEvent) -> None:
        if event.type in HAPPENINGS:
            path = event.path[len(self.prefix) :] if self.prefix else event.path
            self._say(Fired(HAPPENINGS[event.type], path or "/"), self.life)

    def _changed(self, state: str) -> None:
        with self._lock:
            if state == KazooState.CONNECTED:
                if self.state in ("new", "expired"):
                    self.life += 1
                self.state = "connected"
            elif state == KazooState.SUSPENDED:
                self.state = "suspended"
                self._refuse_queued()
            else:
                self.state = "expired"
            self._say(self.state, self.life)

    def _refuse_queued(self) -> None:
        """Requests that kazoo took in the last moment must not wait for the next connection."""
        queued = self._kazoo._queue
        while queued:
            _, result = queued.popleft()
            if result is not None:
                result.set_exception(KazooConnectionLoss())
=======
"""One connection of a client to a server, through the proxy."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, cast

from real.flow import Flow, Tell
from real.wire import Frames, Session, renumbered, reply_of, request_of, session_of

if TYPE_CHECKING:
    from real.guest import Loss, Way

_numbers = count(1)
_ghost_xids = count(-1000, -1)
"""The numbers that late requests bear on a connection that is not their own."""


class Side(asyncio.Protocol):
    """One end of a connection: either the client's or the server's."""

    def __init__(self, link: Link, *, is_client: bool) -> None:
        self.link = link
        self.is_client = is_client
        self.frames = Frames()
        self.transport: asyncio.Transport | None = None
        self._together: list[bytes] | None = None
        """What is to be written in one go; None while everything is written at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        self.transport = cast(asyncio.Transport, transport)
        if self.is_client:
            self.link.client_came()
        else:
            self.link.server_came()

    def data_received(self, data: bytes) -> None:
        """Something has come."""
        link = self.link
        handle, other = (
            (link.from_client, link.server) if self.is_client else (link.from_server, link.client)
        )
        frames = self.frames.feed(data)
        if len(frames) > 1:
            other._together = []
        for frame in frames:
            handle(frame)
        other.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any longer."""
        self.link.lost(self)

    def write(self, data: bytes) -> None:
        """Send something, if somebody is there."""
        if self._together is not None:
            self._together.append(data)
        elif self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def flush(self) -> None:
        """Send what was to go together."""
        if self._together is not None:
            data, self._together = b"".join(self._together), None
            self.write(data)

    def close(self) -> None:
        """Close this end; what has been written still arrives."""
        self.flush()
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close this end at once."""
        if self.transport is not None:
            self.transport.abort()

    @property
    def is_open(self) -> bool:
        """Whether somebody is there."""
        return self.transport is not None and not self.transport.is_closing()


class Link:
    """Two ends and what is under way between them."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.number = next(_numbers)
        self.session: Session | None = None
        """The session it carries, once the server has granted one."""
        loop = way.guest.loop
        self.client = Side(self, is_client=True)
        self.server = Side(self, is_client=False)
        self.up = Flow(loop, way.valves["to"], self.server.write, self.server.close)
        self.down = Flow(loop, way.valves["from"], self.client.write, self.client.close)
        self._is_begun = False
        self._is_connecting = False
        self._has_asked = False
        """Whether the client's first frame, which opens the session, has come."""
        self._is_answered = False
        self._is_cut_off = False
        """Whether the proxy has closed it; nothing from the client goes on from here."""
        self._reply_to_lose: tuple[int, Loss] | None = None
        self._ghosts: dict[int, Tell] = {}
        """Late requests that have been sent, by their numbers."""
        self._connecting: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether client and server are both there and may talk."""
        return not self._is_cut_off and self.client.is_open and self.server.is_open

    # --- coming and going --------------------------------------------------------------

    def client_came(self) -> None:
        """A client wants to connect."""
        self.way.links.append(self)
        self.down.is_ready = True
        if self.way.guest.refuses():
            self.break_off()
        self.move_on()

    def move_on(self) -> None:
        """Connect to the server if nothing stands in the way, and let pass what waited."""
        if not self._is_begun and not self._is_cut_off and not self.way.is_cut:
            self._is_begun = self._is_connecting = True
            self._connecting = self.way.guest.loop.create_task(self._connect())
        self.up.move_on()
        self.down.move_on()

    async def _connect(self) -> None:
        host, _, port = self.way.server.rpartition(":")
        try:
            await self.way.guest.loop.create_connection(lambda: self.server, host, int(port))
        except OSError:
            self._is_cut_off = True
            self.client.close()
        self._is_connecting = False
        self._leave()

    def server_came(self) -> None:
        """The server is there."""
        self.up.is_ready = True
        self.up.move_on()

    def lost(self, side: Side) -> None:
        """One end is closed; the other learns of it in its turn."""
        if side is self.server:
            self._give_up_ghosts()
            self.down.finish()
        elif self._is_begun and not self._is_cut_off:
            self.up.finish()
        elif not self._is_begun:
            self._is_cut_off = True
        self._leave()

    def _leave(self) -> None:
        if not (self.client.is_open or self.server.is_open or self._is_connecting):
            self.up.drop()
            self.down.drop()
            if self in self.way.links:
                self.way.links.remove(self)

    def break_off(self, *, keeps_server: bool = False) -> None:
        """Close it from the middle; the server's end stays for a while if so wished."""
        if self._is_cut_off:
            return
        self._is_cut_off = True
        self.down.drop()
        self.client.close()
        if not keeps_server:
            self.up.finish()

    def abort(self) -> None:
        """Close both ends at once, since the proxy itself goes."""
        if self._connecting is not None:
            self._connecting.cancel()
        self.up.drop()
        self.down.drop()
        self.client.abort()
        self.server.abort()

    # --- what passes -------------------------------------------------------------------

    def from_client(self, frame: bytes) -> None:
        """A frame has come from the client."""
        if self._is_cut_off:
            return
        losses = self.way.guest.losses
        if losses and self._has_asked and not self.client.frames.is_raw:
            request = request_of(frame)
            if request is not None and request.is_of_program:
                self._strike(losses.pop(0), frame, request.xid)
                return
        self._has_asked = True
        self.up.send(frame)

    def _strike(self, loss: Loss, frame: bytes, xid: int) -> None:
        """A request meets what was aimed at it."""
        if loss.what == "reply":
            self._reply_to_lose = (xid, loss)
            self.up.send(frame)
            return
        loss.tell("requests lost", 1)
        loss.tell("connections broken", 1)
        late_s = loss.lands_after_s
        self.break_off(keeps_server=late_s is not None)
        if late_s is not None:
            self.way.guest.loop.call_later(late_s, self._land, frame, loss.tell)

    def from_server(self, frame: bytes) -> None:
        """A frame has come from the server."""
        if not self._is_answered and not self.server.frames.is_raw:
            self._is_answered = True
            self.session = session_of(frame)
        elif self._reply_to_lose is not None or self._ghosts:
            answered = reply_of(frame)
            if answered is not None and self._swallows(*answered):
                return
        if not self._is_cut_off:
            self.down.send(frame)

    def _swallows(self, xid: int, error: int) -> bool:
        """Whether a reply does not reach the client."""
        if xid in self._ghosts:
            tell = self._ghosts.pop(xid)
            tell("late requests refused" if error else "late requests landed", 1)
            if self._is_cut_off and not self._ghosts:
                self.up.finish()
            return True
        if self._reply_to_lose is not None and xid == self._reply_to_lose[0]:
            _, loss = self._reply_to_lose
            self._reply_to_lose = None
            loss.tell("replies lost", 1)
            loss.tell("connections broken", 1)
            self._is_cut_off = True
            self.down.finish()
            self.up.finish()
            return True
        return False

    # --- requests that come late -------------------------------------------------------

    def _land(self, frame: bytes, tell: Tell) -> None:
        """A lost request reaches ZooKeeper after all.

        A write that had passed its server's checks is applied although its session goes
        on elsewhere by now. From outside, no server lets it pass them then; so it takes
        the session's new connection, where the client hears nothing of it.
        """
        request = request_of(frame)
        assert request is not None, "only requests are lost"
        newer = self.way.guest.link_of(self.session) if self.session is not None else None
        if newer is not None and request.is_write:
            xid = next(_ghost_xids)
            newer._ghosts[xid] = tell
            newer.up.send(renumbered(frame, xid))
            self.up.finish()
        elif self.server.is_open:
            self._ghosts[request.xid] = tell
            self.up.send(frame)
        else:
            tell("late requests that found their session over", 1)

    def _give_up_ghosts(self) -> None:
        for tell in self._ghosts.values():
            tell("late requests that found their session over", 1)
        self._ghosts.clear()
>>>>>>> live
