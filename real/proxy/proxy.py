"""A proxy in front of ZooKeeper that injects network faults exactly and countably.

    with Proxy(zookeeper.addresses) as proxy:
        client = KazooClient(proxy.hosts_of("billing/1"))
        proxy.lose_reply("billing/1", effect.add)

Every client has its own route to every server. A fault of a client applies to all its
connections, present and future. A fault counts its effects with the function that it was
given, which is called in the proxy's one thread. When a method returns, the fault is in
force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from ssl import SSLContext
from threading import Thread
from typing import Any, TypeVar

from watchkeeper.model.wire.connect import SessionKey
from watchkeeper.real.ports import HOST, free_ports
from watchkeeper.real.proxy.client_route import ClientRoute, Loss, ServerRoute
from watchkeeper.real.proxy.connection import ProxiedConnection, Side
from watchkeeper.real.proxy.tap import Tap
from watchkeeper.real.proxy.valve import CountEffect, Direction

Result = TypeVar("Result")

TIMEOUT_S = 10.0
BOTH: tuple[Direction, ...] = ("to", "from")


class ActiveFault:
    """A fault that lasts until it is ended."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def end(self) -> None:
        """End the fault. Messages that it held up are delivered; what it has done stays done."""
        self._end()


class Proxy:
    """The proxy: its clients, its thread, and the faults that can be injected."""

    def __init__(
        self, servers: Sequence[str], *, tls: SSLContext | None = None, tap: Tap | None = None
    ) -> None:
        """`servers` are the addresses of the servers.

        With `tls` the proxy speaks TLS to them, and its clients speak plain TCP to the proxy. A
        `tap` records everything that passes.
        """
        self.servers = tuple(servers)
        self.tls = tls
        self.tap = tap
        self._client_routes: dict[str, ClientRoute] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Proxy:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the thread of the proxy."""
        self._thread.start()

    def stop(self) -> None:
        """Close every connection and end the thread."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            for name in tuple(self._client_routes):
                self.forget(name)
            self._do(_run_callbacks())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(TIMEOUT_S)
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the proxy's thread and wait for its result."""
        if not self._loop.is_running():
            work.close()
            raise RuntimeError("the proxy does not run; start it before it is used")
        done: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(TIMEOUT_S)

    # --- clients -----------------------------------------------------------------------

    def hosts_of(self, client: str, servers: Iterable[str] | None = None) -> str:
        """The connection string of a client: its routes to these servers, or to all."""
        routes = self._do(self._open_routes(client)).routes_to(servers)
        return ",".join(f"{HOST}:{route.port}" for route in routes)

    def _client_route(self, client: str) -> ClientRoute:
        try:
            return self._client_routes[client]
        except KeyError:
            known = ", ".join(self._client_routes) or "none"
            raise LookupError(
                f"the proxy has no client {client!r}, but {known}; ask hosts_of({client!r}) first"
            ) from None

    async def _open_routes(self, name: str) -> ClientRoute:
        client_route = self._client_routes.get(name)
        if client_route is None:
            client_route = ClientRoute(name, self._loop, tls=self.tls, tap=self.tap)
            for server, port in zip(self.servers, free_ports(len(self.servers)), strict=True):
                route = ServerRoute(client_route, server, port)
                route.listener = await self._loop.create_server(_accept_on(route), HOST, port)
                client_route.routes.append(route)
            self._client_routes[name] = client_route
        return client_route

    def forget(self, client: str) -> None:
        """Close the connections of a client and its listening ports."""
        self._do(self._forget(self._client_route(client)))

    async def _forget(self, client_route: ClientRoute) -> None:
        del self._client_routes[client_route.name]
        for route in client_route.routes:
            if route.listener is not None:
                route.listener.close()
        for connection in tuple(client_route.connections):
            connection.abort()

    def session_of(self, client: str) -> SessionKey | None:
        """The session of a client's newest open connection; None without one."""
        return self._do(self._session_of(self._client_route(client)))

    async def _session_of(self, client_route: ClientRoute) -> SessionKey | None:
        connection = client_route.connection_of(None)
        return None if connection is None else connection.session

    # --- faults ------------------------------------------------------------------------

    def disconnect(self, client: str, count_effect: CountEffect, *, for_s: float = 0.0) -> None:
        """Close a client's connections now, and refuse new ones for `for_s` seconds."""
        self._do(self._disconnect(self._client_route(client), count_effect, for_s))

    async def _disconnect(
        self, client_route: ClientRoute, count_effect: CountEffect, for_s: float
    ) -> None:
        client_route.refusals.append((self._loop.time() + for_s, count_effect))
        for connection in tuple(client_route.connections):
            if connection.is_open:
                count_effect("connections broken", 1)
            connection.break_off()

    def strand(self, client: str, count_effect: CountEffect) -> None:
        """Make a client's machine vanish: nothing passes, and no server sees a close.

        Messages that are under way still arrive. The caller has to kill the client itself.
        """
        self._do(self._strand(self._client_route(client), count_effect))

    async def _strand(self, client_route: ClientRoute, count_effect: CountEffect) -> None:
        for connection in tuple(client_route.connections):
            if connection.is_open:
                count_effect("connections left open", 1)
            connection.strand()

    def cut(
        self,
        client: str,
        count_effect: CountEffect,
        *,
        directions: Iterable[Direction] = BOTH,
        servers: Iterable[str] | None = None,
    ) -> ActiveFault:
        """Hold up all messages to ZooKeeper, from it, or both, until the cut ends.

        Connections that the client opens meanwhile are established when the cut ends, unless the
        client has given them up by then.
        """
        client_route = self._client_route(client)
        cut = _Cut(client_route.routes_to(servers), tuple(directions), count_effect)
        self._do(cut.begin())
        return ActiveFault(lambda: self._do(cut.end()))

    def delay(
        self,
        client: str,
        count_effect: CountEffect,
        *,
        by_s: float,
        servers: Iterable[str] | None = None,
    ) -> ActiveFault:
        """Delay every message by `by_s` seconds in each direction."""
        client_route = self._client_route(client)
        delay = _Delay(client_route.routes_to(servers), by_s, count_effect)
        self._do(delay.begin())
        return ActiveFault(lambda: self._do(delay.end()))

    def lose_request(
        self, client: str, count_effect: CountEffect, *, lands_after_s: float | None = None
    ) -> ActiveFault:
        """Lose the next request and its connection; it may reach the server later."""
        return self._arm(self._client_route(client), Loss("request", count_effect, lands_after_s))

    def lose_reply(self, client: str, count_effect: CountEffect) -> ActiveFault:
        """Lose the reply to the next request, and then its connection."""
        return self._arm(self._client_route(client), Loss("reply", count_effect))

    def _arm(self, client_route: ClientRoute, loss: Loss) -> ActiveFault:
        async def arm() -> None:
            client_route.losses.append(loss)

        async def disarm() -> None:
            if loss in client_route.losses:
                client_route.losses.remove(loss)

        self._do(arm())
        return ActiveFault(lambda: self._do(disarm()))


