"""The network between clients and servers: wires with latency, cuts and delays.

A message on a wire takes one hop of latency and never overtakes an earlier one, as in TCP.
While a link is cut, its messages are held back and sent when it heals. Faults on a link
count every message that they affect.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from typing import Any, Protocol

from simpy.events import NORMAL

from watchkeeper.model.plan.faults import FaultEffect
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.engine.random_streams import steps_of


class Resting(Protocol):
    """Something that is not simulated step by step while nothing can come of a step."""

    def wake(self) -> None:
        """Simulate each step from now on."""


class Network:
    """The links of a run: which are cut, which are slow, and the latency of a hop."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        latency = kernel.streams("latency")
        self.hop_us = latency.sampler(kernel.profile.hop)
        """Draws a latency, one way."""
        self.bits = latency.bits
        self.hops = steps_of(kernel.profile.hop)
        """What `hop_us` draws with and from, for the two places that draw most of them."""
        self.sync_us = latency.sampler(kernel.profile.sync)
        """Draws how long a log takes to its disk."""
        self.cuts: dict[tuple[str, str], list[FaultEffect]] = {}
        """(from, to) -> the partitions that keep anything from passing."""
        self.delays: dict[str, tuple[int, FaultEffect]] = {}
        """Node -> how much longer everything takes that it sends or receives."""
        self.pulses: dict[Resting, None] = {}
        """The pulses of all clients that are connected."""
        self.resting_fetchers: dict[Resting, None] = {}
        """The fetchers whose rounds find nothing."""
        self.servers_paused = 0
        self._held: dict[tuple[str, str], list[tuple[Wire, Callable[[Any], object], Any]]] = {}

    @property
    def is_calm(self) -> bool:
        """Whether no fault is at work on any link, and no server stands still."""
        return not self.cuts and not self.delays and not self.servers_paused

    def wake_pulses(self) -> None:
        """The calm is over: from now on it matters which ping is answered."""
        for pulse in list(self.pulses):
            pulse.wake()

    def wake_fetchers(self) -> None:
        """From now on a round of a fetcher may find something, or no broker."""
        for fetcher in list(self.resting_fetchers):
            fetcher.wake()

    def slow_down(self, node: str, by_us: int, effect: FaultEffect) -> None:
        """Let everything that a node sends or receives take longer."""
        self.delays[node] = (by_us, effect)
        self.wake_pulses()

    def pause_server(self) -> None:
        """A server stands still."""
        self.servers_paused += 1
        self.wake_pulses()

    def is_cut(self, sender: str, receiver: str) -> bool:
        """Whether nothing passes from one to the other."""
        return bool(self.cuts) and (sender, receiver) in self.cuts

    def stops_fetch(self, consumer: str, broker: str) -> bool:
        """Whether a fetch or its answer cannot pass. What stops it counts that."""
        stopped = self.is_cut(consumer, broker) or self.is_cut(broker, consumer)
        if stopped:
            pair = (consumer, broker) if self.is_cut(consumer, broker) else (broker, consumer)
            for effect in self.cuts[pair]:
                effect.add("fetches stopped")
        return stopped

    def cut(self, sender: str, receiver: str, effect: FaultEffect) -> None:
        """Let nothing pass from now on."""
        self.cuts.setdefault((sender, receiver), []).append(effect)
        self.wake_pulses()
        self.wake_fetchers()

    def heal(self, sender: str, receiver: str, effect: FaultEffect) -> None:
        """Undo one cut. What was sent meanwhile arrives now, as TCP sends it again."""
        others = [cut for cut in self.cuts.get((sender, receiver), []) if cut is not effect]
        if others:
            self.cuts[sender, receiver] = others
            return
        self.cuts.pop((sender, receiver), None)
        for wire, call, argument in self._held.pop((sender, receiver), []):
            wire.send(call, argument)

    def hold(self, wire: Wire, call: Callable[[Any], object], argument: Any) -> None:
        """Keep a message that cannot pass."""
        pair = (wire.sender, wire.receiver)
        for effect in self.cuts[pair]:
            effect.add("messages held up")
        self._held.setdefault(pair, []).append((wire, call, argument))

    def extra_us(self, wire: Wire) -> int:
        """What a delay adds to a message on this wire."""
        extra = 0
        for node in (wire.sender, wire.receiver):
            if node in self.delays:
                by_us, effect = self.delays[node]
                effect.add("messages delayed")
                extra += by_us
        return extra


class Wire:
    """One direction of a connection: what is sent first arrives first."""

    __slots__ = ("_free_us", "network", "receiver", "sender")

    def __init__(self, network: Network, sender: str, receiver: str) -> None:
        self.network = network
        self.sender = sender
        self.receiver = receiver
        self._free_us = 0

    def send(self, call: Callable[[Any], object], argument: Any, depart_us: int = 0) -> None:
        """Deliver a message: call this with that on arrival."""
        network = self.network
        if network.cuts and (self.sender, self.receiver) in network.cuts:
            network.hold(self, call, argument)
            return
        kernel = network.kernel
        now = kernel.now_us
        # Half of all calendar entries are messages. So the calls of `hop_us` and `kernel.at` are
        # written out here; they would be a third of what it takes to send one.
        drawn = network.bits(16)
        low, width = network.hops[drawn >> 8]
        arrival = (depart_us if depart_us > now else now) + low + (width * (drawn & 255) >> 8)
        if network.delays:
            arrival += network.extra_us(self)
        if arrival < self._free_us:
            arrival = self._free_us
        self._free_us = arrival
        due: Any = (arrival, NORMAL, next(kernel.numbers), call, argument)
        heappush(kernel.calendar, due)
