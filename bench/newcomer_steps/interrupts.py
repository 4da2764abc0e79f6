"""Signals at each stage of a command: what it says, and how long it takes to end."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator

from bench.newcomer_steps.environment import Done, Environment
from bench.newcomer_steps.tasks import Row

LONG = """\
name: long
about: a group for hours
clusters: {main: {brokers: 3, topics: {clicks: {partitions_per_broker: 8}}}}
groups: {billing: {consumers: 12, streams: {clicks: 1}}}
timeline: [{at: 0s, produce: clicks, rate: 500/s}, {at: 1000s, crash: billing/0}]
settle: 2h
"""
Stage = tuple[str, str, float, int, str]
STAGES: tuple[Stage, ...] = (
    ("while it is imported", "run long.yaml", 0.1, 2, "interrupted"),
    ("in a simulation", "run long.yaml --no-pictures", 6.0, 2, "partial"),
    ("in a search", "explore consumer-crash", 8.0, 2, "it was interrupted"),
    ("in a battery", "explore first.yaml --budget 1h", 8.0, 2, "it was interrupted"),
    ("in a sweep", "sweep first.yaml --seeds 100000 --out big", 12.0, 2, "continue with:"),
    ("in a live run", "run first.yaml --world live --no-pictures", 9.0, 2, "partial"),
    ("in a ZooKeeper", "zookeeper --port 0", 4.0, 0, "serves"),
    ("in a broker", "broker --log-dir logs --port 0", 4.0, 0, "listens"),
)
"""The stage, the command, the seconds before the signal, the exit code, and what is said."""
PATIENCE_S = 120


def interrupts(environment: Environment) -> Iterator[Row]:
    """Send Ctrl-C at each stage; the seconds are those from the signal to the end."""
    (environment.folder / "long.yaml").write_text(LONG)
    for what, command, after_s, code, wanted in STAGES:
        with environment.start("watchkeeper", *command.split()) as process:
            try:
                yield _interrupted(process, f"Ctrl-C {what}", command, after_s, code, wanted)
            finally:
                process.kill()


def _interrupted(
    process: subprocess.Popen[str],
    what: str,
    command: str,
    after_s: float,
    code: int,
    wanted: str,
) -> Row:
    time.sleep(after_s)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    done = Done(process.returncode, out, err, time.monotonic() - sent)
    found = next((line for line in done.said.splitlines() if wanted in line), done.sentence)
    problem = "" if wanted in done.said else f"it says nothing of {wanted!r}"
    if done.code != code:
        problem = f"exit code {done.code}, expected {code}"
    return Row(what, f"watchkeeper {command}", done.code, found.strip(), done.seconds, problem)
