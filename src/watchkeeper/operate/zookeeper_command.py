"""The command `zookeeper`: a server for development and tests."""

from __future__ import annotations

from typing import Any

import click

from watchkeeper.console.options import MANY, example


@click.command(
    epilog=example(
        "watchkeeper zookeeper --port 2181 --data zookeeper-data",
        "watchkeeper zookeeper --servers 3 --port 2181",
    )
)
@click.option(
    "--port",
    default=2181,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="The port of the first server; the others take the next ones. 0 takes free ports.",
)
@click.option("--servers", default=1, show_default=True, type=MANY, help="An odd number.")
@click.option(
    "--data",
    metavar="DIR",
    help="Make every write durable in DIR before it is answered, in the files of Apache's "
    "server.  [default: everything is in memory]",
)
@click.option(
    "--tick",
    "tick_ms",
    metavar="MS",
    default=500,
    show_default=True,
    type=MANY,
    help="The unit of session timeouts.",
)
@click.option(
    "--min-session",
    "min_session_ms",
    metavar="MS",
    type=MANY,
    help="The shortest session timeout.  [default: 2 ticks]",
)
@click.option(
    "--max-session",
    "max_session_ms",
    metavar="MS",
    type=MANY,
    help="The longest session timeout.  [default: 20 ticks]",
)
@click.option(
    "--connections-per-address",
    metavar="N",
    default=60,
    show_default=True,
    type=click.IntRange(0),
    help="How many connections one address may have to one server; 0 for any number.",
)
@click.option(
    "--read-only-mode",
    is_flag=True,
    help="A server without a leader serves reads to clients that accept that.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--allow-remote", is_flag=True, help="--host may be reached by other machines.")
def zookeeper(
    port: int,
    servers: int,
    data: str | None,
    host: str,
    allow_remote: bool,
    **settings: Any,
) -> int:
    """Run a ZooKeeper for development and tests.

    It serves every client of ZooKeeper 3.9, needs no Java, and ends on SIGTERM or Ctrl-C.
    With several servers all of them are in this process: each has a port, and all have one
    history and one log.

    \b
    Exit codes: 0 it ended on request; 1 a failure of its disk ended it; 4 usage or
    environment.
    """
    from watchkeeper.real.python_zookeeper.quick_import import quick_import

    with quick_import():
        from watchkeeper.operate import zookeeper as server

    return server.run(
        port=port,
        servers=servers,
        data=data,
        host=host,
        allow_remote=allow_remote,
        settings=settings,
    )
