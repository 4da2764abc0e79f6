"""Where the addresses of a live run are on this machine."""

from __future__ import annotations

from random import SystemRandom

from real.cluster import ClusterFile


class Directory:
    """Looks up the addresses that brokers announce, and that of the balancer before them.

    The balancer deals out connections to whoever is up, in turn. Each process has one of its
    own, which begins anywhere.
    """

    def __init__(self, cluster: ClusterFile, balancer: str) -> None:
        self._cluster = cluster
        self._balancer = balancer
        self._turn = SystemRandom().getrandbits(16)

    def where(self, address: str) -> str:
        """Where that is on this machine; empty where nobody has ever listened."""
        state = self._cluster.read()
        if address == self._balancer:
            address = self._dealt([one for _, one in sorted(state.addresses.items())])
        return state.listening.get(address, "")

    def _dealt(self, up: list[str]) -> str:
        self._turn += 1
        return up[self._turn % len(up)] if up else ""
