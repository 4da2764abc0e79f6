"""How the command line says where a ZooKeeper is, and what it asks of its clients."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from watchkeeper.endings import USAGE, Stop

if TYPE_CHECKING:
    from real.access import Access

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client shows to come in."""

    auth: tuple[str, ...] = ()
    """Each as scheme:credential."""
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options that say the same; a credential is nothing to be printed."""
        given = {"--tls-ca": self.tls_ca, "--tls-cert": self.tls_cert, "--tls-key": self.tls_key}
        shown = [f"--auth {one.partition(':')[0]}:..." for one in self.auth]
        shown += [f"{name} {shlex.quote(file)}" for name, file in given.items() if file]
        return tuple(shown)

    def access(self, hosts: str) -> Access:
        """How to come to these hosts; Stop says what is missing or not understood."""
        try:
            from real.access import Access
        except ImportError as error:
            raise Stop(
                USAGE, f"{error.name} is not installed; pip install 'watchkeeper[live]' brings it"
            ) from None
        return Access(hosts, tuple(map(_pair, self.auth)), self._tls())

    def _tls(self) -> tuple[tuple[str, Any], ...]:
        """The options as kazoo names them."""
        given = {"ca": self.tls_ca, "certfile": self.tls_cert, "keyfile": self.tls_key}
        options = tuple((name, value) for name, value in given.items() if value is not None)
        return (("use_ssl", True), *options) if options else ()


NONE = Credentials()


def _pair(text: str) -> tuple[str, str]:
    scheme, colon, credential = text.partition(":")
    if not colon or not credential:
        raise Stop(USAGE, "--auth is written scheme:credential, as in digest:user:password")
    return scheme, credential


OPTIONS = (
    click.option("--auth", multiple=True, help="scheme:credential, as ZooKeeper's addauth."),
    click.option("--tls-ca", help="Connect by TLS, and trust the certificates in this file."),
    click.option("--tls-cert", help="Show the certificate in this file."),
    click.option("--tls-key", help="Its key, if it is in another file."),
)

LIVE_OPTIONS = (
    click.option(
        "--zookeeper", metavar="HOSTS[/CHROOT]", help="Live: use this one, and start none."
    ),
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
