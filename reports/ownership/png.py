"""The picture of ownership: who fetched each partition, with splits, zombies and gaps."""

from __future__ import annotations

from pathlib import Path

from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.axis_ticks import tick_text
from watchkeeper.reports.figure.canvas import Sheet, in_lines, styled, text_width
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.labels import shortened
from watchkeeper.reports.figure.page_size import LABEL_SIZE, LEGEND_SIZE, MARGIN
from watchkeeper.reports.ownership import legend
from watchkeeper.reports.ownership.layout import (
    GROUP_HEIGHT,
    LEGEND_STEP,
    LONGEST_NAME,
    UNIT,
    Layout,
    lay_out,
)
from watchkeeper.reports.ownership.ownership import Board, board, shortened_board
from watchkeeper.reports.ownership.panel import SMALLEST_TEXT, draw_panel, text_size

NAME = "ownership.png"

MOST_ROWS = 60
MOST_STRIPS = 40
MOST_MARKS = 20_000
ON_PAPER = {"facecolor": palette.PAPER, "edgecolor": "none", "pad": 1.5}
"""A background for words that lines cross."""


def write_ownership_png(trace: Trace, folder: Path) -> str:
    """Draw the ownership of partitions; return the name of the file."""
    with styled():
        return write(folder / NAME, draw(drawn_board(trace)).png())


def drawn_board(trace: Trace) -> Board:
    """Return as much of the ownership as a picture has room for."""
    return shortened_board(
        board(trace), most_rows=MOST_ROWS, most_marks=MOST_MARKS, most_strips=MOST_STRIPS
    )


def draw(shown: Board) -> Sheet:
    """Draw a board on a sheet."""
    lines, layout = heading_of(shown), layout_of(shown)
    sheet = Sheet(layout.height)
    sheet.heading(shown.header, lines)
    _names(sheet, layout, shown)
    for panel in layout.panels:
        draw_panel(sheet, layout, panel, shown)
    _closer(sheet, layout)
    _headings(sheet, layout)
    _legend(sheet, layout, shown)
    return sheet


def heading_of(shown: Board) -> list[str]:
    """Return the lines of text under the title."""
    return [line for text in (shown.summary, shown.banner) for line in in_lines(text)]


def layout_of(shown: Board) -> Layout:
    """Return the positions of all parts of the picture of a board."""
    return lay_out(
        shown,
        heading_lines=len(heading_of(shown)),
        width_of=lambda text: text_width(text, LABEL_SIZE, "bold"),
        words=lambda panels: legend.words(shown, panels),
        word_width=legend.word_width,
    )


def _names(sheet: Sheet, layout: Layout, shown: Board) -> None:
    """Draw the name of each row, and the unit of time."""
    named = [(y, row.place.partition, layout.row_height) for y, row in layout.rows]
    named += [(y, shown.label_of(name), layout.strip_height) for y, name in layout.strips]
    for y, name, high in named:
        size = text_size(high)
        if size >= SMALLEST_TEXT:
            text = shortened(name, LONGEST_NAME)
            style = {"ha": "right", "va": "center_baseline", "fontsize": size}
            sheet.text(layout.left - 0.1, y + high / 2, text, **style)
    y = layout.bottom + 0.17
    soft = {"color": palette.SOFT_INK}
    sheet.text(layout.left - 0.12, y, UNIT, ha="right", fontsize=8.5, **soft)
    if layout.without_label:
        unlabelled = counted(layout.without_label, "entry", "entries")
        text = f"There is no room for the labels of {unlabelled} of the timeline."
        sheet.text(MARGIN, y + 0.27, text, fontsize=LEGEND_SIZE, **soft)


def _closer(sheet: Sheet, layout: Layout) -> None:
    """Show which part of the run the second panel is, and where that is in the first."""
    top, high = layout.top, layout.bottom - layout.top
    for outer, part in zip(layout.panels, layout.panels[1:], strict=False):
        begins, ends = outer.x(part.from_us) - 0.02, outer.x(part.to_us) + 0.02
        boxes = [
            (begins, top, ends - begins, GROUP_HEIGHT - 0.06),
            (part.left, top, part.right - part.left, high),
        ]
        style = {"edgecolors": palette.CLOSER, "linewidths": 0.9, "zorder": 7}
        sheet.boxes(boxes, "none", **style)
        sheet.lines([((ends, top), (part.left, top))], palette.CLOSER, zorder=7)
        title = f"closer: {tick_text(part.from_us)} s to {tick_text(part.to_us)} s"
        style = {"fontsize": LABEL_SIZE, "fontweight": "bold", "color": palette.CLOSER}
        sheet.text(part.left + 0.1, top + 0.23, title, bbox=ON_PAPER, zorder=8, **style)


def _headings(sheet: Sheet, layout: Layout) -> None:
    for heading in layout.headings:
        sheet.text(
            MARGIN,
            heading.y + 0.25,
            heading.text,
            fontweight="bold",
            bbox=ON_PAPER,
            zorder=8,
        )


def _legend(sheet: Sheet, layout: Layout, shown: Board) -> None:
    for at, line in enumerate(layout.legend):
        for x, word in line:
            y = layout.legend_top + 0.1 + at * LEGEND_STEP
            legend.sample(sheet, (x, y - 0.1, legend.WIDE, 0.14), word.look, shown)
            text_x = x + legend.indent(word)
            sheet.text(text_x, y, word.text, fontsize=LEGEND_SIZE)
