"""What commands cost from their start to their end: `watchkeeper scenarios`, and a small run.

    python bench/commands.py [--rounds 20] [--json]

- **scenarios**: the table of what ships.
- **run**: a scenario of two members, simulated, judged, written, without pictures.
- **help**: what every command imports before it does anything.

Each is a process of its own, one after the other, and what is measured is its CPU time, which
the system reports at its end. A first run of each, which is not counted, leaves the compiled
modules behind, as an installation does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.support.report import Bar, Report, number, parser_of, spread

BARS_S = {"scenarios": 0.3, "run": 0.5}


def commands_in(folder: str) -> dict[str, list[str]]:
    """Name -> the arguments of a command, which may write into a folder."""
    return {
        "help": ["--help"],
        "scenarios": ["scenarios"],
        "run": ["run", "steady-join", "--no-pictures", "--out", folder],
    }


def cpu_s(arguments: list[str]) -> float:
    """CPU seconds of one command; raises RuntimeError if it does not exit with 0."""
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    words = [sys.executable, "-m", "watchkeeper", *arguments]
    started = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise RuntimeError(f"{' '.join(words)} exited with {started.returncode}, expected 0")
    return used.ru_utime + used.ru_stime


def parsed() -> Namespace:
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--rounds", type=int, default=20)
    return parser.parse_args()


def main() -> None:
    options = parsed()
    report = Report("commands, CPU seconds", ("command", "best", "median"))
    with tempfile.TemporaryDirectory() as folder:
        commands = commands_in(folder)
        found: dict[str, list[float]] = {name: [] for name in commands}
        for arguments in commands.values():
            cpu_s(arguments)
        for _ in range(options.rounds):
            for name, arguments in commands.items():
                found[name].append(cpu_s(arguments))
    for name, values in found.items():
        values_of = spread(values)
        report.rows.append([name, number(values_of.best), number(values_of.median)])
        report.data[name] = values
        if name in BARS_S:
            report.bars.append(Bar(name, "at most", BARS_S[name], "s", values_of))
    report.show(as_json=options.json)


if __name__ == "__main__":
    main()
