"""The picture of leaders: a lane for each partition, in the colour of its leader.

The lane is as high as the ISR is full: half of it where half of the replicas are in sync. A white
notch is a new leader epoch. Above the lanes is the controller.
"""

from __future__ import annotations

from pathlib import Path

from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.leaders import NONE, Leaders, PartitionLeaders, leaders
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.facts.timeline import entries
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Sheet, in_lines, styled, text_width
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.labels import free_place, shortened
from watchkeeper.reports.figure.page_size import LABEL_SIZE, LEGEND_SIZE, MARGIN
from watchkeeper.reports.figure.panel_drawing import draw_entries, draw_seconds
from watchkeeper.reports.figure.panels import Panel, highest, labelled, right_end

NAME = "leaders.png"
MOST_LANES = 60
LANE = 0.34
BAR = 0.26
LONGEST_NAME = 22
THINNEST = 0.015
LEFT = 1.7
GAP = 0.2
LEGEND_BOX = 0.16


def write_leaders_png(trace: Trace, folder: Path) -> str:
    """Draw who led each partition; return the name of the file."""
    with styled():
        return write(folder / NAME, draw(trace).png())


def draw(trace: Trace) -> Sheet:
    """Draw the lanes on a sheet."""
    found = leaders(trace)
    shown = found.partitions[:MOST_LANES]
    lines = in_lines(summary(found))
    panel, without_label = _panel(trace)
    top = 0.75 + 0.2 * len(lines) + highest([panel])
    bottom = top + (len(shown) + 1) * LANE + GAP
    sheet = Sheet(bottom + 0.95)
    sheet.heading(trace.header, lines)
    colours = palette.consumer_colours(_brokers(found))
    draw_seconds(sheet, panel, top, bottom)
    soft = {"color": palette.SOFT_INK, "fontsize": LABEL_SIZE}
    sheet.text(LEFT - 0.12, bottom + 0.17, "seconds", ha="right", **soft)
    _reigns(sheet, panel, found, (top, colours))
    for at, one in enumerate(shown):
        y = top + GAP + (at + 1) * LANE
        _lane(sheet, panel, one, (y, colours))
    draw_entries(sheet, panel, top, bottom)
    _legend(sheet, colours, bottom + 0.45)
    if without_label:
        unlabelled = counted(without_label, "entry", "entries")
        text = f"There is no room for the labels of {unlabelled} of the timeline."
        sheet.text(MARGIN, bottom + 0.8, text, **soft)
    return sheet


def summary(found: Leaders) -> str:
    """Say what the picture shows."""
    unled = sum(1 for one in found.partitions for span in one.led if span.what == NONE)
    unclean = sum(len(one.unclean_us) for one in found.partitions)
    more = len(found.partitions) - MOST_LANES
    parts = [
        f"Who leads {counted(len(found.partitions), 'partition')}, as the registry says.",
        "A lane is as high as its ISR is full; a white notch is a new leader epoch.",
        f"A partition had no leader {counted(unled, 'time')}." if unled else "",
    ]
    if unclean:
        parts.append(f"{counted(unclean, 'election')} took a replica outside of the ISR (red).")
    if more > 0:
        parts.append(f"{counted(more, 'partition')} more are not drawn.")
    return " ".join(filter(None, parts))


def _panel(trace: Trace) -> tuple[Panel, int]:
    """The part of the sheet that is the run, with the timeline's labels."""

    def width_of(text: str) -> float:
        return text_width(text, LABEL_SIZE, "bold")

    timeline = entries(trace)
    right = right_end(timeline, 0, trace.end_us, width_of)
    (panel,), without = labelled(timeline, [Panel(LEFT, right, 0, trace.end_us)], width_of)
    return panel, without


def _brokers(found: Leaders) -> list[str]:
    led = [span.what for one in found.partitions for span in one.led]
    return [name for name in (*led, *(span.what for span in found.reigns)) if name != NONE]


