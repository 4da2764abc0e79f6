"""An ensemble in memory: a clock that the test moves, and clients without sockets."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any

from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.ensemble.server import Server
from watchkeeper.model.wire.connect import (
    ConnectRequest,
    ConnectResponse,
    decode_connect_response,
    encode_connect_request,
)
from watchkeeper.model.wire.frames import FrameDecoder, frame
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.replies import Reply, decode_body, decode_event, decode_reply
from watchkeeper.model.wire.requests import PING_XID, encode_request

EVENT_XID = -1
MOST_BYTES = 1 << 24


class ManualTimer:
    """A call that is due at some time."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self._now_ms = 1_000_000.0
        self._calls: list[tuple[float, int, ManualTimer, Callable[[], object]]] = []
        self._numbers = count()

    def now_ms(self) -> float:
        return self._now_ms

    def wall_ms(self) -> int:
        return int(self._now_ms) + 1_700_000_000_000

    def call_later(self, delay_ms: float, call: Callable[[], object]) -> ManualTimer:
        timer = ManualTimer()
        due_ms = self._now_ms + max(delay_ms, 0)
        heapq.heappush(self._calls, (due_ms, next(self._numbers), timer, call))
        return timer

    def advance(self, by_ms: float) -> None:
        """Move the clock, and make the calls that become due, in order."""
        end_ms = self._now_ms + by_ms
        while self._calls and self._calls[0][0] <= end_ms:
            due_ms, _, timer, call = heapq.heappop(self._calls)
            self._now_ms = max(due_ms, self._now_ms)
            if not timer.is_cancelled:
                call()
        self._now_ms = end_ms


class MemoryTransport:
    """The client's end of a connection that needs no socket."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.is_closed = False
        self.reads = True
        self.unread_bytes = 0
        """What the client leaves unread, as the server sees it."""

    def write(self, data: bytes) -> None:
        assert not self.is_closed, "nothing is written after the close"
        self.received += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes


class MemoryClient:
    """A client that sends requests one by one and sees every frame of its server."""

    def __init__(self, server: Server, *, host: str = "127.0.0.1") -> None:
        self.transport = MemoryTransport()
        self.connection = server.accept(self.transport, host)
        self._frames = FrameDecoder(MOST_BYTES)
        self._xids = count(1)
        self.session = 0
        self.password = bytes(16)
        self.events: list[tuple[int, str]] = []
        """The type and path of each watch event."""

    @property
    def is_closed(self) -> bool:
        """Whether the server has closed the connection."""
        return self.transport.is_closed

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.connection is not None, "the server has refused the connection"
        self.connection.receive(data)

    def frames(self) -> list[bytes]:
        """The payloads of the frames that have arrived since the last look."""
        data = bytes(self.transport.received)
        self.transport.received.clear()
        return self._frames.feed(data)

    def connect(
        self,
        *,
        timeout_ms: int = 6000,
        session: int = 0,
        password: bytes = bytes(16),
        last_zxid: int = 0,
        read_only: bool | None = False,
    ) -> ConnectResponse | None:
        """Begin or continue a session; None if the server does not answer."""
        request = ConnectRequest(0, last_zxid, timeout_ms, session, password, read_only)
        self.send_bytes(frame(encode_connect_request(request)))
        frames = self.frames()
        if not frames:
            return None
        response = decode_connect_response(frames[0])
        self.session, self.password = response.session, response.password
        return response

    def send(self, opcode: Opcode, body: Any) -> int:
        """Send a request; returns its xid."""
        xid = PING_XID if opcode is Opcode.PING else next(self._xids)
        self.send_bytes(frame(encode_request(xid, opcode, body)))
        return xid

    def replies(self) -> list[Reply]:
        """The replies that have arrived; watch events go to `events`."""
        replies = []
        for payload in self.frames():
            reply = decode_reply(payload)
            if reply.xid == EVENT_XID:
                event = decode_event(reply.body)
                self.events.append((event.type, event.path))
            else:
                replies.append(reply)
        return replies

    def request(self, opcode: Opcode, body: Any) -> Reply:
        """Send a request and return its reply, which has to be there at once."""
        xid = self.send(opcode, body)
        replies = self.replies()
        assert [reply.xid for reply in replies] == [xid], replies
        return replies[0]

    def result(self, opcode: Opcode, body: Any) -> Any:
        """Send a request that succeeds, and return its decoded answer."""
        reply = self.request(opcode, body)
        assert reply.error == 0, f"error {reply.error}"
        return decode_body(opcode, reply.body)


def started(ensemble: Ensemble, *, server: int = 0, timeout_ms: int = 6000) -> MemoryClient:
    """A client with a new session at one server."""
    client = MemoryClient(ensemble.servers[server])
    assert client.connect(timeout_ms=timeout_ms) is not None
    return client
