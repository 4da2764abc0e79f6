"""How each thing looks in the picture of ownership: in its place, and in the legend."""

from __future__ import annotations

from collections.abc import Sequence

from reports import palette, sessions
from reports.ownership import Board
from reports.paper import LEGEND_SIZE
from reports.sheet import Box, Sheet, text_width

SPLIT = "split ownership: two live members fetch"
ZOMBIE_OWNER = "zombie owner: all but one have a dead session"
GAP = "gap: served, fetched by nobody"

WIDE = 0.28
"""Of a sample in the legend."""
BETWEEN = 0.26
SHORTEST_SHARE = 0.002
"""Of the run: a state that never lasts longer cannot be seen and needs no explanation."""

STATES = (
    sessions.CONNECTED,
    sessions.SUSPENDED,
    sessions.PAUSED,
    sessions.ZOMBIE,
    sessions.NO_SESSION,
    sessions.LEFT_BEHIND,
    sessions.NOT_RUNNING,
)


def words(shown: Board) -> list[str]:
    """What the legend explains: whatever occurs in the picture, and nothing else."""
    found = [one for row in shown.rows for one in row.overlaps]
    shortest_us = shown.end_us * SHORTEST_SHARE
    states = {
        span.what
        for spans in shown.strips.values()
        for span in spans
        if span.duration_us >= shortest_us or span.what == sessions.ZOMBIE
    }
    wanted = {
        SPLIT: any(one.is_split for one in found),
        ZOMBIE_OWNER: any(not one.is_split for one in found),
        GAP: any(row.gaps for row in shown.rows),
    } | {state: state in states for state in STATES}
    return [word for word, is_wanted in wanted.items() if is_wanted]


def word_width(word: str) -> float:
    """What a sample and its word take in the legend."""
    return WIDE + 0.07 + text_width(word, LEGEND_SIZE) + BETWEEN


def sample(sheet: Sheet, box: Box, word: str) -> None:
    """Draw a sample of what a word of the legend stands for."""
    if word == GAP:
        gaps(sheet, [box])
    elif word == SPLIT:
        overlaps(sheet, [box], [])
    elif word == ZOMBIE_OWNER:
        overlaps(sheet, [], [box])
    else:
        state(sheet, box, word, palette.SOFT_INK)


def gaps(sheet: Sheet, boxes: Sequence[Box]) -> None:
    """Draw gaps."""
    sheet.hatched(boxes, palette.GAP, "/////", zorder=1)


def overlaps(sheet: Sheet, split: Sequence[Box], zombie: Sequence[Box]) -> None:
    """Draw overlaps above the bars: red, and hatched in red where one owner is a zombie."""
    sheet.hatched(zombie, palette.OVERLAP, "xxxxx", zorder=3)
    sheet.boxes(split, palette.OVERLAP, zorder=4)


def state(sheet: Sheet, box: Box, word: str, colour: str) -> None:
    """Draw a stretch of a strip: a state, for a consumer of this colour."""
    x, y, wide, tall = box
    if word == sessions.CONNECTED:
        sheet.boxes([box], colour, zorder=2)
    elif word == sessions.SUSPENDED:
        sheet.hatched([box], colour, "||||||", linewidths=0.8, zorder=2)
    elif word == sessions.ZOMBIE:
        sheet.boxes([box], palette.ZOMBIE, zorder=3)
    elif word == sessions.NO_SESSION:
        sheet.boxes([box], palette.PAPER, edgecolors=colour, linewidths=0.8, zorder=2)
    elif word == sessions.PAUSED:
        sheet.boxes([box], palette.blend(colour, 255, 0.68), zorder=2)
    elif word in (sessions.NOT_RUNNING, sessions.LEFT_BEHIND):
        middle = y + tall / 2
        line = [((x, middle), (x + wide, middle))]
        if word == sessions.LEFT_BEHIND:
            sheet.lines(line, colour, linewidths=1.4, capstyle="butt", zorder=1)
        else:
            sheet.lines(line, palette.GAP, linestyles=[(0, (1, 2.5))], zorder=1)
