"""The picture of connections as a matrix: a row for each consumer, a column for each broker.

Lines between two columns of boxes can be followed for a few members only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from watchkeeper.reports.facts.connections import Connections
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Sheet, text_width
from watchkeeper.reports.figure.labels import shortened
from watchkeeper.reports.figure.page_size import LABEL_SIZE, MARGIN, POINTS_AN_INCH, WIDTH

ROW = 0.24
WIDEST_CELL, NARROWEST_CELL = 1.1, 0.13
LONGEST_NAME = 20
NAMES = 2.2
"""The room for the names of consumers, in inches."""
TOTAL = 0.8
GAP = 0.03
LEVEL_NAMES = 0.3
UPRIGHT_NAMES = 1.6
"""The room for the names of brokers: beside each other, or each turned."""
PALEST = 0.18


@dataclass(frozen=True, slots=True)
class Matrix:
    """Which consumers and brokers are in a matrix, and the size of its parts."""

    found: Connections
    consumers: Sequence[str]
    brokers: Sequence[str]
    colours: dict[str, str]

    @property
    def cell(self) -> float:
        """How wide a cell is."""
        room = (WIDTH - 2 * MARGIN - NAMES - TOTAL) / max(len(self.brokers), 1)
        return max(min(room, WIDEST_CELL), NARROWEST_CELL)

    @property
    def is_level(self) -> bool:
        """Whether the names of brokers fit beside each other."""
        names = (shortened(name, LONGEST_NAME) for name in self.brokers)
        return all(text_width(name, LABEL_SIZE) < self.cell - 0.08 for name in names)

    @property
    def head(self) -> float:
        """How high the names of brokers are."""
        return LEVEL_NAMES if self.is_level else UPRIGHT_NAMES

    @property
    def height(self) -> float:
        """How high the whole matrix is."""
        return self.head + ROW * (len(self.consumers) + 1)

    def number(self, consumer: str, broker: str) -> int:
        """Return how many partitions a consumer fetches from a broker."""
        return len(self.found.partitions.get((consumer, broker), ()))


def draw_matrix(sheet: Sheet, top: float, matrix: Matrix) -> None:
    """Draw a matrix below a height, with the sums of its rows and columns."""
    left, first = MARGIN + NAMES, top + matrix.head
    _brokers(sheet, matrix, left, first)
    most = max((len(some) for some in matrix.found.partitions.values()), default=1)
    for row, consumer in enumerate(matrix.consumers):
        y = first + ROW * row
        _name(sheet, y, shortened(consumer, LONGEST_NAME))
        numbers = [matrix.number(consumer, broker) for broker in matrix.brokers]
        for column, number in enumerate(numbers):
            box = (left + matrix.cell * column, y, matrix.cell, ROW)
            _cell(sheet, box, number, colour=matrix.colours[consumer], share=number / most)
        _sum(sheet, left + matrix.cell * len(numbers), y, sum(numbers))
    y = first + ROW * len(matrix.consumers)
    _name(sheet, y, "all", color=palette.SOFT_INK)
    for column, broker in enumerate(matrix.brokers):
        total = sum(matrix.number(consumer, broker) for consumer in matrix.consumers)
        _centred(sheet, left + matrix.cell * (column + 0.5), y, str(total), matrix.cell)


def _brokers(sheet: Sheet, matrix: Matrix, left: float, bottom: float) -> None:
    turned = {} if matrix.is_level else {"rotation": 90}
    for column, broker in enumerate(matrix.brokers):
        x = left + matrix.cell * (column + 0.5)
        style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": LABEL_SIZE}
        sheet.text(x, bottom - 0.05, shortened(broker, LONGEST_NAME), **style, **turned)
    x = left + matrix.cell * len(matrix.brokers) + 0.12
    sheet.text(x, bottom - 0.08, "all", fontsize=LABEL_SIZE, color=palette.SOFT_INK)


def _name(sheet: Sheet, y: float, name: str, **style: Any) -> None:
    settings: dict[str, Any] = {"ha": "right", "va": "center_baseline", "fontsize": LABEL_SIZE}
    sheet.text(MARGIN + NAMES - 0.1, y + ROW / 2, name, **settings, **style)


def _cell(
    sheet: Sheet,
    box: tuple[float, float, float, float],
    number: int,
    *,
    colour: str,
    share: float,
) -> None:
    """A box, the stronger the more partitions; an empty cell is only an outline."""
    x, y, wide, high = box
    inner = [(x + GAP, y + GAP, wide - 2 * GAP, high - 2 * GAP)]
    if not number:
        sheet.boxes(inner, palette.GRID)
        return
    sheet.boxes(inner, colour, alpha=PALEST)
    bar = (wide - 2 * GAP) * share
    sheet.boxes([(x + GAP, y + high - GAP - 0.05, bar, 0.05)], colour)
    _centred(sheet, x + wide / 2, y - 0.02, str(number), wide)


def _sum(sheet: Sheet, x: float, y: float, number: int) -> None:
    text = str(number) if number else "nothing"
    style: dict[str, Any] = {"va": "center_baseline", "fontsize": LABEL_SIZE}
    sheet.text(x + 0.12, y + ROW / 2, text, color=palette.SOFT_INK, **style)


def _centred(sheet: Sheet, x: float, y: float, text: str, wide: float) -> None:
    """Write a number into a cell, if the cell is wide enough for any."""
    size = min(LABEL_SIZE, wide * POINTS_AN_INCH * 0.45)
    style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": size}
    sheet.text(x, y + ROW / 2, text, **style)
