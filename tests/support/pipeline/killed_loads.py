"""Loads logs in processes that kill themselves at the n-th thing they do with files.

    python -m tests.support.pipeline.killed_loads LOGS HOME

A first load counts what there is to do: files opened, folders made, renamed and removed,
files brought to the disk. Then there is a load for each of these, which is killed just
before it, and another that goes on. What is wrong with a table after that is printed.

The loads are forked from one process without threads, so that a hundred of them take
seconds.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.pipeline.loads import rows_of
from watchkeeper.pipeline.kafkalog.options import options_of
from watchkeeper.pipeline.loading.load import load_logs
from watchkeeper.pipeline.loading.load_task import load
from watchkeeper.pipeline.loading.table import LOADING, QUARANTINE

SEEN = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}
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


def loading(logs: Path, out: Path, kill_at: int = 0) -> int:
    """Load, and be killed at the n-th thing to do; how many there were, up to 98."""
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in SEEN and str(out) in str(arguments):
            count()

    def fsync(descriptor: int, to_disk: Callable[[int], None] = os.fsync) -> None:
        count()
        to_disk(descriptor)

    sys.addaudithook(hear)
    os.fsync = fsync  # type: ignore[assignment]
    options = options_of({"path": str(logs), "corrupt": "quarantine"})
    load_logs(options, out, lambda _, tasks: map(load, tasks), tell=lambda _: None)
    return min(done, 98)


def wrong_with(out: Path, whole: Path) -> str:
    """What is wrong with a table that ought to be like another; empty if nothing is."""
    if rows_of(out) != rows_of(whole):
        return "its rows are others"
    for folder in (".", QUARANTINE):
        if sorted(os.listdir(out / folder)) != sorted(os.listdir(whole / folder)):
            return f"its files in {folder} are others"
    return "something was left" if (out / LOADING).exists() else ""


def main(logs: Path, home: Path) -> None:
    """Kill at every point, and several times in turn; print what went wrong."""
    complete = home / "whole"
    points = forked(lambda: loading(logs, complete))
    assert 0 < points < 98, points
    print(points, "points")
    for point in range(1, points + 1):
        out = home / f"at-{point}"
        assert forked(lambda out=out, point=point: loading(logs, out, point)) == -signal.SIGKILL
        assert forked(lambda out=out: loading(logs, out)) >= 0
        if problem := wrong_with(out, complete):
            print(f"killed at {point}: {problem}")
    chance = random.Random(7)
    for chain in range(CHAINS):
        out = home / f"chain-{chain}"
        for _ in range(KILLS):
            point = chance.randrange(1, points)
            forked(lambda out=out, point=point: loading(logs, out, point))
        assert forked(lambda out=out: loading(logs, out)) >= 0
        if problem := wrong_with(out, complete):
            print(f"killed {KILLS} times: {problem}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
