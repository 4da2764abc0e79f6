"""The command `broker`: run a broker until a signal ends it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TextIO

from watchkeeper.console.exit import HOLDS, USAGE, Stop, reason_of
from watchkeeper.real.access import Access
from watchkeeper.real.broker.settings import BrokerSettings, broker_settings
from watchkeeper.real.broker.settings_08 import broker_settings_08
from watchkeeper.real.embed.broker_server import InZooKeeper, run_broker
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.replica_broker.process import run_replica_broker
from watchkeeper.real.replica_broker.settings import replica_broker_settings
from watchkeeper.real.supervise.child_process import end_with_parent

FAILED = 1
FORM = "%(asctime)s %(levelname)s %(message)s"


class Keys(NamedTuple):
    """The keys that options set, and the function that reads all settings."""

    folder: str
    broker_id: str
    read: Callable[[dict[str, Any]], BrokerSettings]


KEYS = {
    "0.7": Keys("log.dir", "brokerid", broker_settings),
    "0.8": Keys("log.dirs", "broker.id", broker_settings_08),
}
"""Protocol -> the keys of its settings."""


class Options(NamedTuple):
    """The options of the command beside the settings with names of Kafka."""

    log_dir: str
    protocol: str
    port: int | None
    number: int
    zookeeper: str | None
    replicates: str | None
    """The variant of a broker that replicates."""


def run(options: Options, given: Iterable[str]) -> int:
    """Run a broker in this process, and log to standard error."""
    end_with_parent()
    _log_to(sys.stderr)
    keys = KEYS[options.protocol]
    settings: dict[str, Any] = {keys.folder: options.log_dir, keys.broker_id: options.number}
    if options.port is not None:
        settings["port"] = options.port
    try:
        settings |= dict(map(pair, given))
        if options.zookeeper is not None:
            _check_address(options.zookeeper)
        if options.replicates is not None:
            why = _replicate(options, options.replicates, settings)
        else:
            hosts = options.zookeeper
            where = InZooKeeper(hosts) if hosts is not None else None
            why = run_broker(keys.read(settings), where, say)
    except OSError as error:
        raise Stop(USAGE, f"{error.filename or options.log_dir}: {reason_of(error)}") from None
    except (ValueError, EnvironmentProblem) as error:
        raise Stop(USAGE, str(error)) from None
    if why:
        raise Stop(FAILED, why)
    return HOLDS


def _check_address(hosts: str) -> None:
    """Raise EnvironmentProblem for what cannot be addresses, before the broker listens."""
    access = Access(hosts)
    if not all(address.rpartition(":")[0] for address in access.addresses):
        raise access.not_an_address(ValueError("it names no host"))


def _replicate(options: Options, variant: str, settings: dict[str, Any]) -> str:
    """Run a broker that replicates until a signal ends it; return why it failed, or ""."""
    for option, is_there in (
        ("--protocol 0.8", options.protocol == "0.8"),
        ("--zookeeper", options.zookeeper is not None),
    ):
        if not is_there:
            raise ValueError(f"--replicate needs {option}: replicas are of 0.8, in ZooKeeper")
    assert options.zookeeper is not None, "it was checked"
    chosen = replica_broker_settings(settings, variant)
    return run_replica_broker(chosen, options.zookeeper, say)


def say(line: str) -> None:
    """Print a line at once, for a process that waits for it."""
    print(line, flush=True)


def pair(setting: str) -> tuple[str, str]:
    """Return key and value of a setting; raise ValueError for anything else."""
    key, is_there, value = setting.partition("=")
    if not is_there:
        raise ValueError(f"--set {setting}: expected KEY=VALUE, as in log.flush.interval=1")
    return key, value


def _log_to(stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(FORM))
    logger = logging.getLogger("watchkeeper.broker")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
