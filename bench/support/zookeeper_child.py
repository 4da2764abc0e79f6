"""This project's ZooKeeper in a process of a bench: it serves until its standard input ends.

The one argument is a JSON object: ports, folder, and the settings of `zookeepers.Wanted`. It
prints its addresses, then obeys one JSON list a line: `["kill", 0]`, `["start", 0]`. Each
connection that a server closes is a line `closed: reason` of standard error; errors of the
server are there as Python prints them.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from watchkeeper.model.ensemble.recorder import SILENT
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.real.python_zookeeper.thread_ensemble import ThreadEnsemble


class Closures(type(SILENT)):  # type: ignore[misc]
    """Writes why a connection was closed."""

    def closed(self, connection: Any, reason: str) -> None:
        """A server has closed a connection, or its client has."""
        print("closed:", reason, file=sys.stderr, flush=True)


def main() -> None:
    wanted = json.loads(sys.argv[1])
    logging.basicConfig(stream=sys.stderr)
    settings = EnsembleSettings(
        tick_ms=wanted["tick_ms"],
        min_session_ms=wanted["min_session_ms"],
        max_session_ms=wanted["max_session_ms"],
        container_check_ms=wanted["container_check_ms"],
        connections_per_address=0,
        read_only_mode=wanted["read_only_mode"],
    )
    zookeeper = ThreadEnsemble(
        wanted["servers"],
        settings=settings,
        ports=wanted["ports"],
        data=None if wanted["folder"] is None else Path(wanted["folder"]),
        recorder=Closures(),
    )
    with zookeeper:
        print(json.dumps(zookeeper.addresses), flush=True)
        for line in sys.stdin:
            obey(zookeeper, *json.loads(line))
            print("done", flush=True)


def obey(zookeeper: ThreadEnsemble, word: str, number: int) -> None:
    """Kill or start one server."""
    ensemble = zookeeper.ensemble
    does: dict[str, Callable[..., None]] = {
        "kill": ensemble.quorum.kill,
        "start": ensemble.quorum.start,
    }
    zookeeper.call(lambda: does[word](ensemble.servers[number]))


if __name__ == "__main__":
    main()
