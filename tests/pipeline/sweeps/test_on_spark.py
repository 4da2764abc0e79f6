"""Spark runs sweeps: here, killed, and not at all where something is missing."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.sweeps.test_kills import group_of
from tests.support.live_zookeeper import PS, until
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.sweeps import elsewhere, rows, summary, sweep
from tests.support.source_tree import modules, packages_in
from watchkeeper.pipeline import session as sessions
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.session import Wanted
from watchkeeper.pipeline.ship_code import (
    ENTRANCE,
    LIBRARIES,
    OF_VIRTUAL,
    PACKAGES,
    code_digest,
    lacking,
    packed,
    sources,
)
from watchkeeper.pipeline.sweeps.runners import Pool, Process
from watchkeeper.pipeline.sweeps.spark import Spark

LOCAL = ("--runner", "spark", "--master", "local[2]")


# --- all runners -----------------------------------------------------------------------


def test_every_runner_comes_to_the_same(spark: Any, tmp_path: Path) -> None:
    """Row by row and column by column, whatever the chunks; traces and summary, too."""
    runners = {
        "process": ("--runner", "process", "--chunk", "0.2"),
        "pool": ("--runner", "pool", "--jobs", "2", "--chunk", "0.05"),
        "spark": (*LOCAL, "--chunk", "0.05"),
    }
    codes = {name: sweep(tmp_path / name, *how) for name, how in runners.items()}

    assert codes == dict.fromkeys(runners, 0)
    expected = rows(tmp_path / "process")
    assert len(expected) == 16
    for name in runners:
        assert rows(tmp_path / name) == expected
        for path in (tmp_path / "process").glob("traces/*/trace.jsonl"):
            copy = tmp_path / name / path.relative_to(tmp_path / "process")
            assert copy.read_bytes() == path.read_bytes()
        found, wanted = (summary(tmp_path / folder) for folder in (name, "process"))
        for message in (found, wanted):
            del message["command"], message["failures"]
        assert found == wanted


def test_workers_have_the_code_of_the_process_that_started_them(
    spark: Any, tmp_path: Path
) -> None:
    """From the file that was sent to them, whatever is installed where they are."""

    def where(_: int) -> tuple[int, str]:
        import watchkeeper.model.trace.trace

        return os.getpid(), watchkeeper.model.trace.trace.__file__

    with Spark(Wanted("local[2]", "x", tmp_path / "scratch", "python")) as runner:
        found = [made for _, made in runner.each(where, range(4))]

    assert os.getpid() not in {pid for pid, _ in found}
    assert {Path(file).parents[3].name for _, file in found} == {
        f"watchkeeper-{code_digest()[:12]}.zip"
    }


def test_a_failing_task_is_reported(spark: Any, tmp_path: Path) -> None:
    """In one sentence, with the line that tells what went wrong."""

    def divide(by: int) -> int:
        return 1 // by

    with (
        Spark(Wanted("local[2]", "x", tmp_path / "scratch", "python")) as runner,
        pytest.raises(PipelineProblem, match=r"Spark gave up \(.*ZeroDivisionError"),
    ):
        list(runner.each(divide, [0]))


def test_what_is_shipped_can_be_imported_by_itself(tmp_path: Path) -> None:
    """Without the sources: the zip file holds all that workers import of this project."""
    archive, entrance = packed(tmp_path), {f"watchkeeper/{name}" for name in ENTRANCE}
    code = (
        "import watchkeeper.pipeline.sweeps.chunk as work; print(work.__file__); "
        "import watchkeeper.virtual.world.brief"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(archive)},
        check=True,
    )

    assert done.stdout.strip() == f"{archive}/watchkeeper/pipeline/sweeps/chunk.pyc"
    assert {name.split("/")[0] for name, _ in sources()} == {"watchkeeper"}
    assert {name.split("/")[1] for name, _ in sources() if name not in entrance} == set(PACKAGES)


ENGINES = ("pyspark", "py4j", "duckdb")
"""What only the process that analyses imports."""


def test_workers_request_what_they_need() -> None:
    """Every library that they import, but for what only this process imports when it writes."""
    ours = {"watchkeeper", *PACKAGES}
    needed = {
        name
        for module in modules(*PACKAGES)
        for name in packages_in(module) - ours - set(sys.stdlib_module_names)
    }

    assert needed - {*ENGINES, "pyarrow", "reports"} == {*LIBRARIES, *OF_VIRTUAL}
    assert lacking() == []


# --- what is missing -------------------------------------------------------------------


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep without its last two files."""
    out = tmp_path_factory.mktemp("unfinished") / "out"
    sweep(out, "--runner", "process", "--chunk", "0.05", "--no-shrink")
    for path in sorted((out / "runs").iterdir())[-2:]:
        path.unlink()
    return out


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("local[two]", "'local[two]' is not a master of Spark; expected local[2]"),
        ("sc://localhost", "is a server of Spark Connect, which cannot run this"),
        ("spark://127.0.0.1:9", "nothing answers at spark://127.0.0.1:9; start a master there"),
    ],
)
def test_a_master_that_is_none(
    master: str,
    message: str,
    needs_java: None,
    unfinished: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is reported, the command ends with 4, and what was finished before is intact."""
    out = tmp_path / "out"
    shutil.copytree(unfinished, out)
    kept = {path: path.read_bytes() for path in (out / "runs").iterdir()}

    assert kept
    assert sweep(out, "--runner", "spark", "--master", master, "--no-shrink") == 4
    assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in (out / "runs").iterdir()} == kept


def test_nothing_is_started_without_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The sentence says which Java, and how to have it."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert sweep(tmp_path / "out", *LOCAL) == 4
    assert "is not a program; install Java 17 or later" in capsys.readouterr().err


def test_nothing_is_started_without_pyspark(
    tmp_path: Path, needs_java: None, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The sentence names the extra that brings it."""
    monkeypatch.setattr(sessions, "find_spec", lambda name: None)

    assert sweep(tmp_path / "out", *LOCAL) == 4
    assert "PySpark is not installed; pip install 'watchkeeper[spark]'" in capsys.readouterr().err


# --- killed ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_kill_leaves_nothing_behind(needs_java: None, tmp_path: Path) -> None:
    """Neither the JVM nor the workers outlive the command; another runner goes on."""
    out = tmp_path / "out"
    of = ("sweep", "consumer-crash", "--variants", "hardened,documented", "--seeds", "200")
    begun = elsewhere(out, *LOCAL, "--chunk", "0.1", "--traces", "1", "--no-shrink", of=of)
    until(lambda: list(out.glob("runs/part-*")) or begun.poll() is not None)
    assert any("java" in line for line in commands_of(begun.pid))

    os.kill(begun.pid, signal.SIGKILL)
    message = begun.communicate(timeout=PATIENCE_S)
    assert begun.returncode == -signal.SIGKILL, message
    until(lambda: not group_of(begun.pid))
    kept = {path: path.stat().st_mtime_ns for path in out.glob("runs/part-*")}

    assert sweep(out, "--runner", "process", "--traces", "1", "--no-shrink", of=of) == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert [row["number"] for row in rows(out)] == list(range(400))
    assert not (out / ".scratch").exists()


def commands_of(group: int) -> list[str]:
    """What runs in a group of processes."""
    done = subprocess.run([PS, "-A", "-o", "pgid=,args="], capture_output=True, text=True)
    lines = (line.split(None, 1) for line in done.stdout.splitlines())
    return [line[1] for line in lines if int(line[0]) == group]


# --- a cluster -------------------------------------------------------------------------


@pytest.mark.slow
def test_another_server_at_that_address(needs_java: None, tmp_path: Path) -> None:
    """What takes connections and is no master is given up after a bounded time."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        wanted = Wanted(master, "x", tmp_path / "scratch", "python", patience_s=6)
        program = (
            "import sys\nfrom pathlib import Path\nfrom watchkeeper.pipeline.session import *\n"
            f"wanted = {wanted!r}\n"
            "try:\n    session(wanted).__enter__()\nexcept PipelineProblem as problem:\n"
            "    print(problem)\n"
        ).replace("PosixPath", "Path")
        done = subprocess.run(
            [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=120
        )

    assert "Spark did not start with the master" in done.stdout, done.stderr
    assert not wanted.scratch.exists()


# --- processes of this machine ---------------------------------------------------------


def test_a_pool_whose_process_dies_is_reported() -> None:
    """As for want of memory: in a sentence, and not by waiting for ever."""
    with (
        pytest.raises(PipelineProblem, match="a process of the pool was ended from outside"),
        Pool(1) as pool,
    ):
        list(pool.each(os._exit, [1]))


def test_runners_have_more_under_way_than_workers() -> None:
    """Requested items are taken one by one, and not all at once."""
    taken = []

    def numbers() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            yield number

    with Pool(1) as pool:
        made = pool.each(abs, numbers())
        _, first = next(made)
        assert len(taken) <= 3
        assert sorted([first, *(value for _, value in made)]) == list(range(50))
    with Process() as process:
        assert next(process.each(abs, iter([-3]))) == (-3, 3)
