"""The parts that every panel has: the axis of seconds, and the timeline."""

from __future__ import annotations

from matplotlib.ticker import MaxNLocator

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.axis_ticks import tick_text
from watchkeeper.reports.figure.canvas import Line, Sheet, text_width
from watchkeeper.reports.figure.page_size import LABEL_SIZE
from watchkeeper.reports.figure.panels import LABEL_STEP, Label, Panel

INCHES_A_TICK = 0.5
ROUND_STEPS = (1, 2, 5, 10)
US = 1_000_000
MOST_PLAIN_ENTRIES = 15
"""With more entries in the timeline, their lines are thin and their ends unmarked."""


def draw_seconds(sheet: Sheet, panel: Panel, top: float, bottom: float) -> None:
    """Draw seconds along the bottom, and a thin grid line at each number."""
    longest = text_width(tick_text(panel.to_us), LABEL_SIZE)
    most = int((panel.right - panel.left) / max(INCHES_A_TICK, 1.6 * longest))
    ticks = ticks_us(panel.from_us, panel.to_us, most)
    sheet.lines(
        [((panel.x(at), top), (panel.x(at), bottom)) for at in ticks],
        palette.GRID,
        zorder=0,
    )
    for at in ticks:
        y = bottom + 0.17
        sheet.text(panel.x(at), y, tick_text(at), ha="center", color=palette.SOFT_INK)


def ticks_us(from_us: int, to_us: int, most: int) -> list[int]:
    """Return the moments of a part of a run that get a number: round ones, at most so many."""
    locator = MaxNLocator(max(most, 1), steps=ROUND_STEPS, min_n_ticks=1)
    found = (round(at * US) for at in locator.tick_values(from_us / US, to_us / US))
    return sorted({at for at in found if from_us <= at <= to_us})


def draw_entries(sheet: Sheet, panel: Panel, top: float, bottom: float) -> None:
    """Draw the timeline of a panel across all its rows."""
    is_crowded = len(panel.labels) > MOST_PLAIN_ENTRIES
    for label in panel.labels:
        _entry(sheet, panel, label, (top, bottom), is_crowded)


def _entry(
    sheet: Sheet, panel: Panel, label: Label, between: tuple[float, float], is_crowded: bool
) -> None:
    """Draw faults and changes across all rows: a band for a span, a line for a moment."""
    entry = label.entry
    top, bottom = between
    begins, ends = panel.extent(entry.span) or (panel.left, panel.left)
    above = top + 0.02 - LABEL_STEP * (label.level or 0)
    is_fault = entry.kind == EventKind.FAULT
    edges: list[Line] = []
    if entry.span.start_us >= panel.from_us:
        edges.append(((begins, above), (begins, bottom)))
    if entry.lasts:
        band = (begins, top, ends - begins, bottom - top)
        sheet.boxes([band], palette.FAULT, alpha=0.13, zorder=5)
    if entry.lasts and not is_crowded and entry.span.end_us <= panel.to_us:
        edges.append(((ends, top), (ends, bottom)))
    if not is_crowded:  # a light outline keeps the lines visible on dark bars
        sheet.lines(edges, palette.PAPER, linewidths=2.0, alpha=0.6, zorder=6)
    colour = palette.FAULT if is_fault else palette.GAP
    dashes = (0, (4, 2)) if is_fault else (0, (1, 2))
    wide = 0.5 if is_crowded else 0.9
    sheet.lines(edges, colour, linewidths=wide, linestyles=[dashes], zorder=6)
    if label.level is not None:
        weight = "bold" if is_fault else "normal"
        style = {"fontsize": LABEL_SIZE, "color": colour, "fontweight": weight, "zorder": 7}
        sheet.text(begins + 0.04, above - 0.04, entry.label, **style)
