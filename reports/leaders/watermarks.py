"""The strip below a lane: the high watermark of a partition, and the end of its leader's log."""

from __future__ import annotations

from collections.abc import Iterable

from watchkeeper.reports.facts.control_plane.replica_logs import LeaderLog, Watermark
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Point, Sheet
from watchkeeper.reports.figure.panels import Panel

PIXEL = 1 / 160
"""In inches; of several watermarks within one, the last is drawn."""
FALL = 1.8


def draw_watermarks(
    sheet: Sheet, panel: Panel, log: LeaderLog, between: tuple[float, float]
) -> None:
    """Draw how far the log reached, and how much of it was committed."""
    top, bottom = between
    if not log.end:
        return
    drawn = thinned(panel, log.watermarks)
    ends = staircase(panel, ((one.t_us, one.end) for one in drawn), (bottom, top, log.end))
    marks = staircase(
        panel, ((one.t_us, one.high_watermark) for one in drawn), (bottom, top, log.end)
    )
    sheet.areas([[(ends[0][0], bottom), *ends, (ends[-1][0], bottom)]], palette.FAINT, zorder=1)
    sheet.lines([marks], palette.INK, linewidths=1.1, zorder=3)
    falls = [panel.x(at) for at in log.fallen_us]
    sheet.lines(
        [((x, top), (x, bottom)) for x in falls], palette.BREACH, linewidths=FALL, zorder=8
    )


def thinned(panel: Panel, watermarks: Iterable[Watermark]) -> list[Watermark]:
    """Return the last watermark within each pixel."""
    found: dict[int, Watermark] = {int(panel.x(one.t_us) / PIXEL): one for one in watermarks}
    return list(found.values())


def staircase(
    panel: Panel, values: Iterable[tuple[int, int]], scale: tuple[float, float, int]
) -> list[Point]:
    """Return the corners of a line that keeps each value until the next one.

    `scale` is the place of 0, that of the largest value, and the largest value.
    """
    bottom, top, most = scale
    corners: list[Point] = []
    for t_us, value in values:
        x, y = panel.x(t_us), bottom + (top - bottom) * value / most
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    return [*corners, (panel.right, corners[-1][1])] if corners else []
