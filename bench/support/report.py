"""Measurements and their report: times, the machine, tables, bars.

A figure is measured several times. The *best* is the cost of the code; the *median* includes
the other load of this machine. A bar is compared with the median; where only the best reaches
it, the table says so.

Work on one core is measured in CPU time of the process, which does not pass while other
processes have the core. `--clock wall` takes wall time instead, which is the same on an idle
machine.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Direction = Literal["at least", "at most", "less than"]
Clock = Callable[[], float]

CLOCKS: dict[str, Clock] = {"cpu": time.process_time, "wall": time.perf_counter}


def parser_of(about: str | None, *, clock: bool = True) -> ArgumentParser:
    """A parser with the options that benches share; `about` is a module's docstring."""
    parser = ArgumentParser(description=(about or "").partition("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    if clock:
        parser.add_argument("--clock", choices=tuple(CLOCKS), default="cpu", help="which (cpu)")
    return parser


def cpu_model() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model"):
            return value.strip()
    return platform.machine()


def machine() -> dict[str, Any]:
    """The machine on which the figures were measured."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2),
    }


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure, measured several times."""

    best: float
    median: float


def spread(values: Sequence[float], *, higher_is_better: bool = False) -> Spread:
    """Return the best and the median of the measured values."""
    best = max(values) if higher_is_better else min(values)
    return Spread(best, statistics.median(values))


@dataclass(frozen=True, slots=True)
class Bar:
    """The bound that a figure has to reach."""

    what: str
    direction: Direction
    bar: float
    unit: str
    measured: Spread

    def reaches(self, value: float) -> bool:
        """Whether a value is good enough."""
        if self.direction == "at least":
            return value >= self.bar
        return value < self.bar or (self.direction == "at most" and value == self.bar)

    @property
    def verdict(self) -> str:
        """Met, met by the best run alone, or not met."""
        if self.reaches(self.measured.median):
            return "met"
        return "only the best meets it" if self.reaches(self.measured.best) else "NOT MET"

    def row(self) -> list[str]:
        """The bar as a row of the table of bars."""
        return [
            self.what,
            f"{self.direction} {number(self.bar)} {self.unit}",
            number(self.measured.best),
            number(self.measured.median),
            self.verdict,
        ]


def once(value: float) -> Spread:
    """A figure that was measured once."""
    return Spread(value, value)


@dataclass(slots=True)
class Report:
    """The output of a bench."""

    title: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    """The figures of the rows, for `--json`."""

    def show(self, *, as_json: bool) -> None:
        """Print it: as one JSON value, or for people."""
        print(json.dumps(self.to_json(), indent=1) if as_json else self.text())

    def to_json(self) -> dict[str, Any]:
        """All of it as one JSON value."""
        bars = [{**asdict(bar), "verdict": bar.verdict} for bar in self.bars]
        return {
            "title": self.title,
            "machine": machine(),
            **self.data,
            "bars": bars,
            "notes": self.notes,
        }

    def text(self) -> str:
        """All of it as tables."""
        here = machine()
        lines = [
            self.title,
            f"{here['cpu']}, {here['cores']} cores, {here['python']}, load {here['load']}",
            "",
            *table(self.columns, self.rows),
        ]
        if self.bars:
            rows = [bar.row() for bar in self.bars]
            lines += ["", *table(("bar", "required", "best", "median", ""), rows)]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines)


def table(columns: Sequence[str], rows: list[list[str]]) -> list[str]:
    """The lines of a table: the first column and words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    is_number = [all(_is_number(row[at]) for row in rows) for at in range(len(columns))]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in [list(columns), *rows]
    ]


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").isdigit() or cell in ("", "-")


def number(value: float) -> str:
    """Format a number with its significant digits."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def cpu_used() -> float:
    """CPU seconds of this process and its descendants: workers, a JVM, its workers."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        used[pid] = sum(map(int, fields[11:15]))
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return sum(used.get(pid, 0) for pid in found) / os.sysconf("SC_CLK_TCK")
