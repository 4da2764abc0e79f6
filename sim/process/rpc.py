"""Requests to simulated brokers: connections that are made, kept and broken, as TCP does it.

A connection belongs to the thread that calls. What is sent over it arrives in order; while
the link is cut it is held up, and arrives when the link heals. A broker's process that ends
has its connections reset by its kernel. A host that is lost resets nothing: what is sent to
it vanishes, until a host is there again which knows nothing of the connection and resets it.

A produce request of 0.7 has no response: it is answered as soon as the connection has taken
it. So one that was sent to a broker that has just died is lost without a word. A connection
takes no more than a socket's buffer of what its broker has not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from model.calls import Call, CallError, CallFailure, Disconnected, TimedOut, Unreachable
from model.log.requests import RESPONSES
from model.log.wire import size_on_wire
from sim.kernel import Kernel, Network, Wire
from sim.machine import Caller
from sim.node import Node

Reply = Callable[[Any], object]
CONNECT_WITHIN_MS = 5_000
"""`connect.timeout.ms` as it is shipped."""
SOCKET_BUFFER_BYTES = 128 << 10


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
        """Answer at this moment, but after whoever is at work now; only once."""
        if not self.is_over:
            self.is_over = True
            self._kernel.at(self._kernel.now_us, self._reply, answer)


class Link:
    """A connection, from its caller to a broker's process."""

    def __init__(self, network: Network, client: str, address: str, port: Port) -> None:
        self.client = client
        self.address = address
        self.port: Port | None = port
        """Who is at the other end; None once that process is gone."""
        self.is_open = True
        """As far as the caller knows."""
        self.inbox: deque[tuple[Any, int]] = deque()
        """Requests that the broker has not begun to read, each with its size."""
        self.is_served = False
        self._up = Wire(network, client, port.node)
        self._down = Wire(network, port.node, client)
        self._pending: deque[_Pending] = deque()
        self._unread_bytes = 0
        self._waiting: deque[tuple[Any, int, _Pending]] = deque()
        """What the connection could not take yet."""

    # --- the caller's side -------------------------------------------------------------

    def send(self, request: Any, pending: _Pending) -> None:
        """Send a request, as soon as there is room for it."""
        self._waiting.append((request, size_on_wire(request), pending))
        self._take()

    def _take(self) -> None:
        while self._waiting and self.is_open:
            request, size, pending = self._waiting[0]
            if self._unread_bytes and self._unread_bytes + size > SOCKET_BUFFER_BYTES:
                return
            self._waiting.popleft()
            self._unread_bytes += size
            self._up.send(self._deliver, (request, size))
            if type(request) in RESPONSES:
                self._pending.append(pending)
            else:
                pending.answer(None)

    def end(self, kind: type[CallError]) -> None:
        """It is over, as far as the caller is concerned; whoever waits is told."""
        self.is_open = False
        waiting = [*self._pending, *(pending for _, _, pending in self._waiting)]
        self._pending.clear()
        self._waiting.clear()
        for pending in waiting:
            pending.answer(CallFailure(kind, self.address))

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
        """Tell the caller that nobody is at the other end any more."""
        self.port = None
        self.inbox.clear()
        self._down.send(self._was_reset, None)

    def _was_reset(self, _: Any) -> None:
        if self.is_open:
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
        """Addresses of hosts that are gone: nobody there says so."""
        self._links: dict[tuple[Caller, str], Link] = {}

    # --- who listens -------------------------------------------------------------------

    def deal_out(self, balancer: str, address: str) -> None:
        """Let a balancer deal out connections to this address as well."""
        self._behind.setdefault(balancer, {})[address] = None

    def _dealt(self, address: str) -> str:
        """Where a connection to an address goes: a balancer takes whoever listens, in turn."""
        behind = self._behind.get(address, {})
        for one in list(behind):
            del behind[one]
            behind[one] = None
            if one in self._ports:
                return one
        return address

    def listen(self, address: str, port: Port) -> None:
        """A broker's process listens from now on; what was connected before it is reset."""
        self._lost.pop(address, None)
        self._reset(address)
        self._ports[address] = port

    def close(self, address: str, *, is_host_lost: bool) -> None:
        """Nobody listens any more."""
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

    def call(self, node: Node, caller: Caller, ask: Call, reply: Reply) -> None:
        """Send a request, over the connection there is or over a new one."""
        pending = _Pending(self.kernel, reply)
        link = self._links.get((caller, ask.address))
        if link is not None and link.is_open:
            self._send(link, ask, pending)
        else:
            self._connect(node, caller, ask, pending)

    def _send(self, link: Link, ask: Call, pending: _Pending) -> None:
        link.send(ask.request, pending)
        if not pending.is_over:
            self.kernel.after(ask.timeout_ms * 1000, link.give_up, pending)

    def _connect(self, node: Node, caller: Caller, ask: Call, pending: _Pending) -> None:
        """One way there and one back; nobody answers from a host that cannot be reached."""
        address = self._dealt(ask.address)
        port = self._ports.get(address)
        hidden = port is not None and self.network.stops_fetch(node.name, port.node)
        if hidden or (port is None and address in self._lost):
            patience_ms = min(CONNECT_WITHIN_MS, ask.timeout_ms)
            self.kernel.after(patience_ms * 1000, self._refuse, (ask, pending))
            return
        there_and_back = self.network.hop_us() + self.network.hop_us()
        self.kernel.after(there_and_back, self._connected, (node, caller, ask, address, pending))

    def _connected(self, made: tuple[Node, Caller, Call, str, _Pending]) -> None:
        node, caller, ask, address, pending = made
        port = self._ports.get(address)
        if port is None:
            self._refuse((ask, pending))
            return
        link = Link(self.network, node.name, address, port)
        self._links[caller, ask.address] = link
        self._send(link, ask, pending)

    def _refuse(self, refused: tuple[Call, _Pending]) -> None:
        ask, pending = refused
        pending.answer(CallFailure(Unreachable, ask.address))

    # --- hanging up --------------------------------------------------------------------

    def hang_up(self, caller: Caller, address: str) -> None:
        """Close the connection to an address, if there is one."""
        link = self._links.pop((caller, address), None)
        if link is not None:
            link.hang_up()

    def hang_up_all(self, caller: Caller) -> None:
        """Close every connection of a thread that is over."""
        for one, address in list(self._links):
            if one is caller:
                self.hang_up(one, address)
