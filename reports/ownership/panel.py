"""One panel of the picture of ownership: time, bars, strips and the timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from watchkeeper.reports.facts.sessions import ZOMBIE
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Box, Sheet, text_width
from watchkeeper.reports.figure.labels import free_place
from watchkeeper.reports.figure.page_size import LABEL_SIZE, POINTS_AN_INCH
from watchkeeper.reports.figure.panel_drawing import draw_entries, draw_seconds
from watchkeeper.reports.figure.panels import Panel
from watchkeeper.reports.ownership import legend
from watchkeeper.reports.ownership.layout import Layout
from watchkeeper.reports.ownership.ownership import Board, Row

NARROWEST_HATCH = 0.05
SMALLEST_TEXT = 5.5
NAME_AGAIN = 4.0
"""After how many inches the name of an owner is written once more."""
BAR = 0.82
"""How much of a row its bar fills."""
STRIP = 0.52
"""The same for the strip of a consumer."""


def draw_panel(sheet: Sheet, layout: Layout, panel: Panel, shown: Board) -> None:
    """Draw one panel, without the names of its rows."""
    draw_seconds(sheet, panel, layout.top, layout.bottom)
    _gaps(sheet, layout, panel)
    _bars(sheet, layout, panel, shown)
    _breaches(sheet, layout, panel)
    _strips(sheet, layout, panel, shown)
    draw_entries(sheet, panel, layout.top, layout.bottom)


def text_size(height: float) -> float:
    """How large text can be in rows of this height."""
    return min(LABEL_SIZE, height * POINTS_AN_INCH * 0.8)


# --- partitions ------------------------------------------------------------------------


def _box(
    panel: Panel, y: float, span: Span, height: float, *, share: float = BAR, thinnest: float = 0
) -> Box | None:
    """The box of a span in a row at a height; None if it is not visible in this panel."""
    extent = panel.extent(span, thinnest)
    if extent is None:
        return None
    begins, ends = extent
    return (begins, y + height * (1 - share) / 2, ends - begins, height * share)


def _boxes(
    layout: Layout, panel: Panel, spans: Iterable[tuple[float, Span]], thinnest: float = 0
) -> list[Box]:
    """The boxes of spans, each in the row at its height."""
    high = layout.row_height
    found = (_box(panel, y, span, high, thinnest=thinnest) for y, span in spans)
    return [box for box in found if box is not None]


def _bars(sheet: Sheet, layout: Layout, panel: Panel, shown: Board) -> None:
    """Draw the fetchers: a bar in the look of each member, with its name where it fits."""
    for y, row in layout.rows:
        for span in row.held:
            for box in _boxes(layout, panel, [(y, span)]):
                legend.held(sheet, box, shown.colours[span.what])
    by_look: dict[tuple[str, int], list[Box]] = {}
    for y, row in layout.rows:
        for span in row.fetched:
            look = (shown.colours[span.what], shown.stripes[span.what])
            by_look.setdefault(look, []).extend(_boxes(layout, panel, [(y, span)]))
    for (colour, stripes), boxes in by_look.items():
        legend.bars(sheet, boxes, colour, stripes)
    size = text_size(layout.row_height)
    if size >= SMALLEST_TEXT:
        for y, row in layout.rows:
            for at, span in _owner_names(panel, row, size * 0.94):
                legend.name(sheet, (at, y + layout.row_height / 2), span.what, size * 0.94, shown)


def _owner_names(panel: Panel, row: Row, size: float) -> Iterator[tuple[float, Span]]:
    """The positions of owners' names in their bars, clear of the lines of the timeline.

    A name is not repeated for consecutive bars of one owner.
    """
    named, named_at = "", float("-inf")
    taken = _taken(panel, row)
    for span in row.fetched:
        extent = panel.extent(span)
        if extent is None:
            continue
        at = free_place(*extent, text_width(span.what, size) + 0.12, taken)
        if at is None or (span.what == named and at < named_at + NAME_AGAIN):
            continue
        named, named_at = span.what, at
        yield at + 0.06, span


def _taken(panel: Panel, row: Row) -> list[tuple[float, float]]:
    """The intervals of a row in which no name can stand: timeline lines and breaches."""
    found = [(x, x) for x in panel.lines]
    for breach in row.breaches:
        extent = panel.extent(breach.span, legend.THINNEST)
        if extent is not None:
            found.append(extent)
    return sorted(found)


def _gaps(sheet: Sheet, layout: Layout, panel: Panel) -> None:
    """Hatched where there is room for a hatch, which takes long to draw; else just grey."""
    boxes = _boxes(layout, panel, [(y, gap) for y, row in layout.rows for gap in row.gaps])
    legend.gaps(sheet, [box for box in boxes if box[2] >= NARROWEST_HATCH])
    sheet.boxes([box for box in boxes if box[2] < NARROWEST_HATCH], palette.FAINT, zorder=1)


def _breaches(sheet: Sheet, layout: Layout, panel: Panel) -> None:
    """Split ownership in plain red, a zombie owner in hatched red, both above the bars."""
    found = [(y, breach) for y, row in layout.rows for breach in row.breaches]
    split = [(y, breach.span) for y, breach in found if breach.is_split]
    zombie = [(y, breach.span) for y, breach in found if not breach.is_split]
    legend.breaches(
        sheet,
        _boxes(layout, panel, split, legend.THINNEST),
        _boxes(layout, panel, zombie, legend.THINNEST),
    )


# --- consumers -------------------------------------------------------------------------


def _strips(sheet: Sheet, layout: Layout, panel: Panel, shown: Board) -> None:
    high = layout.strip_height
    for y, name in layout.strips:
        for span in shown.strips[name]:
            thinnest = legend.THINNEST if span.what == ZOMBIE else 0
            box = _box(panel, y, span, high, share=STRIP, thinnest=thinnest)
            if box is not None:
                legend.state(sheet, box, span.what, shown.colours[name], shown.stripes[name])
