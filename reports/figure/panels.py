"""Parts of a run side by side, with time along them, and the timeline's entries in each.

Pure arithmetic, in inches; `panel_drawing` draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.facts.timeline import Entry
from watchkeeper.reports.figure.labels import levels
from watchkeeper.reports.figure.page_size import WIDTH

RIGHT = 0.35
LATE = 0.86
"""An entry that starts later in a panel has its label in the right margin."""
LABEL_LEVELS = 7
LABEL_STEP = 0.18


class Label(NamedTuple):
    """An entry of the timeline, and the level of its label; None if it has no label."""

    entry: Entry
    level: int | None


@dataclass(frozen=True, slots=True)
class Panel:
    """The run, or a part of it, between a left and a right position."""

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
        """The positions of the timeline's lines."""
        spans = [label.entry.span for label in self.labels]
        moments = {at for span in spans for at in (span.start_us, span.end_us)}
        return sorted(self.x(at) for at in moments if self.from_us <= at <= self.to_us)

    def x(self, at_us: int) -> float:
        """The position of a moment of the run."""
        return self.left + (at_us - self.from_us) * self.inches_a_us

    def extent(self, span: Span, thinnest: float = 0) -> tuple[float, float] | None:
        """The start and end of the visible part of a span; None if none of it is visible."""
        if span.end_us < self.from_us or span.start_us > self.to_us:
            return None
        begins = self.x(max(span.start_us, self.from_us))
        return begins, max(self.x(min(span.end_us, self.to_us)), begins + thinnest)


def right_end(
    entries: Iterable[Entry], from_us: int, to_us: int, width_of: Callable[[str], float]
) -> float:
    """The right end of panels that leaves room for labels in the margin."""
    late_us = from_us + LATE * (to_us - from_us)
    late = [entry.label for entry in entries if late_us < entry.span.start_us <= to_us]
    return WIDTH - max([RIGHT, *(width_of(label) for label in late)])


def highest(panels: Iterable[Panel]) -> float:
    """The height of the labels above all panels."""
    used = [
        label.level + 1 for panel in panels for label in panel.labels if label.level is not None
    ]
    return LABEL_STEP * max(used, default=0)


def labelled(
    entries: Sequence[Entry], panels: Sequence[Panel], width_of: Callable[[str], float]
) -> tuple[tuple[Panel, ...], int]:
    """Give panels their entries and labels; also return the number of entries without a label.

    A label stands at the start of its entry, on as many levels as needed.
    """
    shown = [(panel, entry) for panel in panels for entry in entries if panel.extent(entry.span)]
    beginning = [(panel, entry) for panel, entry in shown if entry.span.start_us >= panel.from_us]
    places = []
    for panel, entry in beginning:
        begins = panel.x(entry.span.start_us)
        places.append((begins, begins + width_of(entry.label) + 0.15))
    found = levels(places, LABEL_LEVELS)
    level_of = dict(zip(beginning, found, strict=True))
    labels: dict[Panel, list[Label]] = {panel: [] for panel in panels}
    for panel, entry in shown:
        labels[panel].append(Label(entry, level_of.get((panel, entry))))
    return tuple(replace(panel, labels=tuple(labels[panel])) for panel in panels), found.count(
        None
    )