class _Cut:
    """Holds up all messages on these routes in these directions."""

    def __init__(
        self,
        routes: list[ServerRoute],
        directions: tuple[Direction, ...],
        count_effect: CountEffect,
    ) -> None:
        self.routes = routes
        self.valves = [route.valves[direction] for route in routes for direction in directions]
        self.count_effect = count_effect

    async def begin(self) -> None:
        for valve in self.valves:
            valve.cuts.append(self.count_effect)

    async def end(self) -> None:
        for valve in self.valves:
            if self.count_effect in valve.cuts:
                valve.cuts.remove(self.count_effect)
        for route in self.routes:
            route.move_on()


class _Delay:
    """Delays all messages on these routes."""

    def __init__(self, routes: list[ServerRoute], by_s: float, count_effect: CountEffect) -> None:
        self.valves = [valve for route in routes for valve in route.valves.values()]
        self.entry = (by_s, count_effect)

    async def begin(self) -> None:
        for valve in self.valves:
            valve.delays.append(self.entry)

    async def end(self) -> None:
        for valve in self.valves:
            if self.entry in valve.delays:
                valve.delays.remove(self.entry)


def _accept_on(route: ServerRoute) -> Callable[[], Side]:
    """The protocol factory for the connections of a route."""
    return lambda: ProxiedConnection(route).client


async def _run_callbacks() -> None:
    """Let asyncio run the callbacks of the closed connections."""
    for _ in range(3):
        await asyncio.sleep(0)
