"""The links between the brokers of a live cluster, each of which can be cut.

    links = Links({"broker/0": "127.0.0.1:20001", "broker/1": "127.0.0.1:20002"})
    cut = links.cut("broker/0", ["broker/1"], effect.add)

Every broker has an address of its own for every other one. What it sends there passes through
the proxy, which knows no difference between the frames of brokers and those of ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from watchkeeper.real.proxy.proxy import BOTH, ActiveFault, Proxy
from watchkeeper.real.proxy.valve import CountEffect, Direction

OPPOSITE: dict[Direction, Direction] = {"to": "from", "from": "to"}


class Links:
    """The links of one cluster."""

    def __init__(self, listening: Mapping[str, str]) -> None:
        """`listening` has the address of each broker on this machine."""
        self._listening = dict(listening)
        self._proxy = Proxy(tuple(self._listening.values()))
        self._proxy.start()
        self.routes = {node: self._routes_of(node) for node in self._listening}
        """Broker -> address of another one -> where it connects to instead."""

    def _routes_of(self, node: str) -> dict[str, str]:
        hosts = self._proxy.hosts_of(node).split(",")
        return dict(zip(self._listening.values(), hosts, strict=True))

    def cut(
        self,
        node: str,
        others: Iterable[str],
        count_effect: CountEffect,
        *,
        directions: Iterable[Direction] = BOTH,
    ) -> ActiveFault:
        """Hold up what passes between a broker and others, in directions as seen from it."""
        faults = []
        for other in others:
            for direction in directions:
                faults.append(self._cut(node, other, count_effect, direction))
                faults.append(self._cut(other, node, count_effect, OPPOSITE[direction]))

        def end() -> None:
            for fault in faults:
                fault.end()

        return ActiveFault(end)

    def _cut(
        self, client: str, server: str, count_effect: CountEffect, direction: Direction
    ) -> ActiveFault:
        """Cut one direction of the connections that one broker opens to another."""
        servers = [self._listening[server]]
        return self._proxy.cut(client, count_effect, directions=[direction], servers=servers)

    def stop(self) -> None:
        """Close every connection."""
        self._proxy.stop()
