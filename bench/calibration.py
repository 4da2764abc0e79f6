"""A real ZooKeeper beside the simulated one, before and after it was calibrated.

    python bench/calibration.py [--servers 1] [--quick] [--json]

An embedded ZooKeeper is measured as `watchkeeper calibrate` measures it. The simulation is
measured by the same programs twice: with the latencies that come along, and with those that
were found. A bar says how far a simulated quantile may be from the real one. What many
operations take at once, and watches, are shown without a bar: a client in Python has its
share of them, and the simulation gives a server none of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, once, parser_of
from bench.support.simulated_zookeeper import simulated

from watchkeeper.api.profile import latencies
from watchkeeper.model.calibration.latency import Distribution, Measured
from watchkeeper.model.calibration.probe_program import QUICK, THOROUGH, Sizes
from watchkeeper.operate.calibrate import calibrated
from watchkeeper.sim.engine.latency_profile import DEFAULT

BARS = {50: 15.0, 90: 30.0}
"""Quantile -> by how many per cent the simulation may miss it."""
BARRED = ("read", "write", "expiry, after the tick")
LEVELS = (10, 50, 90, 99)


def rows_of(measured: Measured) -> Iterator[tuple[str, Distribution]]:
    """Everything that was measured."""
    yield from measured.round_trips.items()
    yield from measured.batches.items()
    yield "watch, after the answer", measured.watch
    yield "watch, after asking", measured.write_to_watch
    yield "expiry, after the timeout", measured.expiry
    yield "expiry, after the tick", measured.after_tick


def off_percent(real: int, simulated: int) -> float:
    """By how many per cent the one differs from the other."""
    return abs(simulated - real) * 100 / max(abs(real), 1)


def measure(servers: int, sizes: Sizes) -> Report:
    """Measure the real one, and the simulation under both profiles."""
    done = calibrated(None, servers, sizes)
    real = done.measured
    found = latencies(done.simulation)
    worlds = {
        "real": real,
        "default": simulated(DEFAULT, servers=servers, tick_us=real.tick_us, sizes=sizes),
        "fitted": simulated(found, servers=servers, tick_us=real.tick_us, sizes=sizes),
    }
    report = Report(
        f"A ZooKeeper of {servers}, real and simulated; microseconds",
        ("what", "quantile", *worlds, "default is off by %", "fitted is off by %"),
    )
    tables = {world: dict(rows_of(rows)) for world, rows in worlds.items()}
    for what in tables["real"]:
        for level in LEVELS:
            values = {world: table[what].at(level) for world, table in tables.items()}
            add_row(report, what, level, values)
    report.data["digest"] = done.digest
    report.data["servers"] = servers
    return report


def add_row(report: Report, what: str, level: int, values: dict[str, int]) -> None:
    """Add a row to the report, and a bar where there is one."""
    real, default, fitted = values["real"], values["default"], values["fitted"]
    off = off_percent(real, fitted)
    report.rows.append(
        [
            what,
            f"p{level}",
            *(f"{value:,}" for value in (real, default, fitted)),
            number(off_percent(real, default)),
            number(off),
        ]
    )
    report.data.setdefault("runs", []).append({"what": what, "level": level, **values})
    if what in BARRED and level in BARS:
        report.bars.append(Bar(f"{what}, p{level}", "at most", BARS[level], "% off", once(off)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--servers", type=int, choices=(1, 3), default=1, help="how many (1)")
    parser.add_argument("--quick", action="store_true", help="measure less")
    options = parser.parse_args(arguments)
    report = measure(options.servers, QUICK if options.quick else THOROUGH)
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
