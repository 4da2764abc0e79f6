"""Who led each partition and when, with which ISR, and which broker was the controller.

An ISR is too small where it has fewer replicas than the leader needs to take messages of
producers that wait for all of it: the `min.insync.replicas` of the topic, else of its broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import NO_LEADER, Controller, PartitionState, TopicConfig
from watchkeeper.model.trace.assignments import assignment_of, topic_of
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.intervals import last_event
from watchkeeper.reports.facts.names import natural
from watchkeeper.reports.facts.spans import Span, SpanMaker

NONE = "none"
"""In place of a leader, or of a controller."""
CONTROLLER = Partition("", "")
"""The key of the controller's reigns."""
KINDS = (
    *(EventKind.APPLIED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED),
    *(EventKind.UNCLEAN_ELECTION, EventKind.BECAME_LEADER, EventKind.SETTINGS_APPLIED),
)


class IsrSpan(NamedTuple):
    """The ISR of a partition, or its replicas, for as long as it was that."""

    span: Span
    isr: tuple[int, ...]


@dataclass(slots=True)
class PartitionLeaders:
    """The leaders of one partition."""

    partition: Partition
    led: list[Span] = field(default_factory=list)
    """By which broker, as `broker N`."""
    isrs: list[IsrSpan] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    """Moment, and the leader epoch from then on."""
    unclean_us: list[int] = field(default_factory=list)
    """When a replica outside of the ISR was elected."""
    assigned: list[IsrSpan] = field(default_factory=list)
    """The replicas that the assignment names; none where it is too long for a trace."""
    needed: list[Span] = field(default_factory=list)
    """How many replicas have to be in the ISR; there is no span where one is enough."""

    @property
    def too_small(self) -> list[Span]:
        """When the ISR had fewer replicas than its leader needs; `what` is the number needed."""
        return list(self._too_small())

    def _too_small(self) -> Iterator[Span]:
        for needed in self.needed:
            for span, isr in self.isrs:
                start = max(needed.start_us, span.start_us)
                end = min(needed.end_us, span.end_us)
                if 0 < len(isr) < int(needed.what) and start < end:
                    yield needed._replace(start_us=start, end_us=end)

    def size_at(self, t_us: int) -> int:
        """How many replicas the partition has at a moment; the largest ISR if that is unknown."""
        for span, replicas in self.assigned:
            if span.start_us <= t_us < span.end_us:
                return len(replicas)
        return max((len(each.isr) for each in self.isrs), default=1)


class Leaders(NamedTuple):
    """What the registry of a run said of leaders."""

    partitions: list[PartitionLeaders]
    reigns: list[Span]
    """Of controllers, as `broker N`."""

    @property
    def brokers(self) -> list[str]:
        """The brokers that led, were in an ISR or were the controller, each once."""
        names = {span.what for span in self.reigns}
        for one in self.partitions:
            names |= {span.what for span in one.led}
            names |= {f"broker {broker}" for each in one.isrs for broker in each.isr}
        return sorted(names - {NONE}, key=natural)


def leaders(trace: Trace) -> Leaders:
    """Read who led, from the writes of states and of `/controller`."""
    reader = _Reader()
    for event in trace.of_kind(*KINDS):
        reader.read(event)
    return reader.leaders(last_event(trace))


