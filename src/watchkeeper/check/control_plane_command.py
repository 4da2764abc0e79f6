"""Commands that search every order of steps: of replicas, of brokers, and of offsets in Kafka."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watchkeeper.check.command import Teller
from watchkeeper.console import options
from watchkeeper.console.exit import HOLDS, UNKNOWN, USAGE, VIOLATED, Stop, print_json
from watchkeeper.console.options import example
from watchkeeper.console.progress import is_quiet

if TYPE_CHECKING:
    from watchkeeper.checker.offsets.search import Result

FAULTS = ("crash", "old-checkpoint", "power", "reply", "deposed", "unclean")
RULES = ("high-watermark", "kip-101", "kip-279", "fetch-epochs", "kip-320")
PROPERTIES = ("strong-isr", "weak-isr", "leader-in-isr")
BROKER_FAULTS = (
    *("crash", "restart", "expire", "disconnect"),
    *("lost-request", "lost-reply", "late-request"),
)
BROKER_PROPERTIES = ("leader-in-sync", "acting-controller", "live-leaders", "known-state")

OFFSETS_DEFAULTS = {"--members": 1, "--commits": 2, "--epochs": 3}
OFFSETS_FAULTS = ("crash", "moved", "deposed", "reply", "late", "member", "expiry")
OFFSETS_ELECTIONS = ("moved", "deposed")
"""Faults that consist of an election."""

REPLICA_VARIANTS = ("kafka_08", "hardened")
BROKER_VARIANTS = ("documented", *REPLICA_VARIANTS)


def variant_option(names: Sequence[str]) -> Callable[[Any], Any]:
    """Return the option that chooses one of these versions of the brokers."""
    return click.option(
        "--variant",
        type=click.Choice(names),
        default="kafka_08",
        show_default=True,
        help="The version of the brokers.",
    )


def fault_option(names: Sequence[str]) -> Callable[[Any], Any]:
    """Return the option that chooses some of these faults."""
    return click.option(
        "--fault",
        "faults",
        type=click.Choice(names),
        multiple=True,
        help="A fault that may strike once, at any moment; several may be given.",
    )


@click.command(
    "explore-replicas",
    epilog=example(
        "watchkeeper explore-replicas --fault crash",
        "watchkeeper explore-replicas --replicas 3 --epochs 2 --rule kip-101",
        "watchkeeper explore-replicas --variant hardened --fault crash --fault reply",
    ),
)
@variant_option(REPLICA_VARIANTS)
@click.option(
    "--rule",
    type=click.Choice(RULES),
    help="How a follower cuts its log.  [default: that of the variant]",
)
@fault_option(FAULTS)
@click.option(
    "--property",
    "violates",
    type=click.Choice(PROPERTIES),
    default=PROPERTIES[0],
    show_default=True,
    help="The property that is searched for a violation.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1, 5),
    default=2,
    show_default=True,
    help="The number of replicas.",
)
@click.option(
    "--records",
    type=options.MANY,
    default=2,
    show_default=True,
    help="The number of records that producers send.",
)
@click.option(
    "--log",
    type=options.MANY,
    default=2,
    show_default=True,
    help="The largest number of records in a log.",
)
@click.option(
    "--epochs",
    type=options.MANY,
    default=3,
    show_default=True,
    help="The number of changes of leader or ISR by the controller.",
)
@options.max_states
@options.max_seconds
@options.max_memory
@options.out
@options.talking
@options.as_json
def explore_replicas(
    variant: str,
    rule: str | None,
    faults: tuple[str, ...],
    violates: str,
    replicas: int,
    records: int,
    log: int,
    epochs: int,
    max_states: int | None,
    max_seconds: float | None,
    max_memory: float | None,
    out: Path,
    as_json: bool,
) -> int:
    """Search every order of steps of the replicas of one partition.

    Controllers say who leads; replicas append, fetch, cut their logs, and change the ISR. If the
    property is violated, a shortest path is printed, and written as a page that shows each
    replica after each step.

    \b
    Exit codes: 0 holds within the bound; 1 violated; 2 a limit was reached, or the search was
    interrupted; 4 usage or environment.
    """
    from watchkeeper.check import replicas as replicas_search
    from watchkeeper.check.limits import limits
    from watchkeeper.checker.replication.partition import Bounds

    with Teller() as teller:
        searched = replicas_search.explore_replicas(
            variant,
            rule,
            Bounds(replicas, log, records, epochs),
            tuple(sorted(set(faults))),
            {word: name for name, word in replicas_search.PROPERTY_NAMES.items()}[violates],
            limits=limits(max_states, max_seconds, max_memory),
            tell=teller.tell,
        )
    files = replicas_search.write(searched, out)
    if as_json:
        print_json(replicas_search.to_json(searched, files))
    else:
        from watchkeeper.api.tables import console

        replicas_search.report(searched, console(), files)
    return searched.exit_code


@click.command(
    "explore-brokers",
    epilog=example(
        "watchkeeper explore-brokers --fault expire",
        "watchkeeper explore-brokers --fault crash --property live-leaders",
    ),
)
@variant_option(BROKER_VARIANTS)
@fault_option(BROKER_FAULTS)
@click.option(
    "--property",
    "properties",
    type=click.Choice(BROKER_PROPERTIES),
    multiple=True,
    help="A property that is searched for a violation; several may be given.  [default: all]",
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 4),
    default=2,
    show_default=True,
    help="The number of brokers.",
)
@options.max_states
@options.max_seconds
@options.out
@options.talking
@options.as_json
def explore_brokers(
    variant: str,
    faults: tuple[str, ...],
    properties: tuple[str, ...],
    brokers: int,
    max_states: int | None,
    max_seconds: float | None,
    out: Path,
    as_json: bool,
) -> int:
    """Search every interleaving of brokers that elect a controller.

    The controller elects the leader of a partition whose replicas are all brokers. If a property
    is violated, the shortest counterexample is printed, and written as a page.

    \b
    Exit codes: 0 holds within the bound; 1 violated; 2 a limit was reached, or the search was
    interrupted; 4 usage or environment.
    """
    from watchkeeper.check import brokers as brokers_search
    from watchkeeper.check.limits import limits

    with Teller() as teller:
        searched = brokers_search.explore_brokers(
            variant,
            tuple(fault.replace("-", "_") for fault in sorted(set(faults))),
            brokers_search.properties_of(properties),
            brokers,
            limits=limits(max_states, max_seconds, None),
            tell=teller.tell,
        )
    files = brokers_search.write(searched, out)
    if as_json:
        print_json(brokers_search.to_json(searched, files))
    else:
        from watchkeeper.api.tables import console

        brokers_search.report(searched, console(), files)
    return searched.exit_code


@click.command(
    "explore-offsets",
    epilog=example(
        "watchkeeper explore-offsets --fault moved",
        "watchkeeper explore-offsets --variant hardened --fault expiry --fault crash",
    ),
)
@variant_option(REPLICA_VARIANTS)
@fault_option(OFFSETS_FAULTS)
@click.option(
    "--members",
    type=click.IntRange(1, 3),
    default=OFFSETS_DEFAULTS["--members"],
    show_default=True,
    help="The number of members of the group.",
)
@click.option(
    "--commits",
    type=options.MANY,
    default=OFFSETS_DEFAULTS["--commits"],
    show_default=True,
    help="The number of commits that members send.",
)
@click.option(
    "--epochs",
    type=options.MANY,
    default=OFFSETS_DEFAULTS["--epochs"],
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
    _check_elections(chosen, epochs)
    bounds = Bounds(members, commits, epochs, frozenset(Fault[word.upper()] for word in chosen))
    with Teller() as teller:
        found = search(REPLICATIONS[variant], bounds, limits=with_memory(given), tell=teller.tell)
    sizes = {"--members": members, "--commits": commits, "--epochs": epochs}
    words = ["watchkeeper", "explore-offsets", "--variant", variant]
    for name, value in sizes.items():
        words += [name, str(value)] if value != OFFSETS_DEFAULTS[name] else []
    words += [word for fault in chosen for word in ("--fault", fault)]
    report = report_of(found, shlex.join([*words, *limit_words(given)]))
    if as_json:
        print_json(report)
    else:
        lines = lines_of(report, str(bounds))
        for line in lines[:1] if is_quiet() else lines:
            click.echo(line)
    return {"holds": HOLDS, "violated": VIOLATED}.get(report["verdict"], UNKNOWN)


def _check_elections(faults: Sequence[str], epochs: int) -> None:
    """Refuse faults without an effect: those that need a second election."""
    electing = [word for word in faults if word in OFFSETS_ELECTIONS]
    if epochs == 1 and electing:
        message = (
            f"--fault {electing[0]} has no effect with --epochs 1: it needs a second election"
        )
        raise Stop(USAGE, message)


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
