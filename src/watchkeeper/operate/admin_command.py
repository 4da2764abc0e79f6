"""The commands that administer a 0.8 cluster: topics, reassign, prefer, config, controller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from watchkeeper.console import options
from watchkeeper.console.exit import USAGE, Stop
from watchkeeper.console.options import example

FILE = click.Path(path_type=Path)
PLACES = ("continued", "shipped")

dry_run = click.option(
    "--dry-run", is_flag=True, help="Print what would be written, and write nothing."
)
start = click.option(
    "--start", type=click.IntRange(0), help="The place of the first leader.  [default: random]"
)
shift = click.option(
    "--shift", type=click.IntRange(0), help="The gap to its followers.  [default: random]"
)


def _target(hosts: str, as_json: bool, given: dict[str, Any], is_dry_run: bool = False) -> Any:
    """The cluster of a command; the credentials are taken out of what is given."""
    from watchkeeper.operate.admin import Target

    return Target(hosts, options.credentials_in(given), as_json, is_dry_run)


def _changing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that writes."""
    return dry_run(options.reaching(options.as_json(command)))


@click.group(
    epilog=example(
        "watchkeeper topics create zk1:2181/kafka clicks --partitions 6 --replication-factor 2",
        "watchkeeper topics describe zk1:2181/kafka --under-replicated",
    )
)
def topics() -> None:
    """Create, extend, delete and describe topics of a 0.8 cluster.

    A change is one transaction in ZooKeeper: all of it is written, or nothing. Each write has
    a condition, so a change that another client has overtaken is refused.

    \b
    Exit codes: 0 done; 1 refused; 2 unknown, since not everything could be read or the
    connection was lost; 4 usage or environment.
    """


@topics.command(
    "create",
    epilog=example(
        "watchkeeper topics create zk1:2181 clicks --partitions 6 --replication-factor 2",
        "watchkeeper topics create zk1:2181 clicks --replica-assignment 0:1,1:2,2:0",
    ),
)
@click.argument("hosts")
@click.argument("topic")
@click.option("--partitions", type=int, help="The number of partitions.")
@click.option("--replication-factor", type=int, help="The number of replicas of each.")
@click.option(
    "--replica-assignment",
    metavar="BROKERS",
    help="The brokers of each partition instead: 0:1,1:2 are two partitions.",
)
@click.option(
    "--config", multiple=True, metavar="KEY=VALUE", help="A setting that the topic overrides."
)
@start
@shift
@_changing
def create(hosts: str, topic: str, as_json: bool, dry_run: bool, **given: Any) -> int:
    """Create TOPIC at HOSTS[/chroot].

    Replicas are placed by Kafka's algorithm, from a random start unless one is given.
    """
    from watchkeeper.operate import administer

    target = _target(hosts, as_json, given, dry_run)
    return administer.create(target, topic, **given)


@topics.command(
    "alter",
    epilog=example("watchkeeper topics alter zk1:2181 clicks --partitions 12 --dry-run"),
)
@click.argument("hosts")
@click.argument("topic")
@click.option("--partitions", type=int, help="The number of partitions afterwards.")
@click.option(
    "--replica-assignment",
    metavar="BROKERS",
    help="The brokers of all partitions instead, the old ones unchanged.",
)
@click.option(
    "--placement",
    type=click.Choice(PLACES),
    help="As if the topic had been created so, or as Kafka's tool does.  [default: continued]",
)
@_changing
def alter(hosts: str, topic: str, as_json: bool, dry_run: bool, **given: Any) -> int:
    """Add partitions to TOPIC at HOSTS[/chroot].

    Settings are changed by `watchkeeper config`, replicas by `watchkeeper reassign`.
    """
    from watchkeeper.operate import administer

    target = _target(hosts, as_json, given, dry_run)
    return administer.alter(target, topic, **given)


@topics.command("delete", epilog=example("watchkeeper topics delete zk1:2181 clicks views"))
@click.argument("hosts")
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@_changing
def delete(hosts: str, names: tuple[str, ...], as_json: bool, dry_run: bool, **given: Any) -> int:
    """Request the deletion of topics at HOSTS[/chroot].

    The controller carries it out, if delete.topic.enable is true at its broker.
    """
    from watchkeeper.operate import administer

    return administer.delete(_target(hosts, as_json, given, dry_run), names)


@topics.command(
    "describe",
    epilog=example(
        "watchkeeper topics describe zk1:2181 clicks",
        "watchkeeper topics describe zk1:2181 --unavailable --json",
    ),
)
@click.argument("hosts")
@click.argument("names", metavar="[TOPIC]...", nargs=-1)
@click.option("--unavailable", is_flag=True, help="Only partitions without a live leader.")
@click.option("--under-replicated", is_flag=True, help="Only those not in sync everywhere.")
@click.option("--not-preferred", is_flag=True, help="Only those led by another replica.")
@click.option("--overrides", is_flag=True, help="Only topics that override a setting.")
@options.reaching
@options.as_json
def describe(
    hosts: str, names: tuple[str, ...], as_json: bool, overrides: bool, **given: Any
) -> int:
    """Show leaders, replicas and ISRs of topics at HOSTS[/chroot].

    Several of the options show what fits any of them.

    \b
    Exit codes: 0 shown; 2 not everything could be read; 4 usage or environment.
    """
    from watchkeeper.model.admin.description import Mark
    from watchkeeper.operate import administer

    target = _target(hosts, as_json, given)
    only = [mark for mark in Mark if given[mark.name.lower()]]
    return administer.show_topics(target, names, only, with_overrides=overrides)


