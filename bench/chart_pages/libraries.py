"""The libraries that could draw the charts of pages, and how a page of each is driven."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LONGEST_S = 900


@dataclass(frozen=True, slots=True)
class Library:
    """One way to draw a chart on a page."""

    name: str
    packages: tuple[str, ...]
    """What is installed for it; nothing for our own scripts."""
    ready: str
    """A script: whether the chart is drawn."""
    zoom: str
    """A script that shows the part of the run from `from` to `to` seconds."""

    @property
    def program(self) -> Path:
        """The program that writes its page."""
        return HERE / f"{self.name}_page.py"


LIBRARIES = (
    Library(
        "own",
        (),
        "document.querySelector('#stage svg path')",
        "look(from * 1e6, to * 1e6)",
    ),
    Library(
        "bokeh",
        ("bokeh",),
        "Bokeh.documents[0].is_idle",
        "Bokeh.documents[0].roots()[0].x_range.setv({ start: from, end: to })",
    ),
    Library(
        "plotly",
        ("plotly",),
        "document.querySelector('.scatterlayer .trace path.js-line')",
        """const drawn = document.querySelector(".plotly-graph-div");
           Plotly.relayout(drawn, { "xaxis.range": [from, to] })""",
    ),
    Library(
        "altair",
        ("altair", "vl-convert-python"),
        "document.querySelector('#vis .mark-line path')",
        # Its page keeps no name for the view: the wheel is turned by what the part has grown.
        """const box = document.querySelector("#vis .marks").getBoundingClientRect();
           const clientX = box.left + box.width / 2;
           const clientY = box.top + box.height / 2;
           const deltaY = (zoom.before === undefined ? -200 : to - from - zoom.before) * 2;
           zoom.before = to - from;
           const turned = { deltaY, bubbles: true, clientX, clientY };
           const mark = document.elementFromPoint(clientX, clientY);
           mark.dispatchEvent(new WheelEvent("wheel", turned))""",
    ),
)


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with one library, and nothing else."""

    python: Path
    size_bytes: int
    """What the library has added to it, dependencies included."""
    versions: dict[str, str]


def installed(library: Library, home: Path) -> Installed:
    """Install a library into a fresh environment; our own scripts need none."""
    if not library.packages:
        return Installed(Path(sys.executable), 0, {})
    folder = home / library.name
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    before = _size_bytes(folder)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    _run([*pip, "install", "--quiet", "--no-compile", *library.packages])
    listed = json.loads(_run([*pip, "list", "--format", "json"]))
    versions = {one["name"]: one["version"] for one in listed}
    versions = {name: version for name, version in versions.items() if name not in OF_PYTHON}
    return Installed(python, _size_bytes(folder) - before, versions)


OF_PYTHON = ("pip", "setuptools")


def write_page(library: Library, python: Path, series: Path, page: Path) -> None:
    """Write the page of a chart."""
    _run([str(python), str(library.program), str(series), str(page)])


def _run(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words[:4])} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _size_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
