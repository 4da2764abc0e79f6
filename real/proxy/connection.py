"""One connection of a client to a server, through the proxy.

What is parsed, and why
  The proxy passes bytes on; it parses only as much as its faults need. The first frame of
  each side opens the session, so its reply says which session the connection carries. After
  it, a request has an xid and an opcode: a loss is aimed at a request of the program and not
  at a ping. A reply has the xid that it answers, by which a reply is dropped. A stream that
  does not consist of frames (a four-letter word) is passed on unparsed.

Late requests
  A lost request may still reach the server later, when the client has another connection.
  Its reply comes over a connection that the client did not use, so it is dropped.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, cast

from watchkeeper.model.wire.connect import SessionKey
from watchkeeper.real.proxy.messages import (
    MessageStream,
    head_of,
    renumbered,
    reply_of,
    session_of,
)
from watchkeeper.real.proxy.valve import CountEffect, Flow

if TYPE_CHECKING:
    from watchkeeper.real.proxy.client_route import Loss, ServerRoute

_connection_numbers = count(1)
_late_xids = count(-1000, -1)
"""The xids of late requests on a connection that is not their own; clients use none below -8."""


class Side(asyncio.Protocol):
    """One end of a connection: the client's or the server's."""

    def __init__(self, connection: ProxiedConnection, *, is_client: bool) -> None:
        self.connection = connection
        self.is_client = is_client
        self.frames = MessageStream()
        self.transport: asyncio.Transport | None = None
        self._batch: list[bytes] | None = None
        """Frames to be written together; None while each is written immediately."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio has connected this end."""
        self.transport = cast(asyncio.Transport, transport)
        if self.is_client:
            self.connection.client_connected()
        else:
            self.connection.server_connected()

    def data_received(self, data: bytes) -> None:
        """asyncio has received bytes."""
        connection = self.connection
        handle, other = (
            (connection.from_client, connection.server)
            if self.is_client
            else (connection.from_server, connection.client)
        )
        frames = self.frames.feed(data)
        if len(frames) > 1:
            other._batch = []
        for frame in frames:
            handle(frame)
        other.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """This end was closed, by its peer or by us."""
        self.connection.lost(self)

    def write(self, data: bytes) -> None:
        """Send bytes, unless this end is closed."""
        if self._batch is not None:
            self._batch.append(data)
        elif self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def flush(self) -> None:
        """Send the collected frames in one write."""
        if self._batch is not None:
            data, self._batch = b"".join(self._batch), None
            self.write(data)

    def close(self) -> None:
        """Close this end after everything written has been sent."""
        self.flush()
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close this end immediately."""
        if self.transport is not None:
            self.transport.abort()

    @property
    def is_open(self) -> bool:
        """Whether this end is connected."""
        return self.transport is not None and not self.transport.is_closing()


class ProxiedConnection:
    """The two ends of a connection and the messages between them."""

    def __init__(self, route: ServerRoute) -> None:
        self.route = route
        self.number = next(_connection_numbers)
        self.session: SessionKey | None = None
        """The session that the connection carries, once the server has granted it."""
        self.tap = route.client_route.tap
        loop = route.client_route.loop
        self.client = Side(self, is_client=True)
        self.server = Side(self, is_client=False)
        self.up = Flow(loop, route.valves["to"], self.server.write, self._close_server)
        self.down = Flow(loop, route.valves["from"], self.client.write, self.client.close)
        self._is_begun = False
        self._is_connecting = False
        self._has_sent_connect = False
        """Whether the client has sent its first frame, which opens the session."""
        self._is_answered = False
        self._is_cut_off = False
        """Whether the proxy has closed the connection; no frame of the client passes."""
        self._is_closing_server = False
        """Whether the server's end closes as soon as the tap has seen every answer."""
        self._reply_to_lose: tuple[int, Loss] | None = None
        self._late_requests: dict[int, CountEffect] = {}
        """The late requests that were sent, by xid."""
        self._connecting: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether both ends are connected and messages may pass."""
        return not self._is_cut_off and self.client.is_open and self.server.is_open

    # --- open and close --------------------------------------------------------------------

    def client_connected(self) -> None:
        """A client has connected to the proxy."""
        self.route.connections.append(self)
        self.down.is_ready = True
        if self.route.client_route.refuses():
            self.break_off()
        self.move_on()

    def move_on(self) -> None:
        """Connect to the server if nothing prevents it, and deliver what is no longer held up."""
        if not self._is_begun and not self._is_cut_off and not self.route.is_cut:
            self._is_begun = self._is_connecting = True
            self._connecting = self.route.client_route.loop.create_task(self._connect())
        self.up.move_on()
        self.down.move_on()

    async def _connect(self) -> None:
        host, _, port = self.route.server.rpartition(":")
        try:
            client_route = self.route.client_route
            await client_route.loop.create_connection(
                lambda: self.server, host.strip("[]"), int(port), ssl=client_route.tls
            )
        except OSError:
            self._is_cut_off = True
            self.client.close()
        self._is_connecting = False
        self._remove_if_closed()

    def server_connected(self) -> None:
        """The connection to the server is established."""
        self.up.is_ready = True
        self.up.move_on()

    def lost(self, side: Side) -> None:
        """One end was closed; the other end follows after the messages that are under way."""
        if side is self.server:
            self._fail_late_requests()
            self.down.finish()
        elif self._is_begun and not self._is_cut_off:
            self.up.finish()
        elif not self._is_begun:
            self._is_cut_off = True
        self._remove_if_closed()

    def _remove_if_closed(self) -> None:
        if not (self.client.is_open or self.server.is_open or self._is_connecting):
            self.up.drop()
            self.down.drop()
            if self in self.route.connections:
                self.route.connections.remove(self)

    def break_off(self, *, keeps_server: bool = False) -> None:
        """Close the connection from the middle; `keeps_server` keeps the server's end."""
        if self._is_cut_off:
            return
        self._is_cut_off = True
        self.down.drop()
        self.client.close()
        if not keeps_server:
            self.up.finish()

    def _close_server(self) -> None:
        """Close the server's end after the answers to writes, which only the tap will see."""
        if self.tap is not None and self.tap.is_waiting(self):
            self._is_closing_server = True
        else:
            self.server.close()

    def strand(self) -> None:
        """Let nothing pass, and keep the server's end open whatever happens to the client's."""
        self._is_cut_off = True
        self.down.drop()

    def abort(self) -> None:
        """Close both ends immediately, because the proxy stops."""
        if self._connecting is not None:
            self._connecting.cancel()
        self.up.drop()
        self.down.drop()
        self.client.abort()
        self.server.abort()

    # --- messages --------------------------------------------------------------------------

    def from_client(self, frame: bytes) -> None:
        """Handle a frame of the client: apply a loss, or pass the frame on."""
        if self._is_cut_off:
            return
        # Only a program's request can be lost: the connect request and pings are no operations.
        losses = self.route.client_route.losses
        if losses and self._has_sent_connect and not self.client.frames.is_raw:
            request = head_of(frame)
            if request is not None and request.is_of_program:
                self._apply_loss(losses.pop(0), frame, request.xid)
                return
        if self.tap is not None and self._has_sent_connect:
            self.tap.request_sent(self, frame)
        self._has_sent_connect = True
        self.up.send(frame)

    def _apply_loss(self, loss: Loss, frame: bytes, xid: int) -> None:
        """Apply a loss to a request."""
        if loss.what == "reply":
            self._reply_to_lose = (xid, loss)
            if self.tap is not None:
                self.tap.request_sent(self, frame)
            self.up.send(frame)
            return
        loss.count_effect("requests lost", 1)
        loss.count_effect("connections broken", 1)
        late_s = loss.lands_after_s
        # A client cannot lose a request without losing its connection: TCP would deliver it.
        self.break_off(keeps_server=late_s is not None)
        if late_s is not None:
            self.route.client_route.loop.call_later(
                late_s, self._deliver_late, frame, loss.count_effect
            )

    def from_server(self, frame: bytes) -> None:
        """Handle a frame of the server: drop the reply of a fault, or pass the frame on."""
        if not self._is_answered and not self.server.frames.is_raw:
            self._is_answered = True
            self.session = session_of(frame)
            if self.tap is not None and self.session is not None:
                self.tap.session_granted(self, self.session)
            self._pass_on(frame)
            return
        if self.tap is not None and not self.server.frames.is_raw:
            self.tap.reply_received(self, frame)
            if self._is_closing_server:
                self._close_server()
        if self._reply_to_lose is not None or self._late_requests:
            answered = reply_of(frame)
            if answered is not None and self._drops_reply(answered.xid, answered.error):
                return
        self._pass_on(frame)

    def _pass_on(self, frame: bytes) -> None:
        if not self._is_cut_off:
            self.down.send(frame)

    def _drops_reply(self, xid: int, error: int) -> bool:
        """Whether this reply is dropped instead of passed to the client."""
        if xid in self._late_requests:
            count_effect = self._late_requests.pop(xid)
            count_effect("late requests refused" if error else "late requests landed", 1)
            # The client's end is closed already; the server's end stayed only for this reply.
            if self._is_cut_off and not self._late_requests:
                self.up.finish()
            return True
        if self._reply_to_lose is not None and xid == self._reply_to_lose[0]:
            _, loss = self._reply_to_lose
            self._reply_to_lose = None
            loss.count_effect("replies lost", 1)
            loss.count_effect("connections broken", 1)
            self._is_cut_off = True
            self.down.finish()
            self.up.finish()
            return True
        return False

    # --- late requests ---------------------------------------------------------------------

    def _deliver_late(self, frame: bytes, count_effect: CountEffect) -> None:
        """Send a lost request to ZooKeeper after all.

        In an ensemble, a write that has passed the checks of its server is committed even if its
        session has moved to another connection since. No server accepts it from outside in that
        case, so it is sent over the session's new connection, and its reply is dropped.
        """
        request = head_of(frame)
        assert request is not None, "only requests are lost"
        newer = (
            self.route.client_route.connection_of(self.session)
            if self.session is not None
            else None
        )
        if newer is not None and request.is_write:
            # The new connection may use the same xid for another request.
            xid = next(_late_xids)
            newer._send_late(renumbered(frame, xid), xid, count_effect)
            self.up.finish()
        elif self.server.is_open:
            self._send_late(frame, request.xid, count_effect)
        else:
            count_effect("late requests that found their session over", 1)

    def _send_late(self, frame: bytes, xid: int, count_effect: CountEffect) -> None:
        self._late_requests[xid] = count_effect
        if self.tap is not None:
            self.tap.request_sent(self, frame)
        self.up.send(frame)

    def _fail_late_requests(self) -> None:
        for count_effect in self._late_requests.values():
            count_effect("late requests that found their session over", 1)
        self._late_requests.clear()
