"""The command `experiment`: what the design page states, measured on a simulated machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from watchkeeper.console import options
from watchkeeper.console.exit import print_json
from watchkeeper.console.options import example

MACHINES = ("page", "modern")


@click.command(
    epilog=example(
        "watchkeeper experiment linear-writes",
        "watchkeeper experiment push-chain balancing --plot experiments.png",
        "watchkeeper experiment warm-up --machine modern --set memory_bytes=8589934592",
    )
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "lists", is_flag=True, help="List the experiments, and run none.")
@click.option(
    "--machine",
    type=click.Choice(MACHINES),
    default="page",
    show_default=True,
    help="A server of the design page's time, or one of today.",
)
@click.option(
    "--profile",
    type=click.Path(path_type=Path),
    help="The machine in this file, which `calibrate --disk` writes.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIGURE=VALUE",
    help="A figure of the machine, as in the section `disk.simulation` of a profile.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw the outcomes into this PNG file."
)
@options.as_json
def experiment(names: tuple[str, ...], as_json: bool, lists: bool, **given: Any) -> None:
    """Measure what the design page states of disks, memory, networks and clients.

    Each experiment runs on a simulated machine, and its numbers stand beside those of the
    page. Without a name, all of them run.
    """
    from watchkeeper.experiment import report
    from watchkeeper.experiment.catalogue import EXPERIMENTS
    from watchkeeper.experiment.experiment import chosen, machine_of

    found = chosen(names)
    if lists:
        if as_json:
            print_json(
                [
                    {"name": one.name, "states": one.states, "how": one.how}
                    for one in found.values()
                ]
            )
        else:
            report.print_list(found, sys.stdout)
        return
    plot = given.pop("plot")
    machine = machine_of(**given)
    outcomes = {}
    for name, each in found.items():
        outcomes[name] = each.measure(machine)
        if not as_json:
            report.print_outcome(each, outcomes[name], sys.stdout)
    if plot is not None:
        report.write_picture(plot, machine, EXPERIMENTS, outcomes)
    if as_json:
        print_json(report.to_json(machine, EXPERIMENTS, outcomes))
