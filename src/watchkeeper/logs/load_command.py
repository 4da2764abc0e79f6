"""The command `load`: the logs of brokers into a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watchkeeper.console import options
from watchkeeper.console.exit import HOLDS, USAGE, Stop, print_json
from watchkeeper.console.options import example

if TYPE_CHECKING:
    from watchkeeper.logs.load import Means
    from watchkeeper.operate.audit.audit import Request


@click.command(
    epilog=example(
        "watchkeeper load /var/lib/kafka/logs table",
        "watchkeeper load --brokers kafka1:9092,kafka2:9092 --topics clicks table",
        "watchkeeper load --offsets table --group billing --zookeeper localhost:2181",
    )
)
@click.argument("folders", nargs=-1, metavar="[LOGDIR] OUT", type=click.Path(path_type=Path))
@click.option(
    "--brokers",
    metavar="HOST:PORT,...",
    help="Load from live brokers, not from LOGDIR; of 0.7: ID:HOST:PORT,...",
)
@click.option(
    "--protocol",
    type=click.Choice(["auto", "0.7", "0.8"]),
    help="What the brokers speak.  [default: auto, which finds out]",
)
@click.option(
    "--retry-ms",
    metavar="N",
    help="How long a request to brokers that fails is retried.  [default: 30000]",
)
@click.option("--topics", metavar="A,B", help="Load these topics only; brokers of 0.7 need them.")
@click.option("--broker", help="The id of the broker that wrote the logs.")
@click.option(
    "--replicas",
    type=click.Choice(["first", "all"]),
    help="0.8: load the first replica of a partition, or all.  [default: first]",
)
@click.option(
    "--gaps",
    type=click.Choice(["fail", "allow"]),
    help="What to do about missing messages.  [default: fail]",
)
@click.option(
    "--corrupt",
    type=click.Choice(["fail", "skip", "quarantine"]),
    help="What to do about a corrupt message.  [default: fail]",
)
@click.option("--split-bytes", metavar="N", help="Load a larger segment in several tasks.")
@click.option(
    "--compression",
    default="snappy",
    show_default=True,
    type=click.Choice(["snappy", "zstd", "none"]),
    help="The compression of the table.",
)
@click.option(
    "--runner",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "process", "pool", "spark"]),
    help="This process, several, or Spark; auto decides by the amount of data.",
)
@click.option(
    "--master", help="The master of Spark: local[2], spark://HOST:PORT, yarn or k8s://..."
)
@click.option("--jobs", type=options.MANY, help="How many tasks at once.  [default: one a core]")
@click.option(
    "--offsets",
    "only_offsets",
    is_flag=True,
    help="Load nothing; print the offsets that OUT has reached.",
)
@click.option("--group", help="Compare them with the offsets of this group; needs --zookeeper.")
@click.option("--set", "sets", is_flag=True, help="Set the offsets of the group to those of OUT.")
@click.option("--zookeeper", metavar="HOSTS[/CHROOT]", help="Where the group is registered.")
@options.reaching
@options.as_json
def load(
    folders: tuple[Path, ...],
    compression: str,
    runner: str,
    master: str | None,
    jobs: int | None,
    only_offsets: bool,
    brokers: str | None,
    group: str | None,
    sets: bool,
    zookeeper: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Load the logs of brokers, in LOGDIR or from live brokers, into the table OUT.

    The logs are those of Kafka 0.7 or 0.8. OUT is a folder of Parquet files. Each file holds
    an interval of a log and is named after it, so rows and reached offset appear together or
    not at all. The same command loads later messages, and continues after a kill at any moment.

    With --offsets, OUT is the only argument, and its offsets are printed; with --group, beside
    those of the group in ZooKeeper. --set sets the latter while no member of the group is alive.

    \b
    Exit codes: 0 loaded, and the offsets of the group, if one is given, equal those of OUT;
    1 they differ, or the group is alive; 2 unknown or interrupted; 4 usage or environment, or
    something could not be loaded.
    """
    from watchkeeper.logs.load import Means

    _check_folders(len(folders), brokers, only_offsets=only_offsets)
    request = _request(group, zookeeper, sets=sets, credentials=options.credentials_in(given))
    output: dict[str, Any] = {}
    code = HOLDS
    if not only_offsets:
        how = Means(runner, master, jobs, compression)
        logs = {"path": str(folders[0])} if brokers is None else {"brokers": brokers}
        code = _load(folders[-1], {**logs, **given}, how, output, as_json=as_json)
    if only_offsets or (request is not None and code == HOLDS):
        code = _offsets(folders[-1], request, output, sets=sets, as_json=as_json)
    if as_json:
        print_json(output)
    return code


def _check_folders(count: int, brokers: str | None, *, only_offsets: bool) -> None:
    """Raise Stop unless there are as many folders as the options need."""
    if only_offsets and brokers is not None:
        raise Stop(USAGE, "--offsets loads nothing; expected it without --brokers")
    source = "--offsets" if only_offsets else "LOGDIR" if brokers is None else "--brokers ..."
    if count != (2 if source == "LOGDIR" else 1):
        raise Stop(USAGE, f"{count} folders are given; expected watchkeeper load {source} OUT")


def _request(
    group: str | None, zookeeper: str | None, *, sets: bool, credentials: Any
) -> Request | None:
    """Return the named group, if there is one."""
    if (group is None) != (zookeeper is None) or (sets and group is None):
        raise Stop(USAGE, "--group and --zookeeper go together, and --set goes with them")
    if group is None or zookeeper is None:
        return None
    from watchkeeper.operate.audit.audit import Request

    return Request(zookeeper, group, credentials=credentials)


def _load(
    out: Path,
    given: dict[str, Any],
    means: Means,
    output: dict[str, Any],
    *,
    as_json: bool,
) -> int:
    """Load the logs that the options name, and print the result."""
    from watchkeeper.api.tables import console
    from watchkeeper.logs import load as loads
    from watchkeeper.logs import report

    given["splitBytes"] = given.pop("split_bytes")
    given["retryMs"] = given.pop("retry_ms")
    asked = loads.options(given)
    done = loads.run(asked, out, means, lambda line: print(line, file=sys.stderr))
    output.update(report.to_json(done))
    if not as_json:
        report.report(done, console())
    for problem in dict.fromkeys(done.sum.problems):
        print(problem, file=sys.stderr)
    return done.exit_code


def _offsets(
    out: Path, request: Request | None, output: dict[str, Any], *, sets: bool, as_json: bool
) -> int:
    """Print the progress of a table, beside that of a group if one is named."""
    from watchkeeper.api.tables import console
    from watchkeeper.logs import load as loads
    from watchkeeper.logs import offsets, report

    group = None if request is None else request.group
    reached = offsets.places(loads.reached(out))
    output.update(offsets.to_json(reached, group))
    rows = [offsets.Row(partition, offset, None) for partition, offset in sorted(reached.items())]
    if request is not None:
        if sets:
            output["changed"] = offsets.set_there(reached, request, out)
        rows = offsets.compared(reached, request)
        output["compared"] = report.rows_json(rows)
    if not as_json:
        report.show_offsets(rows, group, console())
    return HOLDS if request is None else offsets.exit_code(rows)
