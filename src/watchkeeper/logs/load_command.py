"""The command that loads the logs of brokers into a table; `cli` adds it to the others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watchkeeper import options
from watchkeeper.endings import HOLDS, USAGE, Stop, print_json

if TYPE_CHECKING:
    from watchkeeper.auditing import Request
    from watchkeeper.loading import Means


@click.command()
@click.argument("folders", nargs=-1, metavar="[LOGDIR] OUT", type=click.Path(path_type=Path))
@click.option("--topics", metavar="A,B", help="Only these.")
@click.option("--broker", help="The id of the broker whose logs they are.")
@click.option(
    "--replicas",
    type=click.Choice(["first", "all"]),
    help="0.8: load the first replica of a partition, or all.  [default: first]",
)
@click.option(
    "--gaps",
    type=click.Choice(["fail", "allow"]),
    help="What if messages are missing.  [default: fail]",
)
@click.option(
    "--corrupt",
    type=click.Choice(["fail", "skip", "quarantine"]),
    help="What if a message is damaged.  [default: fail]",
)
@click.option("--split-bytes", metavar="N", help="A larger segment is loaded by several tasks.")
@click.option(
    "--compression",
    default="snappy",
    show_default=True,
    type=click.Choice(["snappy", "zstd", "none"]),
    help="Of the table.",
)
@click.option(
    "--runner",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "process", "pool", "spark"]),
    help="This process, several, or Spark; auto goes by how much there is.",
)
@click.option("--master", help="Spark's: local[2], spark://HOST:PORT, yarn or k8s://...")
@click.option("--jobs", type=options.MANY, help="How many at once.  [default: as many as cores]")
@click.option("--offsets", "only_offsets", is_flag=True, help="Load nothing: how far is OUT?")
@click.option("--group", help="Compare with the offsets of this group; needs --zookeeper.")
@click.option("--set", "sets", is_flag=True, help="Set the group's offsets to those of OUT.")
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
    group: str | None,
    sets: bool,
    zookeeper: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Load the logs of brokers of Kafka 0.7 or 0.8 in LOGDIR into the table OUT.

    OUT is a folder of Parquet files. Each holds a part of a log and is named after it, so
    the rows and the offset that was reached are there together or not at all. The same
    command loads what has come since; killed anywhere, it goes on.

    With --offsets OUT stands alone, and how far it has come is printed; with --group beside
    the group's offsets in ZooKeeper. --set sets these, while no member of the group is alive.

    \b
    Exit codes: 0 loaded, and the group stands where OUT does, if one is named; 1 it stands
    elsewhere, or is alive; 2 unknown or interrupted; 4 usage or environment, or something
    could not be loaded.
    """
    from watchkeeper.loading import Means

    request = _request(group, zookeeper, sets=sets, credentials=options.credentials_in(given))
    said: dict[str, Any] = {}
    if len(folders) != (1 if only_offsets else 2):
        wanted = "load --offsets OUT" if only_offsets else "load LOGDIR OUT"
        raise Stop(USAGE, f"{len(folders)} folders are given; expected watchkeeper {wanted}")
    code = HOLDS
    if not only_offsets:
        how = Means(runner, master, jobs, compression)
        code = _load(folders, given, how, said, as_json=as_json)
    if only_offsets or (request is not None and code == HOLDS):
        code = _offsets(folders[-1], request, said, sets=sets, as_json=as_json)
    if as_json:
        print_json(said)
    return code


def _request(
    group: str | None, zookeeper: str | None, *, sets: bool, credentials: Any
) -> Request | None:
    """Which group is asked for, if one is."""
    if (group is None) != (zookeeper is None) or (sets and group is None):
        raise Stop(USAGE, "--group and --zookeeper go together, and --set goes with them")
    if group is None or zookeeper is None:
        return None
    from watchkeeper.auditing import Request

    return Request(zookeeper, group, credentials=credentials)


def _load(
    folders: tuple[Path, ...],
    given: dict[str, Any],
    means: Means,
    said: dict[str, Any],
    *,
    as_json: bool,
) -> int:
    """Load, and say what was done."""
    from watchkeeper import load_printing, loading
    from watchkeeper.printing import console

    logs, out = folders
    given["splitBytes"] = given.pop("split_bytes")
    asked = loading.options({"path": str(logs), **given})
    done = loading.run(asked, out, means, lambda what: print(f"runner  {what}", file=sys.stderr))
    said.update(load_printing.to_json(done))
    if not as_json:
        load_printing.report(done, console())
    for problem in dict.fromkeys(done.sum.problems):
        print(problem, file=sys.stderr)
    return done.exit_code


def _offsets(
    out: Path, request: Request | None, said: dict[str, Any], *, sets: bool, as_json: bool
) -> int:
    """Say how far a table has come; beside a group, if one is asked for."""
    from watchkeeper import load_printing, loaded_offsets, loading
    from watchkeeper.printing import console

    group = None if request is None else request.group
    reached = loaded_offsets.places(loading.reached(out))
    said.update(loaded_offsets.to_json(reached, group))
    rows = [loaded_offsets.Row(one, offset, None) for one, offset in sorted(reached.items())]
    if request is not None:
        if sets:
            said["changed"] = loaded_offsets.set_there(reached, request, out)
        rows = loaded_offsets.compared(reached, request)
        said["compared"] = load_printing.rows_json(rows)
    if not as_json:
        load_printing.show_offsets(rows, group, console())
    return HOLDS if request is None else loaded_offsets.exit_code(rows)
