"""The layout of the picture of messages, in inches; pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.reports.figure.page_size import MARGIN
from watchkeeper.reports.figure.panels import Panel, highest, labelled, right_end
from watchkeeper.reports.messages.charts import Chart, Line, Mark, Piece
from watchkeeper.reports.messages.message_path import MessagePath

TITLE_HEIGHT = 0.36
LEGEND_STEP = 0.2
PLOT_HEIGHT = 0.92
GAP = 0.14
AXIS_HEIGHT = 0.36
NOTE_HEIGHT = 0.25
SAMPLE = 0.28
"""How wide the sample of a line is in a legend."""
BESIDE = 0.07
BETWEEN = 0.24
UNIT = "seconds"


class Word(NamedTuple):
    """A word of a legend, with the positions of its sample and base line."""

    x: float
    y: float
    what: Line | Mark


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart and its position."""

    chart: Chart
    title_y: float
    words: tuple[Word, ...]
    top: float
    bottom: float

    def y(self, value: float) -> float:
        """The position of a value."""
        return self.bottom - self.chart.share(value) * (self.bottom - self.top)

    def corners(self, points: Piece, panel: Panel) -> list[tuple[float, float]]:
        """A polyline as it is drawn: horizontal, then straight up or down."""
        found: list[tuple[float, float]] = []
        for t_us, value in points:
            x = panel.x(t_us)
            if found:
                found.append((x, found[-1][1]))
            found.append((x, self.y(value)))
        return found


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of all parts."""

    panel: Panel
    top: float
    plots: tuple[Plot, ...]
    bottom: float
    without_label: int
    """How many entries of the timeline have no label for want of room."""

    @property
    def height(self) -> float:
        """Of the whole canvas."""
        return self.bottom + AXIS_HEIGHT + (NOTE_HEIGHT if self.without_label else 0) + 0.1


def lay_out(
    path: MessagePath,
    charts: Sequence[Chart],
    *,
    heading_lines: int,
    width_of: Callable[[str], float],
    title_width: Callable[[str], float],
    word_width: Callable[[str], float],
) -> Layout:
    """Lay out everything; the caller measures the width of words."""
    numbers = [text for chart in charts for _, text in chart.ticks]
    left = MARGIN + 0.16 + max(width_of(text) for text in (UNIT, *numbers))
    shown = [entry for entry in path.entries if entry.kind != EventKind.LOAD]
    right = right_end(shown, 0, path.end_us, width_of)
    (panel,), without_label = labelled(shown, [Panel(left, right, 0, path.end_us)], width_of)
    top = y = 0.6 + 0.2 * heading_lines + highest([panel])
    plots = []
    for chart in charts:
        plot = _plot(chart, y, panel, title_width, word_width)
        plots.append(plot)
        y = plot.bottom + GAP
    return Layout(panel, top, tuple(plots), y - GAP, without_label)


def _plot(
    chart: Chart,
    y: float,
    panel: Panel,
    title_width: Callable[[str], float],
    word_width: Callable[[str], float],
) -> Plot:
    """A chart with its title and its legend above it."""
    title_y = word_y = y + 0.22
    words = []
    x = begins = panel.left + title_width(chart.title) + BETWEEN
    explained: list[Line | Mark] = [*chart.lines, *chart.marks]
    for what in explained:
        text = what.name if isinstance(what, Line) else what.text
        wide = SAMPLE + BESIDE + word_width(text)
        if x + wide > panel.right and x > begins:
            x, word_y = begins, word_y + LEGEND_STEP
        words.append(Word(x, word_y, what))
        x += wide + BETWEEN
    top = y + TITLE_HEIGHT + word_y - title_y
    return Plot(chart, title_y, tuple(words), top, top + PLOT_HEIGHT)
