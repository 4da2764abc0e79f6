"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from watchkeeper.reaching import Credentials

Command = Callable[..., Any]

MANY = click.IntRange(1)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON value only, of an error too."
)
variant = click.option(
    "--variant", help="The version of the protocol; the scenario's own unless given."
)
out = click.option(
    "--out",
    default="runs",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the folders of runs are made.",
)
profile = click.option(
    "--profile",
    type=click.Path(path_type=Path),
    help="Simulate with the latencies of this file, as `calibrate` writes it.",
)

OPTIONS = (
    click.option("--auth", multiple=True, help="scheme:credential, as ZooKeeper's addauth."),
    click.option("--tls-ca", help="Connect by TLS, and trust the certificates in this file."),
    click.option("--tls-cert", help="Show the certificate in this file."),
    click.option("--tls-key", help="Its key, if it is in another file."),
)

zookeeper = click.option(
    "--zookeeper", metavar="HOSTS[/CHROOT]", help="Live: use this one, and start none."
)

LIVE_OPTIONS = (
    zookeeper,
    click.option(
        "--allow-faults-on",
        multiple=True,
        metavar="HOST",
        help="Live: faults may befall sessions at this host of --zookeeper.",
    ),
    click.option(
        "--abort-file",
        type=click.Path(path_type=Path),
        help="Live: end as soon as this file is there. [default: ABORT in the run's folder]",
    ),
)


def reaching(command: Command) -> Command:
    """Give a command the options that say how to come to a ZooKeeper."""
    return _with(OPTIONS, command)


def elsewhere(command: Command) -> Command:
    """Give a command the options of live runs on a ZooKeeper that runs already."""
    return _with(LIVE_OPTIONS + OPTIONS, command)


def _with(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def credentials_in(options: dict[str, Any]) -> Credentials:
    """Take those options out of what a command was given."""
    return Credentials(
        tuple(options.pop("auth")),
        options.pop("tls_ca"),
        options.pop("tls_cert"),
        options.pop("tls_key"),
    )
