"""The picture of connections: consumers on the left, brokers on the right, a line for each.

With more than eight of either it is a matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx

from watchkeeper.model.properties.verdicts import seconds
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.connections.matrix import Matrix, draw_matrix
from watchkeeper.reports.facts.connections import (
    Connections,
    connection_sentences,
    connections,
    heaviest,
)
from watchkeeper.reports.figure import palette
from watchkeeper.reports.figure.canvas import Sheet, in_lines, styled, text_width
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.labels import shortened
from watchkeeper.reports.figure.page_size import LABEL_SIZE, POINTS_AN_INCH, WIDTH
from watchkeeper.reports.ownership.ownership import consumers

NAME = "connections.png"

MOST = 64
"""How many consumers, and how many brokers, are drawn at most."""
MOST_LINES = 8
"""With more consumers or more brokers than this, the picture is a matrix."""
LEFT, RIGHT = 2.6, WIDTH - 2.6
MOST_INCHES = 14.0
FARTHEST, NEAREST = 0.46, 0.22
"""How far apart the rows of the longer column are, at most and at least."""
BOX = 0.62
"""How much of that a box takes."""
THINNEST, THICKEST = 1.0, 7.0
LONGEST_NAME = 26
PORTS = 0.8
"""Over how much of the height of a box its lines are spread."""
SHARES = tuple(at / 100 for at in range(14, 90, 7))
"""Positions for the number of a line, as shares of its length, the best first."""

Point = tuple[float, float]
Places = dict[str, Point]


def write_connections_png(trace: Trace, folder: Path) -> str:
    """Draw the connections at the end of a run; return the name of the file."""
    found = connections(trace)
    with styled():
        sheet = draw(trace, found)
        return write(folder / NAME, sheet.png())


def draw(trace: Trace, found: Connections) -> Sheet:
    """Draw the graph, with its numbers above it."""
    left, right, banner = heaviest(found, MOST)
    when = (
        "How many partitions each consumer fetches from each broker at the end, "
        f"{seconds(trace.end_us)}."
    )
    lines = [
        line for text in (when, *connection_sentences(found), banner) for line in in_lines(text)
    ]
    colours = palette.consumer_colours(consumers(trace))
    if max(len(left), len(right)) > MOST_LINES:
        matrix = Matrix(found, left, right, colours)
        sheet = Sheet(0.95 + 0.2 * len(lines) + matrix.height)
        sheet.heading(trace.header, lines)
        draw_matrix(sheet, 0.75 + 0.2 * len(lines), matrix)
        return sheet
    graph = graph_of(found, left, right)
    top = 1.05 + 0.2 * len(lines)
    rows = max(len(left), len(right), 1)
    apart = min(FARTHEST, max(NEAREST, MOST_INCHES / rows))
    sheet = Sheet(top + rows * apart + 0.3)
    sheet.heading(trace.header, lines)
    for x, side, text in (
        (LEFT, "right", "consumers, and what they fetch"),
        (RIGHT, "left", "brokers, and what is fetched from them"),
    ):
        sheet.text(x, top - 0.12, text, ha=side, fontsize=LABEL_SIZE, color=palette.SOFT_INK)
    places = placed(left, LEFT, top, rows * apart) | placed(right, RIGHT, top, rows * apart)
    plan = Plan(graph, places, colours, apart * BOX)
    _edges(sheet, plan)
    _nodes(sheet, plan, found)
    return sheet


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of the picture and their positions."""

    graph: networkx.Graph
    places: Places
    colours: dict[str, str]
    tall: float
    """How high a box is."""

    @property
    def size(self) -> float:
        """Of the text in boxes and on lines."""
        return min(LABEL_SIZE, self.tall * POINTS_AN_INCH * 0.6)


def graph_of(found: Connections, left: list[str], right: list[str]) -> networkx.Graph:
    """The bipartite graph of connections; the weight of an edge is its number of partitions."""
    graph = networkx.Graph()
    graph.add_nodes_from(left, bipartite=0)
    graph.add_nodes_from(right, bipartite=1)
    for (consumer, broker), partitions in found.partitions.items():
        if consumer in graph and broker in graph:
            graph.add_edge(consumer, broker, weight=len(partitions))
    return graph


def placed(names: list[str], x: float, top: float, height: float) -> Places:
    """Names in a column, evenly over the height that the longer column needs."""
    step = height / max(len(names), 1)
    return {name: (x, top + step * (at + 0.5)) for at, name in enumerate(names)}


def _edges(sheet: Sheet, plan: Plan) -> None:
    """Draw each line as thick as its weight, with its number."""
    graph = plan.graph
    heaviest_edge = max((weight for *_, weight in graph.edges(data="weight")), default=1)
    taken: list[Point] = []
    for consumer in (name for name, side in graph.nodes(data="bipartite") if side == 0):
        for broker, edge in graph.adj[consumer].items():
            wide = THINNEST + (THICKEST - THINNEST) * edge["weight"] / heaviest_edge
            line = (port(plan, consumer, broker), port(plan, broker, consumer))
            colour = plan.colours[consumer]
            sheet.lines([line], colour, linewidths=wide, alpha=0.8, zorder=1)
            _number(sheet, free_point(line, taken), edge["weight"], plan.size)


def port(plan: Plan, name: str, other: str) -> Point:
    """The end of a line at a box: lines are sorted by the boxes at their other ends."""
    x, y = plan.places[name]
    others = sorted(plan.graph.adj[name], key=lambda other: plan.places[other][1])
    step = plan.tall * PORTS / len(others)
    return x, y + (others.index(other) - (len(others) - 1) / 2) * step


def free_point(line: tuple[Point, Point], taken: list[Point]) -> Point:
    """A free position for the number of a line, which is then taken."""
    (x0, y0), (x1, y1) = line
    points = [(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share) for share in SHARES]
    free = (
        point
        for point in points
        if all(abs(point[0] - x) > 0.32 or abs(point[1] - y) > 0.19 for x, y in taken)
    )
    found = next(free, points[0])
    taken.append(found)
    return found


def _number(sheet: Sheet, at: Point, number: int, size: float) -> None:
    paper = {"facecolor": palette.PAPER, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
    sheet.text(*at, str(number), ha="center", va="center_baseline", fontsize=size, bbox=paper)


def _nodes(sheet: Sheet, plan: Plan, found: Connections) -> None:
    """A box for each, with how many partitions it fetches, or are fetched from it."""
    for name, side in plan.graph.nodes(data="bipartite"):
        number = sum(len(some) for pair, some in found.partitions.items() if name in pair)
        colour = (palette.FAINT if side else plan.colours[name]) if number else palette.GRID
        text = f"{shortened(name, LONGEST_NAME)}  {number or 'nothing'}"
        wide = max(text_width(text, plan.size) + 0.3, 1.15)
        x, y = plan.places[name]
        left = x if side else x - wide
        sheet.boxes([(left, y - plan.tall / 2, wide, plan.tall)], colour, zorder=2)
        style: dict[str, Any] = {"fontsize": plan.size, "color": palette.text_on(colour)}
        sheet.text(left + wide / 2, y, text, ha="center", va="center_baseline", **style)
