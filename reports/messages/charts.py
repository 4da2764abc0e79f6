"""The charts of the picture of messages, one below the other over one axis of time.

Nothing is drawn here. A chart has its lines as points, its axis and its name; images and pages
draw the same charts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10
from typing import NamedTuple, TypeVar

from watchkeeper.model.properties.verdicts import duration
from watchkeeper.reports.facts.lags import greatest
from watchkeeper.reports.facts.latencies import over_time, quantiles
from watchkeeper.reports.facts.metrics import at_risk, greatest_risk, hit_shares
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.axis_ticks import step_us, tick_text
from watchkeeper.reports.figure.palette import consumer_colours
from watchkeeper.reports.messages.message_path import MessagePath, losses

K = TypeVar("K")
Point = tuple[int, float]
"""A moment and a value."""
Piece = tuple[Point, ...]
"""Points that are joined; the value of a point holds until the next one."""

LOOKED_EVERY_US = 300_000
"""Brokers report metrics of their hosts at least this often, if they have changed."""
MOST_LINES = 8
"""The greatest number of lines in a chart; the highest ones are drawn."""
MOST_TICKS = 4
ROOM_ABOVE = 1.08
FLOW_COLOURS = {
    "produced": palette.FAINT,
    "acknowledged": palette.HUES[0],
    "stored": palette.HUES[1],
    "consumed": palette.HUES[4],
}
BYTES = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "bytes"))
TIMES = ((1_000_000, "s"), (1_000, "ms"), (1, "us"))
CHANGES_A_STRETCH = 3
"""A line with more changes in a time slot would be illegible."""
STEPS_A_UNIT = 1_000
"""How finely the numbers of an axis can be divided."""
DASHES = ("solid", "dashed", "dotted")
QUANTILE_NAMES = ("half", "99 of 100", "all")
LEAST_LATENCY_US = 100
"""Smaller latencies are drawn as this one, on an axis without 0."""


class Line(NamedTuple):
    """A line of a chart."""

    name: str
    colour: str
    pieces: tuple[Piece, ...]
    dash: str = "solid"
    is_filled: bool = False
    width: float = 1.3


class Mark(NamedTuple):
    """A point that is worth a word."""

    t_us: int
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over time, and the axis along their side."""

    title: str
    lines: tuple[Line, ...]
    bottom: float
    top: float
    ticks: tuple[tuple[float, str], ...]
    marks: tuple[Mark, ...] = ()
    left_out: int = 0
    """How many lines are not drawn."""
    is_logarithmic: bool = False
    said: Callable[[float], str] = "{:,.6g}".format
    """A value as words."""

    def share(self, value: float) -> float:
        """The height of a value: 0 at the bottom, 1 at the top."""
        if self.is_logarithmic:
            value = max(value, self.bottom)
            return log10(value / self.bottom) / log10(self.top / self.bottom)
        return (value - self.bottom) / (self.top - self.bottom)


def charts(path: MessagePath, *, most_changes: int = CHANGES_A_STRETCH) -> list[Chart]:
    """Every chart of a run that has something to show.

    A line that changes more often in a time slot is drawn as the maximum of each slot.
    """
    found = [
        _messages(path),
        _bytes(path),
        _hits(path),
        _risks(path, most_changes),
        _lags(path, most_changes),
        _latencies(path),
    ]
    return [chart for chart in found if chart.lines]


# --- throughput ------------------------------------------------------------------------


def _messages(path: MessagePath) -> Chart:
    values = {name: flow.messages for name, flow in path.flows.items()}
    return _flow("messages a second", path, values, 1)


