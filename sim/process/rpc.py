"""Requests to simulated brokers: connections that are made, kept and broken, as TCP does it.

A connection belongs to the task that calls. What is sent over it arrives in order; while
the link is cut it is held up, and arrives when the link heals. A broker's process that ends
has its connections reset by its kernel. A host that is lost resets nothing: what is sent to
it vanishes, until a host is there again which knows nothing of the connection and resets it.

A produce request of 0.7 has no response: it is answered as soon as the connection has taken
it. So one that was sent to a broker that has just died is lost without a word. The same goes for
one of 0.8 with acks 0. A client of 0.8 learns with its next request that its connection was reset
meanwhile.

A connection takes no more of what its broker has not read than the buffers on both sides hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from watchkeeper.model.actor.rpc import (
    Call,
    CallError,
    CallFailure,
    Disconnected,
    TimedOut,
    Unreachable,
)
from watchkeeper.model.log.format.frames import size_on_wire
from watchkeeper.model.log.format.requests import RESPONSES
from watchkeeper.model.replication.requests import BrokerRequest
from watchkeeper.model.wire_08.client_request import ClientRequest
from watchkeeper.model.wire_08.table import knows
from watchkeeper.sim.disk.host_costs import Caller
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.zookeeper.network import Network, Wire

Reply = Callable[[Any], object]
CONNECT_WITHIN_MS = 5_000
"""`connect.timeout.ms` as it is shipped."""
SEND_BUFFER_BYTES = 100 << 10
"""Of a connection whose client sets no other."""
RECEIVE_BUFFER_BYTES = 28 << 10
"""What a broker's side of a connection holds of what the broker has not read."""


def _size_of(request: Any) -> int:
    if isinstance(request, BrokerRequest):
        return request.size_bytes
    if isinstance(request, ClientRequest):
        return size_on_wire(request.request) + len(request.client_id)
    return size_on_wire(request)


def _has_response(request: Any) -> bool:
    """Whether a broker answers: it does not if it is to append without acknowledgement."""
    if isinstance(request, ClientRequest):
        return request.has_response
    return type(request) in RESPONSES or isinstance(request, BrokerRequest) or knows(request)


class Port(Protocol):
    """Where a broker listens."""

    @property
    def node(self) -> str:
        """Whose it is."""

    def arrived(self, link: Link) -> None:
        """A request has arrived over a connection."""


class _Pending:
    """A request whose response has not come."""

    __slots__ = ("_kernel", "_reply", "is_over")

    def __init__(self, kernel: Kernel, reply: Reply) -> None:
        self._kernel = kernel
        self._reply = reply
        self.is_over = False

    def answer(self, answer: Any) -> None:
        """Answer once, at this moment, but after the task that runs now."""
        if not self.is_over:
            self.is_over = True
            self._kernel.at(self._kernel.now_us, self._reply, answer)


class Link:
    """A connection, from its caller to a broker's process."""

    def __init__(
        self,
        network: Network,
        client: str,
        address: str,
        port: Port,
        *,
        send_buffer_bytes: int | None = None,
    ) -> None:
        self.client = client
        self.address = address
        self.port: Port | None = port
        """Who is at the other end; None once that process is gone."""
        self.is_open = True
        """As far as the caller knows."""
        self.was_reset_idle = False
        """Whether its end came while nothing was sent over it: the next request finds out."""
        self.inbox: deque[tuple[Any, int]] = deque()
        """Requests that the broker has not begun to read, each with its size."""
        self.is_served = False
        self._up = Wire(network, client, port.node)
        self._down = Wire(network, port.node, client)
        self._pending: deque[_Pending] = deque()
        self._unread_bytes = 0
        self._holds_bytes = RECEIVE_BUFFER_BYTES + (send_buffer_bytes or SEND_BUFFER_BYTES)
        self._waiting: deque[tuple[Any, int, _Pending]] = deque()
        """What the connection could not take yet."""

    # --- the caller's side -------------------------------------------------------------

    def send(self, request: Any, pending: _Pending) -> None:
        """Send a request, as soon as there is room for it."""
        self._waiting.append((request, _size_of(request), pending))
        self._take()

    def _take(self) -> None:
        while self._waiting and self.is_open:
            request, size, pending = self._waiting[0]
            if self._unread_bytes and self._unread_bytes + size > self._holds_bytes:
                return
            self._waiting.popleft()
            self._unread_bytes += size
            self._up.send(self._deliver, (request, size))
            if _has_response(request):
                self._pending.append(pending)
            else:
                pending.answer(None)

    def end(self, kind: type[CallError]) -> None:
        """End it for the caller: every pending request fails."""
        self.is_open = False
        waiting = [*self._pending, *(pending for _, _, pending in self._waiting)]
        self._pending.clear()
        self._waiting.clear()
        for pending in waiting:
            pending.answer(CallFailure(kind, self.address))

    def fails(self, request: Any) -> bool:
        """Whether a request finds out that the connection was reset before.

        Those of 0.7 and those between brokers connect again without an error.
        """
        return self.was_reset_idle and isinstance(request, ClientRequest)

    def give_up(self, pending: _Pending) -> None:
        """No response has come in time: whatever comes later would be taken for another's."""
        if not pending.is_over:
            self.hang_up()
            self.end(TimedOut)

    def hang_up(self) -> None:
        """Close it from this side."""
        if self.is_open:
            self.is_open = False
            self._up.send(self._hung_up, None)

    # --- the broker's side -------------------------------------------------------------

    def _deliver(self, sent: tuple[Any, int]) -> None:
        if self.port is None:
            return
        self.inbox.append(sent)
        self.port.arrived(self)

    def _hung_up(self, _: Any) -> None:
        self.port = None

    def read(self, size_bytes: int) -> None:
        """The broker has read so much."""
        self._unread_bytes -= size_bytes
        self._down.send(self._room, None)

    def _room(self, _: Any) -> None:
        self._take()

    def respond(self, response: Any) -> None:
        """Send the response to the oldest request that has none."""
        self._down.send(self._responded, response)

    def _responded(self, response: Any) -> None:
        if self._pending:
            self._pending.popleft().answer(response)

    def reset(self) -> None:
        """Reset the connection: the process at the other end is gone."""
        self.port = None
        self.inbox.clear()
        self._down.send(self._was_reset, None)

    def _was_reset(self, _: Any) -> None:
        if self.is_open:
            self.was_reset_idle = not self._pending and not self._waiting
            self.end(Disconnected)


