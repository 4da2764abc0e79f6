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

from tests import HOME, SOURCE
from tests.support.log.kafka_logs import in_turn, written
from tests.support.pipeline.loads import due, rows_of
from tests.support.pipeline.sweeps import CRASH, rows, sweep
from watchkeeper.cli.main import run_command
from watchkeeper.model.log.format.codecs import Codec

PATIENCE_S = 900
PROGRAM = """
import sys
from pathlib import Path
sys.path.append({bench!r})
from bench.support.spark_cluster import cluster
from watchkeeper.pipeline.kafkalog.source import register
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.session import Wanted, session
from watchkeeper.cli.main import run_command

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


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("needs_java")]


def ran(program: str) -> str:
    """What a program prints, run in a group of processes of its own."""
    begun = subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        start_new_session=True,
    )
    try:
        message, errors = begun.communicate(timeout=PATIENCE_S)
    finally:
        if begun.poll() is None:
            os.killpg(begun.pid, signal.SIGKILL)
    assert begun.returncode == 0, errors
    return message


def test_sweeps_loads_and_analyses_run_unchanged_on_a_cluster(tmp_path: Path) -> None:
    """With the same commands, to the same results; while it has no worker, a message says so."""
    logs = {"1/clicks-0": in_turn("0.7", 9), "2/clicks-0": in_turn("0.7", 9, Codec.SNAPPY)}
    mirrored = ["run", "mirror-crash", "--no-pictures", "--out", str(tmp_path / "run")]
    assert sweep(tmp_path / "here", "--runner", "process") == 0
    assert run_command(mirrored) == 0

    message = ran(
        PROGRAM.format(
            bench=str(HOME),
            home=str(tmp_path),
            sweep=CRASH,
            logs=str(written(tmp_path / "logs", logs)),
            runs=[str(tmp_path / name) for name in ("here", "run")],
        )
    )

    assert "gave no core within 5 s; see whether it has workers" in message
    assert "codes [0, 0, 0]" in message
    assert rows(tmp_path / "swept") == rows(tmp_path / "here")
    assert rows_of(tmp_path / "loaded") == due(logs)
    assert "rows 54" in message
    analysed = json.loads((tmp_path / "analysed/analysis.json").read_text())
    kept = list((tmp_path / "here/traces").glob("*/trace.jsonl"))
    assert kept
    assert analysed["agreed"]["single ownership"] == analysed["runs"] == len(kept) + 1
    assert analysed["agreed"]["delivery to reports"] == 1
    assert analysed["differences"] == []
