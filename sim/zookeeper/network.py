"""SimPy's environment with a trace, and the wires that carry messages through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from simpy import Environment
from simpy.events import NORMAL, Event

from model.faults import Effect
from model.trace import NOTHING, Row
from sim.profile import Profile
from sim.streams import Streams

if TYPE_CHECKING:
    from sim.pulse import Pulse

EPOCH_US = 1_320_000_000_000_000
"""When a run begins, for clocks: a day of 2011."""

PLAIN_CALL = 5
"""The length of a calendar entry that holds a call and its argument instead of an event."""


class Kernel(Environment):
    """A run's clock (integer microseconds), its chance and its trace."""

    def __init__(self, streams: Streams, profile: Profile) -> None:
        super().__init__(0)
        self.streams = streams
        self.profile = profile
        self.rows: list[Row] = []
        self.now_us = 0
        """The time, as the integer it always is."""
        self.operations = 0
        """How many ZooKeeper operations have been answered, for the statistics."""

    def after(self, delay_us: int, call: Callable[[Any], object], argument: Any) -> None:
        """Call this with that, so much later."""
        self.at(self.now_us + delay_us, call, argument)

    def at(self, due_us: int, call: Callable[[Any], object], argument: Any) -> None:
        """Call this with that, at that moment."""
        due: Any = (due_us, NORMAL, next(self._eid), call, argument)
        heappush(self._queue, due)

    def step(self) -> None:
        """Let the next thing happen: SimPy's step, which also knows plain calls."""
        due: Any = heappop(self._queue)
        self._now = self.now_us = due[0]
        if len(due) == PLAIN_CALL:
            due[3](due[4])
        else:
            self._let_happen(due[3])

    def _let_happen(self, event: Any) -> None:
        """Call whoever waits for an event that is due."""
        callbacks, event.callbacks = event.callbacks, None
        for callback in callbacks:
            callback(event)
        if not event._ok and not hasattr(event, "_defused"):
            raise event._value

    def run_until(self, end_us: int) -> None:
        """Run everything that is due before this moment, and be there."""
        queue: Any = self._queue
        while queue and queue[0][0] < end_us:
            due = heappop(queue)
            self._now = self.now_us = due[0]
            if len(due) == PLAIN_CALL:
                due[3](due[4])
            else:
                self._let_happen(due[3])
        self._now = self.now_us = end_us

    def settle(self, event: Event, value: Any) -> None:
        """Let an event happen now, within the present moment.

        `Event.succeed` would put it on the calendar, behind whatever else is due now; a
        reply that has arrived is there at once.
        """
        event._ok = True
        event._value = value
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        for callback in callbacks:
            callback(event)

    def write(
        self,
        node: str,
        kind: str,
        detail: Mapping[str, Any] = NOTHING,
        *,
        session: int = 0,
        group: str = "",
        topic: str = "",
        partition: str = "",
        zxid: int = 0,
    ) -> None:
        """Write an event into the trace."""
        self.rows.append(
            (self.now_us, node, kind, session, group, topic, partition, zxid, detail)
        )


class Network:
    """Who can reach whom, and how long it takes."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        latency = kernel.streams("latency")
        self.hop_us = latency.sampler(kernel.profile.hop)
        """Draws a latency, one way."""
        self.sync_us = latency.sampler(kernel.profile.sync)
        """Draws how long a log takes to its disk."""
        self.cuts: dict[tuple[str, str], list[Effect]] = {}
        """(from, to) -> the partitions that keep anything from passing."""
        self.delays: dict[str, tuple[int, Effect]] = {}
        """Node -> how much longer everything takes that it sends or receives."""
        self.pulses: dict[Pulse, None] = {}
        """The pulses of all clients that are connected."""
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

    def slow_down(self, node: str, by_us: int, effect: Effect) -> None:
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

    def cut(self, sender: str, receiver: str, effect: Effect) -> None:
        """Let nothing pass from now on."""
        self.cuts.setdefault((sender, receiver), []).append(effect)
        self.wake_pulses()

    def heal(self, sender: str, receiver: str, effect: Effect) -> None:
        """Undo one cut. What was sent meanwhile arrives now, as TCP sends it again."""
        others = [one for one in self.cuts.get((sender, receiver), []) if one is not effect]
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
        network.kernel.at(self.arrival_us(depart_us), call, argument)

    def arrival_us(self, depart_us: int = 0) -> int:
        """When a message that is sent now, or departs later, arrives: in order, after a hop."""
        network = self.network
        now = network.kernel.now_us
        arrival = (depart_us if depart_us > now else now) + network.hop_us()
        if network.delays:
            arrival += network.extra_us(self)
        if arrival < self._free_us:
            arrival = self._free_us
        self._free_us = arrival
        return arrival