class _Reader:
    """Reads the events of a trace in order."""

    def __init__(self) -> None:
        self.found: dict[Partition, PartitionLeaders] = {}
        self.led: SpanMaker[Partition] = SpanMaker()
        self.isrs: SpanMaker[Partition] = SpanMaker()
        self.assigned: SpanMaker[Partition] = SpanMaker()
        self.needed: SpanMaker[Partition] = SpanMaker()
        self.settings: dict[tuple[str, str], TopicConfig] = {}
        """Broker and topic -> the settings that the broker follows."""
        self.leading: dict[Partition, tuple[str, int]] = {}
        """Partition -> the broker that has begun to lead it last, and what it needs itself."""

    def read(self, event: Event) -> None:
        if event.kind == EventKind.UNCLEAN_ELECTION:
            self._one(_partition(event)).unclean_us.append(event.t_us)
        elif event.kind == EventKind.BECAME_LEADER:
            partition = _partition(event)
            self.leading[partition] = event.node, event.detail.get("min_in_sync", 1)
            self._need(partition, event)
        elif event.kind == EventKind.SETTINGS_APPLIED:
            overrides = tuple(sorted(event.detail["settings"].items()))
            self.settings[event.node, event.topic] = TopicConfig(overrides)
            for partition in self.leading:
                if partition.topic == event.topic:
                    self._need(partition, event)
        else:
            for change in event.detail["did"]:
                data = change[3] if event.kind == EventKind.APPLIED and len(change) > 3 else ""
                self._written(event, change[1], str(data or ""))

    def leaders(self, last: Event | None) -> Leaders:
        led = self.led.end_all(last)
        isrs, assigned = _brokers(self.isrs, last), _brokers(self.assigned, last)
        needed = self.needed.end_all(last)
        for partition, one in self.found.items():
            one.led = led.get(partition, [])
            one.isrs = isrs.get(partition, [])
            one.assigned = assigned.get(partition, [])
            one.needed = needed.get(partition, [])
        ordered = sorted(self.found.values(), key=lambda one: _place(one.partition))
        return Leaders(ordered, led.get(CONTROLLER, []))

    def _one(self, partition: Partition) -> PartitionLeaders:
        return self.found.setdefault(partition, PartitionLeaders(partition))

    def _need(self, partition: Partition, event: Event) -> None:
        """Note how many replicas the leader needs in the ISR from now on."""
        broker, own = self.leading[partition]
        needs = self.settings.get((broker, partition.topic), TopicConfig()).min_in_sync(own)
        if needs > 1:
            self.needed.change(partition, str(needs), event)
        else:
            self.needed.end(partition, event)

    def _written(self, event: Event, path: str, data: str) -> None:
        partition, topic = paths.parse_state(path), topic_of(path)
        if path == paths.CONTROLLER:
            self._reigns(event, data)
        elif partition is not None:
            self._state(event, partition, path, data)
        elif topic is not None:
            found = assignment_of(path, data)
            if found is None:
                for partition in [one for one in self.assigned.open_keys() if one.topic == topic]:
                    self.assigned.end(partition, event)
            for index, replicas in () if found is None else found.replicas:
                self._assign(event, Partition(topic, str(index)), replicas)

    def _reigns(self, event: Event, data: str) -> None:
        broker = Controller.broker_in(paths.CONTROLLER, data.encode())
        self.led.end(CONTROLLER, event)
        if broker is not None:
            self.led.begin(CONTROLLER, f"broker {broker}", event)

    def _assign(self, event: Event, partition: Partition, replicas: tuple[int, ...]) -> None:
        self.assigned.change(partition, " ".join(map(str, replicas)), event)

    def _state(self, event: Event, partition: Partition, path: str, data: str) -> None:
        try:
            state = PartitionState.decode(path, data.encode())
        except BadPayload:
            for making in (self.led, self.isrs, self.assigned, self.needed):
                making.end(partition, event)
            return
        one = self._one(partition)
        is_led = state.leader != NO_LEADER
        self.led.change(partition, f"broker {state.leader}" if is_led else NONE, event)
        self.isrs.change(partition, " ".join(map(str, sorted(state.isr))), event)
        if not one.epochs or one.epochs[-1][1] != state.leader_epoch:
            one.epochs.append((event.t_us, state.leader_epoch))


def _partition(event: Event) -> Partition:
    return Partition(event.topic, str(event.detail["partition"]))


def _brokers(making: SpanMaker[Partition], last: Event | None) -> dict[Partition, list[IsrSpan]]:
    """Return the spans of a maker, with the brokers that their text names."""
    return {
        partition: [IsrSpan(span, tuple(map(int, span.what.split()))) for span in spans]
        for partition, spans in making.end_all(last).items()
    }


def _place(partition: Partition) -> tuple[str, int]:
    return partition.topic, int(partition.name)
