"""The picture of messages: throughput, bytes at risk, lag, latency."""

from __future__ import annotations

from pathlib import Path

from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Sheet, in_lines, styled, text_width
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page_size import HEADING_SIZE, LABEL_SIZE, LEGEND_SIZE, MARGIN
from watchkeeper.reports.figure.panel_drawing import draw_entries, draw_seconds
from watchkeeper.reports.figure.panels import Panel
from watchkeeper.reports.messages.charts import Chart, Line, Mark, charts
from watchkeeper.reports.messages.layout import BESIDE, SAMPLE, UNIT, Layout, Plot, lay_out
from watchkeeper.reports.messages.message_path import MessagePath, message_path, numbers

NAME = "messages.png"

CROSS = 0.06
ON_PAPER = {"facecolor": palette.PAPER, "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
"""A background for words that lines cross."""


def write_messages_png(trace: Trace, folder: Path) -> str:
    """Draw the way of messages; return the name of the file."""
    path = message_path(trace)
    with styled():
        return write(folder / NAME, draw(path, charts(path)).png())


def draw(path: MessagePath, shown: list[Chart]) -> Sheet:
    """Draw charts on a sheet."""
    sentences = [f"{what}: {figure}." for what, figure in numbers(path)]
    lines = [line for text in sentences for line in in_lines(text[:1].upper() + text[1:])]
    layout = lay_out(
        path,
        shown,
        heading_lines=len(lines),
        width_of=lambda text: text_width(text, LABEL_SIZE, "bold"),
        title_width=lambda text: text_width(text, HEADING_SIZE, "bold"),
        word_width=lambda text: text_width(text, LEGEND_SIZE),
    )
    sheet = Sheet(layout.height)
    sheet.heading(path.header, lines)
    draw_seconds(sheet, layout.panel, layout.top, layout.bottom)
    for plot in layout.plots:
        _axis(sheet, plot, layout.panel)
        _lines(sheet, plot, layout.panel)
        for mark in plot.chart.marks:
            _cross(sheet, layout.panel.x(mark.t_us), plot.y(mark.value))
        _title(sheet, plot, layout.panel)
    draw_entries(sheet, layout.panel, layout.top, layout.bottom)
    _foot(sheet, layout)
    return sheet


def _axis(sheet: Sheet, plot: Plot, panel: Panel) -> None:
    """Numbers along the side, and a thin line through the chart at each."""
    heights = [(plot.y(value), text) for value, text in plot.chart.ticks]
    grid = [((panel.left, y), (panel.right, y)) for y, _ in heights]
    sheet.lines(grid, palette.GRID, zorder=0)
    base = [((panel.left, plot.bottom), (panel.right, plot.bottom))]
    sheet.lines(base, palette.FAINT, zorder=0.5)
    for y, text in heights:
        style = {"ha": "right", "va": "center_baseline", "fontsize": LABEL_SIZE}
        sheet.text(panel.left - 0.1, y, text, color=palette.SOFT_INK, **style)


def _lines(sheet: Sheet, plot: Plot, panel: Panel) -> None:
    for line in plot.chart.lines:
        drawn = [plot.corners(points, panel) for points in line.pieces]
        if line.is_filled:
            areas = [
                ((some[0][0], plot.bottom), *some, (some[-1][0], plot.bottom)) for some in drawn
            ]
            sheet.areas(areas, line.colour, zorder=1)
        else:
            style = {"linewidths": line.width, "linestyles": line.dash, "joinstyle": "miter"}
            sheet.lines(drawn, line.colour, zorder=3, **style)


def _cross(sheet: Sheet, x: float, y: float) -> None:
    cross = [((x - CROSS, y + d * CROSS), (x + CROSS, y - d * CROSS)) for d in (1, -1)]
    sheet.lines(cross, palette.BREACH, linewidths=1.6, zorder=8)


def _title(sheet: Sheet, plot: Plot, panel: Panel) -> None:
    """Draw the title of a chart, and its legend."""
    style = {"bbox": ON_PAPER, "zorder": 8}
    title = plot.chart.title
    sheet.text(panel.left, plot.title_y, title, fontsize=HEADING_SIZE, fontweight="bold", **style)
    for x, y, what in plot.words:
        _sample(sheet, x, y - 0.045, what)
        text = what.name if isinstance(what, Line) else what.text
        sheet.text(x + SAMPLE + BESIDE, y, text, fontsize=LEGEND_SIZE, **style)


def _sample(sheet: Sheet, x: float, y: float, what: Line | Mark) -> None:
    """Draw how a line or a mark looks."""
    if isinstance(what, Mark):
        _cross(sheet, x + SAMPLE / 2, y)
    elif what.is_filled:
        sheet.boxes([(x, y - 0.055, SAMPLE, 0.11)], what.colour, zorder=8)
    else:
        look = {"linewidths": what.width, "linestyles": what.dash, "zorder": 8}
        sheet.lines([((x, y), (x + SAMPLE, y))], what.colour, **look)


def _foot(sheet: Sheet, layout: Layout) -> None:
    """Draw the unit of time, and the sentence on what is left out."""
    soft = {"color": palette.SOFT_INK}
    y = layout.bottom + 0.17
    sheet.text(layout.panel.left - 0.12, y, UNIT, ha="right", fontsize=LABEL_SIZE, **soft)
    sentences = []
    if layout.without_label:
        entries = counted(layout.without_label, "entry", "entries")
        sentences.append(f"There is no room for the labels of {entries} of the timeline.")
    left_out = sum(plot.chart.left_out for plot in layout.plots)
    if left_out:
        sentences.append(f"{counted(left_out, 'line')} that come less high are not drawn.")
    sheet.text(MARGIN, y + 0.27, " ".join(sentences), fontsize=LEGEND_SIZE, **soft)
