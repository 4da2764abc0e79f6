"""The picture of experiments: a panel for each, a bar for each number, a mark for the page's.

Bars of one unit in a panel have one axis, with a logarithmic scale where they differ much, so
that a ratio of ten thousand can be seen beside a ratio of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from pathlib import Path

from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Sheet, styled, text_width
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.labels import shortened, wrapped
from watchkeeper.reports.figure.page_size import (
    HEADING_SIZE,
    LABEL_SIZE,
    MARGIN,
    TITLE_SIZE,
    WIDTH,
)

ROW = 0.24
HEAD = 0.5
GAP = 0.3
BAR = 0.13
NAMES = 4.6
"""Where the bars begin."""
NUMBERS = 1.9
"""What is left beside them for the numbers."""
WIDEST = WIDTH - NAMES - NUMBERS - MARGIN
LINEAR = 30.0
"""From this ratio of the greatest to the least on, the scale is logarithmic."""
LONGEST = 64


@dataclass(frozen=True, slots=True)
class Bar:
    """A number of an experiment."""

    what: str
    value: float
    text: str
    """The number with its unit."""
    unit: str
    said: float | None = None
    said_text: str = ""
    agrees: bool | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """An experiment."""

    name: str
    states: str
    """What the design page says."""
    bars: tuple[Bar, ...]


def write_experiments_png(panels: Sequence[Panel], machine: str, path: Path) -> str:
    """Draw experiments on one machine; return the name of the file."""
    with styled():
        return write(path, draw(panels, machine).png())


def draw(panels: Sequence[Panel], machine: str) -> Sheet:
    """Draw a panel for each experiment."""
    heads = [_statement(panel) for panel in panels]
    heights = [
        HEAD + 0.18 * len(head) + ROW * len(panel.bars) + GAP
        for head, panel in zip(heads, panels, strict=True)
    ]
    sheet = Sheet(0.9 + sum(heights))
    sheet.text(MARGIN, 0.38, "Experiments", fontsize=TITLE_SIZE, fontweight="bold")
    sheet.text(MARGIN, 0.64, machine, fontsize=HEADING_SIZE, color=palette.SOFT_INK)
    top = 0.9
    for panel, head, height in zip(panels, heads, heights, strict=True):
        _panel(sheet, panel, head, top)
        top += height
    return sheet


def _statement(panel: Panel) -> list[str]:
    return wrapped(
        f"The page: {panel.states}", WIDTH - 2 * MARGIN, lambda some: text_width(some, LABEL_SIZE)
    )


def _panel(sheet: Sheet, panel: Panel, head: Sequence[str], top: float) -> None:
    sheet.text(MARGIN, top + 0.2, panel.name, fontsize=HEADING_SIZE, fontweight="bold")
    for at, line in enumerate(head):
        y = top + 0.4 + 0.18 * at
        sheet.text(MARGIN, y, line, fontsize=LABEL_SIZE, color=palette.SOFT_INK)
    first = top + HEAD + 0.18 * len(head)
    scales = {unit: Scale.of(unit, panel.bars) for unit in {bar.unit for bar in panel.bars}}
    for at, bar in enumerate(panel.bars):
        _bar(sheet, bar, scales[bar.unit], first + ROW * at)


def _bar(sheet: Sheet, bar: Bar, scale: Scale, y: float) -> None:
    base = y + ROW / 2 + 0.03
    name = shortened(bar.what, LONGEST)
    sheet.text(NAMES - 0.1, base, name, ha="right", fontsize=LABEL_SIZE)
    colour = palette.HUES[3] if bar.agrees is False else palette.HUES[0]
    wide = scale.inches(bar.value)
    sheet.boxes([(NAMES, y + (ROW - BAR) / 2, wide, BAR)], colour)
    if bar.said is not None:
        x = NAMES + scale.inches(bar.said)
        sheet.lines([((x, y + 0.01), (x, y + ROW - 0.01))], palette.INK, linewidths=1.6)
    said = f"  (page: {bar.said_text})" if bar.said_text else ""
    beside = NAMES + max(wide, 0 if bar.said is None else scale.inches(bar.said)) + 0.08
    sheet.text(beside, base, bar.text + said, fontsize=LABEL_SIZE)


@dataclass(frozen=True, slots=True)
class Scale:
    """From a number to the length of its bar."""

    least: float
    greatest: float
    is_log: bool

    @staticmethod
    def of(unit: str, bars: Sequence[Bar]) -> Scale:
        """Return the scale of the bars with a unit."""
        values = [
            abs(value)
            for bar in bars
            if bar.unit == unit
            for value in (bar.value, bar.said)
            if value
        ]
        if not values:
            return Scale(0.0, 1.0, is_log=False)
        least, greatest = min(values), max(values)
        return Scale(least, greatest, is_log=greatest / least > LINEAR)

    def inches(self, value: float) -> float:
        """Return how long the bar of a number is; nothing for 0."""
        if not value:
            return 0.0
        if not self.is_log:
            return WIDEST * abs(value) / self.greatest
        low = log10(self.least) - 0.5
        return WIDEST * (log10(abs(value)) - low) / (log10(self.greatest) - low)