class Calls:
    """Who listens where, and all connections."""

    def __init__(self, kernel: Kernel, network: Network) -> None:
        self.kernel = kernel
        self.network = network
        self._ports: dict[str, Port] = {}
        self._behind: dict[str, dict[str, None]] = {}
        """Address of a balancer -> those to which it deals out connections, in turn."""
        self._lost: dict[str, None] = {}
        """Addresses of lost hosts: no packet comes back from there."""
        self._links: dict[tuple[Caller, str], Link] = {}

    # --- who listens -------------------------------------------------------------------

    def deal_out(self, balancer: str, address: str) -> None:
        """Let a balancer deal out connections to this address as well."""
        self._behind.setdefault(balancer, {})[address] = None

    def _dealt(self, address: str) -> str:
        """Where a connection to an address goes: a balancer takes the next that listens."""
        behind = self._behind.get(address, {})
        for port in list(behind):
            del behind[port]
            behind[port] = None
            if port in self._ports:
                return port
        return address

    def listen(self, address: str, port: Port) -> None:
        """A broker's process listens from now on; what was connected before it is reset."""
        self._lost.pop(address, None)
        self._reset(address)
        self._ports[address] = port

    def close(self, address: str, *, is_host_lost: bool) -> None:
        """Let no process listen here any more."""
        self._ports.pop(address, None)
        if is_host_lost:
            self._lost[address] = None
            for link in self._links.values():
                if link.address == address:
                    link.port = None
        else:
            self._reset(address)

    def _reset(self, address: str) -> None:
        for link in list(self._links.values()):
            if link.address == address:
                link.reset()

    # --- calling -----------------------------------------------------------------------

    def call(self, node: Node, caller: Caller, effect: Call, reply: Reply) -> None:
        """Send a request, over the connection there is or over a new one."""
        pending = _Pending(self.kernel, reply)
        link = self._links.get((caller, effect.address))
        if link is not None and link.is_open:
            self._send(link, effect, pending)
        elif link is not None and link.fails(effect.request):
            del self._links[caller, effect.address]
            pending.answer(CallFailure(Disconnected, effect.address))
        else:
            self._connect(node, caller, effect, pending)

    def _send(self, link: Link, effect: Call, pending: _Pending) -> None:
        link.send(effect.request, pending)
        if not pending.is_over:
            self.kernel.after(effect.timeout_ms * 1000, link.give_up, pending)

    def _connect(self, node: Node, caller: Caller, effect: Call, pending: _Pending) -> None:
        """Connect in one round trip; no answer comes from a host that cannot be reached."""
        address = self._dealt(effect.address)
        port = self._ports.get(address)
        hidden = port is not None and self.network.stops_fetch(node.name, port.node)
        if hidden or (port is None and address in self._lost):
            patience_ms = min(CONNECT_WITHIN_MS, effect.timeout_ms)
            self.kernel.after(patience_ms * 1000, self._refuse, (effect, pending))
            return
        there_and_back = self.network.hop_us() + self.network.hop_us()
        self.kernel.after(
            there_and_back, self._connected, (node, caller, effect, address, pending)
        )

    def _connected(self, made: tuple[Node, Caller, Call, str, _Pending]) -> None:
        node, caller, effect, address, pending = made
        port = self._ports.get(address)
        if port is None:
            self._refuse((effect, pending))
            return
        link = Link(
            self.network, node.name, address, port, send_buffer_bytes=effect.send_buffer_bytes
        )
        self._links[caller, effect.address] = link
        self._send(link, effect, pending)

    def _refuse(self, refused: tuple[Call, _Pending]) -> None:
        effect, pending = refused
        pending.answer(CallFailure(Unreachable, effect.address))

    # --- hanging up --------------------------------------------------------------------

    def hang_up(self, caller: Caller, address: str) -> None:
        """Close the connection to an address, if there is one."""
        link = self._links.pop((caller, address), None)
        if link is not None:
            link.hang_up()

    def hang_up_all(self, caller: Caller) -> None:
        """Close every connection of a task that is over."""
        for peer, address in list(self._links):
            if peer is caller:
                self.hang_up(peer, address)
