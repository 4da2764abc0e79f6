"""The way of messages through a run: throughput, bytes at risk, lag, latency.

Everything is derived from the trace. `throughput`, `metrics`, `lags` and `latencies` in
`reports/facts` derive the parts; `charts` makes of them what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from watchkeeper.model.properties.verdicts import counted, duration, seconds
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Header, Trace
from watchkeeper.reports.facts.lags import Read, Steps, greatest, lags
from watchkeeper.reports.facts.latencies import Took, latencies, quantiles
from watchkeeper.reports.facts.metrics import Life, gauges, greatest_risk, hit_share, read_unknown
from watchkeeper.reports.facts.throughput import Flow, flows
from watchkeeper.reports.facts.timeline import Entry, entries
from watchkeeper.reports.figure.axis_ticks import step_us

FOLLOWED = frozenset({EventKind.SENT, EventKind.STORED, EventKind.HOST_METRICS})
"""Kinds of event that occur only if brokers store messages."""
STRETCHES = 100
"""The number of time slots of a run in which messages are counted."""


HOST_LOSS = "crash_host"


class Loss(NamedTuple):
    """Bytes appended and not flushed when the host of a broker was lost."""

    broker: str
    t_us: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MessagePath:
    """Everything that the picture of messages shows."""

    header: Header
    end_us: int
    width_us: int
    """The length of a time slot."""
    entries: tuple[Entry, ...]
    flows: Mapping[str, Flow]
    gauges: Mapping[str, Sequence[Life]]
    lags: Mapping[Read, Steps]
    latencies: Mapping[str, Sequence[Took]]


def follows_messages(trace: Trace) -> bool:
    """Whether a trace has events of messages: only if brokers store them."""
    return any(row[2] in FOLLOWED for row in trace.rows)


def message_path(trace: Trace) -> MessagePath:
    """Derive everything from a trace."""
    width_us = step_us(max(trace.end_us, 1), STRETCHES)
    return MessagePath(
        header=trace.header,
        end_us=trace.end_us,
        width_us=width_us,
        entries=tuple(entries(trace)),
        flows=flows(trace, width_us),
        gauges=gauges(trace),
        lags=lags(trace),
        latencies=latencies(trace),
    )


def numbers(path: MessagePath) -> list[tuple[str, str]]:
    """The key figures, each with its label."""
    figures = [("latency", _latency(group, took)) for group, took in path.latencies.items()]
    worst = max(path.lags, key=lambda read: greatest(path.lags[read])[0], default=None)
    if worst is not None:
        lag, at_us = greatest(path.lags[worst])
        behind = f"{worst.group} was {counted(lag, 'message')} behind {worst.partition}"
        figures.append(("greatest lag", f"{behind}, at {seconds(at_us)}"))
    figures += [("at risk", risk) for risk in _risks(path)]
    shares = {name: hit_share(lives) for name, lives in path.gauges.items()}
    read = {name: (share, size) for name, (share, size) in shares.items() if share is not None}
    if read:
        lowest = min(read, key=lambda name: read[name][0])
        share, size = read[lowest]
        hits = f"{share:.1%} of {size:,} bytes read at {lowest} were in its pagecache"
        figures.append(("cache hits", hits))
    figures += [("cache hits", risk) for risk in _unknown(path)]
    return figures


def _unknown(path: MessagePath) -> Iterable[str]:
    """Bytes read on hosts whose kernel does not tell what is in memory."""
    unknown = {name: read_unknown(lives) for name, lives in path.gauges.items()}
    most = max(unknown, key=lambda name: unknown[name], default=None)
    if most is not None and unknown[most]:
        size = f"of the {unknown[most]:,} bytes read at {most}"
        yield f"not known {size}: the system does not say what is in its pagecache"


def _risks(path: MessagePath) -> Iterable[str]:
    """The greatest number of bytes at risk, and those at each loss of a host."""
    risks = {name: greatest_risk(lives) for name, lives in path.gauges.items()}
    risky = max(risks, key=lambda name: risks[name].size_bytes, default=None)
    if risky is not None:
        size, at_us = risks[risky]
        yield f"at most {size:,} bytes at {risky} were not flushed, at {seconds(at_us)}"
    loss = max(losses(path), key=lambda loss: loss.size_bytes, default=None)
    if loss is not None:
        lost = f"at {loss.broker} when its host was lost, at {seconds(loss.t_us)}"
        yield f"{loss.size_bytes:,} bytes were not flushed {lost}"


def losses(path: MessagePath) -> list[Loss]:
    """The bytes at risk at each loss of a broker's host.

    A live process ends some milliseconds after the decision to kill it.
    """
    return [
        Loss(entry.target, life.ends_us, life.told[-1].unflushed)
        for entry in path.entries
        if entry.verb == HOST_LOSS
        for life in path.gauges.get(entry.target, ())
        if life.begins_us <= entry.span.start_us <= life.ends_us
    ]


def _latency(group: str, took: Sequence[Took]) -> str:
    half, most, every = map(duration, quantiles(took))
    total = counted(sum(delivery.messages for delivery in took), "message")
    return f"{total} to {group}: half within {half}, 99 of 100 within {most}, all within {every}"
