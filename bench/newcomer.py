"""A newcomer's first hour: twelve tasks, the usual mistakes, and Ctrl-C at every stage.

    python bench/newcomer.py [--bin FOLDER] [--only tasks,mistakes,interrupts] [--json]

Makes a fresh environment of Python, installs this checkout into it, and runs the commands of the
tutorial, each timed and its output checked. Then it makes the mistakes that newcomers make, and
prints the sentence that each gets. `--bin` uses the commands of an environment that is there. It
ends with 1 if a task does not work, or a mistake gets another sentence than it should.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.newcomer_steps.environment import Environment
from bench.newcomer_steps.interrupts import interrupts
from bench.newcomer_steps.mistakes import mistakes
from bench.newcomer_steps.tasks import Row, tasks
from bench.support.report import Report, number, parser_of

PARTS = ("tasks", "mistakes", "interrupts")
LONGEST = 110
"""Letters of a sentence that the table shows; `--json` has all of it."""


def rows(folder: Path, commands: Path | None, parts: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """Play the chosen parts; each row with its part."""
    installs = commands is None
    environment = (
        Environment.fresh(folder)
        if commands is None
        else Environment.in_folder(folder, commands.absolute())
    )
    if installs and "tasks" not in parts:
        environment.install()
    if "tasks" in parts:
        yield from (("tasks", row) for row in tasks(environment, installs=installs))
    if "mistakes" in parts:
        yield from (("mistakes", row) for row in mistakes(environment))
    if "interrupts" in parts:
        environment.run("watchkeeper", "init")
        yield from (("interrupts", row) for row in interrupts(environment))


def main(arguments: Sequence[str] | None = None) -> int:
    """Play and print; return 1 if a row is not as it should be."""
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--bin", type=Path, help="the folder of commands that are installed")
    parser.add_argument("--only", default=",".join(PARTS), help="these parts (all)")
    options = parser.parse_args(arguments)
    chosen = tuple(filter(None, options.only.split(",")))
    if unknown := set(chosen) - {*PARTS}:
        raise SystemExit(f"--only {','.join(unknown)}: expected some of {', '.join(PARTS)}")
    report = Report("A newcomer's first hour", ("what", "", "what it says", "s"))
    with tempfile.TemporaryDirectory() as folder:
        found = list(rows(Path(folder), options.bin, chosen))
    for _, row in found:
        report.rows.append(_cells(row))
    wrong = [row for _, row in found if row.problem]
    report.data["rows"] = [{"part": part, **row._asdict()} for part, row in found]
    report.notes.append(f"{len(found) - len(wrong)} of {len(found)} as they should be")
    report.notes += [f"{row.what} ({row.command}): {row.problem}" for row in wrong]
    report.show(as_json=options.json)
    return 1 if wrong else 0


def _cells(row: Row) -> list[str]:
    said = row.said if len(row.said) <= LONGEST else f"{row.said[:LONGEST]}..."
    return [row.what, "WRONG" if row.problem else f"exit {row.code}", said, number(row.seconds)]


if __name__ == "__main__":
    sys.exit(main())
