"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

import click

from watchkeeper.console import completion
from watchkeeper.console.credentials import Credentials
from watchkeeper.console.defaults import Shared, is_default, without_defaults
from watchkeeper.console.progress import QUIET, VERBOSE
from watchkeeper.console.zookeeper import hosts_in

Command = Callable[..., Any]

MANY = click.IntRange(1)


class Duration(click.ParamType[float]):
    """A duration with its unit, as in scenario files; its value is in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds of a text such as `5m`."""
        from watchkeeper.scenarios.text.units import parse_duration

        try:
            return parse_duration(value, LEAST_US) / 1_000_000
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


DURATION = Duration()
FILE = click.Path()
LEAST_US = 1_000


def example(*commands: str) -> str:
    """Return the end of a help text: commands that can be copied."""
    head = "Example:" if len(commands) == 1 else "Examples:"
    return "\n".join(["\b", head, *(f"  {command}" for command in commands)])


def _keep(key: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def keep(context: click.Context, option: click.Parameter, is_given: bool) -> None:
        context.meta[key] = is_given

    return keep


TALK = (
    click.option(
        "-q",
        "--quiet",
        cls=Shared,
        is_flag=True,
        expose_value=False,
        callback=_keep(QUIET),
        help="Print no progress, and only the first line of the report.",
    ),
    click.option(
        "-v",
        "--verbose",
        cls=Shared,
        is_flag=True,
        expose_value=False,
        callback=_keep(VERBOSE),
        help="Print how many seconds each part took, on standard error.",
    ),
)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON value only, also for an error."
)
scenario = click.argument("scenario", shell_complete=completion.scenarios)
variant = click.option(
    "--variant",
    cls=Shared,
    shell_complete=completion.variants,
    help="The version of the protocol.  [default: that of the scenario]",
)
out = click.option(
    "--out",
    cls=Shared,
    default="runs",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The folder in which each run gets a folder.",
)


class Positive(click.FloatRange):
    """A number above 0, with an end: `nan` and `inf` would be limits without an effect."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse what is not finite."""
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


POSITIVE = Positive()
max_states = click.option(
    "--max-states", cls=Shared, type=MANY, help="End a search after so many states."
)
max_seconds = click.option(
    "--max-seconds",
    cls=Shared,
    type=POSITIVE,
    help="End a search after so many seconds.",
)
max_memory = click.option(
    "--max-memory",
    cls=Shared,
    type=POSITIVE,
    metavar="GIB",
    help="End a search that uses so much memory.  [default: three quarters of the free]",
)
seed = click.option("--seed", cls=Shared, default=0, show_default=True, help="Random seed.")
profile = click.option(
    "--profile",
    cls=Shared,
    type=click.Path(path_type=Path),
    help="Simulate with the latencies in this file, which `calibrate` writes.",
)

OPTIONS = (
    click.option(
        "--auth",
        cls=Shared,
        multiple=True,
        help="scheme:credential, as for ZooKeeper's addauth; other users of this machine see it "
        "here, and not in WATCHKEEPER_AUTH.",
    ),
    click.option(
        "--tls-ca",
        cls=Shared,
        type=FILE,
        help="Connect by TLS, and trust the certificates in this file.",
    ),
    click.option("--tls-cert", cls=Shared, type=FILE, help="The client's certificate."),
    click.option(
        "--tls-key", cls=Shared, type=FILE, help="The key of --tls-cert, if in another file."
    ),
)


CREDENTIALS = ("auth", "tls_ca", "tls_cert", "tls_key")
LIVE = ("zookeeper", "allow_faults_on", "abort_file")


def _zookeeper(default: str) -> Callable[[Command], Command]:
    return click.option(
        "--zookeeper",
        cls=Shared,
        metavar="java|python|HOSTS",
        help="Live: start Apache's server or the one in Python, or use HOSTS[/CHROOT].  "
        f"[default: {default}]",
    )


zookeeper = _zookeeper("python")
verified_zookeeper = _zookeeper("java if it is found, else python")

LIVE_OPTIONS = (
    zookeeper,
    click.option(
        "--allow-faults-on",
        cls=Shared,
        multiple=True,
        metavar="HOST",
        help="Live: faults may affect sessions at this host of --zookeeper.",
    ),
    click.option(
        "--abort-file",
        cls=Shared,
        type=click.Path(path_type=Path),
        help="Live: end as soon as this file exists.  [default: ABORT in the folder of the run]",
    ),
)


def reaching(command: Command) -> Command:
    """Add the options for the connection to a ZooKeeper to a command."""
    return _with(OPTIONS, command)


def talking(command: Command) -> Command:
    """Add `--quiet` and `--verbose` to a command that takes long."""
    return _with(TALK, command)


def elsewhere(command: Command) -> Command:
    """Add the options of live runs on an existing ZooKeeper to a command."""
    return _with(LIVE_OPTIONS + OPTIONS, command)


def _with(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def credentials_in(options: dict[str, Any]) -> Credentials:
    """Take the options of the connection out of the arguments of a command."""
    as_defaults = frozenset(filter(is_default, CREDENTIALS))
    return Credentials(
        tuple(options.pop("auth")),
        options.pop("tls_ca"),
        options.pop("tls_cert"),
        options.pop("tls_key"),
        as_defaults=as_defaults,
    )


def live_options(options: dict[str, Any], world: str) -> dict[str, Any]:
    """Return the options of a live run without defaults of the user that do not apply to it.

    None of them applies to a simulation, and credentials and permissions go with hosts.
    """
    if world == "sim":
        return without_defaults(options, *LIVE, *CREDENTIALS)
    has_hosts = hosts_in(options["zookeeper"]) is not None
    return options if has_hosts else without_defaults(options, "allow_faults_on", *CREDENTIALS)