def _bytes(path: MessagePath) -> Chart:
    values = {name: flow.size_bytes for name, flow in path.flows.items()}
    most = max((size for some in values.values() for size in some), default=0)
    scale, unit = _unit(most * 1_000_000 // path.width_us)
    return _flow(f"{unit} a second", path, values, scale)


def _flow(
    title: str, path: MessagePath, values: Mapping[str, Sequence[int]], scale: int
) -> Chart:
    """The throughput at each point per second; the last time slot may be shorter."""
    lines = []
    for name, sums in values.items():
        stretches = []
        for at, amount in enumerate(sums):
            begins = at * path.width_us
            lasted = min(path.width_us, path.end_us - begins)
            if lasted > 0:
                stretches.append((at, amount * 1_000_000 / lasted))
        pieces = _stepped(stretches, path)
        lines.append(Line(name, FLOW_COLOURS[name], pieces, is_filled=name == "produced"))
    return linear(title, lines, scale)


def _stepped(
    stretches: Iterable[tuple[int, float]], path: MessagePath, width_us: int = 0
) -> tuple[Piece, ...]:
    """The values of time slots; consecutive slots form one polyline."""
    width_us = width_us or path.width_us
    pieces: list[list[Point]] = []
    for at, value in stretches:
        begins, ends = at * width_us, min((at + 1) * width_us, path.end_us)
        if pieces and pieces[-1][-1][0] == begins:
            pieces[-1][-1] = (begins, value)
        else:
            pieces.append([(begins, value)])
        pieces[-1].append((ends, value))
    return tuple(tuple(points) for points in pieces)


# --- brokers ---------------------------------------------------------------------------


def _hits(path: MessagePath) -> Chart:
    width_us = path.width_us * max(1, -(-LOOKED_EVERY_US // path.width_us))
    shares = {
        name: [(at, share * 100) for at, share in hit_shares(lives, width_us)]
        for name, lives in path.gauges.items()
    }
    read = {name: some for name, some in shares.items() if some}
    kept = _highest(read, lambda name: -min(share for _, share in read[name]))
    colours = consumer_colours(path.gauges)
    widths = (1.3 + 1.1 * min(at, 3) for at in reversed(range(len(kept))))
    lines = tuple(
        Line(name, colours[name], _stepped(read[name], path, width_us), width=width)
        for name, width in zip(kept, widths, strict=True)
    )
    ticks = tuple((float(at), f"{at} %") for at in (0, 50, 100))
    title = "found in the pagecache, of what was read"
    left_out = len(read) - len(kept)
    top = 100 * ROOM_ABOVE
    return Chart(title, lines, 0, top, ticks, left_out=left_out, said="{:.1f} %".format)


def _risks(path: MessagePath, most_changes: int) -> Chart:
    most = {name: greatest_risk(lives).size_bytes for name, lives in path.gauges.items()}
    kept = _highest(most, lambda name: most[name])
    colours = consumer_colours(path.gauges)
    pieces = {name: tuple(map(at_risk, path.gauges[name])) for name in kept}
    drawn, how = _readable(pieces, path, most_changes)
    lines = [Line(name, colours[name], drawn[name]) for name in kept]
    scale, unit = _unit(max(most.values(), default=0))
    title = f"{unit} at risk: appended and not flushed{how}"
    chart = linear(title, lines, scale, left_out=len(most) - len(kept))
    marks = [
        Mark(t_us, size, f"{name} when its host was lost: {size:,} bytes")
        for name, t_us, size in losses(path)
        if name in kept
    ]
    return replace(chart, marks=tuple(marks))


# --- groups ----------------------------------------------------------------------------


def _lags(path: MessagePath, most_changes: int) -> Chart:
    kept = _highest(path.lags, lambda read: greatest(path.lags[read])[0])
    names = {read: f"{read.group} behind {read.partition}" for read in kept}
    colours = consumer_colours(names.values())
    pieces = {read: ((*path.lags[read], (path.end_us, path.lags[read][-1][1])),) for read in kept}
    drawn, how = _readable(pieces, path, most_changes)
    lines = [Line(names[read], colours[names[read]], drawn[read]) for read in kept]
    return linear(f"lag, messages{how}", lines, 1, left_out=len(path.lags) - len(kept))


def _latencies(path: MessagePath) -> Chart:
    kept = _highest(
        path.latencies,
        lambda group: quantiles(path.latencies[group])[-1],
        MOST_LINES // len(QUANTILE_NAMES),
    )
    colours = consumer_colours(path.latencies)
    lines = []
    for group in kept:
        found = over_time(path.latencies[group], path.width_us)
        for at, name in enumerate(QUANTILE_NAMES):
            values = [(at_us, max(some[at], LEAST_LATENCY_US)) for at_us, some in found]
            lines.append(
                Line(f"{group}: {name}", colours[group], _stepped(values, path), DASHES[at])
            )
    chart = _logarithmic("latency, sent to consumed", lines)
    return replace(chart, left_out=(len(path.latencies) - len(kept)) * len(QUANTILE_NAMES))


# --- what changes often ----------------------------------------------------------------


def _readable(
    pieces: Mapping[K, tuple[Piece, ...]], path: MessagePath, most_changes: int
) -> tuple[dict[K, tuple[Piece, ...]], str]:
    """The lines themselves, or their maxima if they change too often to be read."""
    if not any(_is_restless(some, path.width_us, most_changes) for some in pieces.values()):
        return dict(pieces), ""
    most = {
        name: tuple(part for points in some for part in _at_most(points, path))
        for name, some in pieces.items()
    }
    return most, f" (most in {tick_text(path.width_us)} s)"


def _is_restless(pieces: tuple[Piece, ...], width_us: int, most_changes: int) -> bool:
    moments = [t_us for points in pieces for t_us, _ in points]
    return len(moments) > most_changes * len({at // width_us for at in moments})


def _at_most(points: Piece, path: MessagePath) -> tuple[Piece, ...]:
    """The maximum of each time slot."""
    highest: dict[int, float] = {}
    for (begins, value), (ends, _) in pairwise((*points, points[-1])):
        for at in range(begins // path.width_us, ends // path.width_us + 1):
            highest[at] = max(value, highest.get(at, value))
    return _stepped(sorted(highest.items()), path)


# --- axes ------------------------------------------------------------------------------


def _highest(names: Iterable[K], height: Callable[[K], float], most: int = MOST_LINES) -> list[K]:
    """The highest ones, in their order."""
    ordered = list(names)
    chosen = sorted(ordered, key=lambda name: -height(name))[:most]
    return [name for name in ordered if name in chosen]


def _unit(most_bytes: int) -> tuple[int, str]:
    """The unit for a number of bytes, and its size."""
    return next(unit for unit in BYTES if most_bytes >= unit[0] or unit[0] == 1)


def linear(title: str, lines: Iterable[Line], scale: int, *, left_out: int = 0) -> Chart:
    """A chart with an axis from 0, whose numbers are the values divided by `scale`."""
    drawn = tuple(line for line in lines if line.pieces)
    most = max(_values(drawn), default=0)
    step = step_us(max(round(most * STEPS_A_UNIT / scale), 1), MOST_TICKS) / STEPS_A_UNIT
    numbers = [step * at for at in range(max(floor(most / scale / step), 1) + 1)]
    ticks = tuple((number * scale, f"{number:,.10g}") for number in numbers)
    top = max(most, step * scale) * ROOM_ABOVE
    return Chart(title, drawn, 0, top, ticks, left_out=left_out)


def _logarithmic(title: str, lines: Iterable[Line]) -> Chart:
    """A chart of times, with a number at each power of ten."""
    drawn = tuple(line for line in lines if line.pieces)
    values = _values(drawn) or [LEAST_LATENCY_US]
    low, high = floor(log10(min(values))), max(ceil(log10(max(values))), 1)
    high = max(high, low + 1)
    ticks = tuple((10.0**at, duration_text(10**at)) for at in range(low, high + 1))
    return Chart(title, drawn, 10.0**low, 10.0**high, ticks, is_logarithmic=True, said=_took)


def _took(us: float) -> str:
    return duration(round(us))


def _values(lines: Iterable[Line]) -> list[float]:
    return [value for line in lines for points in line.pieces for _, value in points]


def duration_text(us: int) -> str:
    """A power of ten of microseconds, as short as can be."""
    return next(f"{us / size:g} {unit}" for size, unit in TIMES if us >= size or size == 1)
