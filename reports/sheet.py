"""A sheet of paper, measured in inches from its top left corner, on which pictures are drawn.

Pictures here are laid out row by row, so that their height follows from what is in them.
With inches as the unit, text and rows fit each other whatever the size of the picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from model.trace import Header
from reports import headings, palette

DPI = 160
STYLE = {"font.family": "DejaVu Sans", "hatch.linewidth": 0.7, "text.color": palette.INK}
INCHES_A_CHARACTER = 0.0083
"""About how wide a letter is, for each point of its size."""

Box = tuple[float, float, float, float]
"""Left, top, width, height."""
Line = tuple[tuple[float, float], tuple[float, float]]


def text_width(text: str, size: float) -> float:
    """About how wide a text is."""
    return len(text) * size * INCHES_A_CHARACTER


class Sheet:
    """An empty sheet of so many inches."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self.figure = Figure(figsize=(width, height), dpi=DPI, facecolor=palette.PAPER)
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_xlim(0, width)
        self.axes.set_ylim(height, 0)
        self.axes.set_axis_off()

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Write a text whose left end, on its base line, is here; `$` has no meaning in it."""
        settings = {"fontsize": 9, "va": "baseline", "ha": "left", "parse_math": False} | style
        self.axes.text(x, y, text, **settings)

    def boxes(self, boxes: Sequence[Box], colours: Sequence[str] | str, **style: Any) -> None:
        """Draw filled boxes, of one colour or of a colour each."""
        if not boxes:
            return
        corners = [
            ((x, y), (x + wide, y), (x + wide, y + high), (x, y + high))
            for x, y, wide, high in boxes
        ]
        settings = {"facecolors": colours, "linewidths": 0} | style
        self.axes.add_collection(PolyCollection(corners, **settings), autolim=False)

    def hatched(self, boxes: Sequence[Box], colour: str, hatch: str, **style: Any) -> None:
        """Draw white boxes with a hatch, and a thin border."""
        settings = {"edgecolors": colour, "linewidths": 0.5, "hatch": hatch} | style
        self.boxes(boxes, palette.PAPER, **settings)

    def lines(self, lines: Iterable[Line], colour: str, **style: Any) -> None:
        """Draw straight lines."""
        settings = {"colors": colour, "linewidths": 0.8} | style
        self.axes.add_collection(LineCollection(list(lines), **settings), autolim=False)

    def heading(self, header: Header, lines: Sequence[str], *, left: float) -> None:
        """Write of which run the picture is, and what is to be said of it."""
        name = headings.title(header)
        self.text(left, 0.38, name, fontsize=14, fontweight="bold")
        beside = left + text_width(name, 14) * 1.17 + 0.12
        self.text(
            beside, 0.38, headings.subtitle(header), fontsize=10, color=palette.SOFT_INK
        )
        for at, line in enumerate(lines):
            self.text(left, 0.64 + 0.2 * at, line, fontsize=9.5)

    def png(self) -> bytes:
        """The sheet as the bytes of a PNG file; the same sheet gives the same bytes."""
        out = BytesIO()
        self.figure.savefig(out, format="png", metadata={"Software": None})
        return out.getvalue()


def styled() -> Any:
    """The style of all pictures, for a `with` statement around drawing and saving."""
    return rc_context(STYLE)
