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
        self.tap = way.guest.tap
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
            guest = self.way.guest
            await guest.loop.create_connection(
                lambda: self.server, host.strip("[]"), int(port), ssl=guest.tls
            )
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

    def strand(self) -> None:
        """Let nothing pass; the server's end stays open, whatever becomes of the client's."""
        self._is_cut_off = True
        self.down.drop()

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
        if self.tap is not None and self._has_asked:
            self.tap.asked(self, frame)
        self._has_asked = True
        self.up.send(frame)

    def _strike(self, loss: Loss, frame: bytes, xid: int) -> None:
        """A request meets what was aimed at it."""
        if loss.what == "reply":
            self._reply_to_lose = (xid, loss)
            if self.tap is not None:
                self.tap.asked(self, frame)
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
            if self.tap is not None and self.session is not None:
                self.tap.let_in(self, self.session)
            self._pass_on(frame)
            return
        if self.tap is not None and not self.server.frames.is_raw:
            self.tap.came(self, frame)
        if self._reply_to_lose is not None or self._ghosts:
            answered = reply_of(frame)
            if answered is not None and self._swallows(*answered):
                return
        self._pass_on(frame)

    def _pass_on(self, frame: bytes) -> None:
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
            newer._send_late(renumbered(frame, xid), xid, tell)
            self.up.finish()
        elif self.server.is_open:
            self._send_late(frame, request.xid, tell)
        else:
            tell("late requests that found their session over", 1)

    def _send_late(self, frame: bytes, xid: int, tell: Tell) -> None:
        self._ghosts[xid] = tell
        if self.tap is not None:
            self.tap.asked(self, frame)
        self.up.send(frame)

    def _give_up_ghosts(self) -> None:
        for tell in self._ghosts.values():
            tell("late requests that found their session over", 1)
        self._ghosts.clear()
