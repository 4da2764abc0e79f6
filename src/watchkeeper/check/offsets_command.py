"""The command `explore-offsets`: every order of steps of a group with its offsets in Kafka."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from watchkeeper.check.command import Teller
from watchkeeper.check.control_plane_command import REPLICA_VARIANTS, variant_option
from watchkeeper.console import options
from watchkeeper.console.exit import HOLDS, UNKNOWN, VIOLATED, print_json
from watchkeeper.console.options import example

if TYPE_CHECKING:
    from watchkeeper.checker.offsets.search import Result

DEFAULTS = {"--members": 1, "--commits": 2, "--epochs": 3}
FAULTS = ("crash", "moved", "deposed", "reply", "late", "member", "expiry")


@click.command(
    "explore-offsets",
    epilog=example(
        "watchkeeper explore-offsets --fault moved",
        "watchkeeper explore-offsets --variant hardened --fault expiry --fault crash",
    ),
)
@variant_option(REPLICA_VARIANTS)
@click.option(
    "--fault",
    "faults",
    type=click.Choice(FAULTS),
    multiple=True,
    help="A fault that may strike once, at any moment; several may be given.",
)
@click.option(
    "--members",
    type=click.IntRange(1, 3),
    default=DEFAULTS["--members"],
    show_default=True,
    help="The number of members of the group.",
)
@click.option(
    "--commits",
    type=options.MANY,
    default=DEFAULTS["--commits"],
    show_default=True,
    help="The number of commits that members send.",
)
@click.option(
    "--epochs",
    type=options.MANY,
    default=DEFAULTS["--epochs"],
    show_default=True,
    help="The number of elections, with the first one.",
)
@options.max_states
@options.max_seconds
@options.max_memory
@options.talking
@options.as_json
def explore_offsets(
    variant: str,
    faults: tuple[str, ...],
    members: int,
    commits: int,
    epochs: int,
    max_states: int | None,
    max_seconds: float | None,
    max_memory: float | None,
    as_json: bool,
) -> int:
    """Search every order of steps of a group that keeps its offsets in Kafka.

    Members commit and fetch the offset of one partition, and two brokers coordinate in turn. If
    an acknowledged offset is not found, is missing, or comes back after it has expired, a
    shortest path is printed.

    \b
    Exit codes: 0 holds within the bound; 1 violated; 2 a limit was reached, or the search was
    interrupted; 4 usage or environment.
    """
    from watchkeeper.check.limits import limit_words, limits, with_memory
    from watchkeeper.checker.offsets.group import Bounds
    from watchkeeper.checker.offsets.search import search
    from watchkeeper.checker.offsets.state import Fault
    from watchkeeper.model.replication.variants import REPLICATIONS

    chosen = tuple(dict.fromkeys(faults))
    given = limits(max_states, max_seconds, max_memory)
    bounds = Bounds(members, commits, epochs, frozenset(Fault[word.upper()] for word in chosen))
    with Teller() as teller:
        found = search(REPLICATIONS[variant], bounds, limits=with_memory(given), tell=teller.tell)
    sizes = {"--members": members, "--commits": commits, "--epochs": epochs}
    words = ["watchkeeper", "explore-offsets", "--variant", variant]
    for name, value in sizes.items():
        words += [name, str(value)] if value != DEFAULTS[name] else []
    words += [word for fault in chosen for word in ("--fault", fault)]
    report = report_of(found, shlex.join([*words, *limit_words(given)]))
    if as_json:
        print_json(report)
    else:
        for line in lines_of(report, str(bounds)):
            click.echo(line)
    return {"holds": HOLDS, "violated": VIOLATED}.get(report["verdict"], UNKNOWN)


def report_of(found: Result, command: str) -> dict[str, Any]:
    """Return the report of a search as JSON has it; `command` repeats it."""
    return {
        "verdict": found.verdict.value,
        "variant": found.variant.name,
        "violated": found.violated,
        "states": found.states,
        "transitions": found.transitions,
        "stopped": found.stopped,
        "steps": list(found.steps),
        "command": command,
    }


def lines_of(report: dict[str, Any], bounds: str) -> list[str]:
    """Return the report of a search as text."""
    what = report["violated"] or report["stopped"]
    lines = [
        f"offsets in Kafka, {report['variant']}, {bounds}: {report['verdict']}"
        + (f": {what}" if what else ""),
        f"{report['states']:,} states, {report['transitions']:,} transitions",
    ]
    lines += [f"{number:3}  {step}" for number, step in enumerate(report["steps"], 1)]
    return [*lines, f"reproduce {report['command']}"]
