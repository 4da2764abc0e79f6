"""Charts of pages by libraries beside our own: bytes, time, frames, access, paper, install.

    python bench/charts.py [--libraries own,bokeh,plotly,altair] [--marks 1000,50000] [--repeat 3]
                           [--steps 30] [--json]

Each library is installed into a throw-away environment of its own, and writes a page that needs
no network: four lines of steps over time, with axes and a legend, of so many points in all.
Headless Chromium opens it. *Drawn* is the time from the begin of navigation until the chart is
there; a *frame* is the time from one animation frame to the next while the shown part of the run
changes in each. *CPU* is what the main thread of the page used, whatever else the machine does.
*Policy* is whether the page draws under the security policy of our pages, which allows inline
scripts and nothing else.
"""

from __future__ import annotations

import json
import statistics
import sys
from argparse import Namespace
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.chart_pages.libraries import LIBRARIES, Installed, Library, installed, write_page
from bench.support.devtools import BROWSER, Tab, address_of, browser
from bench.support.report import Report, parser_of

from watchkeeper.reports.figure.page import POLICY

LINES = 4
HIGHEST = 1_000
RUN_S = 60.0
NAMES = {one.name: one for one in LIBRARIES}
LONGEST_MS = 60_000
LONGEST_UNDER_POLICY_MS = 5_000
DRAWN = """
new Promise((done) => {
  const isReady = () => { try { return Boolean(%s); } catch { return false; } };
  const look = () => {
    if (isReady()) requestAnimationFrame(() => done(performance.now()));
    else if (performance.now() > %d) done(null);
    else requestAnimationFrame(look);
  };
  look();
})
"""
ZOOMED = """
(async () => {
  const zoom = (from, to) => { %s };
  const next = () => new Promise(requestAnimationFrame);
  const took = [];
  let before = await next();
  for (let at = 0; at < %d; at++) {
    const part = 5 + (at %% 10) * 4;
    zoom(at / 10, at / 10 + part);
    const now = await next();
    took.push(now - before);
    before = now;
  }
  return took;
})()
"""
AXE = "axe.run().then((found) => found.violations.map((one) => one.id))"
FOUND = """
(() => {
  const inside = (root) => [...root.querySelectorAll("*")].filter((one) => one.shadowRoot);
  const count = (root) => root.querySelectorAll("%s").length
    + inside(root).reduce((sum, one) => sum + count(one.shadowRoot), 0);
  return count(document);
})()
"""
LOADED = """
performance.getEntriesByType("resource").filter((one) => one.name.startsWith("http")).length
"""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A page of so many marks."""

    marks: int
    size_bytes: int
    drawn_ms: float
    """The best of all loads."""
    drawn_cpu_ms: float
    """What the page's main thread used for it."""
    frame_ms: float
    frame_cpu_ms: float
    """What the page's main thread used for a frame, in the mean."""