@click.command(
    epilog=example(
        "watchkeeper reassign zk1:2181 --off 3 --save moves.json",
        "watchkeeper reassign zk1:2181 --file moves.json --verify",
    )
)
@click.argument("hosts")
@click.option("--file", type=FILE, help="Move what this file lists, in the JSON of Kafka's tool.")
@click.option("--to", metavar="IDS", help="Move everything to these brokers, as in 1,2,3.")
@click.option("--off", metavar="IDS", help="Move everything off these brokers, and no more.")
@click.option("--topic", "topics", multiple=True, help="Of --to and --off: only this topic.")
@click.option("--save", type=FILE, help="Of --to and --off: write the moves to this file too.")
@click.option("--verify", is_flag=True, help="Show how far the moves of --file are.")
@start
@shift
@_changing
def reassign(
    hosts: str, as_json: bool, dry_run: bool, verify: bool, file: Path | None, **given: Any
) -> int:
    """Move partitions at HOSTS[/chroot] to other brokers.

    The request lists partitions that move, and no others. One reassignment runs at a time.

    \b
    Exit codes: 0 requested, or all moves are done; 1 refused, or a move has failed; 2 unknown,
    or a move is in progress; 4 usage or environment.
    """
    from watchkeeper.operate import reassign as moving
    from watchkeeper.operate.administer import refuse_beside

    target = _target(hosts, as_json, given, dry_run)
    if file is not None:
        refuse_beside("--file", {f"--{name.rstrip('s')}": value for name, value in given.items()})
        if verify:
            refuse_beside("--verify", {"--dry-run": dry_run})
            return moving.verified(target, file)
        return moving.by_file(target, file)
    if verify:
        raise Stop(USAGE, "--verify goes with --file; --save writes such a file")
    if given["to"] is None and given["off"] is None:
        raise Stop(USAGE, "give --file, --to or --off")
    return moving.computed(target, **given)


@click.command(
    epilog=example(
        "watchkeeper prefer zk1:2181",
        "watchkeeper prefer zk1:2181 clicks/0 clicks/3",
    )
)
@click.argument("hosts")
@click.argument("partitions", metavar="[PARTITION]...", nargs=-1)
@click.option("--file", type=FILE, help="The partitions, in the JSON of Kafka's tool.")
@_changing
def prefer(
    hosts: str,
    partitions: tuple[str, ...],
    as_json: bool,
    dry_run: bool,
    file: Path | None,
    **given: Any,
) -> int:
    """Request that preferred replicas lead partitions.

    Without PARTITION, all at HOSTS[/chroot] that another replica leads. Partitions whose
    election cannot succeed, or is not needed, are left out with the reason.

    \b
    Exit codes: 0 done; 1 refused; 2 unknown; 4 usage or environment.
    """
    from watchkeeper.operate import administer

    return administer.prefer(_target(hosts, as_json, given, dry_run), partitions, file)


@click.command(
    epilog=example(
        "watchkeeper config zk1:2181 clicks",
        "watchkeeper config zk1:2181 clicks --set retention.ms=3600000 --unset flush.ms",
    )
)
@click.argument("hosts")
@click.argument("topic")
@click.option("--set", "values", multiple=True, metavar="KEY=VALUE", help="Override a setting.")
@click.option("--unset", multiple=True, metavar="KEY", help="Override it no longer.")
@_changing
def config(
    hosts: str,
    topic: str,
    values: tuple[str, ...],
    unset: tuple[str, ...],
    as_json: bool,
    dry_run: bool,
    **given: Any,
) -> int:
    """Show or change the settings of TOPIC at HOSTS[/chroot].

    The change and the notification of the brokers are one transaction.

    \b
    Exit codes: 0 done; 1 refused; 2 unknown; 4 usage or environment.
    """
    from watchkeeper.operate import administer

    return administer.settings(_target(hosts, as_json, given, dry_run), topic, values, unset)


@click.command(epilog=example("watchkeeper controller zk1:2181/kafka"))
@click.argument("hosts")
@options.reaching
@options.as_json
def controller(hosts: str, as_json: bool, **given: Any) -> int:
    """Show the controller at HOSTS[/chroot].

    Its broker, its epoch, its session, and since when it is the controller.

    \b
    Exit codes: 0 a registered broker is the controller; 1 none is; 2 it could not be read;
    4 usage or environment.
    """
    from watchkeeper.operate import administer

    return administer.show_controller(_target(hosts, as_json, given))
