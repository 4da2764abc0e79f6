"""The addresses on this machine behind the addresses that the brokers of a live run announce."""

from __future__ import annotations

from random import SystemRandom

from watchkeeper.real.member.data_plane_file import DataPlaneFile


class AddressMap:
    """Resolves the addresses of brokers, and of the load balancer in front of them.

    Clusters between which messages are sent share no address. The balancer belongs to the first
    cluster and distributes connections round-robin over the brokers that are up. Each process
    has a balancer of its own that starts at a random broker.
    """

    def __init__(
        self, clusters: tuple[DataPlaneFile, ...], balancer: str, node: str = ""
    ) -> None:
        """`node` is the process that connects."""
        self._clusters = clusters
        self._balancer = balancer
        self._node = node
        self._turn = SystemRandom().getrandbits(16)

    def where(self, address: str) -> str:
        """The address on this machine; empty if no broker has ever listened there."""
        states = [cluster.read() for cluster in self._clusters]
        if address == self._balancer:
            address = self._dealt([known for _, known in sorted(states[0].addresses.items())])
        for state in states:
            if address in state.listening:
                found = state.listening[address]
                return state.links.get(self._node, {}).get(found, found)
        return ""

    def _dealt(self, up: list[str]) -> str:
        self._turn += 1
        return up[self._turn % len(up)] if up else ""
