"""The layout of the picture of ownership, in inches; pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.reports.facts.timeline import Entry
from watchkeeper.reports.figure.labels import shortened
from watchkeeper.reports.figure.page_size import MARGIN, WIDTH
from watchkeeper.reports.figure.panels import Panel, highest, labelled, right_end
from watchkeeper.reports.ownership.ownership import Board, Row

TALLEST_ROW = 0.26
SHORTEST_ROW = 0.1
MOST_INCHES = 8.0
"""The greatest height of all rows, unless they would be thinner than the minimum."""
GROUP_HEIGHT = 0.34
"""The height of a group's name and its topic."""
TALLEST_STRIP = 0.23
SHORTEST_STRIP = 0.13
MOST_STRIP_INCHES = 5.0
LONGEST_NAME = 22
AXIS_HEIGHT = 0.36
NOTE_HEIGHT = 0.2
LEGEND_STEP = 0.22
UNIT = "seconds"
WHOLE = 0.46
"""The share of the width for the whole run if there is an inset."""
BETWEEN_PANELS = 0.3


class Heading(NamedTuple):
    """The name of a group of rows."""

    y: float
    text: str


class Word(NamedTuple):
    """A text of the legend and its look; a remark has no look."""

    look: str
    text: str


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of all parts; `y` is a top edge."""

    panels: tuple[Panel, ...]
    """The whole run, and the inset, if there is one."""
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
    """The lines of the legend: position and word."""

    @property
    def left(self) -> float:
        """The right end of names, where time starts."""
        return self.panels[0].left

    @property
    def legend_top(self) -> float:
        """The top of the legend."""
        return self.bottom + AXIS_HEIGHT + (NOTE_HEIGHT if self.without_label else 0)

    @property
    def height(self) -> float:
        """Of the whole canvas."""
        return self.legend_top + LEGEND_STEP * len(self.legend) + 0.12


def lay_out(
    board: Board,
    *,
    heading_lines: int,
    width_of: Callable[[str], float],
    words: Callable[[Sequence[Panel]], Sequence[Word]],
    word_width: Callable[[Word], float],
) -> Layout:
    """Lay out a board and the words of its legend.

    The caller measures the width of labels and words, and chooses the words: the legend explains
    only what is visible.
    """
    names = {row.place.partition for row in board.rows} | {UNIT}
    names |= set(map(board.label_of, board.strips))
    left = MARGIN + 0.12 + max(width_of(shortened(name, LONGEST_NAME)) for name in names)
    panels, without_label = labelled(_entries(board), _panels(board, left, width_of), width_of)
    top = 0.6 + 0.2 * heading_lines + highest(panels)
    row_height = _share(MOST_INCHES, len(board.rows), SHORTEST_ROW, TALLEST_ROW)
    strip_height = _share(MOST_STRIP_INCHES, len(board.strips), SHORTEST_STRIP, TALLEST_STRIP)
    headings, rows, y = _rows(board.rows, top, row_height)
    if board.strips:
        headings.append(Heading(y, f"sessions of the {board.wording.members}"))
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
    """The height of each of several rows that share some room."""
    return min(most, max(least, inches / max(number, 1)))


def _rows(
    rows: Sequence[Row], top: float, row_height: float
) -> tuple[list[Heading], list[tuple[float, Row]], float]:
    """A heading for each group and topic, and below it their partitions."""
    headings: list[Heading] = []
    placed: list[tuple[float, Row]] = []
    y = top
    for (group, topic), some in groupby(rows, lambda row: row.place[:2]):
        headings.append(Heading(y, f"{group} · {topic}" if topic else group))
        y += GROUP_HEIGHT
        for row in some:
            placed.append((y, row))
            y += row_height
    return headings, placed, y


# --- time ------------------------------------------------------------------------------


def _panels(board: Board, left: float, width_of: Callable[[str], float]) -> list[Panel]:
    """The panel of the whole run, and of the inset; without labels."""
    from_us, to_us = board.closer or (0, board.end_us)
    right = right_end(_entries(board), from_us, to_us, width_of)
    if board.closer is None:
        return [Panel(left, right, 0, board.end_us)]
    middle = left + (right - left) * WHOLE
    return [
        Panel(left, middle - BETWEEN_PANELS / 2, 0, board.end_us),
        Panel(middle + BETWEEN_PANELS / 2, right, *board.closer),
    ]


def _entries(board: Board) -> list[Entry]:
    return [entry for entry in board.entries if entry.kind != EventKind.LOAD]


# --- the legend ------------------------------------------------------------------------


def _legend(
    words: Sequence[Word], word_width: Callable[[Word], float]
) -> list[tuple[tuple[float, Word], ...]]:
    """Put words one after the other, on as many lines as needed."""
    lines: list[list[tuple[float, Word]]] = [[]]
    x = MARGIN
    for word in words:
        if lines[-1] and x + word_width(word) > WIDTH - MARGIN:
            lines.append([])
            x = MARGIN
        lines[-1].append((x, word))
        x += word_width(word)
    return [tuple(line) for line in lines]
