"""Who led each partition and when, with which ISR, and which broker was the controller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.paths import BadPayload
from watchkeeper.model.registry.payloads import NO_LEADER, Controller, PartitionState
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event, Trace
from watchkeeper.reports.facts.intervals import last_event
from watchkeeper.reports.facts.spans import Span, SpanMaker

NONE = "none"
"""In place of a leader, or of a controller."""
CONTROLLER = Partition("", "")
"""The key of the controller's reigns."""


class IsrSpan(NamedTuple):
    """The ISR of a partition, for as long as it was that."""

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


class Leaders(NamedTuple):
    """What the registry of a run said of leaders."""

    partitions: list[PartitionLeaders]
    reigns: list[Span]
    """Of controllers, as `broker N`."""


def leaders(trace: Trace) -> Leaders:
    """Read who led, from the writes of states and of `/controller`."""
    making: SpanMaker[Partition] = SpanMaker()
    isrs: SpanMaker[Partition] = SpanMaker()
    found: dict[Partition, PartitionLeaders] = {}
    kinds = (EventKind.APPLIED, EventKind.SESSION_EXPIRED, EventKind.SESSION_CLOSED)
    for event in trace.of_kind(*kinds, EventKind.UNCLEAN_ELECTION):
        if event.kind == EventKind.UNCLEAN_ELECTION:
            partition = Partition(event.topic, str(event.detail["partition"]))
            found.setdefault(partition, PartitionLeaders(partition)).unclean_us.append(event.t_us)
            continue
        for change in event.detail["did"]:
            data = change[3] if event.kind == EventKind.APPLIED and len(change) > 3 else ""
            _note(event, change[1], str(data or ""), (making, isrs), found)
    last = last_event(trace)
    led, in_sync = making.end_all(last), isrs.end_all(last)
    for partition, one in found.items():
        one.led = led.get(partition, [])
        one.isrs = [
            IsrSpan(span, tuple(int(text) for text in span.what.split()))
            for span in in_sync.get(partition, [])
        ]
    ordered = sorted(found.values(), key=lambda one: _place(one.partition))
    return Leaders(ordered, led.get(CONTROLLER, []))


def _place(partition: Partition) -> tuple[str, int]:
    return partition.topic, int(partition.name)


def _note(
    event: Event,
    path: str,
    data: str,
    making: tuple[SpanMaker[Partition], SpanMaker[Partition]],
    found: dict[Partition, PartitionLeaders],
) -> None:
    leading, in_sync = making
    partition = paths.parse_state(path)
    if path == paths.CONTROLLER:
        broker = Controller.broker_in(path, data.encode())
        leading.end(CONTROLLER, event)
        if broker is not None:
            leading.begin(CONTROLLER, f"broker {broker}", event)
        return
    if partition is None:
        return
    try:
        state = PartitionState.decode(path, data.encode())
    except BadPayload:
        leading.end(partition, event)
        in_sync.end(partition, event)
        return
    one = found.setdefault(partition, PartitionLeaders(partition))
    is_led = state.leader != NO_LEADER
    leading.change(partition, f"broker {state.leader}" if is_led else NONE, event)
    in_sync.change(partition, " ".join(map(str, sorted(state.isr))), event)
    if not one.epochs or one.epochs[-1][1] != state.leader_epoch:
        one.epochs.append((event.t_us, state.leader_epoch))
