"""What the picture of ownership shows in one panel: time, bars, strips and the timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reports import palette, samples
from reports.labels import free_place
from reports.ownership import Board, Row
from reports.ownership_layout import Layout
from reports.panel_drawing import draw_entries, draw_seconds
from reports.panels import Panel
from reports.paper import LABEL_SIZE, POINTS_AN_INCH
from reports.sessions import ZOMBIE
from reports.sheet import Box, Sheet, text_width
from reports.spans import Span

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
    """Where a span stands in a row of that height, if it does in this panel."""
    extent = panel.extent(span, thinnest)
    if extent is None:
        return None
    begins, ends = extent
    return (begins, y + height * (1 - share) / 2, ends - begins, height * share)


def _boxes(
    layout: Layout, panel: Panel, spans: Iterable[tuple[float, Span]], thinnest: float = 0
) -> list[Box]:
    """Where spans stand, each in the row at that height."""
    high = layout.row_height
    found = (_box(panel, y, span, high, thinnest=thinnest) for y, span in spans)
    return [box for box in found if box is not None]


def _bars(sheet: Sheet, layout: Layout, panel: Panel, shown: Board) -> None:
    """Who fetches: a bar in the looks of the member, with its name where it fits."""
    for y, row in layout.rows:
        for span in row.held:
            for box in _boxes(layout, panel, [(y, span)]):
                samples.held(sheet, box, shown.colours[span.what])
    by_look: dict[tuple[str, int], list[Box]] = {}
    for y, row in layout.rows:
        for span in row.fetched:
            look = (shown.colours[span.what], shown.stripes[span.what])
            by_look.setdefault(look, []).extend(_boxes(layout, panel, [(y, span)]))
    for (colour, stripes), boxes in by_look.items():
        samples.bars(sheet, boxes, colour, stripes)
    size = text_size(layout.row_height)
    if size >= SMALLEST_TEXT:
        for y, row in layout.rows:
            for at, span in _owner_names(panel, row, size * 0.94):
                samples.name(
                    sheet, (at, y + layout.row_height / 2), span.what, size * 0.94, shown
                )


def _owner_names(panel: Panel, row: Row, size: float) -> Iterator[tuple[float, Span]]:
    """Where the names of owners stand in their bars, clear of the lines of the timeline.

    A name is not written again for each of many bars of one owner that follow each other.
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
    """Where in a row no name can stand: at the lines of the timeline, and on breaches."""
    found = [(x, x) for x in panel.lines]
    for one in row.breaches:
        extent = panel.extent(one.span, samples.THINNEST)
        if extent is not None:
            found.append(extent)
    return sorted(found)


def _gaps(sheet: Sheet, layout: Layout, panel: Panel) -> None:
    """Hatched where there is room for a hatch, which takes long to draw; else just grey."""
    boxes = _boxes(layout, panel, [(y, gap) for y, row in layout.rows for gap in row.gaps])
    samples.gaps(sheet, [box for box in boxes if box[2] >= NARROWEST_HATCH])
    sheet.boxes([box for box in boxes if box[2] < NARROWEST_HATCH], palette.FAINT, zorder=1)


def _breaches(sheet: Sheet, layout: Layout, panel: Panel) -> None:
    """Split ownership in plain red, a zombie owner in hatched red, both above the bars."""
    found = [(y, one) for y, row in layout.rows for one in row.breaches]
    split = [(y, one.span) for y, one in found if one.is_split]
    zombie = [(y, one.span) for y, one in found if not one.is_split]
    samples.breaches(
        sheet,
        _boxes(layout, panel, split, samples.THINNEST),
        _boxes(layout, panel, zombie, samples.THINNEST),
    )


# --- consumers -------------------------------------------------------------------------


def _strips(sheet: Sheet, layout: Layout, panel: Panel, shown: Board) -> None:
    high = layout.strip_height
    for y, name in layout.strips:
        for span in shown.strips[name]:
            thinnest = samples.THINNEST if span.what == ZOMBIE else 0
            box = _box(panel, y, span, high, share=STRIP, thinnest=thinnest)
            if box is not None:
                samples.state(sheet, box, span.what, shown.colours[name], shown.stripes[name])
