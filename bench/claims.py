"""What the design page states of disks, memory and networks, beside what is simulated.

    python bench/claims.py [--only NAME,NAME] [--machine page] [--profile FILE] [--json]

Each statement has an experiment on a simulated machine: `page`, a server of the page's time,
or `modern`; with a profile, the machine that `watchkeeper calibrate --disk` has measured. No
number is written down: each follows from the row of the machine by what the experiment does.
*differs* is where the page gives a number and the simulation another. The last rows are runs
of a scenario in which a consumer stands still for as long as a heap of that size does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.design_page.catalogue import EXPERIMENTS
from bench.design_page.heap_pauses import HEAPS_GIB, STRICT, heap_pause
from bench.design_page.rows import Experiment, shown, shown_said
from bench.support.report import Report, parser_of

from watchkeeper.operate.disk_profile import machine_of_profile
from watchkeeper.sim.disk.host_costs import MACHINES, MachineProfile

AGREES = {None: "", True: "agrees", False: "differs"}
ZOMBIES = "zombies"


def measure(machine: MachineProfile, names: Sequence[str]) -> Report:
    """Make the experiments of these names on a machine."""
    report = Report(
        f"The design page's statements, on {machine.name}: {machine.about}",
        ("statement", "what", "the page", "simulated", "", ""),
    )
    for name in names:
        if name == ZOMBIES:
            add_zombies(report, machine)
        else:
            add(report, EXPERIMENTS[name], machine)
    return report


def add(report: Report, experiment: Experiment, machine: MachineProfile) -> None:
    """Add an experiment to the report."""
    outcome = experiment.measure(machine)
    for row in outcome.rows:
        cells = [row.what, shown_said(row.said), shown(row.value), row.unit, AGREES[row.agrees]]
        report.rows.append([experiment.name, *cells])
        data = {"statement": experiment.name, **asdict(row), "agrees": row.agrees}
        report.data.setdefault("rows", []).append(data)
    report.notes += [f"{experiment.name}: {remark}" for remark in outcome.remarks]


def add_zombies(report: Report, machine: MachineProfile) -> None:
    """Add what heaps of several sizes do to a consumer."""
    for gib in HEAPS_GIB:
        found = heap_pause(machine, gib)
        what = f"heap of {gib} GiB, {STRICT}"
        seconds = f"{shown(found.pause_s)} s"
        report.rows.append([ZOMBIES, what, "", seconds, "", found.verdict.value])
        data = {"heap_gib": gib, "pause_s": found.pause_s, "verdict": found.verdict.value}
        report.data.setdefault("zombies", []).append(data)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    every = [*EXPERIMENTS, ZOMBIES]
    parser = parser_of(__doc__, clock=False)
    parser.add_argument("--only", default=",".join(every), help="statements (all)")
    parser.add_argument("--machine", choices=MACHINES, default="page", help="(page)")
    parser.add_argument("--profile", type=Path, help="a machine that was measured")
    options = parser.parse_args(arguments)
    names = options.only.split(",")
    unknown = [name for name in names if name not in every]
    if unknown:
        parser.error(f"{', '.join(unknown)}: no such statement; there are {', '.join(every)}")
    machine = MACHINES[options.machine]
    if options.profile is not None:
        machine = machine_of_profile(options.profile)
    measure(machine, names).show(as_json=options.json)


if __name__ == "__main__":
    main()