@dataclass(frozen=True, slots=True)
class Manners:
    """What a page is like that is not a matter of speed."""

    requests: int
    """Of the network."""
    draws_under_policy: bool
    complaints: list[str]
    """The rules of axe-core that it breaks."""
    draws_on_canvas: bool
    """Whether the chart is pixels; otherwise its axes and its legend are texts of the page."""
    follows_dark: bool
    paper_pages: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the libraries and print the table."""
    asked = _asked(arguments)
    if BROWSER is None:
        sys.exit("There is no chromium or google-chrome on the PATH, and pages need one.")
    with TemporaryDirectory() as home, browser() as tab:
        report = _report_of(
            [(library, *measured(tab, library, Path(home), asked)) for library in asked.libraries]
        )
    report.show(as_json=asked.json)


def _asked(arguments: Sequence[str] | None) -> Namespace:
    parser = parser_of(__doc__, clock=False)
    names = ",".join(NAMES)
    parser.add_argument("--libraries", default=names, help=f"some of them ({names})")
    parser.add_argument("--marks", default="1000,50000", help="points of a page (1000,50000)")
    parser.add_argument("--repeat", type=int, default=3, help="how often a page is loaded (3)")
    parser.add_argument("--steps", type=int, default=30, help="frames of zooming (30)")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.libraries.split(",") if name not in NAMES]
    if unknown:
        parser.error(f"--libraries has {unknown[0]!r}: expected some of {names}")
    asked.libraries = [NAMES[name] for name in asked.libraries.split(",")]
    asked.marks = [int(number) for number in asked.marks.split(",")]
    return asked


def series_of(marks: int) -> dict[str, list[tuple[float, int]]]:
    """Lines of steps, of so many points in all; the same ones each time."""
    each = max(marks // LINES, 2)
    return {
        f"group-{line}": [
            (at * RUN_S / each, (at * (7 + 2 * line) + at * at) % HIGHEST) for at in range(each)
        ]
        for line in range(LINES)
    }


def measured(
    tab: Tab, library: Library, home: Path, asked: Namespace
) -> tuple[Installed, list[Drawn], Manners]:
    """Install a library, write its pages, and look at them."""
    found = installed(library, home)
    drawn, pages = [], []
    for marks in asked.marks:
        series = home / f"series-{marks}.json"
        series.write_text(json.dumps(series_of(marks)))
        pages.append(home / f"{library.name}-{marks}.html")
        write_page(library, found.python, series, pages[-1])
        drawn.append(_drawn(tab, library, pages[-1], marks, asked))
    return found, drawn, _manners(tab, library, pages[0])


def _drawn(tab: Tab, library: Library, page: Path, marks: int, asked: Namespace) -> Drawn:
    tab.show(width=1440, height=900)
    tab.call("Performance.enable", timeDomain="threadTicks")
    times, used = [], []
    for _ in range(asked.repeat):
        tab.open(address_of(page))
        times.append(tab.run(DRAWN % (library.ready, LONGEST_MS)))
        if times[-1] is None:
            sys.exit(f"{page.name} is not drawn after {LONGEST_MS / 1000:g} s.")
        used.append(_cpu_ms(tab))
    before, used_before = tab.screenshot(), _cpu_ms(tab)
    frames = tab.run(ZOOMED % (library.zoom, asked.steps))
    used_by_frames = _cpu_ms(tab) - used_before
    if tab.screenshot() == before:
        sys.exit(f"{page.name} shows the same after it is zoomed: its frames say nothing.")
    return Drawn(
        marks,
        page.stat().st_size,
        min(times),
        min(used),
        statistics.median(frames),
        used_by_frames / len(frames),
    )


def _cpu_ms(tab: Tab) -> float:
    """Return the CPU time that the main thread of the page has used."""
    found = {one["name"]: one["value"] for one in tab.call("Performance.getMetrics")["metrics"]}
    return float(found["ThreadTime"]) * 1000


def _manners(tab: Tab, library: Library, page: Path) -> Manners:
    strict = page.with_stem(f"{page.stem}-strict")
    meta = f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    strict.write_text(page.read_text().replace("<head>", meta, 1))
    tab.open(address_of(strict))
    is_drawn = tab.run(DRAWN % (library.ready, LONGEST_UNDER_POLICY_MS)) is not None
    pictures = []
    for is_dark in (False, True):
        tab.show(width=1440, height=900, is_dark=is_dark)
        tab.open(address_of(page))
        tab.run(DRAWN % (library.ready, LONGEST_MS))
        pictures.append(tab.screenshot())
    tab.show(width=1440, height=900)
    paper = b64decode(tab.call("Page.printToPDF", printBackground=True)["data"])
    requests, draws_on_canvas = tab.run(LOADED), tab.run(FOUND % "canvas") > 0
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    tab.run(f"{axe};0")
    return Manners(
        requests=requests,
        draws_under_policy=is_drawn,
        complaints=tab.run(AXE),
        draws_on_canvas=draws_on_canvas,
        follows_dark=pictures[0] != pictures[1],
        paper_pages=paper.count(b"/Type /Page\n"),
    )


def _report_of(rows: list[tuple[Library, Installed, list[Drawn], Manners]]) -> Report:
    """Return the table: a row for each library and number of marks."""
    columns = (
        *("library", "marks", "page kB", "drawn ms", "CPU", "frame ms", "CPU", "install MB"),
        *("packages", "policy", "axe", "drawn on", "dark", "paper pages"),
    )
    report = Report("one chart of four lines on a page", columns)
    for library, found, drawn, manners in rows:
        for one in drawn:
            report.rows.append([library.name, *_figures(one), *_words(found, manners)])
        report.data[library.name] = {
            "install_bytes": found.size_bytes,
            "versions": found.versions,
            "pages": [asdict(one) for one in drawn],
            **asdict(manners),
        }
        versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
        broken = ", ".join(manners.complaints) or "nothing"
        report.notes.append(f"{library.name}: {versions or 'no package'}; axe: {broken}")
    return report


def _figures(one: Drawn) -> list[str]:
    times = (one.drawn_ms, one.drawn_cpu_ms, one.frame_ms, one.frame_cpu_ms)
    return [
        f"{one.marks:,}",
        f"{one.size_bytes // 1000:,}",
        *(f"{value:,.0f}" for value in times),
    ]


def _words(found: Installed, manners: Manners) -> list[str]:
    return [
        f"{found.size_bytes / 1e6:,.0f}",
        str(len(found.versions)),
        "draws" if manners.draws_under_policy else "blank",
        str(len(manners.complaints)),
        "canvas" if manners.draws_on_canvas else "svg",
        "follows" if manners.follows_dark else "white",
        str(manners.paper_pages),
    ]


if __name__ == "__main__":
    main()