def _reigns(sheet: Sheet, panel: Panel, found: Leaders, at: tuple[float, dict[str, str]]) -> None:
    top, colours = at
    _name(sheet, "controller", top - BAR * 0.2, bold=True)
    for span in found.reigns:
        _box(sheet, panel, span, (top, BAR * 0.6, colours[span.what]))


def _lane(
    sheet: Sheet, panel: Panel, one: PartitionLeaders, at: tuple[float, dict[str, str]]
) -> None:
    """Draw a partition: by whom it is led, and how much of its ISR there is."""
    y, colours = at
    _name(sheet, str(one.partition), y)
    most = max((len(each.isr) for each in one.isrs), default=1)
    for span in one.led:
        if span.what == NONE:
            extent = panel.extent(span, THINNEST)
            if extent is not None:
                box = (extent[0], y, extent[1] - extent[0], BAR)
                sheet.hatched([box], palette.GAP, "////", zorder=1)
            continue
        for each in one.isrs:
            start = max(span.start_us, each.span.start_us)
            end = min(span.end_us, each.span.end_us)
            if start < end:
                part = span._replace(start_us=start, end_us=end)
                high = BAR * len(each.isr) / most
                _box(sheet, panel, part, (y + BAR - high, high, colours[span.what]))
        _leader_name(sheet, panel, span, (y, colours[span.what]))
    notches = [panel.x(moment) for moment, _ in one.epochs[1:]]
    sheet.lines([((x, y), (x, y + BAR)) for x in notches], palette.PAPER, zorder=4)
    marks = [panel.x(moment) for moment in one.unclean_us]
    sheet.lines(
        [((x, y - 0.03), (x, y + BAR + 0.03)) for x in marks],
        palette.BREACH,
        linewidths=1.8,
        zorder=5,
    )


def _box(sheet: Sheet, panel: Panel, span: Span, look: tuple[float, float, str]) -> None:
    y, high, colour = look
    extent = panel.extent(span, THINNEST)
    if extent is not None:
        sheet.boxes([(extent[0], y, extent[1] - extent[0], high)], colour, zorder=2)


def _leader_name(sheet: Sheet, panel: Panel, span: Span, at: tuple[float, str]) -> None:
    """Write the leader into its part of the lane, if there is room."""
    y, colour = at
    extent = panel.extent(span)
    if extent is None:
        return
    lines = [(x, x) for x in panel.lines]
    x = free_place(*extent, text_width(span.what, LEGEND_SIZE) + 0.14, lines)
    if x is not None:
        style = {"fontsize": LEGEND_SIZE, "color": palette.text_on(colour), "zorder": 4}
        sheet.text(x + 0.07, y + BAR * 0.78, span.what, va="center_baseline", **style)


def _name(sheet: Sheet, text: str, y: float, *, bold: bool = False) -> None:
    weight = "bold" if bold else "normal"
    style = {"ha": "right", "va": "center_baseline", "fontsize": LABEL_SIZE}
    name = shortened(text, LONGEST_NAME)
    sheet.text(LEFT - 0.12, y + BAR / 2, name, fontweight=weight, **style)


def _legend(sheet: Sheet, colours: dict[str, str], y: float) -> None:
    x = MARGIN
    for name, colour in colours.items():
        sheet.boxes([(x, y, LEGEND_BOX * 1.5, LEGEND_BOX)], colour)
        sheet.text(x + LEGEND_BOX * 2, y + LEGEND_BOX * 0.8, name, fontsize=LEGEND_SIZE)
        x += LEGEND_BOX * 2 + text_width(name, LEGEND_SIZE) + 0.3
    sheet.hatched([(x, y, LEGEND_BOX * 1.5, LEGEND_BOX)], palette.GAP, "////")
    sheet.text(x + LEGEND_BOX * 2, y + LEGEND_BOX * 0.8, "no leader", fontsize=LEGEND_SIZE)
