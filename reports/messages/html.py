"""The page of messages: the picture, to be looked into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model.trace import Trace
from reports import headings, palette
from reports.charts import Chart, Line, charts
from reports.files import write
from reports.message_path import MessagePath, message_path, numbers
from reports.page import page
from reports.timeline import Entry

NAME = "messages.html"

MOST_CHANGES = 50
"""A page can be looked into, so its lines may change this often in a stretch of time."""
DASHES = {"solid": "", "dashed": "5 3", "dotted": "1.5 2.5"}


def write_messages_html(trace: Trace, folder: Path) -> str:
    """Write the page; the name of the file."""
    path = message_path(trace)
    content = page(
        headings.title(path.header),
        headings.subtitle(path.header),
        "messages",
        lines=[f"{what.capitalize()}: {figure}." for what, figure in numbers(path)],
        banner="",
        scripts=("messages.js",),
        data=page_data(path),
    )
    return write(folder / NAME, content)


def page_data(path: MessagePath) -> dict[str, Any]:
    """Charts and the timeline as the page's script reads them."""
    return {
        "end": path.end_us,
        "breach": palette.BREACH,
        "charts": [_chart(chart) for chart in charts(path, most_changes=MOST_CHANGES)],
        "entries": [_entry(entry) for entry in path.entries if entry.kind != "load"],
    }


def _chart(chart: Chart) -> dict[str, Any]:
    """A chart; heights are shares of it, so that the script needs no arithmetic of axes."""
    return {
        "title": chart.title,
        "left_out": chart.left_out,
        "ticks": [[chart.share(value), text] for value, text in chart.ticks],
        "lines": [_line(chart, line) for line in chart.lines],
        "marks": [[one.t_us, chart.share(one.value), one.text] for one in chart.marks],
    }


def _line(chart: Chart, line: Line) -> dict[str, Any]:
    return {
        "name": line.name,
        "colour": line.colour,
        "dash": DASHES[line.dash],
        "filled": line.is_filled,
        "width": line.width,
        "pieces": [
            [[t_us, chart.share(value), chart.said(value)] for t_us, value in piece]
            for piece in line.pieces
        ],
    }


def _entry(entry: Entry) -> list[Any]:
    return [entry.span.start_us, entry.span.end_us, entry.kind, entry.label, entry.lasts]
