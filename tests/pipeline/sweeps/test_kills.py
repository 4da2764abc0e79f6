"""A sweep bears to be killed at any moment: nothing is done twice, doubled, or lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_zookeeper import PS, until
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.sweeps import elsewhere, rows, summary, sweep

SWEEP = ("sweep", "consumer-crash", "--variants", "hardened,documented")
SMALL = ("--chunk", "0.04", "--traces", "12")
"""Many small chunks, so that there is something to kill."""
POOLED = 4
"""One kill in so many hits a pool of processes."""


def files_in(out: Path) -> dict[str, int]:
    """Every finished file of results, with when it was written."""
    kept = [*out.glob("runs/part-*"), *out.glob("traces/*/*.jsonl"), *out.glob("smallest/*")]
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in kept}


def group_of(leader: int) -> list[str]:
    """The processes of a group that still run."""
    message = subprocess.run([PS, "-A", "-o", "pgid=,stat="], capture_output=True, text=True)
    lines = (line.split() for line in message.stdout.splitlines())
    return [stat for group, stat in lines if int(group) == leader and stat[0] != "Z"]


def killed(begun: subprocess.Popen[Any], is_time: Callable[[], bool]) -> bool:
    """Kill a process when it is time, by its id; whether it had not ended before."""
    deadline = time.monotonic() + PATIENCE_S
    while begun.poll() is None and not is_time():
        assert time.monotonic() < deadline, "it neither ends nor comes so far"
        time.sleep(0.002)
    os.kill(begun.pid, signal.SIGKILL)
    begun.communicate(timeout=PATIENCE_S)
    until(lambda: not group_of(begun.pid))
    return begun.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("kills", "seeds"), [(3, 6), (20, 40)])
@pytest.mark.slow
def test_kills_change_nothing(kills: int, seeds: int, tmp_path: Path) -> None:
    """Killed several times at moments that chance has drawn, it comes to what it had come to.

    Some kills come while modules are loaded, most while so many more results are being
    written. What is finished is never written again, and no process outlives its sweep.
    """
    command = (*SWEEP, "--seeds", f"{seeds}")
    unbroken, out = tmp_path / "unbroken", tmp_path / "out"
    assert sweep(unbroken, *SMALL, "--runner", "process", of=command) == 0
    chance = random.Random(2011)
    moments = [(chance.randrange(1, 3), chance.random() * 0.03) for _ in range(kills)]
    pooled = set(chance.sample(range(kills), max(kills // POOLED, 1)))
    early = set(chance.sample(range(kills), max(kills // 7, 1)))
    struck = 0
    for kill, (files, delay_s) in enumerate(moments):
        runner = (
            ("--runner", "pool", "--jobs", "2") if kill in pooled else ("--runner", "process")
        )
        before = files_in(out)
        begun = elsewhere(out, *SMALL, *runner, of=command)
        if kill in early:
            ends = time.monotonic() + delay_s * 20
            struck += killed(begun, lambda ends=ends: time.monotonic() > ends)
        else:
            enough = len(before) + files
            was_struck = killed(begun, lambda enough=enough: len(files_in(out)) >= enough)
            struck += was_struck
            time.sleep(delay_s)
        after = files_in(out)
        assert {name: after.get(name) for name in before} == before

    assert struck  # a busy machine may let a sweep end before it is looked at again
    before = files_in(out)
    assert sweep(out, *SMALL, "--runner", "process", of=command) == 0
    after = files_in(out)
    assert {name: after[name] for name in before} == before
    assert rows(out) == rows(unbroken)
    for name in set(after) | set(files_in(unbroken)):
        if name.startswith("traces/"):
            assert (out / name).read_bytes() == (unbroken / name).read_bytes()
    resumed, wanted = summary(out), summary(unbroken)
    for message in (resumed, wanted):
        del message["command"], message["failures"], message["cells"]
    assert resumed == wanted
