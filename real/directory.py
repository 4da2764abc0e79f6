"""Where the addresses of a live run are on this machine."""

from __future__ import annotations

from random import SystemRandom

from real.cluster import ClusterFile


class Directory:
    """Looks up the addresses that brokers announce, and that of the balancer before them.

    Clusters between which messages are sent have no address in common. The balancer is the first
    one's, and deals out connections to whoever is up, in turn. Each process has one of its own,
    which begins anywhere.
    """

    def __init__(self, clusters: tuple[ClusterFile, ...], balancer: str) -> None:
        self._clusters = clusters
        self._balancer = balancer
        self._turn = SystemRandom().getrandbits(16)

    def where(self, address: str) -> str:
        """Where that is on this machine; empty where nobody has ever listened."""
        states = [one.read() for one in self._clusters]
        if address == self._balancer:
            address = self._dealt([one for _, one in sorted(states[0].addresses.items())])
        return next((one.listening[address] for one in states if address in one.listening), "")

    def _dealt(self, up: list[str]) -> str:
        self._turn += 1
        return up[self._turn % len(up)] if up else ""
