"""Where everything stands in the picture of ownership, in inches; pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from reports.labels import levels, shortened
from reports.ownership import Board, Row
from reports.paper import MARGIN, WIDTH
from reports.timeline import Entry

RIGHT = 0.35
LATE = 0.86
"""What begins later in the run has its label in the right margin."""
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


@dataclass(frozen=True, slots=True)
class Heading:
    """The name of a group of rows."""

    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """An entry of the timeline, and the level of its label; None where there is no room."""

    entry: Entry
    level: int | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things stand; `y` is the top of a thing."""

    left: float
    right: float
    """Where the axis of time ends."""
    top: float
    row_height: float
    strip_height: float
    headings: tuple[Heading, ...]
    rows: tuple[tuple[float, Row], ...]
    strips: tuple[tuple[float, str], ...]
    labels: tuple[Label, ...]
    bottom: float
    end_us: int
    legend: tuple[tuple[tuple[float, str], ...], ...]
    """Its lines: where each word stands, and which."""

    @property
    def without_label(self) -> int:
        """How many entries of the timeline have no label."""
        return sum(1 for label in self.labels if label.level is None)

    @property
    def legend_top(self) -> float:
        """Where the legend begins."""
        return self.bottom + AXIS_HEIGHT + (NOTE_HEIGHT if self.without_label else 0)

    @property
    def height(self) -> float:
        """Of the whole sheet."""
        return self.legend_top + LEGEND_STEP * len(self.legend) + 0.12

    @property
    def lines(self) -> list[float]:
        """Where lines of the timeline go through everything."""
        spans = [label.entry.span for label in self.labels]
        return sorted({self.x(at) for one in spans for at in (one.start_us, one.end_us)})

    def x(self, at_us: int) -> float:
        """Where a moment of the run stands."""
        return self.left + (self.right - self.left) * at_us / max(self.end_us, 1)


def lay_out(
    board: Board,
    *,
    heading_lines: int,
    width_of: Callable[[str], float],
    words: Sequence[str],
    word_width: Callable[[str], float],
) -> Layout:
    """Find a place for everything on a board, and for the words of its legend.

    How wide a label and a word of the legend are is for the caller to say.
    """
    names = {row.place.partition for row in board.rows} | set(board.strips) | {UNIT}
    left = MARGIN + 0.12 + max(width_of(shortened(name, LONGEST_NAME)) for name in names)
    right = WIDTH - _right_margin(board, width_of)
    labels = _labels(board, left, right, width_of)
    used = [label.level + 1 for label in labels if label.level is not None]
    top = 0.6 + 0.2 * heading_lines + LABEL_STEP * max(used, default=0)
    row_height = _share(MOST_INCHES, len(board.rows), SHORTEST_ROW, TALLEST_ROW)
    strip_height = _share(MOST_STRIP_INCHES, len(board.strips), SHORTEST_STRIP, TALLEST_STRIP)
    headings, rows, y = _rows(board.rows, top, row_height)
    if board.strips:
        headings.append(Heading(y, "sessions of the consumers"))
    y += GROUP_HEIGHT
    strips = tuple((y + at * strip_height, name) for at, name in enumerate(board.strips))
    return Layout(
        left=left,
        right=right,
        top=top,
        row_height=row_height,
        strip_height=strip_height,
        headings=tuple(headings),
        rows=tuple(rows),
        strips=strips,
        labels=tuple(labels),
        bottom=y + len(strips) * strip_height + 0.05,
        end_us=board.end_us,
        legend=tuple(_legend(words, word_width)),
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


def _right_margin(board: Board, width_of: Callable[[str], float]) -> float:
    """Room for the labels of what happens late."""
    late = [one.label for one in _labelled(board) if one.span.start_us > LATE * board.end_us]
    return max([RIGHT, *(width_of(label) for label in late)])


def _labelled(board: Board) -> list[Entry]:
    return [one for one in board.entries if one.kind != "load"]


def _labels(
    board: Board, left: float, right: float, width_of: Callable[[str], float]
) -> list[Label]:
    """Labels stand at the beginning of what they name, on as many levels as they need."""
    wanted = _labelled(board)
    scale = (right - left) / max(board.end_us, 1)
    places = []
    for one in wanted:
        begins = left + one.span.start_us * scale
        places.append((begins, begins + width_of(one.label) + 0.15))
    found = levels(places, LABEL_LEVELS)
    return [Label(one, level) for one, level in zip(wanted, found, strict=True)]


def _legend(
    words: Sequence[str], word_width: Callable[[str], float]
) -> list[tuple[tuple[float, str], ...]]:
    """Words one after the other, on as many lines as they need."""
    lines: list[list[tuple[float, str]]] = [[]]
    x = MARGIN
    for word in words:
        if lines[-1] and x + word_width(word) > WIDTH - MARGIN:
            lines.append([])
            x = MARGIN
        lines[-1].append((x, word))
        x += word_width(word)
    return [tuple(line) for line in lines]
