"""Spark runs sweeps: here, killed, and not at all where something is missing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline import session as sessions
from pipeline.problems import PipelineProblem
from pipeline.session import Wanted, session
from pipeline.shipping import LIBRARIES, PACKAGES, code_digest, lacking, packed, sources
from pipeline.sweeps.runners import Pool, Process
from pipeline.sweeps.spark import Spark
from real.java import find_java
from real.problems import EnvironmentProblem
from tests.live import PS, until
from tests.sweeps import elsewhere, rows, summary, sweep
from tests.test_house import modules, packages_in
from tests.test_sweep_kills import group_of


@pytest.fixture(scope="module")
def needs_java() -> None:
    """Skip with the reason where Spark cannot run."""
    try:
        find_java()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def local(needs_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for all tests of this module that need no other."""
    wanted = Wanted("local[2]", "tests", tmp_path_factory.mktemp("spark") / "scratch", "python")
    path = list(sys.path)
    with session(wanted) as started:
        yield started
    assert not wanted.scratch.exists()
    assert sys.path == path


LOCAL = ("--runner", "spark", "--master", "local[2]")


# --- all runners -----------------------------------------------------------------------


def test_every_runner_comes_to_the_same(local: Any, tmp_path: Path) -> None:
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
            other = tmp_path / name / path.relative_to(tmp_path / "process")
            assert other.read_bytes() == path.read_bytes()
        told, wanted = (summary(tmp_path / one) for one in (name, "process"))
        for said in (told, wanted):
            del said["command"], said["failures"]
        assert told == wanted


def test_workers_have_the_code_of_whoever_started_them(local: Any, tmp_path: Path) -> None:
    """From the file that was sent to them, whatever is installed where they are."""

    def where(_: int) -> tuple[int, str]:
        import model.trace

        return os.getpid(), model.trace.__file__

    with Spark(Wanted("local[2]", "x", tmp_path / "scratch", "python")) as runner:
        found = [made for _, made in runner.each(where, range(4))]

    assert os.getpid() not in {pid for pid, _ in found}
    assert {Path(file).parent.parent.name for _, file in found} == {
        f"watchkeeper-{code_digest()[:12]}.zip"
    }


def test_a_failing_task_is_told(local: Any, tmp_path: Path) -> None:
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
    archive = packed(tmp_path)
    code = "import pipeline.sweeps.work as work; print(work.__file__)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(archive)},
        check=True,
    )

    assert done.stdout.strip() == f"{archive}/pipeline/sweeps/work.pyc"
    assert {name.partition("/")[0] for name, _ in sources()} == set(PACKAGES)


def test_what_workers_need_is_asked_for() -> None:
    """Every library that they import, but for what only this process imports when it writes."""
    needed = {
        name
        for module in modules(*PACKAGES)
        for name in packages_in(module) - set(PACKAGES) - set(sys.stdlib_module_names)
    }

    assert needed - {"pyspark", "py4j", "pyarrow"} == set(LIBRARIES)
    assert lacking() == []


# --- what is missing -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("local[two]", "'local[two]' is not a master of Spark; expected local[2]"),
        ("sc://localhost", "is a server of Spark Connect, which cannot run this"),
        ("spark://127.0.0.1:9", "nobody answers at spark://127.0.0.1:9; start a master there"),
    ],
)
def test_a_master_that_is_none(
    master: str,
    said: str,
    needs_java: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is told soon, the command ends with 4, and what was finished before is intact."""
    out = tmp_path / "out"
    sweep(out, "--runner", "process", "--chunk", "0.05", "--no-shrink")
    kept = {path: path.read_bytes() for path in (out / "runs").iterdir()}
    missing = kept.pop(sorted(kept)[-1])
    sorted((out / "runs").iterdir())[-1].unlink()
    began = time.monotonic()

    assert missing
    assert sweep(out, "--runner", "spark", "--master", master, "--no-shrink") == 4
    assert said in capsys.readouterr().err
    assert time.monotonic() - began < 60
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


def test_a_kill_leaves_nothing_behind(needs_java: None, tmp_path: Path) -> None:
    """Neither the JVM nor the workers outlive the command; another runner goes on."""
    out = tmp_path / "out"
    of = ("sweep", "consumer-crash", "--variants", "hardened,documented", "--seeds", "0:200")
    begun = elsewhere(out, *LOCAL, "--chunk", "0.1", "--traces", "1", "--no-shrink", of=of)
    until(lambda: list(out.glob("runs/part-*")) or begun.poll() is not None, 180)
    assert any("java" in line for line in commands_of(begun.pid))

    os.kill(begun.pid, signal.SIGKILL)
    said = begun.communicate()
    assert begun.returncode == -signal.SIGKILL, said
    until(lambda: not group_of(begun.pid), 60)
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


def test_somebody_else_at_that_address(needs_java: None, tmp_path: Path) -> None:
    """What takes connections and is no master is given up after a bounded time."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        wanted = Wanted(master, "x", tmp_path / "scratch", "python", patience_s=6)
        program = (
            "import sys\nfrom pathlib import Path\nfrom pipeline.session import *\n"
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


def test_a_pool_whose_process_dies_is_told() -> None:
    """As for want of memory: in a sentence, and not by waiting for ever."""
    with (
        pytest.raises(PipelineProblem, match="a process of the pool was ended from outside"),
        Pool(1) as pool,
    ):
        list(pool.each(os._exit, [1]))


def test_runners_have_more_under_way_than_workers() -> None:
    """What is asked for is taken one by one, and not all at once."""
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
