"""The picture of reassignments: a block for each partition that is moved.

A block has a time axis of its own, since a move may take milliseconds of a long run. Its lanes
are the controller, the assignment, and the replicas, old ones first. A replica's lane is grey by
how far it is behind the leader, coloured while it is in the ISR, and dark while it leads. Numbers
above the lanes are the steps, which are listed below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.control_plane.leaders import Leaders, PartitionLeaders, leaders
from watchkeeper.reports.facts.control_plane.reassignments import Move, MoveStep, moves
from watchkeeper.reports.facts.control_plane.replica_logs import (
    LeaderLog,
    LogEnd,
    leader_logs,
    log_ends,
)
from watchkeeper.reports.facts.spans import Span
from watchkeeper.reports.facts.timeline import entries
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.axis_ticks import tick_text
from watchkeeper.reports.figure.canvas import Sheet, in_lines, styled, text_width
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.labels import free_place, shortened
from watchkeeper.reports.figure.page_size import LABEL_SIZE, LEGEND_SIZE, MARGIN, WIDTH
from watchkeeper.reports.figure.panel_drawing import draw_entries, draw_seconds
from watchkeeper.reports.figure.panels import Panel, highest, labelled, right_end
from watchkeeper.reports.reassignment.layout import (
    LEADS,
    assignments,
    flags,
    holds,
    joined_us,
    lags,
    parts_of,
    window,
)
from watchkeeper.reports.reassignment.wording import headline, route, sentence, stall, summary

NAME = "reassignment.png"
MOST_MOVES = 20
LEFT = 1.7
RIGHT = WIDTH - 0.45
LANE = 0.3
BAR = 0.22
THIN = 0.14
THINNEST = 0.015
HEAD = 0.3
FLAGS = 0.24
AXIS = 0.36
LINE = 0.17
MOST_COLUMNS = 3
BETWEEN = 0.35
LEGEND_BOX = 0.16
IN_SYNC_SHARE = 0.55
LAG = "#c9d1d9"


class Facts(NamedTuple):
    """What is read from a trace for all blocks."""

    trace: Trace
    leaders: Leaders
    logs: Mapping[Partition, LeaderLog]
    ends: Mapping[Partition, Mapping[int, Sequence[LogEnd]]]
    colours: Mapping[str, str]


class Block(NamedTuple):
    """A move and where it stands on the sheet."""

    move: Move
    panel: Panel
    labels: float
    """The height of the labels of the timeline."""
    columns: int
    """Of the list of steps."""

    @property
    def lanes(self) -> int:
        """The controller, the assignment, and each replica."""
        return 2 + len(self.move.replicas)

    @property
    def rows(self) -> int:
        """The lines of the list of steps."""
        return -(-len(self.move.steps) // self.columns)

    @property
    def height(self) -> float:
        """All of it, with the room below."""
        lanes = self.lanes * LANE
        return HEAD + self.labels + FLAGS + lanes + AXIS + self.rows * LINE + BETWEEN


def write_reassignment_png(trace: Trace, folder: Path) -> str:
    """Draw how partitions were moved; return the name of the file."""
    with styled():
        return write(folder / NAME, draw(trace).png())


def draw(trace: Trace) -> Sheet:
    """Draw the blocks on a sheet, one below the other."""
    found = moves(trace)
    known = leaders(trace)
    colours = palette.consumer_colours(known.brokers)
    facts = Facts(trace, known, leader_logs(trace), log_ends(trace), colours)
    blocks = [_block(facts, move) for move in found[:MOST_MOVES]]
    lines = in_lines(summary(found, MOST_MOVES))
    top = 0.85 + 0.2 * len(lines)
    sheet = Sheet(top + sum(block.height for block in blocks) + 0.3)
    sheet.heading(trace.header, lines)
    for block in blocks:
        _draw_block(sheet, facts, block, top)
        top += block.height
    _legend(sheet, top)
    return sheet


def _block(facts: Facts, move: Move) -> Block:
    def width_of(text: str) -> float:
        return text_width(text, LABEL_SIZE, "bold")

    from_us, to_us = window(move, facts.trace.end_us)
    timeline = entries(facts.trace)
    right = min(RIGHT, right_end(timeline, from_us, to_us, width_of))
    (panel,), _ = labelled(timeline, [Panel(LEFT, right, from_us, to_us)], width_of)
    return Block(move, panel, highest([panel]), columns_of(move))


def _draw_block(sheet: Sheet, facts: Facts, block: Block, top: float) -> None:
    move, panel = block.move, block.panel
    sheet.text(MARGIN, top + 0.02, f"{move.partition}", fontsize=10, fontweight="bold")
    x = MARGIN + text_width(f"{move.partition}", 10, "bold") + 0.12
    text = f"{route(move)}: {headline(move)}"
    sheet.text(x, top + 0.02, text, fontsize=9.5, color=palette.SOFT_INK)
    lanes = top + HEAD + block.labels + FLAGS
    bottom = lanes + block.lanes * LANE
    draw_seconds(sheet, panel, lanes, bottom)
    sheet.text(LEFT - 0.12, bottom + 0.17, "seconds", ha="right", color=palette.SOFT_INK)
    _stalls(sheet, panel, move, (lanes, bottom))
    _controllers(sheet, facts, panel, lanes)
    _assignment(sheet, facts, block, lanes + LANE)
    for at, broker in enumerate(move.replicas):
        _replica(sheet, facts, block, broker, lanes + (2 + at) * LANE)
    draw_entries(sheet, panel, lanes - FLAGS, bottom)
    _steps(sheet, block, (lanes, bottom))


def _name(sheet: Sheet, text: str, y: float, *, bold: bool = False) -> None:
    weight = "bold" if bold else "normal"
    style = {"ha": "right", "va": "center_baseline", "fontsize": LABEL_SIZE}
    sheet.text(LEFT - 0.12, y + BAR / 2, shortened(text, 22), fontweight=weight, **style)


# --- lanes -----------------------------------------------------------------------------


def _controllers(sheet: Sheet, facts: Facts, panel: Panel, y: float) -> None:
    _name(sheet, "controller", y, bold=True)
    for span in facts.leaders.reigns:
        extent = panel.extent(span, THINNEST)
        if extent is not None:
            colour = facts.colours[span.what]
            box = (extent[0], y + 0.02, extent[1] - extent[0], BAR - 0.04)
            sheet.boxes([box], colour, zorder=2)
            _within(sheet, panel, extent, (span.what, y), palette.text_on(colour))


def _assignment(sheet: Sheet, facts: Facts, block: Block, y: float) -> None:
    """Draw which brokers the assignment names, and the request below it."""
    move, panel = block.move, block.panel
    _name(sheet, "assignment", y)
    for text, start, end in assignments(move, facts.trace.end_us):
        extent = panel.extent(Span("", start, end, 0, 0), THINNEST)
        if extent is not None:
            box = (extent[0], y + 0.02, extent[1] - extent[0], BAR - 0.06)
            sheet.boxes([box], palette.GRID, edgecolors=palette.GAP, linewidths=0.6, zorder=2)
            _within(sheet, panel, extent, (text, y - 0.01), palette.INK)
    ends = (panel.x(move.begin_us), min(panel.x(move.until_us), panel.right))
    line = ((ends[0], y + BAR - 0.01), (ends[1], y + BAR - 0.01))
    sheet.lines([line], palette.INK, linewidths=2.2, zorder=4)


def _replica(sheet: Sheet, facts: Facts, block: Block, broker: int, y: float) -> None:
    """Draw what a replica is: behind, in sync, the leader, deleted."""
    move, panel = block.move, block.panel
    _name(sheet, f"broker {broker}, {'new' if broker in move.targets else 'old'}", y)
    ends = _ends_of(facts, move, broker)
    for part in holds(ends, facts.trace.end_us):
        _bar(sheet, panel, part[1:], (y + BAR - 0.03, 0.03), palette.GAP)
    if broker in move.targets:
        _lag(sheet, facts, block, broker, y)
    one = _leaders_of(facts, move)
    colour = facts.colours.get(f"broker {broker}", palette.GAP)
    for part in parts_of(one, broker) if one is not None else ():
        is_leader = part.what == LEADS
        shade = colour if is_leader else palette.blend(colour, 255, IN_SYNC_SHARE)
        high = BAR if is_leader else THIN
        extent = _bar(sheet, panel, part[1:], (y + BAR - high, high), shade)
        if extent is not None and is_leader:
            _within(sheet, panel, extent, ("leads", y), palette.text_on(shade))
    for taken in move.steps:
        is_shown = panel.from_us <= taken.t_us <= panel.to_us
        if taken.step is MoveStep.DELETED and taken.broker == broker and is_shown:
            x = panel.x(taken.t_us)
            cross = [
                ((x - 0.05, y + 0.06), (x + 0.05, y + 0.16)),
                ((x - 0.05, y + 0.16), (x + 0.05, y + 0.06)),
            ]
            sheet.lines(cross, palette.INK, linewidths=1.4, zorder=6)


def _lag(sheet: Sheet, facts: Facts, block: Block, broker: int, y: float) -> None:
    """Draw how far a new replica was behind until it joined the ISR.

    The area is full where it was as far behind as ever; before it stands by how much.
    """
    move, panel = block.move, block.panel
    until = joined_us(move, broker)
    log = facts.logs.get(move.partition, LeaderLog())
    ends = [one for one in _ends_of(facts, move, broker) if one.t_us >= move.begin_us]
    behind = lags(log, ends, until)
    most = max((lag.records for lag in behind), default=0)
    if not most:
        return
    boxes = []
    for lag, after in zip(behind, [*behind[1:], None], strict=True):
        left = panel.x(max(lag.t_us, panel.from_us))
        right = panel.x(after.t_us if after is not None else until)
        high = (BAR - 0.03) * lag.records / most
        boxes.append((left, y + BAR - 0.03 - high, max(right - left, 0), high))
    sheet.boxes(boxes, LAG, zorder=1)
    text = f"{most:,} behind"
    style = {"fontsize": LEGEND_SIZE, "color": palette.SOFT_INK, "zorder": 6}
    wide = text_width(text, LEGEND_SIZE)
    x = boxes[0][0] - 0.06 - wide
    if x > panel.left:
        sheet.boxes([(x - 0.04, y + 0.04, wide + 0.08, BAR - 0.08)], palette.PAPER, zorder=5)
        sheet.text(x, y + BAR * 0.75, text, **style)


def _stalls(sheet: Sheet, panel: Panel, move: Move, between: tuple[float, float]) -> None:
    """Hatch the lanes of what a move waited for."""
    top, _ = between
    for span in move.stalls:
        extent = panel.extent(span, THINNEST)
        if extent is None:
            continue
        is_broker = span.what.isdecimal()
        lane = 2 + move.replicas.index(int(span.what)) if is_broker else 0
        y = top + lane * LANE
        box = (extent[0], y + 0.02, extent[1] - extent[0], BAR - 0.04)
        sheet.hatched([box], palette.BREACH, "////", zorder=3)
        _within(sheet, panel, extent, (stall(span), y), palette.BREACH, boxed=True)


def _bar(
    sheet: Sheet,
    panel: Panel,
    between: tuple[int, int],
    look: tuple[float, float],
    colour: str,
) -> tuple[float, float] | None:
    start, end = between
    extent = panel.extent(Span("", start, end, 0, 0), THINNEST)
    if extent is not None:
        y, high = look
        sheet.boxes([(extent[0], y, extent[1] - extent[0], high)], colour, zorder=2)
    return extent


def _within(
    sheet: Sheet,
    panel: Panel,
    extent: tuple[float, float],
    text_at: tuple[str, float],
    colour: str,
    *,
    boxed: bool = False,
) -> None:
    """Write a text into a bar, if there is room between the lines of the timeline."""
    text, y = text_at
    wide = text_width(text, LEGEND_SIZE)
    x = free_place(*extent, wide + 0.14, [(x, x) for x in panel.lines])
    if x is None:
        return
    if boxed:
        sheet.boxes([(x + 0.03, y + 0.04, wide + 0.08, BAR - 0.08)], palette.PAPER, zorder=4)
    style = {"fontsize": LEGEND_SIZE, "color": colour, "zorder": 5, "va": "center_baseline"}
    sheet.text(x + 0.07, y + BAR / 2, text, **style)


# --- steps -----------------------------------------------------------------------------


def _steps(sheet: Sheet, block: Block, between: tuple[float, float]) -> None:
    """Draw a line for each step with its number above, and list them below."""
    move, panel = block.move, block.panel
    top, bottom = between
    shown = [taken for taken in move.steps if taken.t_us <= panel.to_us]
    places = [panel.x(taken.t_us) for taken in shown]
    lines = [((x, top - 0.03), (x, bottom)) for x in places]
    sheet.lines(lines, palette.GAP, linewidths=0.5, linestyles=[(0, (2, 2))], zorder=3)
    for x, text in flags(places, lambda text: text_width(text, LEGEND_SIZE, "bold")):
        style = {"fontsize": LEGEND_SIZE, "fontweight": "bold", "ha": "left", "zorder": 8}
        sheet.text(x - 0.03, top - 0.06, text, **style)
    wide = (WIDTH - 2 * MARGIN) / block.columns
    for at, line in enumerate(step_lines(move)):
        column, row = divmod(at, block.rows)
        x, y = MARGIN + column * wide, bottom + AXIS + 0.1 + row * LINE
        text = _fitting(line, wide - 0.1, lambda some: text_width(some, LEGEND_SIZE))
        sheet.text(x, y, text, fontsize=LEGEND_SIZE)


def columns_of(move: Move) -> int:
    """Return in how many columns the steps fit, at least one."""
    longest = max(text_width(line, LEGEND_SIZE) for line in step_lines(move))
    return max(1, min(MOST_COLUMNS, int((WIDTH - 2 * MARGIN) / (longest + 0.1))))


def step_lines(move: Move) -> list[str]:
    """Return the steps as they are listed: number, seconds, and what was done."""
    return [
        f"{number}  {tick_text(taken.t_us)} s  {sentence(taken)}"
        for number, taken in enumerate(move.steps, 1)
    ]


def _fitting(text: str, width: float, width_of: Callable[[str], float]) -> str:
    most = len(text)
    while width_of(shortened(text, most)) > width:
        most -= 1
    return shortened(text, most)


def _legend(sheet: Sheet, y: float) -> None:
    x = MARGIN
    for name, sample in _samples():
        sample(sheet, x, y)
        sheet.text(x + 0.34, y + LEGEND_BOX * 0.8, name, fontsize=LEGEND_SIZE)
        x += 0.34 + text_width(name, LEGEND_SIZE) + 0.24


def _samples() -> Iterator[tuple[str, Callable[[Sheet, float, float], None]]]:
    """Yield what the legend explains, each with the drawing of it."""
    colour = palette.HUES[0]
    pale = palette.blend(colour, 255, IN_SYNC_SHARE)
    box, wide = LEGEND_BOX, LEGEND_BOX * 1.6
    yield "leads", lambda sheet, x, y: sheet.boxes([(x, y, wide, box)], colour)
    yield "in the ISR", lambda sheet, x, y: sheet.boxes([(x, y + 0.06, wide, 0.1)], pale)
    yield "behind its leader", lambda sheet, x, y: sheet.boxes([(x, y, wide, box)], LAG)
    yield (
        "waits",
        lambda sheet, x, y: sheet.hatched([(x, y, wide, box)], palette.BREACH, "////"),
    )
    yield (
        "the request is there",
        lambda sheet, x, y: sheet.lines(
            [((x, y + 0.1), (x + wide, y + 0.1))], palette.INK, linewidths=2.2
        ),
    )


def _leaders_of(facts: Facts, move: Move) -> PartitionLeaders | None:
    found = (one for one in facts.leaders.partitions if one.partition == move.partition)
    return next(found, None)


def _ends_of(facts: Facts, move: Move, broker: int) -> Sequence[LogEnd]:
    return facts.ends.get(move.partition, {}).get(broker, ())
