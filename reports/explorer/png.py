"""The picture of a small graph of states: where each step leads, and where nothing has to come.

A column holds the states that are as many steps from the first one, so steps lead to the right
or back. In a column states are ordered by the mean height of the states that lead to them, which
keeps lines short.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import networkx

from watchkeeper.model.counterexample.browsed_state import StateGraph
from watchkeeper.model.properties.verdicts import counted
from watchkeeper.reports.explorer.html import Browsed
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Line, Point, Sheet, in_lines, styled, text_width
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page_size import (
    HEADING_SIZE,
    LABEL_SIZE,
    MARGIN,
    SUBTITLE_SIZE,
    TITLE_SIZE,
    WIDTH,
)

NAME = "states.png"

MOST_STATES = 400
"""A graph of more states is a tangle."""
ROW, TALLEST = 0.24, 12.0
"""How high the row of a state is, and how high all rows together are at most, in inches."""
RADIUS, LEAST_RADIUS = 0.07, 0.02
AT_REST = "#2b8a66"
IN_CIRCLE = "#b397ea"
PLAIN = "#d0d7de"


def write_states_png(browsed: Browsed, graph: StateGraph, folder: Path) -> str:
    """Draw all states; return the name of the file, or nothing if they are too many."""
    if len(graph) > MOST_STATES:
        return ""
    with styled():
        return write(folder / NAME, draw(browsed, graph).png())


def draw(browsed: Browsed, graph: StateGraph) -> Sheet:
    """Draw the graph, with what it shows above it."""
    steps = steps_of(graph)
    columns = columns_of(steps)
    circling = in_circles(steps)
    lines = [line for text in _sentences(browsed, graph, circling) for line in in_lines(text)]
    top = 0.9 + 0.2 * len(lines)
    rows = max(map(len, columns))
    height = min(rows * ROW, TALLEST)
    sheet = Sheet(top + height + 0.5)
    _heading(sheet, browsed, lines)
    places = placed(columns, (MARGIN + 0.2, top), (WIDTH - 2 * MARGIN - 0.4, height))
    radius = max(LEAST_RADIUS, min(RADIUS, height / rows * 0.32))
    _draw_steps(sheet, graph, places)
    _draw_states(sheet, graph, places, circling, radius)
    _legend(sheet, top + height + 0.32)
    return sheet


def steps_of(graph: StateGraph) -> networkx.DiGraph:
    """Return the graph of states by number, without steps that change nothing."""
    steps = networkx.DiGraph()
    steps.add_nodes_from(range(len(graph)))
    steps.add_edges_from(
        (number, choice.leads_to)
        for number, state in enumerate(graph)
        for choice in state.choices
        if choice.leads_to != number
    )
    return steps


def columns_of(steps: networkx.DiGraph) -> list[list[int]]:
    """Return the states by their distance from the first, each column in its order."""
    columns: list[list[int]] = []
    height: dict[int, float] = {}
    for column in networkx.bfs_layers(steps, 0):
        ordered = sorted(column, key=lambda state: (_mean_of(steps, state, height), state))
        columns.append(ordered)
        height |= {state: (at + 0.5) / len(ordered) for at, state in enumerate(ordered)}
    return columns


def _mean_of(steps: networkx.DiGraph, state: int, height: dict[int, float]) -> float:
    known = [height[before] for before in steps.predecessors(state) if before in height]
    return fmean(known) if known else 0.0


def in_circles(steps: networkx.DiGraph) -> set[int]:
    """Return the states to which some steps lead back: those of larger strong components."""
    return {
        state
        for part in networkx.strongly_connected_components(steps)
        if len(part) > 1
        for state in part
    }


def placed(columns: list[list[int]], corner: Point, size: Point) -> dict[int, Point]:
    """Return the middle of each state: columns from left to right, evenly."""
    (left, top), (wide, high) = corner, size
    apart = wide / max(len(columns) - 1, 1)
    return {
        state: (left + apart * at, top + high * (row + 0.5) / len(column))
        for at, column in enumerate(columns)
        for row, state in enumerate(column)
    }


# --- what it shows ---------------------------------------------------------------------


def _sentences(browsed: Browsed, graph: StateGraph, circling: set[int]) -> list[str]:
    at_rest = sum(state.is_at_rest for state in graph)
    verb = "lies" if len(circling) == 1 else "lie"
    return [
        f"{browsed.says[0].upper()}{browsed.says[1:]}.",
        f"{counted(len(graph), 'state')}: in {at_rest} nothing has to come any more, and "
        f"{len(circling)} {verb} on a circle of steps.",
        f"The bound of the search: {browsed.bound}.",
    ]


def _heading(sheet: Sheet, browsed: Browsed, lines: list[str]) -> None:
    sheet.text(MARGIN, 0.38, browsed.scenario, fontsize=TITLE_SIZE, fontweight="bold")
    beside = MARGIN + text_width(browsed.scenario, TITLE_SIZE, "bold") + 0.16
    subtitle = f"{browsed.variant} · all states"
    sheet.text(beside, 0.38, subtitle, fontsize=SUBTITLE_SIZE, color=palette.SOFT_INK)
    for at, line in enumerate(lines):
        sheet.text(MARGIN, 0.64 + 0.2 * at, line, fontsize=HEADING_SIZE)


def _draw_steps(sheet: Sheet, graph: StateGraph, places: dict[int, Point]) -> None:
    """Draw a line for each step: faults dashed, those that violate a property in red."""
    plain, faults, breaking = list[Line](), list[Line](), list[Line]()
    for number, state in enumerate(graph):
        for choice in state.choices:
            line = (places[number], places[choice.leads_to])
            kind = faults if choice.scheduled.fault else plain
            (breaking if choice.violates else kind).append(line)
    sheet.lines(plain, palette.SOFT_INK, linewidths=0.5, alpha=0.6, zorder=1)
    sheet.lines(faults, "#b35900", linewidths=0.5, linestyles="dashed", alpha=0.7, zorder=1)
    sheet.lines(breaking, palette.BREACH, linewidths=1.0, zorder=2)


def _draw_states(
    sheet: Sheet,
    graph: StateGraph,
    places: dict[int, Point],
    circling: set[int],
    radius: float,
) -> None:
    for number, state in enumerate(graph):
        colour = AT_REST if state.is_at_rest else IN_CIRCLE if number in circling else PLAIN
        _mark(sheet, places[number], radius, palette.BREACH if state.violates else colour)
    _mark(sheet, places[0], radius * 1.6, palette.INK)


def _mark(sheet: Sheet, middle: Point, radius: float, colour: str) -> None:
    x, y = middle
    corners = ((x - radius, y), (x, y - radius), (x + radius, y), (x, y + radius))
    sheet.areas([corners], colour, edgecolors=palette.INK, linewidths=0.3, zorder=3)


LEGEND = (
    (palette.INK, "the first state"),
    (AT_REST, "nothing has to come any more"),
    (IN_CIRCLE, "on a circle of steps"),
    (palette.BREACH, "violates a property"),
    (PLAIN, "another state"),
)


def _legend(sheet: Sheet, y: float) -> None:
    x = MARGIN
    for colour, text in LEGEND:
        _mark(sheet, (x + RADIUS, y - 0.04), RADIUS, colour)
        x = _word(sheet, x + 0.22, y, text)
    for style, text in (("dashed", "a fault"), ("solid", "another step")):
        colour = "#b35900" if style == "dashed" else palette.SOFT_INK
        sheet.lines([((x, y - 0.04), (x + 0.3, y - 0.04))], colour, linestyles=style)
        x = _word(sheet, x + 0.38, y, text)


def _word(sheet: Sheet, x: float, y: float, text: str) -> float:
    sheet.text(x, y, text, fontsize=LABEL_SIZE, color=palette.SOFT_INK)
    return x + text_width(text, LABEL_SIZE) + 0.22
