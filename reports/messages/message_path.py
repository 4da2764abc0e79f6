"""The way of messages through a run: what passed where, what was at risk, who was behind.

All of it comes from the trace. What lies in each part stands in `flows`, `gauges`, `lags` and
`latencies`; `charts` makes of it what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from model.trace import Header, Trace
from model.verdicts import counted, duration, seconds
from reports.flows import Flow, flows
from reports.gauges import Life, gauges, greatest_risk, hit_share, read_unknown
from reports.lags import Read, Steps, greatest, lags
from reports.latencies import Took, latencies, quantiles
from reports.ticks import step_us
from reports.timeline import Entry, entries

FOLLOWED = frozenset({"sent", "stored", "gauges"})
"""Kinds of event that only runs have whose brokers store messages."""
STRETCHES = 100
"""Into how many stretches a run is divided at most, in each of which what passes is counted."""


HOST_LOSS = "crash_host"


class Loss(NamedTuple):
    """What was appended and not flushed when the host of a broker was lost."""

    broker: str
    t_us: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MessagePath:
    """What there is to be shown of the messages of a run."""

    header: Header
    end_us: int
    width_us: int
    """The length of the stretches in which what passes is counted."""
    entries: tuple[Entry, ...]
    flows: Mapping[str, Flow]
    gauges: Mapping[str, Sequence[Life]]
    lags: Mapping[Read, Steps]
    latencies: Mapping[str, Sequence[Took]]


def follows_messages(trace: Trace) -> bool:
    """Whether a trace tells of messages at all: only where brokers store them."""
    return any(row[2] in FOLLOWED for row in trace.rows)


def message_path(trace: Trace) -> MessagePath:
    """Work out everything."""
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
    """The figures that matter most, each with what it is of."""
    said = [("latency", _latency(group, took)) for group, took in path.latencies.items()]
    worst = max(path.lags, key=lambda read: greatest(path.lags[read])[0], default=None)
    if worst is not None:
        lag, at_us = greatest(path.lags[worst])
        behind = f"{worst.group} was {counted(lag, 'message')} behind {worst.partition}"
        said.append(("greatest lag", f"{behind}, at {seconds(at_us)}"))
    said += [("at risk", one) for one in _risks(path)]
    shares = {name: hit_share(lives) for name, lives in path.gauges.items()}
    read = {name: (share, size) for name, (share, size) in shares.items() if share is not None}
    if read:
        lowest = min(read, key=lambda name: read[name][0])
        share, size = read[lowest]
        hits = f"{share:.1%} of {size:,} bytes read at {lowest} were in its pagecache"
        said.append(("cache hits", hits))
    said += [("cache hits", one) for one in _unknown(path)]
    return said


def _unknown(path: MessagePath) -> Iterable[str]:
    """What was read where no kernel says what is in memory."""
    unknown = {name: read_unknown(lives) for name, lives in path.gauges.items()}
    most = max(unknown, key=lambda name: unknown[name], default=None)
    if most is not None and unknown[most]:
        size = f"of the {unknown[most]:,} bytes read at {most}"
        yield f"not known {size}: the system does not say what is in its pagecache"


def _risks(path: MessagePath) -> Iterable[str]:
    """The most that was at risk, and what was when a host was lost."""
    risks = {name: greatest_risk(lives) for name, lives in path.gauges.items()}
    risky = max(risks, key=lambda name: risks[name].size_bytes, default=None)
    if risky is not None:
        size, at_us = risks[risky]
        yield f"at most {size:,} bytes at {risky} were not flushed, at {seconds(at_us)}"
    loss = max(losses(path), key=lambda one: one.size_bytes, default=None)
    if loss is not None:
        lost = f"at {loss.broker} when its host was lost, at {seconds(loss.t_us)}"
        yield f"{loss.size_bytes:,} bytes were not flushed {lost}"


def losses(path: MessagePath) -> list[Loss]:
    """What was at risk whenever the host of a broker was lost.

    A live process is gone some milliseconds after its end was decided upon.
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
    total = counted(sum(one.messages for one in took), "message")
    return f"{total} to {group}: half within {half}, 99 of 100 within {most}, all within {every}"
