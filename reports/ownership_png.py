"""The picture of ownership: who fetched each partition, and what went wrong meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from model.trace import Trace
from reports import palette, sessions
from reports.files import write
from reports.labels import levels, shortened
from reports.ownership import Board, Row, board, shortened_board
from reports.sheet import Box, Sheet, styled, text_width
from reports.spans import Span
from reports.ticks import tick_text, ticks_us
from reports.timeline import Entry

NAME = "ownership.png"

WIDTH = 11.0
RIGHT = 0.35
TALLEST_ROW = 0.25
SHORTEST_ROW = 0.085
MOST_INCHES = 9.0
"""What all rows together take at most, as long as rows are not too thin for it."""
MOST_ROWS = 100
MOST_MARKS = 20_000
BAR = 0.8
"""How much of a row its bar fills."""
THINNEST = 0.028
"""How wide an overlap is drawn at least, so that none can be missed."""
GROUP_ROW = 0.32
STRIP_ROW = 0.25
LABEL_LEVELS = 4
LABEL_STEP = 0.17


def write_ownership_png(trace: Trace, folder: Path) -> str:
    """Draw who fetched what; the name of the file."""
    whole = shortened_board(board(trace), most_rows=MOST_ROWS, most_marks=MOST_MARKS)
    with styled():
        return write(folder / NAME, Picture(whole).drawn().png())


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things stand on the sheet, in inches."""

    left: float
    top: float
    row: float
    strips_top: float
    bottom: float
    height: float


class Picture:
    """One picture of ownership in the making."""

    def __init__(self, shown: Board) -> None:
        self.board = shown
        self.lines = [shown.summary, *([shown.banner] if shown.banner else [])]
        self.faults = [one for one in shown.entries if one.kind != "load"]
        self.layout = self._layout()
        self.sheet = Sheet(WIDTH, self.layout.height)
        self.seconds_wide = WIDTH - RIGHT - self.layout.left
