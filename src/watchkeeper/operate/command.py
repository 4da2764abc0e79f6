"""The commands for what is in operation: audit, offsets, broker, mirror, calibrate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from watchkeeper.console import options
from watchkeeper.console.defaults import is_default
from watchkeeper.console.exit import HOLDS, USAGE, Stop, print_json
from watchkeeper.console.options import example
from watchkeeper.console.zookeeper import STARTED


@click.command(
    epilog=example(
        "watchkeeper calibrate zk1:2181,zk2:2181 --out cluster.yaml",
        "watchkeeper calibrate --disk /var/lib/kafka --out disk.yaml",
    )
)
@click.argument("hosts", required=False)
@click.option(
    "--servers",
    default="1",
    show_default=True,
    type=click.Choice(["1", "3"]),
    help="Servers of the ZooKeeper that is started.",
)
@click.option(
    "--zookeeper",
    type=click.Choice(STARTED),
    help="Without HOSTS: start Apache's server or the one in Python.  "
    "[default: java if it is found, else python]",
)
@click.option(
    "--disk",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Measure the disk under DIR, and ZooKeeper only if HOSTS are given.",
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
    """Measure a real ZooKeeper or a disk, for `run --profile`.

    Without HOSTS[/chroot] a ZooKeeper is started and measured. The measurement
    writes below a znode of its own and deletes it at the end. Sections of an existing
    profile that are not measured now stay as they are.
    """
    from watchkeeper.operate import calibrate as calibration

    credentials = options.credentials_in(given)
    calibration.run(hosts, credentials=credentials, as_json=as_json, **given)


@click.command(
    epilog=example(
        "watchkeeper audit zk1:2181/kafka --group billing",
        "watchkeeper audit zk1:2181 --without broker/2 --with '3 consumers'",
    )
)
@click.argument("hosts")
@click.option("--group", help="Audit this group only.")
@click.option("--without", multiple=True, help="What if broker/ID or consumer/ID were gone.")
@click.option("--with", "joining", multiple=True, help="What if 'N consumers' joined.")
@click.option("--watch", type=click.FloatRange(0.1), help="Repeat every so many seconds.")
@click.option("--assignor", default="range", show_default=True, help="The group's assignor.")
@click.option(
    "--session-timeout-ms",
    type=click.IntRange(1),
    help="The members' session timeout.  [default: 6000]",
)
@click.option("--retries", type=click.IntRange(1), help="Attempts of a rebalance.  [default: 4]")
@click.option(
    "--backoff-ms",
    type=click.IntRange(1),
    help="The pause after a failed attempt.  [default: 2000]",
)
@click.option(
    "--lag",
    is_flag=True,
    help="Read the ends of the logs from the brokers, and judge the lag over the audits of a "
    "watch.",
)
@click.option(
    "--lag-window",
    type=click.IntRange(2),
    help="Over how many audits the lag is judged.  [default: 10]",
)
@click.option(
    "--fail-on",
    type=click.Choice(["notice", "warning", "critical"]),
    default="notice",
    show_default=True,
    help="Findings of a lower severity do not make the exit code 1.",
)
@click.option(
    "--prometheus", is_flag=True, help="Print numbers in the text format of Prometheus."
)
@click.option(
    "--listen",
    metavar="[HOST:]PORT",
    help="Serve /metrics and /health there, and audit every 15 s, or as --watch says.",
)
@click.option("--allow-remote", is_flag=True, help="--listen may be reached by other machines.")
@options.reaching
@options.as_json
def audit(
    as_json: bool,
    watch: float | None,
    prometheus: bool,
    listen: str | None,
    allow_remote: bool,
    **given: Any,
) -> int:
    """Read the registry at HOSTS[/chroot] and report problems.

    Nothing is written. With --listen it serves what it finds until SIGTERM or Ctrl-C, with exit
    code 0.

    \b
    Exit codes: 0 no findings, or none as severe as --fail-on; 1 findings; 2 not everything
    could be read, or the registry changed during the read; 4 usage or environment.
    """
    from watchkeeper.operate.audit import audit as audits
    from watchkeeper.operate.audit import watch as audit_watch

    request = audits.request(credentials=options.credentials_in(given), **given)
    if sum((as_json, prometheus, listen is not None)) > 1:
        raise Stop(USAGE, "--json, --prometheus and --listen exclude each other; give one")
    is_set = given["lag_window"] is not None and not is_default("lag_window")
    if is_set and not (given["lag"] and (watch or listen)):
        raise Stop(USAGE, "--lag-window goes with --lag and --watch, or --lag and --listen")
    if allow_remote and listen is None:
        raise Stop(USAGE, "--allow-remote goes with --listen")
    output = audit_watch.Output(as_json, prometheus, watch, listen, allow_remote)
    return audit_watch.run(request, output)


@click.command(
    epilog=example(
        "watchkeeper offsets zk1:2181 export billing.json --group billing",
        "watchkeeper offsets zk1:2181 reset billing.json --group billing",
    )
)
@click.argument("hosts")
@click.argument("what", type=click.Choice(["export", "reset"]))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--group", required=True, help="The group whose offsets are meant.")
@options.reaching
@options.as_json
def offsets(what: str, file: Path, as_json: bool, **given: Any) -> int:
    """Export or reset the offsets of a group at HOSTS[/chroot].

    A reset is one transaction, and ZooKeeper refuses it while any member of the group is
    registered. FILE is JSON, as
    `export` writes it.
    """
    from watchkeeper.operate import offsets
    from watchkeeper.operate.audit import audit as audits

    act = offsets.export if what == "export" else offsets.reset
    done = act(audits.request(credentials=options.credentials_in(given), **given), file)
    if as_json:
        print_json(done)
        return HOLDS
    return offsets.show(done)


@click.command(
    "migrate-offsets",
    epilog=example(
        "watchkeeper migrate-offsets --to kafka",
        "watchkeeper migrate-offsets zk1:2181 --to kafka --group billing",
    ),
)
@click.argument("hosts", required=False)
@click.option(
    "--to",
    required=True,
    type=click.Choice(("kafka", "zookeeper")),
    help="Where the offsets of the group are to be.",
)
@click.option("--group", help="The group whose offsets are compared.")
@click.option("--copy", is_flag=True, help="Write to ZooKeeper what is behind there.")
@options.reaching
@options.as_json
def migrate_offsets(
    hosts: str | None, to: str, group: str | None, copy: bool, as_json: bool, **given: Any
) -> int:
    """Move the offsets of a group between ZooKeeper and Kafka.

    Without HOSTS this prints the plan: which settings of consumers of 0.8.2 to change in which
    order, and when to go on. With HOSTS[/chroot] and --group it compares the offsets in both
    places. --copy needs that no member of the group is alive.

    \b
    Exit codes: 0 go on, or copied; 1 not yet, or the group is alive; 2 not all offsets could be
    read; 4 usage or environment.
    """
    from watchkeeper.model.offset_manager.migration import Store
    from watchkeeper.operate import offsets as migration
    from watchkeeper.operate.audit import audit as audits

    store = Store(to)
    if hosts is None or group is None:
        migration.check_plan_only(hosts, group, copy=copy, as_json=as_json)
        from watchkeeper.checker.migration.plan import plan

        print(plan(store))
        return HOLDS
    request = audits.request(hosts, group, credentials=options.credentials_in(given), **given)
    if copy:
        done = migration.copy(request, store)
        if as_json:
            print_json(done)
            return HOLDS
        return migration.show(done)
    compared = migration.compare(request, store)
    if as_json:
        print_json(compared.as_json())
        return migration.exit_code(compared)
    return migration.show_compared(compared)


@click.command(
    epilog=example(
        "watchkeeper broker --log-dir logs --zookeeper localhost:2181 --set num.partitions=4"
    )
)
@click.option("--log-dir", required=True, help="The folder of the logs; created if missing.")
@click.option(
    "--protocol",
    type=click.Choice(("0.7", "0.8")),
    default="0.7",
    show_default=True,
    help="The version of Kafka whose clients it serves.",
)
@click.option("--port", type=int, help="0 takes a free port; by default 6667, in 0.8 9092.")
@click.option("--zookeeper", metavar="HOSTS[/CHROOT]", help="Register the broker there.")
@click.option("--id", "number", default=0, show_default=True, help="The broker id.")
@click.option(
    "--replicate",
    "variant",
    type=click.Choice(("hardened", "kafka_08")),
    help="Replicate with the other brokers there, and elect a controller with them: hardened, or "
    "kafka_08, which brokers of Kafka 0.8.2 can be among.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the broker, by Kafka's name.",
)
def broker(
    log_dir: str,
    protocol: str,
    port: int | None,
    zookeeper: str | None,
    number: int,
    variant: str | None,
    settings: tuple[str, ...],
) -> int:
    """Run a broker of Kafka 0.7 or 0.8 on 127.0.0.1.

    It ends on SIGTERM, Ctrl-C, or when its parent process ends.

    \b
    Exit codes: 0 it ended on request; 1 a failure of its disk or its logs ended it;
    4 usage or environment.
    """
    from watchkeeper.operate import broker as brokers

    options = brokers.Options(log_dir, protocol, port, number, zookeeper, variant)
    return brokers.run(options, settings)


@click.command(
    epilog=example(
        "watchkeeper mirror zk1:2181/east --brokers 0:hub1:9092 --group hub --topics 'click.*'"
    )
)
@click.argument("hosts")
@click.option(
    "--brokers",
    required=True,
    metavar="ID:HOST:PORT,...",
    help="The brokers of the target, as in `broker.list`.",
)
@click.option("--group", required=True, help="The group; its mirrors share the partitions.")
@click.option("--topics", required=True, help="A regular expression for names of topics.")
@click.option(
    "--commits",
    type=click.Choice(["after", "before"]),
    default="after",
    show_default=True,
    help="Commit an offset after its message has arrived, or before.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the consumer, by Kafka's name.",
)
@click.option(
    "--producer-set",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the producer, by Kafka's name.",
)
@click.option(
    "--every",
    type=options.DURATION,
    default="10s",
    show_default=True,
    help="Print the counts so often, if they have changed.",
)
@options.reaching
def mirror(
    hosts: str,
    brokers: str,
    group: str,
    topics: str,
    commits: str,
    settings: tuple[str, ...],
    producer_set: tuple[str, ...],
    every: float,
    **given: Any,
) -> int:
    """Copy topics of the 0.7 cluster at HOSTS[/chroot] to the brokers of another one.

    A mirror that dies sends some messages twice and loses none; with `--commits before` it is
    the other way round. It ends on SIGTERM, Ctrl-C, or when its parent process ends, and sends
    what waits before that.

    \b
    Exit codes: 0 it ended on request, and all that it read has arrived; 1 not all has, or it
    failed; 4 usage or environment.
    """
    from watchkeeper.operate import mirror as mirrors

    return mirrors.run(
        hosts,
        brokers=brokers,
        group=group,
        topics=topics,
        commits=commits,
        consumer_settings=settings,
        producer_settings=producer_set,
        every_s=every,
        credentials=options.credentials_in(given),
    )
