"""The page of messages: the picture, to be looked into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.reports.facts.timeline import Entry
from watchkeeper.reports.figure import palette, title
from watchkeeper.reports.figure.files import write
from watchkeeper.reports.figure.page import page
from watchkeeper.reports.messages.charts import Chart, Line, charts
from watchkeeper.reports.messages.message_path import MessagePath, message_path, numbers

NAME = "messages.html"
SCRIPTS = ("messages/messages.js",)

MOST_CHANGES = 50
"""A page can be zoomed, so its lines may change this often in a time slot."""
DASHES = {"solid": "", "dashed": "5 3", "dotted": "1.5 2.5"}


def write_messages_html(trace: Trace, folder: Path) -> str:
    """Write the page; the name of the file."""
    path = message_path(trace)
    content = page(
        title.title(path.header),
        title.subtitle(path.header),
        "messages",
        lines=[f"{what.capitalize()}: {figure}." for what, figure in numbers(path)],
        banner="",
        scripts=SCRIPTS,
        data=page_data(path),
    )
    return write(folder / NAME, content)


def page_data(path: MessagePath) -> dict[str, Any]:
    """Charts and the timeline as the page's script reads them."""
    return {
        "end": path.end_us,
        "breach": palette.BREACH,
        "charts": [chart_data(chart) for chart in charts(path, most_changes=MOST_CHANGES)],
        "entries": [_entry(entry) for entry in path.entries if entry.kind != EventKind.LOAD],
    }


def chart_data(chart: Chart) -> dict[str, Any]:
    """A chart; heights are shares of its own, so that the script needs no axis arithmetic."""
    return {
        "title": chart.title,
        "left_out": chart.left_out,
        "ticks": [[chart.share(value), text] for value, text in chart.ticks],
        "lines": [_line(chart, line) for line in chart.lines],
        "marks": [[mark.t_us, chart.share(mark.value), mark.text] for mark in chart.marks],
    }


def _line(chart: Chart, line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "colour": line.colour,
        "dash": DASHES[line.dash],
        "filled": line.is_filled,
        "width": line.width,
        "pieces": [
            [[t_us, chart.share(value), chart.said(value)] for t_us, value in points]
            for points in line.pieces
        ],
    }


def _entry(entry: Entry) -> list[Any]:
    return [entry.span.start_us, entry.span.end_us, entry.kind, entry.label, entry.lasts]
