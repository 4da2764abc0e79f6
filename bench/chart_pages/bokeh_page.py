"""Writes the page of a chart with Bokeh: `bokeh_page.py SERIES PAGE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bokeh.embed import file_html
from bokeh.palettes import Category10
from bokeh.plotting import figure
from bokeh.resources import INLINE


def main(series: str, page: str) -> None:
    drawn = figure(
        title="lag, messages",
        x_axis_label="seconds",
        height=500,
        sizing_mode="stretch_width",
        tools="xpan,xwheel_zoom,xbox_zoom,hover,reset",
        active_scroll="xwheel_zoom",
    )
    named = json.loads(Path(series).read_text())
    for (name, points), colour in zip(named.items(), Category10[10], strict=False):
        seconds, values = zip(*points, strict=True)
        drawn.step(seconds, values, mode="after", legend_label=name, color=colour)
    drawn.legend.click_policy = "hide"
    Path(page).write_text(file_html(drawn, INLINE, "lag"))


if __name__ == "__main__":
    main(*sys.argv[1:])
