"""Writes the page of a chart with Plotly: `plotly_page.py SERIES PAGE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from plotly import graph_objects


def main(series: str, page: str) -> None:
    drawn = graph_objects.Figure()
    for name, points in json.loads(Path(series).read_text()).items():
        seconds, values = zip(*points, strict=True)
        line = {"shape": "hv", "width": 1.5}
        drawn.add_trace(
            graph_objects.Scatter(x=seconds, y=values, name=name, mode="lines", line=line)
        )
    drawn.update_layout(title="lag, messages", xaxis_title="seconds", height=500)
    drawn.write_html(page, include_plotlyjs=True, full_html=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
