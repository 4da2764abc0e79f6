"""The commands that need a live ZooKeeper; `cli` adds them to the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from watchkeeper import options
from watchkeeper.endings import HOLDS, print_json


@click.command()
@click.argument("scenario")
@options.variant
@click.option("--seeds", default=10, show_default=True, type=options.MANY, help="Simulated runs.")
@click.option("--runs", default=1, show_default=True, type=options.MANY, help="Live runs.")
@options.out
@options.profile
@options.elsewhere
@options.as_json
def compare(
    scenario: str,
    variant: str | None,
    seeds: int,
    runs: int,
    out: Path,
    profile: Path | None,
    as_json: bool,
    **live: Any,
) -> int:
    """Run SCENARIO in simulation and live, and lay them side by side.

    \b
    Exit codes: 0 the verdicts agree, or the scenario says why they need not;
    1 they differ; 2 interrupted; 4 usage or environment.
    """
    from watchkeeper import comparing_worlds, living

    where = living.where("live", options.credentials_in(live), **live)
    done = comparing_worlds.compare(
        scenario, variant, out, seeds=seeds, runs=runs, where=where, profile=profile
    )
    if as_json:
        print_json(done.to_json())
    else:
        from watchkeeper.printing import console

        comparing_worlds.show(done, console())
    return done.comparison.exit_code


@click.command()
@click.argument("hosts", required=False)
@click.option(
    "--servers",
    default="1",
    show_default=True,
    type=click.Choice(["1", "3"]),
    help="Of the embedded ZooKeeper.",
)
@click.option(
    "--disk",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Measure the disk under DIR, and ZooKeeper only if HOSTS are named.",
)
@click.option(
    "--out",
    default="profile.yaml",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The profile file to write.",
)
@click.option("--quick", is_flag=True, help="Measure less, in about 5 s instead of 30.")
@options.reaching
@options.as_json
def calibrate(hosts: str | None, as_json: bool, **given: Any) -> None:
    """Measure a real ZooKeeper, for `run --profile` to simulate, or a disk.

    Without HOSTS[/chroot] it is an embedded one that is started for it. What is written
    to it stands below a znode of its own, and goes with that when all is measured. A
    profile that is there keeps what it says of what is not measured now.
    """
    from watchkeeper import calibrating

    credentials = options.credentials_in(given)
    calibrating.run(hosts, credentials=credentials, as_json=as_json, **given)


@click.command()
@click.argument("hosts")
@click.option("--group", help="Audit this group alone.")
@click.option("--without", multiple=True, help="What if broker/ID or consumer/ID were gone.")
@click.option("--with", "joining", multiple=True, help="What if 'N consumers' came.")
@click.option("--watch", type=click.FloatRange(0.1), help="Repeat every so many seconds.")
@click.option("--assignor", default="range", show_default=True, help="How the group deals.")
@click.option("--session-timeout-ms", type=click.IntRange(1), help="[default: 6000]")
@click.option("--retries", type=click.IntRange(1), help="Attempts of a rebalance. [default: 4]")
@click.option("--backoff-ms", type=click.IntRange(1), help="Pause after one. [default: 2000]")
@click.option("--lag", is_flag=True, help="Ask the brokers, if they are watchkeeper's own.")
@options.reaching
@options.as_json
def audit(as_json: bool, watch: float | None, **given: Any) -> int:
    """Read the registry at HOSTS[/chroot] and report what is amiss; write nothing.

    \b
    Exit codes: 0 nothing found; 1 findings; 2 not all could be read, or it
    changed while it was read; 4 usage or environment.
    """
    from watchkeeper import auditing

    asked = auditing.request(credentials=options.credentials_in(given), **given)
    return auditing.run(asked, as_json=as_json, every_s=watch)


@click.command()
@click.argument("hosts")
@click.argument("what", type=click.Choice(["export", "reset"]))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--group", required=True, help="Whose offsets.")
@options.reaching
@options.as_json
def offsets(what: str, file: Path, as_json: bool, **given: Any) -> int:
    """Export the offsets of a group at HOSTS[/chroot] to FILE, or reset them to FILE's.

    A reset is refused, in the transaction that would make it, while any member of
    the group is registered. FILE is JSON, as export writes it.
    """
    from watchkeeper import auditing, offsets

    act = offsets.export if what == "export" else offsets.reset
    done = act(auditing.request(credentials=options.credentials_in(given), **given), file)
    if as_json:
        print_json(done)
        return HOLDS
    return offsets.show(done)


@click.command()
@click.option("--log-dir", required=True, help="The folder of its logs; made if there is none.")
@click.option("--port", default=6667, show_default=True, help="0: one that is free.")
@click.option("--zookeeper", metavar="HOSTS[/CHROOT]", help="Register it there.")
@click.option("--id", "number", default=0, show_default=True, help="What it registers as.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="By Kafka's names.")
def broker(
    log_dir: str, port: int, zookeeper: str | None, number: int, settings: tuple[str, ...]
) -> int:
    """Run a broker of Kafka 0.7 on 127.0.0.1, until SIGTERM, Ctrl-C or its parent's end.

    \b
    Exit codes: 0 it was told to end; 1 its disk or its logs do not let it go on;
    4 usage or environment.
    """
    from watchkeeper import brokers

    return brokers.run(log_dir, port, number, settings, zookeeper)


LIVE_COMMANDS = (audit, broker, calibrate, compare, offsets)
