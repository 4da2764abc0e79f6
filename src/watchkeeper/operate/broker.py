"""The command `broker`: run a broker until a signal ends it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import TextIO

from watchkeeper.console.exit import HOLDS, USAGE, Stop
from watchkeeper.real.broker.settings import broker_settings
from watchkeeper.real.embed.broker_server import InZooKeeper, run_broker
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.supervise.child_process import end_with_parent

FAILED = 1
FORM = "%(asctime)s %(levelname)s %(message)s"


def run(log_dir: str, port: int, number: int, given: Iterable[str], zookeeper: str | None) -> int:
    """Run a broker in this process, and log to standard error."""
    end_with_parent()
    _log_to(sys.stderr)
    where = InZooKeeper(zookeeper) if zookeeper is not None else None
    try:
        settings = broker_settings(
            {"log.dir": log_dir, "port": port, "brokerid": number, **dict(map(_pair, given))}
        )
        why = run_broker(settings, where, say)
    except (ValueError, OSError, EnvironmentProblem) as error:
        raise Stop(USAGE, str(error)) from None
    if why:
        raise Stop(FAILED, why)
    return HOLDS


def say(line: str) -> None:
    """Print a line at once, for a process that waits for it."""
    print(line, flush=True)


def _pair(setting: str) -> tuple[str, str]:
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
