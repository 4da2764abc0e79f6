"""Where everything stands in the picture of ownership, in inches; pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from reports.labels import levels, shortened
from reports.ownership import Board, Row
from reports.paper import MARGIN, WIDTH
from reports.spans import Span
from reports.timeline import Entry

RIGHT = 0.35
LATE = 0.86
"""What begins later in a panel has its label in the right margin."""
TALLEST_ROW = 0.26
SHORTEST_ROW = 0.1
MOST_INCHES = 8.0
"""What all rows take together at most, unless they would be thinner than the shortest."""
GROUP_HEIGHT = 0.34
"""What the name of a group and its topic takes."""
TALLEST_STRIP = 0.23
SHORTEST_STRIP = 0.13
MOST_STRIP_INCHES = 5.0
LABEL_LEVELS = 7
LABEL_STEP = 0.18
LONGEST_NAME = 22
AXIS_HEIGHT = 0.36
NOTE_HEIGHT = 0.2
LEGEND_STEP = 0.22
UNIT = "seconds"
WHOLE = 0.46
"""How much of the width the whole run takes beside a part of it."""
BETWEEN_PANELS = 0.3


class Heading(NamedTuple):
    """The name of a group of rows."""

    y: float
    text: str


class Label(NamedTuple):
    """An entry of the timeline, and the level of its label; None where it has none."""

    entry: Entry
    level: int | None


class Word(NamedTuple):
    """What the legend says of a look; nothing looks like a mere remark."""

    look: str
    text: str


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


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things stand; `y` is the top of a thing."""

    panels: tuple[Panel, ...]
    """The whole run, and beside it the part that is shown closer, if there is one."""
    top: float
    row_height: float
    strip_height: float
    headings: tuple[Heading, ...]
    rows: tuple[tuple[float, Row], ...]
    strips: tuple[tuple[float, str], ...]
    bottom: float
    without_label: int
    """How many entries of the timeline have no label for want of room."""
    legend: tuple[tuple[tuple[float, Word], ...], ...]
    """Its lines: where each word stands, and which."""

    @property
    def left(self) -> float:
        """Where names end and time begins."""
        return self.panels[0].left

    @property
    def legend_top(self) -> float:
        """Where the legend begins."""
        return self.bottom + AXIS_HEIGHT + (NOTE_HEIGHT if self.without_label else 0)

    @property
    def height(self) -> float:
        """Of the whole sheet."""
        return self.legend_top + LEGEND_STEP * len(self.legend) + 0.12


def lay_out(
    board: Board,
    *,
    heading_lines: int,
    width_of: Callable[[str], float],
    words: Callable[[Sequence[Panel]], Sequence[Word]],
    word_width: Callable[[Word], float],
) -> Layout:
    """Find a place for everything on a board, and for the words of its legend.

    How wide a label and a word of the legend are is for the caller to say, and so is which
    words there are: what is explained depends on what can be seen.
    """
    names = {row.place.partition for row in board.rows} | set(board.strips) | {UNIT}
    left = MARGIN + 0.12 + max(width_of(shortened(name, LONGEST_NAME)) for name in names)
    panels, without_label = _labelled(board, _panels(board, left, width_of), width_of)
    used = [one.level + 1 for panel in panels for one in panel.labels if one.level is not None]
    top = 0.6 + 0.2 * heading_lines + LABEL_STEP * max(used, default=0)
    row_height = _share(MOST_INCHES, len(board.rows), SHORTEST_ROW, TALLEST_ROW)
    strip_height = _share(MOST_STRIP_INCHES, len(board.strips), SHORTEST_STRIP, TALLEST_STRIP)
    headings, rows, y = _rows(board.rows, top, row_height)
    if board.strips:
        headings.append(Heading(y, "sessions of the consumers"))
    y += GROUP_HEIGHT
    strips = tuple((y + at * strip_height, name) for at, name in enumerate(board.strips))
    return Layout(
        panels=panels,
        top=top,
        row_height=row_height,
        strip_height=strip_height,
        headings=tuple(headings),
        rows=tuple(rows),
        strips=strips,
        bottom=y + len(strips) * strip_height + 0.05,
        without_label=without_label,
        legend=tuple(_legend(words(panels), word_width)),
    )


def _share(inches: float, number: int, least: float, most: float) -> float:
    """How high each of so many rows is that share some room."""
    return min(most, max(least, inches / max(number, 1)))


def _rows(
    rows: Sequence[Row], top: float, row_height: float
) -> tuple[list[Heading], list[tuple[float, Row]], float]:
    """A heading for each group and topic, and below it their partitions."""
    headings: list[Heading] = []
    placed: list[tuple[float, Row]] = []
    y = top
    for (group, topic), some in groupby(rows, lambda row: row.place[:2]):
        headings.append(Heading(y, f"{group} · {topic}"))
        y += GROUP_HEIGHT
        for row in some:
            placed.append((y, row))
            y += row_height
    return headings, placed, y


# --- time ------------------------------------------------------------------------------


def _panels(board: Board, left: float, width_of: Callable[[str], float]) -> list[Panel]:
    """The whole run, and the part of it that is shown closer; yet without labels."""
    from_us, to_us = board.closer or (0, board.end_us)
    late_us = from_us + LATE * (to_us - from_us)
    late = [one.label for one in _entries(board) if late_us < one.span.start_us <= to_us]
    right = WIDTH - max([RIGHT, *(width_of(label) for label in late)])
    if board.closer is None:
        return [Panel(left, right, 0, board.end_us)]
    middle = left + (right - left) * WHOLE
    return [
        Panel(left, middle - BETWEEN_PANELS / 2, 0, board.end_us),
        Panel(middle + BETWEEN_PANELS / 2, right, *board.closer),
    ]


def _entries(board: Board) -> list[Entry]:
    return [one for one in board.entries if one.kind != "load"]


def _labelled(
    board: Board, panels: Sequence[Panel], width_of: Callable[[str], float]
) -> tuple[tuple[Panel, ...], int]:
    """Give panels the entries they show, and those that begin there a label; who has none.

    Labels stand at the beginning of what they name, on as many levels as they need.
    """
    shown = [
        (panel, one) for panel in panels for one in _entries(board) if panel.extent(one.span)
    ]
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


# --- the legend ------------------------------------------------------------------------


def _legend(
    words: Sequence[Word], word_width: Callable[[Word], float]
) -> list[tuple[tuple[float, Word], ...]]:
    """Words one after the other, on as many lines as they need."""
    lines: list[list[tuple[float, Word]]] = [[]]
    x = MARGIN
    for word in words:
        if lines[-1] and x + word_width(word) > WIDTH - MARGIN:
            lines.append([])
            x = MARGIN
        lines[-1].append((x, word))
        x += word_width(word)
    return [tuple(line) for line in lines]
