"""On a cluster of two workers, each a process of its own, everything runs that runs here.

One program does it all, one thing after another, since a cluster takes its time to start.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from model.log.codecs import Codec
from real.java import find_java
from real.problems import EnvironmentProblem
from tests.kafka_logs import in_turn, written
from tests.loads import due, rows_of
from tests.sweeps import CRASH, rows, sweep
from tests.test_house import HOME
from watchkeeper.cli import run_command

PATIENCE_S = 900
PROGRAM = """
import sys
from pathlib import Path
sys.path.append({bench!r})
from standalone import cluster
from pipeline.kafkalog.source import register
from pipeline.problems import PipelineProblem
from pipeline.session import Wanted, session
from watchkeeper.cli import run_command

home = Path({home!r})
with cluster(workers=0) as made:
    try:
        with session(Wanted(made.master, "x", home / "scratch", "python", core_s=5)):
            print("it started")
    except PipelineProblem as problem:
        print(problem)
    made.add(2)
    wanted = Wanted(made.master, "x", home / "scratch", "python")
    at, out = ["--master", made.master], ["--out", str(home / "swept")]
    with session(wanted) as spark:
        codes = [
            run_command([*{sweep!r}, *out, *at, "--runner", "spark", "--chunk", "0.05"]),
            run_command(["load", {logs!r}, str(home / "loaded"), *at, "--split-bytes", "99"]),
            run_command(["analyze", *{runs!r}, "--out", str(home / "analysed"), *at]),
        ]
        register(spark)
        print("rows", spark.read.format("kafkalog").load({logs!r}).count())
print("codes", codes)
"""


@pytest.fixture(autouse=True)
def needs_java() -> None:
    """Skip with the reason where Spark cannot run."""
    try:
        find_java()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))


def ran(program: str) -> str:
    """What a program prints, run in a group of processes of its own."""
    begun = subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(HOME)},
        start_new_session=True,
    )
    try:
        said, errors = begun.communicate(timeout=PATIENCE_S)
    finally:
        if begun.poll() is None:
            os.killpg(begun.pid, signal.SIGKILL)
    assert begun.returncode == 0, errors
    return said


def test_sweeps_loads_and_analyses_run_unchanged_on_a_cluster(tmp_path: Path) -> None:
    """With the same commands, to the same results; while it has no worker, that is told."""
    logs = {"1/clicks-0": in_turn("0.7", 9), "2/clicks-0": in_turn("0.7", 9, Codec.SNAPPY)}
    mirrored = ["run", "mirror-crash", "--no-pictures", "--out", str(tmp_path / "run")]
    assert sweep(tmp_path / "here", "--runner", "process") == 0
    assert run_command(mirrored) == 0

    said = ran(
        PROGRAM.format(
            bench=str(HOME / "bench"),
            home=str(tmp_path),
            sweep=CRASH,
            logs=str(written(tmp_path / "logs", logs)),
            runs=[str(tmp_path / name) for name in ("here", "run")],
        )
    )

    assert "gave no core within 5 s; see whether it has workers" in said
    assert "codes [0, 0, 0]" in said
    assert rows(tmp_path / "swept") == rows(tmp_path / "here")
    assert rows_of(tmp_path / "loaded") == due(logs)
    assert "rows 54" in said
    analysed = json.loads((tmp_path / "analysed/analysis.json").read_text())
    kept = list((tmp_path / "here/traces").glob("*/trace.jsonl"))
    assert kept
    assert analysed["agreed"]["single ownership"] == analysed["runs"] == len(kept) + 1
    assert analysed["agreed"]["delivery to reports"] == 1
    assert analysed["differences"] == []
