"""Writes the page of a chart with our own scripts: `own_page.py SERIES PAGE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from watchkeeper.reports.figure.page import page as page_of
from watchkeeper.reports.figure.palette import HUES
from watchkeeper.reports.messages.charts import Line, linear
from watchkeeper.reports.messages.html import chart_data

US = 1_000_000


def main(series: str, page: str) -> None:
    lines = []
    for at, (name, points) in enumerate(json.loads(Path(series).read_text()).items()):
        piece = tuple((round(seconds * US), value) for seconds, value in points)
        lines.append(Line(name, HUES[at], (piece,)))
    chart = linear("lag, messages", lines, 1)
    content = page_of(
        "lag",
        "of a bench",
        "messages",
        lines=[],
        banner="",
        scripts=("messages/messages.js",),
        data={
            "end": max(line.pieces[0][-1][0] for line in lines),
            "breach": "",
            "charts": [chart_data(chart)],
            "entries": [],
        },
    )
    Path(page).write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
