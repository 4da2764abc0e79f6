"""The picture of leaders: a lane for each partition, in the colour of its leader.

The lane is as high as the ISR is full: half of it where half of the replicas are in sync. A white
notch is a new leader epoch, and a red ground says that the ISR is smaller than the leader needs.
Below the lane is a strip with the end of the leader's log and its high watermark, where there
are messages. Above the lanes is the controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.control_plane.leaders import (
    NONE,
    Leaders,
    PartitionLeaders,
    leaders,
)
from watchkeeper.reports.facts.control_plane.replica_logs import LeaderLog, leader_logs
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.facts.timeline import entries
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Sheet, in_lines, styled, text_width
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.labels import free_place, shortened
from watchkeeper.reports.figure.page_size import LABEL_SIZE, LEGEND_SIZE, MARGIN, WIDTH
from watchkeeper.reports.figure.panel_drawing import draw_entries, draw_seconds
from watchkeeper.reports.figure.panels import Panel, highest, labelled, right_end
from watchkeeper.reports.leaders.watermarks import FALL, draw_watermarks

NAME = "leaders.png"
MOST_LANES = 60
LANE = 0.34
BAR = 0.26
LONGEST_NAME = 22
THINNEST = 0.015
LEFT = 1.7
GAP = 0.1
LEGEND_BOX = 0.16
LEGEND_ROW = 0.26
HIGH_STRIP = 0.3
LOW_STRIP = 0.14
MOST_HIGH_STRIPS = 12
"""With more lanes, their strips are low."""
TOO_SMALL = "#ffd3d0"

NO_LEADER = "no leader"
SMALL = "ISR below min.insync.replicas"
LOG = "log of the leader"
MARK = "high watermark"
FALLEN = "high watermark falls"
GROUNDS = {SMALL: TOO_SMALL, LOG: palette.FAINT}
"""Sign -> its colour in the legend."""


def write_leaders_png(trace: Trace, folder: Path) -> str:
    """Draw who led each partition; return the name of the file."""
    with styled():
        return write(folder / NAME, draw(trace).png())


def draw(trace: Trace) -> Sheet:
    """Draw the lanes on a sheet."""
    found, logs = leaders(trace), leader_logs(trace)
    shown = found.partitions[:MOST_LANES]
    strip = strip_height(shown, logs)
    lines = in_lines(summary(found, logs))
    panel, without_label = _panel(trace)
    top = 0.75 + 0.2 * len(lines) + highest([panel])
    bottom = top + LANE + len(shown) * (LANE + strip) + GAP
    colours = palette.consumer_colours(found.brokers)
    leading = [name for name in colours if name in _leading(found)]
    places = legend_places([*leading, *signs_of(found, logs)])
    below = bottom + 0.45 + LEGEND_ROW * (1 + max((row for _, _, row in places), default=0))
    sheet = Sheet(below + 0.3)
    sheet.heading(trace.header, lines)
    draw_seconds(sheet, panel, top, bottom)
    soft = {"color": palette.SOFT_INK, "fontsize": LABEL_SIZE}
    sheet.text(LEFT - 0.12, bottom + 0.17, "seconds", ha="right", **soft)
    _reigns(sheet, panel, found, (top, colours))
    for at, one in enumerate(shown):
        y = top + GAP + LANE + at * (LANE + strip)
        _lane(sheet, panel, one, (y, colours))
        if strip:
            _strip(sheet, panel, logs.get(one.partition, LeaderLog()), (y + BAR, strip))
    draw_entries(sheet, panel, top, bottom)
    for name, x, row in places:
        _legend(sheet, colours, name, (x, bottom + 0.45 + row * LEGEND_ROW))
    if without_label:
        unlabelled = counted(without_label, "entry", "entries")
        text = f"There is no room for the labels of {unlabelled} of the timeline."
        sheet.text(MARGIN, below + 0.1, text, **soft)
    return sheet


def strip_height(shown: Sequence[PartitionLeaders], logs: Mapping[Partition, LeaderLog]) -> float:
    """Return the height of the strips below the lanes; 0 where no partition has a message."""
    if not any(one.partition in logs and logs[one.partition].end for one in shown):
        return 0.0
    return HIGH_STRIP if len(shown) <= MOST_HIGH_STRIPS else LOW_STRIP


def summary(found: Leaders, logs: Mapping[Partition, LeaderLog]) -> str:
    """Say what the picture shows."""
    unled = sum(1 for one in found.partitions for span in one.led if span.what == NONE)
    unclean = sum(len(one.unclean_us) for one in found.partitions)
    small = sum(len(one.too_small) for one in found.partitions)
    fallen = sum(len(log.fallen_us) for log in logs.values())
    more = len(found.partitions) - MOST_LANES
    parts = [
        f"Who leads {counted(len(found.partitions), 'partition')}, as the registry says.",
        "A lane is as high as its ISR is full; a white notch is a new leader epoch.",
        f"A partition had no leader {counted(unled, 'time')}." if unled else "",
    ]
    if unclean:
        parts.append(f"{counted(unclean, 'election')} took a replica outside of the ISR (red).")
    if small:
        parts.append(f"An ISR was smaller than min.insync.replicas {counted(small, 'time')}.")
    if fallen:
        parts.append(f"A new leader began with a lower high watermark {counted(fallen, 'time')}.")
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


def _leading(found: Leaders) -> set[str]:
    led = {span.what for one in found.partitions for span in one.led}
    return led | {span.what for span in found.reigns}


def _reigns(sheet: Sheet, panel: Panel, found: Leaders, at: tuple[float, dict[str, str]]) -> None:
    top, colours = at
    _name(sheet, "controller", top - BAR * 0.2, bold=True)
    for span in found.reigns:
        _box(sheet, panel, span, (top, BAR * 0.6, colours[span.what]))
        _leader_name(sheet, panel, span, (top - BAR * 0.47, colours[span.what]))


def _lane(
    sheet: Sheet, panel: Panel, one: PartitionLeaders, at: tuple[float, dict[str, str]]
) -> None:
    """Draw a partition: by whom it is led, and how much of its ISR there is."""
    y, colours = at
    _name(sheet, str(one.partition), y)
    for small in one.too_small:
        _box(sheet, panel, small, (y, BAR, TOO_SMALL), zorder=1)
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
                high = BAR * min(1.0, len(each.isr) / one.size_at(start))
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


def _strip(sheet: Sheet, panel: Panel, log: LeaderLog, at: tuple[float, float]) -> None:
    """Draw the watermarks of a partition below its lane; on the left stands the last offset."""
    y, high = at
    draw_watermarks(sheet, panel, log, (y + 0.03, y + high - 0.03))
    if high == HIGH_STRIP and log.end:
        style = {"ha": "right", "fontsize": LEGEND_SIZE, "color": palette.SOFT_INK}
        sheet.text(LEFT - 0.12, y + high - 0.06, f"to offset {log.end:,}", **style)


def _box(
    sheet: Sheet, panel: Panel, span: Span, look: tuple[float, float, str], *, zorder: int = 2
) -> None:
    y, high, colour = look
    extent = panel.extent(span, THINNEST)
    if extent is not None:
        sheet.boxes([(extent[0], y, extent[1] - extent[0], high)], colour, zorder=zorder)


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


def signs_of(found: Leaders, logs: Mapping[Partition, LeaderLog]) -> list[str]:
    """Return what the legend has to explain, beside the colours of brokers."""
    signs = {
        NO_LEADER: any(span.what == NONE for one in found.partitions for span in one.led),
        SMALL: any(one.too_small for one in found.partitions),
        LOG: any(log.end for log in logs.values()),
        MARK: any(log.end for log in logs.values()),
        FALLEN: any(log.fallen_us for log in logs.values()),
    }
    return [sign for sign, is_there in signs.items() if is_there]


def legend_places(names: Sequence[str]) -> list[tuple[str, float, int]]:
    """Return the left end and the row of each sign of the legend."""
    found = []
    x, row = MARGIN, 0
    for name in names:
        wide = LEGEND_BOX * 1.5 + 0.08 + text_width(name, LEGEND_SIZE)
        if x + wide > WIDTH - MARGIN:
            x, row = MARGIN, row + 1
        found.append((name, x, row))
        x += wide + 0.22
    return found


def _legend(sheet: Sheet, colours: dict[str, str], name: str, at: tuple[float, float]) -> None:
    """Draw one sign of the legend, and its name."""
    x, y = at
    wide, middle = LEGEND_BOX * 1.5, y + LEGEND_BOX / 2
    if name in colours:
        sheet.boxes([(x, y, wide, LEGEND_BOX)], colours[name])
    elif name == NO_LEADER:
        sheet.hatched([(x, y, wide, LEGEND_BOX)], palette.GAP, "////")
    elif name in GROUNDS:
        sheet.boxes([(x, y, wide, LEGEND_BOX)], GROUNDS[name])
    elif name == MARK:
        sheet.lines([((x, middle), (x + wide, middle))], palette.INK, linewidths=1.1)
    else:
        centre = x + wide / 2
        line = ((centre, y), (centre, y + LEGEND_BOX))
        sheet.lines([line], palette.BREACH, linewidths=FALL)
    sheet.text(x + wide + 0.08, y + LEGEND_BOX * 0.8, name, fontsize=LEGEND_SIZE)
