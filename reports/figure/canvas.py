"""A canvas for pictures, measured in inches from its top left corner.

Pictures are laid out row by row, so that the height follows from the content. With inches as
the unit, text and rows match at every size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from watchkeeper.model.trace.trace import Header
from watchkeeper.reports.figure import palette, title
from watchkeeper.reports.figure.labels import wrapped
from watchkeeper.reports.figure.page_size import (
    DPI,
    FAMILY,
    HEADING_SIZE,
    MARGIN,
    POINTS_AN_INCH,
    SUBTITLE_SIZE,
    TITLE_SIZE,
    WIDTH,
)

STYLE: Any = {"font.family": FAMILY, "hatch.linewidth": 0.7, "text.color": palette.INK}
MEASURED_AT = 100.0

Box = tuple[float, float, float, float]
"""Left, top, width, height."""
Point = tuple[float, float]
Line = tuple[Point, Point]


@lru_cache(maxsize=16_384)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """How wide a text is, in inches."""
    font = FontProperties(family=FAMILY, size=MEASURED_AT, weight=weight)
    wide, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(wide) / MEASURED_AT * size / POINTS_AN_INCH


class Sheet:
    """An empty canvas of a height in inches."""

    def __init__(self, height: float) -> None:
        self.figure = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor=palette.PAPER)
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, WIDTH)
        self.axes.set_ylim(height, 0)
        self.axes.set_axis_off()

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Write a text, left-aligned on its base line; `$` has no special meaning."""
        settings: dict[str, Any] = {
            "fontsize": 9,
            "va": "baseline",
            "ha": "left",
            "parse_math": False,
        } | style
        self.axes.text(x, y, text, **settings)

    def boxes(self, boxes: Sequence[Box], colours: Sequence[str] | str, **style: Any) -> None:
        """Draw filled boxes, of one colour or of a colour each."""
        if not boxes:
            return
        corners = [
            ((x, y), (x + wide, y), (x + wide, y + high), (x, y + high))
            for x, y, wide, high in boxes
        ]
        self.areas(corners, colours, **style)

    def areas(
        self, areas: Sequence[Sequence[Point]], colours: Sequence[str] | str, **style: Any
    ) -> None:
        """Draw filled areas between these corners."""
        settings: dict[str, Any] = {"facecolors": colours, "linewidths": 0} | style
        self.axes.add_collection(PolyCollection(areas, **settings), autolim=False)

    def hatched(self, boxes: Sequence[Box], colour: str, hatch: str, **style: Any) -> None:
        """Draw white boxes with a hatch, and a thin border."""
        settings: dict[str, Any] = {
            "edgecolors": colour,
            "linewidths": 0.5,
            "hatch": hatch,
        } | style
        self.boxes(boxes, palette.PAPER, **settings)

    def lines(self, lines: Iterable[Sequence[Point]], colour: str, **style: Any) -> None:
        """Draw lines, straight from each point to the next."""
        settings: dict[str, Any] = {"colors": colour, "linewidths": 0.8} | style
        self.axes.add_collection(LineCollection(list(lines), **settings), autolim=False)

    def heading(self, header: Header, lines: Sequence[str], *, left: float = MARGIN) -> None:
        """Write the heading: the run, and the lines of text under it."""
        name = title.title(header)
        self.text(left, 0.38, name, fontsize=TITLE_SIZE, fontweight="bold")
        beside = left + text_width(name, TITLE_SIZE, "bold") + 0.16
        self.text(
            beside,
            0.38,
            title.subtitle(header),
            fontsize=SUBTITLE_SIZE,
            color=palette.SOFT_INK,
        )
        for at, line in enumerate(lines):
            self.text(left, 0.64 + 0.2 * at, line, fontsize=HEADING_SIZE)

    def png(self) -> bytes:
        """The sheet as the bytes of a PNG file; the same sheet gives the same bytes."""
        out = BytesIO()
        self.figure.savefig(out, format="png", metadata={"Software": None})
        return out.getvalue()


def in_lines(text: str, width: float = WIDTH - 2 * MARGIN) -> list[str]:
    """A text in lines that fit on the canvas; empty for an empty text."""
    lines = wrapped(text, width, lambda some: text_width(some, HEADING_SIZE))
    return [line for line in lines if line]


def styled() -> Any:
    """The style of all pictures, for a `with` statement around drawing and saving."""
    return rc_context(STYLE)
