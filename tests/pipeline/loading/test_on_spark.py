"""Spark loads: killed again and again, and with a master that is not there."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.pipeline.sweeps.test_kills import group_of
from tests.support.live_zookeeper import until
from tests.support.log.kafka_logs import in_turn, written
from tests.support.pipeline.loads import due, elsewhere, files_of, load, rows_of
from watchkeeper.model.log.format.codecs import Codec

KILLS = 2
PATIENCE_S = 400


pytestmark = pytest.mark.usefixtures("needs_java")


@pytest.mark.slow
def test_a_load_by_spark_bears_to_be_killed(tmp_path: Path) -> None:
    """By its id, and begun again at once, while the tasks of the one before may still run."""
    logs = {f"{at}/clicks-{at}": in_turn("0.7", 60, Codec(at % 3)) for at in range(6)}
    home, out = written(tmp_path / "logs", logs), tmp_path / "out"
    how = ("--runner", "spark", "--master", "local[2]", "--split-bytes", "200")
    chance = random.Random(5)
    groups = []
    for _ in range(KILLS):
        enough = len(files_of(out)) + chance.randrange(1, 10)
        begun = elsewhere(home, out, *how)
        groups.append(begun.pid)
        until(
            lambda begun=begun, enough=enough: (
                len(files_of(out)) >= enough or begun.poll() is not None
            ),
            PATIENCE_S,
        )
        os.kill(begun.pid, signal.SIGKILL)
        assert begun.wait(PATIENCE_S) == -signal.SIGKILL
        for name, rows in rows_of(out).items():
            assert set(rows) <= set(logs[name].rows)

    last = elsewhere(home, out, *how)
    printed = last.communicate(timeout=PATIENCE_S)
    assert last.returncode == 0, printed
    assert rows_of(out) == due(logs)
    until(lambda: not any(map(group_of, groups)))
    assert rows_of(out) == due(logs)


def test_a_master_that_does_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is reported soon, and what was loaded before is intact."""
    home = written(tmp_path / "logs", {"clicks-0": in_turn("0.7", 2)})
    out = tmp_path / "out"
    assert load(home, out) == 0
    before = files_of(out)
    written(tmp_path / "logs", {"clicks-0": in_turn("0.7", 4)})
    assert load(home, out, "--master", "spark://127.0.0.1:9") == 4
    assert "nothing answers at spark://127.0.0.1:9; start a master" in capsys.readouterr().err
    assert files_of(out) == before
