"""The outcome of experiments as a table, as JSON, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

from watchkeeper.api.tables import PLAIN_WIDTH, plain_console, plain_table, show_table
from watchkeeper.console.exit import cannot_write
from watchkeeper.experiment.apparatus.rows import Experiment, Outcome, Row, shown, shown_said
from watchkeeper.sim.disk.host_costs import MachineProfile

AGREES = {None: "", True: "agrees", False: "differs"}


def print_list(experiments: Mapping[str, Experiment], to: TextIO) -> None:
    """Print the experiments, each with what the page says."""
    console = _console(to)
    table = plain_table("experiment", "the page")
    for experiment in experiments.values():
        table.add_row(experiment.name, experiment.states)
    show_table(table, console)


def print_outcome(experiment: Experiment, outcome: Outcome, to: TextIO) -> None:
    """Print the statement of an experiment, its numbers, and the remarks."""
    console = _console(to)
    console.print(experiment.name)
    what = plain_table("", "")
    what.show_header = False
    what.add_row("  the page", experiment.states)
    what.add_row("  here", experiment.how)
    show_table(what, console)
    table = plain_table("", "the page", "simulated", "unit", "")
    for row in outcome.rows:
        cells = (row.what, shown_said(row.said), shown(row.value), row.unit, AGREES[row.agrees])
        table.add_row(*cells)
    show_table(table, console)
    for remark in outcome.remarks:
        console.print(remark)
    console.print()


def _console(to: TextIO) -> Console:
    return plain_console(file=to, width=None if to.isatty() else PLAIN_WIDTH)


def to_json(
    machine: MachineProfile,
    experiments: Mapping[str, Experiment],
    outcomes: Mapping[str, Outcome],
) -> dict[str, Any]:
    """Return the value that `--json` prints."""
    return {
        "machine": machine.name,
        "experiments": [
            {
                "name": name,
                "states": experiments[name].states,
                "how": experiments[name].how,
                "rows": [{**asdict(row), "agrees": row.agrees} for row in outcome.rows],
                "remarks": list(outcome.remarks),
            }
            for name, outcome in outcomes.items()
        ],
    }


def write_picture(
    path: Path,
    machine: MachineProfile,
    experiments: Mapping[str, Experiment],
    outcomes: Mapping[str, Outcome],
) -> None:
    """Draw the outcomes into a file; raises Stop if it cannot be written."""
    # A list of experiments, and their tables, need no library that draws.
    from watchkeeper.reports.experiment.png import Panel, write_experiments_png

    panels = [
        Panel(name, experiments[name].states, tuple(map(_bar, outcome.rows)))
        for name, outcome in outcomes.items()
    ]
    try:
        write_experiments_png(
            panels, f"simulated on the machine {machine.name}: {machine.about}", path
        )
    except OSError as error:
        raise cannot_write(path, error) from None


def _bar(row: Row) -> Any:
    from watchkeeper.reports.experiment.png import Bar

    return Bar(
        row.what,
        row.value,
        f"{shown(row.value)} {row.unit}".rstrip(),
        row.unit,
        None if row.said is None else row.said.value,
        shown_said(row.said),
        row.agrees,
    )
