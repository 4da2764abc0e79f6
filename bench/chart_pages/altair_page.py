"""Writes the page of a chart with Vega, through Altair: `altair_page.py SERIES PAGE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import altair


def main(series: str, page: str) -> None:
    rows = [
        {"seconds": seconds, "messages": value, "read": name}
        for name, points in json.loads(Path(series).read_text()).items()
        for seconds, value in points
    ]
    shown = altair.selection_interval(bind="scales", encodings=["x"])
    drawn = (
        altair.Chart(
            altair.Data(values=rows), title="lag, messages", height=450, width="container"
        )
        .mark_line(interpolate="step-after")
        .encode(x="seconds:Q", y="messages:Q", color="read:N")
        .add_params(shown)
    )
    drawn.save(page, inline=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
