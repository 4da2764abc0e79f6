"""A proxy in front of ZooKeeper that can be told to do harm, exactly and countably.

    with Proxy(zookeeper.addresses) as proxy:
        client = KazooClient(proxy.hosts_of("billing/1"))
        proxy.lose_reply("billing/1", effect.add)

Every client has its own way to every server. What is done to a client is done to all its
connections, the present and the later ones; each fault counts its effects with the
function it was given, from the proxy's one thread. When a method returns, the fault is in
force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from ssl import SSLContext
from threading import Thread
from typing import Any, TypeVar

from real.flow import Direction, Tell
from real.guest import Guest, Loss, Way
from real.link import Link, Side
from real.ports import HOST, free_ports
from real.tap import Tap
from real.wire import Session

Result = TypeVar("Result")

PATIENCE_S = 10.0
BOTH: tuple[Direction, ...] = ("to", "from")


class Standing:
    """A fault that stands until it is ended."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def end(self) -> None:
        """Undo it. What it held up goes on its way; what has struck already has struck."""
        self._end()


class Proxy:
    """The proxy's clients, its thread, and what can be done to whom."""

    def __init__(
        self, servers: Sequence[str], *, tls: SSLContext | None = None, tap: Tap | None = None
    ) -> None:
        """Stand in front of servers, given by their addresses.

        With `tls` the proxy speaks TLS to them, and its clients speak plainly to the
        proxy. A tap is told of all that passes.
        """
        self.servers = tuple(servers)
        self.tls = tls
        self.tap = tap
        self._guests: dict[str, Guest] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Proxy:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Close every connection and be gone."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            for name in tuple(self._guests):
                self.forget(name)
            self._do(_settle())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Let something be done in the proxy's thread, and wait until it has been."""
        if not self._loop.is_running():
            work.close()
            raise RuntimeError("the proxy does not run; start it before it is used")
        done: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(PATIENCE_S)

    # --- clients -----------------------------------------------------------------------

    def hosts_of(self, client: str, servers: Iterable[str] | None = None) -> str:
        """Where a client finds ZooKeeper: the addresses of its ways to (these) servers."""
        ways = self._do(self._welcome(client)).ways_to(servers)
        return ",".join(f"{HOST}:{way.port}" for way in ways)

    def _guest(self, client: str) -> Guest:
        try:
            return self._guests[client]
        except KeyError:
            known = ", ".join(self._guests) or "none"
            raise LookupError(
                f"the proxy has no client {client!r}, but {known}; ask hosts_of({client!r}) first"
            ) from None

    async def _welcome(self, name: str) -> Guest:
        guest = self._guests.get(name)
        if guest is None:
            guest = Guest(name, self._loop, tls=self.tls, tap=self.tap)
            for server, port in zip(self.servers, free_ports(len(self.servers)), strict=True):
                way = Way(guest, server, port)
                way.listener = await self._loop.create_server(_door(way), HOST, port)
                guest.ways.append(way)
            self._guests[name] = guest
        return guest

    def forget(self, client: str) -> None:
        """Close what a client has open, and its ways."""
        self._do(self._forget(self._guest(client)))

    async def _forget(self, guest: Guest) -> None:
        del self._guests[guest.name]
        for way in guest.ways:
            if way.listener is not None:
                way.listener.close()
        for link in tuple(guest.links):
            link.abort()

    def session_of(self, client: str) -> Session | None:
        """The session of a client's newest connection; None if it has none that is open."""
        return self._do(self._session_of(self._guest(client)))

    async def _session_of(self, guest: Guest) -> Session | None:
        link = guest.link_of(None)
        return None if link is None else link.session

    # --- faults ------------------------------------------------------------------------

    def disconnect(self, client: str, tell: Tell, *, for_s: float = 0.0) -> None:
        """Close a client's connections now, and turn it away for so long."""
        self._do(self._disconnect(self._guest(client), tell, for_s))

    async def _disconnect(self, guest: Guest, tell: Tell, for_s: float) -> None:
        guest.refusals.append((self._loop.time() + for_s, tell))
        for link in tuple(guest.links):
            if link.is_open:
                tell("connections broken", 1)
            link.break_off()

    def strand(self, client: str, tell: Tell) -> None:
        """Lose the client's machine: nothing passes any more, and no server sees a close.

        Whatever is sent on its way still arrives. The client itself has to be killed.
        """
        self._do(self._strand(self._guest(client), tell))

    async def _strand(self, guest: Guest, tell: Tell) -> None:
        for link in tuple(guest.links):
            if link.is_open:
                tell("connections left open", 1)
            link.strand()

    def cut(
        self,
        client: str,
        tell: Tell,
        *,
        directions: Iterable[Direction] = BOTH,
        servers: Iterable[str] | None = None,
    ) -> Standing:
        """Hold up everything to ZooKeeper, from it, or both; it arrives when the cut ends.

        Connections that the client tries to make meanwhile are made when the cut ends, if
        it has not given them up by then.
        """
        guest = self._guest(client)
        cut = _Cut(guest.ways_to(servers), tuple(directions), tell)
        self._do(cut.begin())
        return Standing(lambda: self._do(cut.end()))

    def delay(
        self, client: str, tell: Tell, *, by_s: float, servers: Iterable[str] | None = None
    ) -> Standing:
        """Let every message take longer, each way."""
        guest = self._guest(client)
        delay = _Delay(guest.ways_to(servers), by_s, tell)
        self._do(delay.begin())
        return Standing(lambda: self._do(delay.end()))

    def lose_request(
        self, client: str, tell: Tell, *, lands_after_s: float | None = None
    ) -> Standing:
        """Lose the next request and its connection; it may reach the server later."""
        return self._aim(self._guest(client), Loss("request", tell, lands_after_s))

    def lose_reply(self, client: str, tell: Tell) -> Standing:
        """Lose the reply to the next request, and then its connection."""
        return self._aim(self._guest(client), Loss("reply", tell))

    def _aim(self, guest: Guest, loss: Loss) -> Standing:
        async def arm() -> None:
            guest.losses.append(loss)

        async def disarm() -> None:
            if loss in guest.losses:
                guest.losses.remove(loss)

        self._do(arm())
        return Standing(lambda: self._do(disarm()))


class _Cut:
    """Nothing passes on these ways in these directions."""

    def __init__(self, ways: list[Way], directions: tuple[Direction, ...], tell: Tell) -> None:
        self.ways = ways
        self.valves = [way.valves[one] for way in ways for one in directions]
        self.tell = tell

    async def begin(self) -> None:
        for valve in self.valves:
            valve.cuts.append(self.tell)

    async def end(self) -> None:
        for valve in self.valves:
            if self.tell in valve.cuts:
                valve.cuts.remove(self.tell)
        for way in self.ways:
            way.move_on()


class _Delay:
    """Everything takes longer on these ways."""

    def __init__(self, ways: list[Way], by_s: float, tell: Tell) -> None:
        self.valves = [valve for way in ways for valve in way.valves.values()]
        self.entry = (by_s, tell)

    async def begin(self) -> None:
        for valve in self.valves:
            valve.delays.append(self.entry)

    async def end(self) -> None:
        for valve in self.valves:
            if self.entry in valve.delays:
                valve.delays.remove(self.entry)


def _door(way: Way) -> Callable[[], Side]:
    """What welcomes each connection that is made on a way."""
    return lambda: Link(way).client


async def _settle() -> None:
    """Let the ends that were closed be told so."""
    for _ in range(3):
        await asyncio.sleep(0)
