"""Loads logs in processes that kill themselves at the n-th thing they do.

    python -m tests.support.pipeline.killed_loads OPTIONS HOME

OPTIONS are those of the data source, as JSON. A first load counts what there is to do: files of
the table opened, folders made, renamed and removed, files brought to the disk, connections made
to brokers and requests sent to them. Then there is a load for each of these, which is killed just
before it, and another that goes on. What is wrong with a table after that is printed.

The loads are forked from one process without threads, so that a hundred of them take
seconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.pipeline.loads import rows_of
from watchkeeper.pipeline.kafkalog.brokers.connection import Connection
from watchkeeper.pipeline.kafkalog.options import options_of
from watchkeeper.pipeline.loading.commits import LogKey, held
from watchkeeper.pipeline.loading.load import load_logs
from watchkeeper.pipeline.loading.load_task import load
from watchkeeper.pipeline.loading.table import LOADING, QUARANTINE, commits_in

SEEN = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}
Given = dict[str, str]
"""Options of the data source."""
CHAINS, KILLS = 1, 12
"""How many tables are killed again and again, and how often."""


def forked(work: Callable[[], int]) -> int:
    """Do something in a child of this process; its exit code, or the signal as a negative."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def loading(given: Given, out: Path, kill_at: int = 0) -> int:
    """Load, and be killed at the n-th thing to do; how many there were, up to 98."""
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" or (event in SEEN and str(out) in str(arguments)):
            count()

    def fsync(descriptor: int, to_disk: Callable[[int], None] = os.fsync) -> None:
        count()
        to_disk(descriptor)

    def exchange(
        connection: Connection,
        sent: bytes,
        limit_bytes: int,
        before: Callable[[Connection, bytes, int], bytes] = Connection.exchange,
    ) -> bytes:
        count()
        return before(connection, sent, limit_bytes)

    sys.addaudithook(hear)
    Connection.exchange = exchange  # type: ignore[method-assign]
    os.fsync = fsync  # type: ignore[assignment]
    options = options_of({"corrupt": "quarantine", **given})
    load_logs(options, out, lambda _, tasks: map(load, tasks), tell=lambda _: None)
    return min(done, 98)


def wrong_with(out: Path, whole: Path, *, has_same_files: bool) -> str:
    """What is wrong with a table that ought to be like another; empty if nothing is."""
    if rows_of(out) != rows_of(whole):
        return "its rows are others"
    if _reached(out) != _reached(whole):
        return "it has reached other offsets"
    for folder in (".", QUARANTINE) if has_same_files else ():
        if _names_in(out / folder) != _names_in(whole / folder):
            return f"its files in {folder} are others"
    return "something was left" if (out / LOADING).exists() else ""


def _reached(out: Path) -> dict[LogKey, int]:
    return {key: log.reached for key, log in held(commits_in(out)).items()}


def _names_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.exists() else []


def main(given: Given, home: Path) -> None:
    """Kill at every point, and several times in turn; print what went wrong."""
    complete = home / "whole"
    has_same_files = "path" in given  # a log at a broker is cut by the size of what is left
    points = forked(lambda: loading(given, complete))
    assert 0 < points < 98, points
    print(points, "points")
    for point in range(1, points + 1):
        out = home / f"at-{point}"
        assert forked(lambda out=out, point=point: loading(given, out, point)) == -signal.SIGKILL
        assert forked(lambda out=out: loading(given, out)) >= 0
        if problem := wrong_with(out, complete, has_same_files=has_same_files):
            print(f"killed at {point}: {problem}")
    chance = random.Random(7)
    for chain in range(CHAINS):
        out = home / f"chain-{chain}"
        for _ in range(KILLS):
            point = chance.randrange(1, points)
            forked(lambda out=out, point=point: loading(given, out, point))
        assert forked(lambda out=out: loading(given, out)) >= 0
        if problem := wrong_with(out, complete, has_same_files=has_same_files):
            print(f"killed {KILLS} times: {problem}")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
