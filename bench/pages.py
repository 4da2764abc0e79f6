"""Pages of a big run in a browser: size, time until one is drawn, and the frames of scrolling.

    python bench/pages.py [--scenario bench/pages.yaml] [--repeat 5] [--steps 60] [--json]

The scenario is simulated, and its pages are opened in headless Chromium through the DevTools
protocol. *Load* is what the page itself measures from the begin of navigation until its scripts
have drawn it. Then it is scrolled by some hundred pixels a frame. A *frame* is the time from one
animation frame to the next, which is 16.7 ms where drawing keeps up with the screen.
"""

from __future__ import annotations

import statistics
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.devtools import BROWSER, Tab, address_of, browser
from bench.support.report import Bar, Report, parser_of, spread

from watchkeeper.api.arguments import scenario_of
from watchkeeper.api.simulate import simulate
from watchkeeper.reports import write_ownership_html, write_spacetime_html

SCENARIO = Path(__file__).with_suffix(".yaml")
LOADED_MS = "performance.getEntriesByType('navigation')[0].loadEventStart"
SCROLLED = """
(async () => {
  const scrolled = %s;
  const next = () => new Promise(requestAnimationFrame);
  const took = [];
  let before = await next();
  for (let at = 0; at < %d; at++) {
    scrolled.scrollTop += 300;
    const now = await next();
    took.push(now - before);
    before = now;
  }
  return took;
})()
"""
PANES = {"spacetime": "pane", "ownership": "partitions"}
"""Page -> the script's name of what is scrolled."""
MOST_LOAD_MS = 2_000


@dataclass(frozen=True, slots=True)
class Measured:
    """What one page took."""

    size_bytes: int
    loads_ms: Sequence[float]
    frames_ms: Sequence[float]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the pages and print the table."""
    asked = _asked(arguments)
    if BROWSER is None:
        sys.exit("There is no chromium or google-chrome on the PATH, and pages need one.")
    with TemporaryDirectory() as home, browser() as tab:
        trace = simulate(scenario_of(asked.scenario)).trace
        pages = [write_spacetime_html(trace, Path(home)), write_ownership_html(trace, Path(home))]
        tab.show(width=1440, height=900)
        found = {name: measured(tab, Path(home) / name, asked) for name in pages}
    report_of(len(trace), found).show(as_json=asked.json)


def _asked(arguments: Sequence[str] | None) -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--scenario", default=str(SCENARIO), help="a file or a shipped scenario")
    parser.add_argument("--repeat", type=int, default=5, help="how often a page is loaded (5)")
    parser.add_argument("--steps", type=int, default=60, help="frames of scrolling (60)")
    return parser.parse_args(arguments)


def measured(tab: Tab, page: Path, asked: Namespace) -> Measured:
    """Load a page some times, then scroll it."""
    loads_ms = []
    for _ in range(asked.repeat):
        tab.open(address_of(page))
        loads_ms.append(tab.run(LOADED_MS))
    frames_ms = tab.run(SCROLLED % (PANES[page.stem], asked.steps))
    return Measured(page.stat().st_size, loads_ms, frames_ms)


def report_of(events: int, found: dict[str, Measured]) -> Report:
    """Return the table of all pages, with the bar on loading."""
    columns = ("page", "kB", "load ms", "frame ms", "longest frame ms")
    report = Report(f"pages of {events:,} events", columns)
    for name, page in found.items():
        load = spread(page.loads_ms)
        frame, longest = statistics.median(page.frames_ms), max(page.frames_ms)
        report.rows.append(
            [name, f"{page.size_bytes // 1000:,}", *map(_ms, (load.median, frame, longest))]
        )
        report.bars.append(Bar(f"{name}, load", "at most", MOST_LOAD_MS, "ms", load))
        report.data[name] = {
            "bytes": page.size_bytes,
            "load_ms": load.median,
            "frame_ms": frame,
            "longest_frame_ms": longest,
        }
    return report


def _ms(value: float) -> str:
    return f"{value:,.1f}"


if __name__ == "__main__":
    main()
