"""A client's connection to one server: requests in order, answers in order.

How it works
  A server answers the requests of a connection in the order in which they came. Writes go to
  the leader at once, so several of one client may be under way. A read waits until the writes
  before it are answered, and everything behind a read that waits, waits too. So a client reads
  its own writes, and a write that takes long holds up its own pings.

  Identities belong to the connection: its address, and what the client has authenticated.

  What is sent is collected, and leaves in one piece when the ensemble flushes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from watchkeeper.model.actor.events import Fired
from watchkeeper.model.ensemble import words
from watchkeeper.model.ensemble.entry import Entry
from watchkeeper.model.ensemble.faults import DelayLine
from watchkeeper.model.ensemble.handlers import handle, is_write
from watchkeeper.model.ensemble.session_ids import NO_PASSWORD, password_of
from watchkeeper.model.wire.connect import ConnectRequest, ConnectResponse
from watchkeeper.model.wire.frames import frame
from watchkeeper.model.wire.replies import encode_event, encode_reply
from watchkeeper.model.wire.requests import Request
from watchkeeper.model.wire.server_connection import ProtocolError, ServerConnection, Word

if TYPE_CHECKING:
    from watchkeeper.model.ensemble.clock import Transport
    from watchkeeper.model.ensemble.faults import Loss
    from watchkeeper.model.ensemble.server import Server

NO_ZXID = 0
MISSED = -1
"""The zxid of an event that tells of a change before the watch was set again."""


MOST_COLLECTED_BYTES = 256 * 1024
"""What is collected at most before it is sent."""


class Connection:
    """One connection of a client."""

    __slots__ = (
        "_dropped",
        "_inbound",
        "_out",
        "_out_bytes",
        "_outbound",
        "_reads_no_more",
        "_received_ms",
        "_silence",
        "_under_way",
        "_waiting",
        "_wire",
        "host",
        "identities",
        "is_closed",
        "last_opcode",
        "last_zxid",
        "number",
        "port",
        "received",
        "sent",
        "server",
        "session",
        "timeout_ms",
        "transport",
    )

    def __init__(
        self, server: Server, number: int, transport: Transport, host: str, port: int
    ) -> None:
        self.server = server
        self.number = number
        self.transport = transport
        self.host = host
        self.port = port
        self.session = 0
        """The session that it carries; 0 until one is granted."""
        self.timeout_ms = 0
        self.identities: tuple[tuple[str, str], ...] = (("ip", host),)
        self.is_closed = False
        self.received = 0
        self.sent = 0
        self.last_zxid = 0
        self.last_opcode: int | None = None
        self._wire = ServerConnection(most_bytes=server.ensemble.settings.most_frame_bytes)
        self._waiting: deque[Request] = deque()
        self._under_way = 0
        """How many requests have begun and have no answer yet."""
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._received_ms = 0.0
        self._reads_no_more = False
        self._dropped: dict[int, Loss] = {}
        """The requests whose answer will be lost, by xid."""
        self._inbound: DelayLine | None = None
        self._outbound: DelayLine | None = None
        settings = server.ensemble.settings
        self._silence = server.ensemble.clock.call_later(
            settings.connect_ms, lambda: self.hang_up("the client requests no session")
        )

    @property
    def outstanding(self) -> int:
        """How many requests have no answer yet."""
        return self._under_way + len(self._waiting)

    # --- what arrives ------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self._inbound is not None:
            self._inbound.send(lambda: self._take(data))
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        server = self.server
        if server.is_paused:
            server.or_later(lambda: self._take(data))
            return
        self._received_ms = server.ensemble.clock.now_ms()
        for event in self._wire.receive(data):
            if self.is_closed:
                break
            kind = type(event)
            if kind is Request:
                self._request(event)  # type: ignore[arg-type]
            elif kind is ConnectRequest:
                self._connect(event)  # type: ignore[arg-type]
            elif kind is Word:
                self._answer_word(event)  # type: ignore[arg-type]
            else:
                assert isinstance(event, ProtocolError), "there is no further kind of event"
                self.hang_up(event.reason)
        server.ensemble.flush()

    def _request(self, request: Request) -> None:
        server = self.server
        self.received += 1
        server.statistics.received += 1
        server.ensemble.recorder.requested(self, request)
        if self.session:
            server.sessions.touch(self.session)
        if self._under_way and (self._waiting or not is_write(request)):
            self._waiting.append(request)
            if len(self._waiting) > server.ensemble.settings.most_outstanding:
                self._reads_no_more = True
                self.transport.pause_reading()
        else:
            self._serve(request)

    def _serve(self, request: Request) -> None:
        faults = self.server.ensemble.faults
        if faults.losses and (loss := faults.loss_of(self, request)) is not None:
            loss.strike(self, request)
        else:
            handle(self, request)

    def _go_on(self) -> None:
        """A request has been answered: serve what waited for it."""
        waiting = self._waiting
        while waiting and not (self._under_way and not is_write(waiting[0])):
            request = waiting.popleft()
            # The writes of a client that is gone take effect. Its reads would leave watches
            # behind that no connection has.
            if not self.is_closed or is_write(request):
                self._serve(request)
        if self._reads_no_more and not self.is_closed and not waiting:
            self._reads_no_more = False
            self.transport.resume_reading()

    def begin(self) -> None:
        """A request has begun whose answer comes later."""
        self._under_way += 1

    def finish(self) -> None:
        """A request that had begun has been answered: serve what waited for it."""
        self._under_way -= 1
        self._go_on()

    # --- sessions ----------------------------------------------------------------------

    def _connect(self, request: ConnectRequest) -> None:
        server = self.server
        if server.is_read_only and not request.read_only:
            self.hang_up("the server is read-only, and its client does not accept that")
        elif not server.has_sessions:
            self.hang_up("the server has no leader")
        elif server.ensemble.faults.refuses(server, session=request.session):
            self.hang_up("its session is refused on purpose")
        elif request.last_zxid > server.tree.zxid:
            self.hang_up(
                f"the client has seen zxid {request.last_zxid:#x}, this server has "
                f"{server.tree.zxid:#x}; the client has to try another server"
            )
        else:
            timeout_ms = server.ensemble.settings.negotiated_ms(request.timeout_ms)
            self.begin()
            if server.is_read_only:
                self._connect_read_only(request, timeout_ms)
            else:
                server.or_at_leader(lambda: self._connect_at_leader(request, timeout_ms))

    def _connect_read_only(self, request: ConnectRequest, timeout_ms: int) -> None:
        """Grant a session that only this server knows; those of the ensemble wait for it."""
        server = self.server
        session = request.session
        if session in server.tree.sessions:
            self.hang_up("its session belongs to the ensemble, and the server is read-only")
        elif session and not self._continues(session, request.password):
            self._refuse_session(request)
        else:
            session = session or server.ensemble.next_session_id(server)
            server.sessions.add(session, timeout_ms)
            self._grant(session, request, timeout_ms, is_new=not request.session)

    def _continues(self, session: int, password: bytes) -> bool:
        return session in self.server.sessions and password == password_of(session)

    def _connect_at_leader(self, request: ConnectRequest, timeout_ms: int) -> None:
        server = self.server
        if not request.session:

            def opened(entry: Entry) -> None:
                self._grant(entry.session, request, timeout_ms, is_new=True)

            server.ensemble.open_session(server, timeout_ms, opened)
            return
        # Apache's server closes the old connection before it looks at the password.
        server.end_connection_of(request.session, "its session goes on over another connection")
        if self._continues(request.session, request.password):
            server.sessions.add(request.session, timeout_ms)
            self._grant(request.session, request, timeout_ms, is_new=False)
        else:
            self._refuse_session(request)

    def _refuse_session(self, request: ConnectRequest) -> None:
        self._respond(ConnectResponse(0, 0, 0, NO_PASSWORD, self._flag_for(request)))
        self.server.ensemble.recorder.expired(self, request.session)
        self.hang_up(f"the session {request.session:#x} has ended, or its password is wrong")

    def _grant(
        self, session: int, request: ConnectRequest, timeout_ms: int, *, is_new: bool
    ) -> None:
        if self.is_closed:
            return
        ensemble = self.server.ensemble
        self.session = session
        self.timeout_ms = timeout_ms
        self._silence.cancel()
        if not self.server.is_read_only:
            ensemble.owners[session] = self
        self.server.use(session, self)
        ensemble.recorder.connected(self, is_new=is_new)
        password = password_of(session)
        flag = self._flag_for(request)
        self._respond(ConnectResponse(0, timeout_ms, session, password, flag))
        self.finish()

    def _flag_for(self, request: ConnectRequest) -> bool | None:
        """The read-only flag of the response: a client that sends none gets none."""
        return None if request.read_only is None else self.server.is_read_only

    def _respond(self, response: ConnectResponse) -> None:
        self._send(self._wire.accept(response))

    def _answer_word(self, word: Word) -> None:
        self._send(words.answer(self.server, word.name).encode())
        self.hang_up("a four-letter word was answered")

    # --- what is sent ------------------------------------------------------------------

    def answer(
        self, request: Request, error: int = 0, *, body: bytes = b"", zxid: int | None = None
    ) -> None:
        """Send the answer to a request; without a zxid, the last one that the server has."""
        server = self.server
        if self._dropped and (loss := self._dropped.pop(request.xid, None)) is not None:
            loss.count_effect("replies lost", 1)
            self.hang_up("the answer was lost on purpose")
            return
        shown = server.tree.zxid if zxid is None else zxid
        self.last_zxid = shown
        self.last_opcode = request.opcode
        server.statistics.answered(self._received_ms)
        server.ensemble.recorder.answered(self, request, error, shown)
        self._send(frame(encode_reply(request.xid, shown, error, body)))

    def drop_answer(self, request: Request, loss: Loss) -> None:
        """Execute a request and lose its answer together with the connection."""
        self._dropped[request.xid] = loss
        handle(self, request)

    def notify(self, event: Fired, zxid: int) -> None:
        """Send a watch event."""
        self.server.ensemble.recorder.fired(self, event, zxid)
        self._send(frame(encode_event(zxid, event)))

    def _send(self, data: bytes) -> None:
        if self.is_closed:
            return
        if not self._out:
            self.server.ensemble.will_flush(self)
        self._out.append(data)
        self._out_bytes += len(data)
        self.sent += 1
        if self._out_bytes > MOST_COLLECTED_BYTES:
            self.flush()  # many large answers to small requests must not fill the memory

    def flush(self) -> None:
        """Send what was collected, in one piece."""
        if not self._out:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._out_bytes = 0
        if self._outbound is not None:
            self._outbound.send(lambda: self.transport.write(data))
            return
        self.transport.write(data)
        most = self.server.ensemble.settings.most_unread_bytes
        if self.transport.get_write_buffer_size() > most:
            self._end(f"the client has left more than {most:,} bytes unread")
            self.transport.abort()

    def delay(self, by_ms: float) -> None:
        """From now on, deliver everything so much later, in both directions; 0 ends that."""
        clock = self.server.ensemble.clock
        self._inbound = self._inbound or DelayLine(clock)
        self._outbound = self._outbound or DelayLine(clock)
        for line in (self._inbound, self._outbound):
            line.delay_ms = by_ms
            if not by_ms:
                line.hurry()

    # --- the end -----------------------------------------------------------------------

    def hang_up(self, reason: str) -> None:
        """Close the connection once everything written has been sent."""
        if not self.is_closed:
            self.flush()
            self._end(reason)
            if self._outbound is not None:
                self._outbound.send(self.transport.close)
            else:
                self.transport.close()

    def vanish(self) -> None:
        """The server's process dies: nothing more is sent or executed."""
        self._out.clear()
        self._waiting.clear()
        if not self.is_closed:
            self._end("the server was killed")
            self.transport.abort()

    def closed_by_client(self) -> None:
        """The client has closed the connection; what it has sent takes effect all the same."""
        if not self.is_closed:
            self._out.clear()
            self._end("the client has closed it")

    def _end(self, reason: str) -> None:
        self.is_closed = True
        self._silence.cancel()
        self.server.forget(self)
        self.server.ensemble.recorder.closed(self, reason)
