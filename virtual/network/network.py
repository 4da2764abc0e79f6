"""The network of a world: addresses, ports, and links that are slow, cut or one-way.

How it works
  A segment (bytes, the end of a stream, a reset, a request to connect) takes the latency of its
  link, drawn for each one, and never overtakes an earlier one of its connection. A cut link
  holds what is sent over it until it heals, since TCP sends again; a connection that is being
  made over it waits as well, until its caller's time is over.

  A process has one address. What the operating system would do for a dead or paused process is
  done: a dead one's connections are closed, a paused one's connections go on receiving.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from random import Random
from typing import TYPE_CHECKING

from watchkeeper.virtual.network.endpoint import Address, Endpoint, Listener

if TYPE_CHECKING:
    from watchkeeper.virtual.network.stream import Stream
    from watchkeeper.virtual.threads.process import Process
    from watchkeeper.virtual.threads.scheduler import Scheduler

LOOPBACK_NS = 15_000
SHORTEST_NS = 120_000
SPREAD_NS = 160_000
TAIL_NS = 2_000_000
TAIL_ONE_IN = 200
FIRST_PORT = 40_000

Latency = Callable[[str, str], int]
"""(from, to) -> how long a segment takes, in nanoseconds."""


class Network:
    """The links and ports of one world."""

    def __init__(self, scheduler: Scheduler, *, latency_ns: Latency | None = None) -> None:
        self.scheduler = scheduler
        self._chance = Random(scheduler.random.getrandbits(64))
        self._latency_ns = latency_ns or self._draw_latency_ns
        self._listeners: dict[Address, Listener] = {}
        self._names: dict[str, str] = {}
        self._cut: set[tuple[str, str]] = set()
        self._extra_ns: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], list[tuple[Endpoint, Callable[[], object]]]] = {}
        self._last_port = FIRST_PORT
        self._last_descriptor = 1_000_000

    def _draw_latency_ns(self, sender: str, receiver: str) -> int:
        if sender == receiver:
            return LOOPBACK_NS
        draw = self._chance.random()
        if draw * TAIL_ONE_IN < 1:
            return SHORTEST_NS + int(draw * TAIL_ONE_IN * TAIL_NS)
        return SHORTEST_NS + int(draw * draw * SPREAD_NS)

    # --- names and numbers -------------------------------------------------------------

    def name(self, host_name: str, address: str) -> None:
        """Let a host name stand for an address."""
        self._names[host_name] = address

    def address_of(self, host: str) -> str | None:
        """The address of a host name or an address; None if there is none of that name."""
        if host in self._names:
            return self._names[host]
        for process in self.scheduler.processes:
            if process.host_name == host:
                return process.address
        if host.replace(".", "").isdigit() and host.count(".") == 3:
            return host
        return None

    def is_known(self, address: str) -> bool:
        """Whether an address is of this network."""
        return (
            address in self._names.values()
            or any(address == process.address for process in self.scheduler.processes)
            or any(address == listening[0] for listening in self._listeners)
        )

    def next_port(self) -> int:
        """A port that no socket has had."""
        self._last_port += 1
        return self._last_port

    def next_descriptor(self) -> int:
        """A file descriptor that no socket has had."""
        self._last_descriptor += 1
        return self._last_descriptor

    def process_at(self, address: str) -> Process | None:
        """The process that has an address."""
        for process in self.scheduler.processes:
            if process.address == address:
                return process
        return None

    # --- ports -------------------------------------------------------------------------

    def listen(self, address: str, port: int, accept: Callable[[Stream], object]) -> None:
        """Let a service without threads accept the connections to a port."""
        from watchkeeper.virtual.network.stream import Stream

        self.add(Listener((address, port), 1, lambda endpoint: accept(Stream(endpoint))))

    def unlisten(self, address: str, port: int) -> None:
        """Accept no more connections to a port."""
        self._listeners.pop((address, port), None)

    def add(self, listener: Listener) -> None:
        """Let a listener have its port; the caller has seen that it is free."""
        self._listeners[listener.local] = listener

    def remove(self, listener: Listener) -> None:
        """Free a listener's port."""
        listener.is_closed = True
        if self._listeners.get(listener.local) is listener:
            del self._listeners[listener.local]
        while listener.pending:
            listener.pending.popleft().abort()

    def listener_at(self, local: Address) -> Listener | None:
        """What listens on a port."""
        return self._listeners.get(local)

    # --- connections -------------------------------------------------------------------

    def connect(self, client: Endpoint, refused: Callable[[], object]) -> None:
        """Make a connection; `client` has a peer once it is made, and is woken."""
        self.carry(client, lambda: self._arrive(client, refused))

    def _arrive(self, client: Endpoint, refused: Callable[[], object]) -> None:
        listener = self._listeners.get(client.remote)
        if client.is_closed:
            return
        server = Endpoint(self, client.remote, client.local)
        if listener is None or len(listener.pending) >= listener.backlog:
            process = self.process_at(client.remote[0])
            if process is None or process.is_alive:
                self.carry(server, refused)
            return
        server.peer = client

        def made() -> None:
            client.peer = server
            if client.is_closed:
                server.take_end()
            client.wake()

        self.carry(server, made)
        if listener.accept is not None:
            listener.accept(server)
        else:
            listener.pending.append(server)
            for task in list(listener.waiters):
                self.scheduler.wake(task)

    def carry(self, sender: Endpoint, arrive: Callable[[], object]) -> None:
        """Carry a segment to the other end; `arrive` is called there."""
        if sender.is_paired:
            arrive()
            return
        link = sender.link
        if self._cut and link in self._cut:
            self._held.setdefault(link, []).append((sender, arrive))
            return
        scheduler = self.scheduler
        due_ns = scheduler.now_ns + self._latency_ns(link[0], link[1])
        if self._extra_ns:
            due_ns += self._extra_ns.get(link, 0)
        if due_ns <= sender.due_ns:
            due_ns = sender.due_ns + 1
        sender.due_ns = due_ns
        calendar = scheduler.calendar
        calendar.added = number = calendar.added + 1
        heappush(calendar.entries, (due_ns, number, arrive))

    # --- faults ------------------------------------------------------------------------

    def cut(self, a: str, b: str, *, one_way: bool = False) -> None:
        """Let nothing pass from one address to another; and nothing back, unless one way."""
        self._cut.add((a, b))
        if not one_way:
            self._cut.add((b, a))

    def heal(self, a: str, b: str) -> None:
        """End a cut; what waited is carried now."""
        for link in ((a, b), (b, a)):
            self._cut.discard(link)
            for sender, arrive in self._held.pop(link, ()):
                self.carry(sender, arrive)

    def delay(self, a: str, b: str, extra_ns: int) -> None:
        """Let each segment between two addresses take so much longer; 0 ends that."""
        for link in ((a, b), (b, a)):
            if extra_ns:
                self._extra_ns[link] = extra_ns
            else:
                self._extra_ns.pop(link, None)
