"""Parts of a run side by side, with time along them, and the timeline's entries in each.

Pure arithmetic, in inches; `panel_drawing` draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from reports.labels import levels
from reports.paper import WIDTH
from reports.spans import Span
from reports.timeline import Entry

RIGHT = 0.35
LATE = 0.86
"""What begins later in a panel has its label in the right margin."""
LABEL_LEVELS = 7
LABEL_STEP = 0.18


class Label(NamedTuple):
    """An entry of the timeline, and the level of its label; None where it has none."""

    entry: Entry
    level: int | None


@dataclass(frozen=True, slots=True)
class Panel:
    """The run, or a part of it, and where that stands between left and right."""

    left: float
    right: float
    from_us: int
    to_us: int
    labels: tuple[Label, ...] = ()

    @property
    def inches_a_us(self) -> float:
        """How much room a microsecond has."""
        return (self.right - self.left) / max(self.to_us - self.from_us, 1)

    @property
    def lines(self) -> list[float]:
        """Where lines of the timeline go through everything."""
        spans = [label.entry.span for label in self.labels]
        moments = {at for one in spans for at in (one.start_us, one.end_us)}
        return sorted(self.x(at) for at in moments if self.from_us <= at <= self.to_us)

    def x(self, at_us: int) -> float:
        """Where a moment of the run stands."""
        return self.left + (at_us - self.from_us) * self.inches_a_us

    def extent(self, span: Span, thinnest: float = 0) -> tuple[float, float] | None:
        """Where what is shown of a span begins and ends; None where nothing of it is shown."""
        if span.end_us < self.from_us or span.start_us > self.to_us:
            return None
        begins = self.x(max(span.start_us, self.from_us))
        return begins, max(self.x(min(span.end_us, self.to_us)), begins + thinnest)


def right_end(
    entries: Iterable[Entry], from_us: int, to_us: int, width_of: Callable[[str], float]
) -> float:
    """Where panels end, so that the labels of what begins late have room beside them."""
    late_us = from_us + LATE * (to_us - from_us)
    late = [one.label for one in entries if late_us < one.span.start_us <= to_us]
    return WIDTH - max([RIGHT, *(width_of(label) for label in late)])


def highest(panels: Iterable[Panel]) -> float:
    """What the labels of all panels take above them."""
    used = [one.level + 1 for panel in panels for one in panel.labels if one.level is not None]
    return LABEL_STEP * max(used, default=0)


def labelled(
    entries: Sequence[Entry], panels: Sequence[Panel], width_of: Callable[[str], float]
) -> tuple[tuple[Panel, ...], int]:
    """Give panels the entries they show, and those that begin there a label; who has none.

    Labels stand at the beginning of what they name, on as many levels as they need.
    """
    shown = [(panel, one) for panel in panels for one in entries if panel.extent(one.span)]
    beginning = [(panel, one) for panel, one in shown if one.span.start_us >= panel.from_us]
    places = []
    for panel, one in beginning:
        begins = panel.x(one.span.start_us)
        places.append((begins, begins + width_of(one.label) + 0.15))
    found = levels(places, LABEL_LEVELS)
    level_of = dict(zip(beginning, found, strict=True))
    labels: dict[Panel, list[Label]] = {panel: [] for panel in panels}
    for panel, one in shown:
        labels[panel].append(Label(one, level_of.get((panel, one))))
    return tuple(replace(one, labels=tuple(labels[one])) for one in panels), found.count(None)
