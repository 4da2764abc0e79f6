"""The picture of ownership: who fetched each partition, and what went wrong meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from model.trace import Trace
from reports import palette, samples
from reports.files import write
from reports.labels import counted, free_place, shortened
from reports.ownership import Board, Row, board, shortened_board
from reports.ownership_layout import (
    LABEL_STEP,
    LEGEND_STEP,
    LONGEST_NAME,
    UNIT,
    Label,
    Layout,
    lay_out,
)
from reports.paper import LABEL_SIZE, LEGEND_SIZE, MARGIN, POINTS_AN_INCH
from reports.sessions import ZOMBIE
from reports.sheet import Box, Line, Sheet, in_lines, styled, text_width
from reports.spans import Span
from reports.ticks import tick_text, ticks_us

NAME = "ownership.png"

MOST_ROWS = 60
MOST_STRIPS = 40
MOST_MARKS = 20_000
MOST_TICKS = 20
MOST_PLAIN_ENTRIES = 15
"""With more entries in the timeline, their lines are thin and their ends have none."""
THINNEST = 0.03
"""How wide an overlap, or a dead session, is drawn at least, so that none can be missed."""
NARROWEST_HATCH = 0.05
SMALLEST_TEXT = 5.5
NAME_AGAIN = 4.0
"""After how many inches the name of an owner is written once more."""
BAR = 0.82
"""How much of a row its bar fills."""
STRIP = 0.52
"""The same for the strip of a consumer."""


def write_ownership_png(trace: Trace, folder: Path) -> str:
    """Draw who fetched what; the name of the file."""
    shown = shortened_board(
        board(trace), most_rows=MOST_ROWS, most_marks=MOST_MARKS, most_strips=MOST_STRIPS
    )
    with styled():
        return write(folder / NAME, draw(shown).png())


def draw(shown: Board) -> Sheet:
    """Draw a board on a sheet."""
    lines = [line for text in (shown.summary, shown.banner) for line in in_lines(text)]
    layout = lay_out(
        shown,
        heading_lines=len(lines),
        width_of=lambda text: text_width(text, LABEL_SIZE, "bold"),
        words=samples.words(shown),
        word_width=samples.word_width,
    )
    sheet = Sheet(layout.height)
    sheet.heading(shown.header, lines)
    _axis(sheet, layout)
    _partitions(sheet, layout, shown)
    _strips(sheet, layout, shown)
    _timeline(sheet, layout)
    _headings(sheet, layout)
    _legend(sheet, layout)
    return sheet


def _axis(sheet: Sheet, layout: Layout) -> None:
    """Seconds along the bottom, and a thin line through everything at each number."""
    ticks = ticks_us(layout.end_us, MOST_TICKS)
    sheet.lines(
        [((layout.x(at), layout.top), (layout.x(at), layout.bottom)) for at in ticks],
        palette.GRID,
        zorder=0,
    )
    y = layout.bottom + 0.17
    for at in ticks:
        sheet.text(layout.x(at), y, tick_text(at), ha="center", color=palette.SOFT_INK)
    sheet.text(layout.left - 0.12, y, UNIT, ha="right", fontsize=8.5, color=palette.SOFT_INK)
    if layout.without_label:
        said = counted(layout.without_label, "entry", "entries")
        text = f"There is no room for the labels of {said} of the timeline."
        sheet.text(MARGIN, y + 0.27, text, fontsize=LEGEND_SIZE, color=palette.SOFT_INK)


def _headings(sheet: Sheet, layout: Layout) -> None:
    for heading in layout.headings:
        sheet.text(
            MARGIN,
            heading.y + 0.25,
            heading.text,
            fontweight="bold",
            bbox={"facecolor": palette.PAPER, "edgecolor": "none", "pad": 1.5},
            zorder=8,
        )


# --- partitions ------------------------------------------------------------------------


def _partitions(sheet: Sheet, layout: Layout, shown: Board) -> None:
    size = _text_size(layout.row_height)
    for y, row in layout.rows:
        if size >= SMALLEST_TEXT:
            _name(sheet, layout, y + layout.row_height / 2, row.place.partition, size)
    _gaps(sheet, layout)
    _bars(sheet, layout, shown, size)
    _overlaps(sheet, layout)


def _text_size(height: float) -> float:
    """How large text can be in rows of this height."""
    return min(LABEL_SIZE, height * POINTS_AN_INCH * 0.8)


def _name(sheet: Sheet, layout: Layout, y: float, name: str, size: float) -> None:
    text = shortened(name, LONGEST_NAME)
    sheet.text(layout.left - 0.1, y, text, ha="right", va="center_baseline", fontsize=size)


def _extent(layout: Layout, span: Span, thinnest: float = 0) -> tuple[float, float]:
    """Where a span begins and ends."""
    begins = layout.x(span.start_us)
    return begins, max(layout.x(span.end_us), begins + thinnest)


def _box(
    layout: Layout,
    y: float,
    span: Span,
    height: float,
    *,
    share: float = BAR,
    thinnest: float = 0,
) -> Box:
    """Where a span stands, in a row of that height."""
    begins, ends = _extent(layout, span, thinnest)
    return (begins, y + height * (1 - share) / 2, ends - begins, height * share)


def _bars(sheet: Sheet, layout: Layout, shown: Board, size: float) -> None:
    """Who fetches: a bar in the colour of the member, with its name where it fits."""
    high = layout.row_height
    spans = [(y, span) for y, row in layout.rows for span in row.fetched]
    boxes = [_box(layout, y, span, high) for y, span in spans]
    sheet.boxes(boxes, [shown.colours[span.what] for _, span in spans], zorder=2)
    if size >= SMALLEST_TEXT:
        for y, row in layout.rows:
            _owner_names(sheet, layout, y, row, shown.colours, size * 0.94)


def _owner_names(
    sheet: Sheet, layout: Layout, y: float, row: Row, colours: Mapping[str, str], size: float
) -> None:
    """Write the names of owners into their bars, clear of the lines of the timeline.

    A name is not written again for each of many bars of one owner that follow each other.
    """
    named, named_at = "", float("-inf")
    taken = _taken(layout, row)
    for span in row.fetched:
        begins, ends = layout.x(span.start_us), layout.x(span.end_us)
        at = free_place(begins, ends, text_width(span.what, size) + 0.12, taken)
        if at is None or (span.what == named and at < named_at + NAME_AGAIN):
            continue
        named, named_at = span.what, at
        sheet.text(
            at + 0.06,
            y + layout.row_height / 2,
            span.what,
            va="center_baseline",
            fontsize=size,
            color=palette.text_on(colours[span.what]),
        )


def _taken(layout: Layout, row: Row) -> list[tuple[float, float]]:
    """Where in a row no name can stand: at the lines of the timeline, and on overlaps."""
    lines = [(x, x) for x in layout.lines]
    spans = [one.span for one in row.overlaps]
    return sorted(lines + [_extent(layout, span, THINNEST) for span in spans])


def _gaps(sheet: Sheet, layout: Layout) -> None:
    """Hatched where there is room for a hatch, which takes long to draw; else just grey."""
    high = layout.row_height
    boxes = [_box(layout, y, gap, high) for y, row in layout.rows for gap in row.gaps]
    samples.gaps(sheet, [box for box in boxes if box[2] >= NARROWEST_HATCH])
    sheet.boxes([box for box in boxes if box[2] < NARROWEST_HATCH], palette.FAINT, zorder=1)


def _overlaps(sheet: Sheet, layout: Layout) -> None:
    """Split ownership in plain red, a zombie owner in hatched red, both above the bars."""
    high = layout.row_height
    found = [(y, one) for y, row in layout.rows for one in row.overlaps]
    split = [
        _box(layout, y, one.span, high, thinnest=THINNEST) for y, one in found if one.is_split
    ]
    zombie = [
        _box(layout, y, one.span, high, thinnest=THINNEST) for y, one in found if not one.is_split
    ]
    samples.overlaps(sheet, split, zombie)


# --- consumers -------------------------------------------------------------------------


def _strips(sheet: Sheet, layout: Layout, shown: Board) -> None:
    high = layout.strip_height
    size = _text_size(high)
    for y, name in layout.strips:
        _name(sheet, layout, y + high / 2, name, size)
        for span in shown.strips[name]:
            thinnest = THINNEST if span.what == ZOMBIE else 0
            box = _box(layout, y, span, high, share=STRIP, thinnest=thinnest)
            samples.state(sheet, box, span.what, shown.colours[name])


# --- the timeline ----------------------------------------------------------------------


def _timeline(sheet: Sheet, layout: Layout) -> None:
    """Faults and changes, through everything: a band for what lasts, a line for a moment."""
    is_crowded = len(layout.labels) > MOST_PLAIN_ENTRIES
    for label in layout.labels:
        _entry(sheet, layout, label, is_crowded)


def _entry(sheet: Sheet, layout: Layout, label: Label, is_crowded: bool) -> None:
    entry, span = label.entry, label.entry.span
    begins, ends = layout.x(span.start_us), layout.x(span.end_us)
    above = layout.top + 0.02 - LABEL_STEP * (label.level or 0)
    is_fault = entry.kind == "fault"
    colour = palette.FAULT if is_fault else palette.GAP
    edges: list[Line] = [((begins, above), (begins, layout.bottom))]
    if entry.lasts:
        band = (begins, layout.top, ends - begins, layout.bottom - layout.top)
        sheet.boxes([band], palette.FAULT, alpha=0.13, zorder=5)
    if entry.lasts and not is_crowded:
        edges.append(((ends, layout.top), (ends, layout.bottom)))
    if not is_crowded:  # light around the lines, so that they can be seen on dark bars
        sheet.lines(edges, palette.PAPER, linewidths=2.0, alpha=0.6, zorder=6)
    dashes = (0, (4, 2)) if is_fault else (0, (1, 2))
    wide = 0.5 if is_crowded else 0.9
    sheet.lines(edges, colour, linewidths=wide, linestyles=[dashes], zorder=6)
    if label.level is not None:
        _entry_label(sheet, begins, above, entry.label, colour, is_fault)


def _entry_label(
    sheet: Sheet, x: float, y: float, text: str, colour: str, is_fault: bool
) -> None:
    weight = "bold" if is_fault else "normal"
    sheet.text(x + 0.04, y, text, fontsize=LABEL_SIZE, color=colour, fontweight=weight, zorder=7)


# --- the legend ------------------------------------------------------------------------


def _legend(sheet: Sheet, layout: Layout) -> None:
    for at, line in enumerate(layout.legend):
        for x, word in line:
            y = layout.legend_top + 0.1 + at * LEGEND_STEP
            samples.sample(sheet, (x, y - 0.1, samples.WIDE, 0.14), word)
            sheet.text(x + samples.WIDE + 0.07, y, word, fontsize=LEGEND_SIZE)
