"""The command `broker`: run a broker until a signal ends it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TextIO

from watchkeeper.console.exit import HOLDS, USAGE, Stop, reason_of
from watchkeeper.real.broker.settings import BrokerSettings, broker_settings
from watchkeeper.real.broker.settings_08 import broker_settings_08
from watchkeeper.real.embed.broker_server import InZooKeeper, run_broker
from watchkeeper.real.errors import EnvironmentProblem
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


def run(
    log_dir: str,
    protocol: str,
    port: int | None,
    number: int,
    given: Iterable[str],
    zookeeper: str | None,
) -> int:
    """Run a broker in this process, and log to standard error."""
    end_with_parent()
    _log_to(sys.stderr)
    where = InZooKeeper(zookeeper) if zookeeper is not None else None
    keys = KEYS[protocol]
    options: dict[str, Any] = {keys.folder: log_dir, keys.broker_id: number}
    if port is not None:
        options["port"] = port
    try:
        settings = keys.read({**options, **dict(map(pair, given))})
        why = run_broker(settings, where, say)
    except OSError as error:
        raise Stop(USAGE, f"{error.filename or log_dir}: {reason_of(error)}") from None
    except (ValueError, EnvironmentProblem) as error:
        raise Stop(USAGE, str(error)) from None
    if why:
        raise Stop(FAILED, why)
    return HOLDS


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
