"""What `analyze` refuses, and how an analysis takes the place of another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import SOURCE
from tests.support.pipeline.run_folders import PROFILE_TEXT, failing_run_with_profile, write_run
from watchkeeper import simulate
from watchkeeper.analyze.analyze import failing_run, kept_profile
from watchkeeper.analyze.engines import SMALL_BYTES, EngineName, chosen
from watchkeeper.analyze.runs import gathered
from watchkeeper.api.folder import read_trace
from watchkeeper.cli.main import run_command
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.pipeline.analysis.failure_clusters import needed
from watchkeeper.pipeline.analysis.store import replacing, write_summary
from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.sim.engine.latency_profile import DEFAULT
from watchkeeper.sim.faults.fork import Branch
from watchkeeper.sim.world import simulate as simulate_plan

PATHS = {**os.environ, "PYTHONPATH": str(SOURCE)}


@pytest.fixture
def run_with_profile(tmp_path: Path) -> Path:
    return failing_run_with_profile(tmp_path)


def test_the_profile_of_a_run_is_that_beside_its_trace(run_with_profile: Path) -> None:
    """A branch that keeps all events of the run is the run itself, event for event."""
    run = failing_run(gathered((run_with_profile,)).runs, run_with_profile.name)
    assert run.plan is not None
    trace = read_trace(run_with_profile)
    again = {
        profile: simulate_plan(run.plan, 0, profile=profile, branch=Branch(len(trace), 7)).trace
        for profile in (kept_profile(run), DEFAULT)
    }

    assert [one.fingerprint == trace.fingerprint for one in again.values()] == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "profile.yaml is not beside its trace"),
        (PROFILE_TEXT.replace("700", "800"), "profile.yaml is the profile "),
        ("watchkeeper_profile: 1\n", "has no section `zookeeper` or `codecs`"),
    ],
)
def test_a_run_without_its_profile_is_not_branched(
    run_with_profile: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    profile = run_with_profile / "profile.yaml"
    profile.unlink() if text is None else profile.write_text(text)
    command = ["analyze", str(run_with_profile), "--inevitable", run_with_profile.name]

    assert run_command(command) == 4
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("consumer-crash-hardened-sim-1", "was not judged violated"),
        ("consumer-crash-hardened-sim-2", "there is no run"),
    ],
)
def test_what_does_not_fail_has_no_such_moment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: str, message: str
) -> None:
    """It is said before an engine is started."""
    write_run(tmp_path, simulate("consumer-crash", variant="hardened", seed=1))

    assert run_command(["analyze", str(tmp_path), "--inevitable", run]) == 4
    assert message in capsys.readouterr().err


# --- what is wrong with what was given -------------------------------------------------


def test_half_a_trace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before an engine is started; an earlier analysis stays."""
    home = write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))
    trace_bytes = (home / "trace.jsonl").read_bytes()
    (home / "trace.jsonl").write_bytes(trace_bytes[: len(trace_bytes) // 2])
    kept = tmp_path / "out"
    kept.mkdir()
    (kept / "analysis.json").write_text("{}")

    assert run_command(["analyze", str(tmp_path / "runs"), "--out", str(kept)]) == 4
    sentence = "is half a trace: it does not end with the event 'run ended'"
    assert sentence in capsys.readouterr().err
    assert (kept / "analysis.json").read_text() == "{}"


def test_a_folder_without_runs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So is one that is not there."""
    assert run_command(["analyze", str(tmp_path)]) == 4
    assert "no trace.jsonl is in there" in capsys.readouterr().err
    assert run_command(["analyze", str(tmp_path / "none")]) == 4
    assert "there is no" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("spark://localhost:1", "nothing answers at spark://localhost:1"),
        ("lokal", "'lokal' is not a master of Spark"),
    ],
)
def test_a_master_that_is_not_there_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], master: str, message: str
) -> None:
    """In a sentence, and nothing is left behind."""
    write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))
    out = tmp_path / "out"

    assert run_command(["analyze", str(tmp_path), "--master", master, "--out", str(out)]) == 4
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


@pytest.mark.parametrize(
    ("engine", "master", "size", "has_java", "wanted"),
    [
        ("auto", None, 1, True, "duckdb"),
        ("auto", None, SMALL_BYTES, True, "duckdb"),
        ("auto", None, SMALL_BYTES + 1, True, "spark"),
        ("auto", None, SMALL_BYTES + 1, False, "duckdb"),
        ("auto", "local[2]", 1, True, "spark"),
        ("duckdb", None, SMALL_BYTES + 1, True, "duckdb"),
        ("spark", None, 1, True, "spark"),
    ],
)
def test_the_engine_follows_from_the_size_unless_one_is_named(
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    master: str | None,
    size: int,
    has_java: bool,
    wanted: str,
) -> None:
    """Without Java there is no Spark, and a master is one of Spark."""
    if not has_java:
        monkeypatch.setenv("PATH", "")
        monkeypatch.delenv("JAVA_HOME", raising=False)
    elif size > SMALL_BYTES and engine == "auto":
        monkeypatch.setattr("watchkeeper.analyze.engines.find_java", lambda: None)

    assert chosen(EngineName(engine), master, size) == wanted


def test_a_master_and_duckdb_contradict_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))
    command = ["analyze", str(tmp_path), "--engine", "duckdb", "--master", "local[2]"]

    assert run_command([*command, "--out", str(tmp_path / "out")]) == 4
    assert "leave one of them out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "options", "message"),
    [
        ("pyspark", ("--engine", "spark"), "on Spark needs pyspark, which is not installed"),
        ("duckdb", ("--engine", "duckdb"), "install the extra 'analysis'"),
    ],
)
def test_an_engine_that_is_not_installed_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
    options: tuple[str, ...],
    message: str,
) -> None:
    """With the extra that installs it."""
    write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))
    monkeypatch.setitem(sys.modules, missing, None)

    assert run_command(["analyze", str(tmp_path), *options, "--out", str(tmp_path / "out")]) == 4
    assert message in capsys.readouterr().err


WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = sys.modules["py4j"] = None
from watchkeeper.cli.main import run_command
sys.exit(run_command(["analyze", "runs", "--out", "out"]))
"""


def test_an_analysis_needs_neither_spark_nor_java(tmp_path: Path) -> None:
    """Every module that it imports does without, and no program is looked for."""
    write_run(tmp_path / "runs", simulate("consumer-crash", variant="hardened", seed=1))
    done = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT_SPARK],
        env={"PYTHONPATH": str(SOURCE), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "1 run, " in done.stdout
    assert "both agree" in done.stdout
    assert (tmp_path / "out/tables/properties").is_dir()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("Query interrupted")])
def test_an_interrupt_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
) -> None:
    """Neither where DuckDB makes an error of it."""
    write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))

    def interrupted(*_: object) -> None:
        monkeypatch.setattr(INTERRUPTS, "came", True)
        raise error

    monkeypatch.setattr("watchkeeper.analyze.analyze.analyse", interrupted)

    assert run_command(["analyze", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "nothing was written" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


def test_the_folder_of_a_user_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no analysis is not replaced by one."""
    write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))

    assert run_command(["analyze", str(tmp_path), "--out", str(tmp_path / "runs")]) == 4
    assert "is not the folder of an analysis" in capsys.readouterr().err


def test_an_analysis_takes_the_place_of_another_as_a_whole(tmp_path: Path) -> None:
    """Where it fails, and where it was killed between two steps, the earlier one is there."""
    out = tmp_path / "out"
    with replacing(out) as home:
        (home / "analysis.json").write_text("1")
    with pytest.raises(PipelineProblem, match="what was there before is kept"), replacing(out):
        raise OSError(28, "No space left on device")
    assert (out / "analysis.json").read_text() == "1"
    out.rename(tmp_path / ".out-before")
    with pytest.raises(ZeroDivisionError), replacing(out):
        raise ZeroDivisionError
    assert (out / "analysis.json").read_text() == "1"
    with replacing(out) as home:
        (home / "analysis.json").write_text("2")
    assert (out / "analysis.json").read_text() == "2"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


STRUCK = """
import os, signal, sys
from pathlib import Path
from watchkeeper.pipeline.analysis.store import replacing, write_summary

left = int({left!r})

def strike(event, arguments):
    global left
    if event in {touching!r} or (event == "open" and "w" in str(arguments[1])):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

with replacing(Path({out!r})) as home:
    (home / "tables").mkdir()
    (home / "tables/part-0").write_text("2")
    sys.addaudithook(strike)
    write_summary(home, {{"made": 2}})
"""
TOUCHING = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "os.truncate")
"""What Python tells of before it changes anything on a disk."""


def made_of(out: Path) -> int:
    """Which analysis is in a folder; it has to be whole."""
    made = json.loads((out / "analysis.json").read_text())["made"]
    assert (out / "tables/part-0").read_text() == str(made)
    return int(made)


def test_a_kill_before_any_step_of_the_replacement_loses_nothing(tmp_path: Path) -> None:
    """Killed before the first thing it changes on disk, the second, and so on until it gets
    through: what comes next finds the one analysis or the other, whole, and keeps it even if
    it fails itself."""
    found = []
    for left in range(50):
        out = tmp_path / str(left) / "out"
        with replacing(out) as home:
            (home / "tables").mkdir()
            (home / "tables/part-0").write_text("1")
            write_summary(home, {"made": 1})
        program = STRUCK.format(left=left, touching=TOUCHING, out=str(out))
        done = subprocess.run([sys.executable, "-P", "-c", program], env=PATHS, check=False)
        with pytest.raises(ZeroDivisionError), replacing(out):
            raise ZeroDivisionError
        found.append(made_of(out))
        assert [path.name for path in out.parent.iterdir()] == ["out"]
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert found[0] == 1
    assert found[-1] == 2
    assert found == sorted(found)
    assert len(found) > 6


def test_nothing_comes_between_the_steps_of_a_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or what is whole, and not yet in its place, would be taken for what a kill has left."""
    rename = Path.rename
    counted = []

    def met(path: Path, target: Path) -> Path:
        with pytest.raises(PipelineProblem, match="under way"), replacing(tmp_path / "out"):
            pass
        counted.append(path.name)
        return rename(path, target)

    for made in (1, 2):
        with monkeypatch.context() as patch, replacing(tmp_path / "out") as home:
            write_summary(home, {"made": made})
            patch.setattr(Path, "rename", met)
    assert counted == 2 * ["out", ".out-unfinished"]
    assert json.loads((tmp_path / "out/analysis.json").read_text()) == {"made": 2}


def test_two_analyses_do_not_write_one_folder(tmp_path: Path) -> None:
    """The second gets a message to wait."""
    with (
        replacing(tmp_path / "out"),
        pytest.raises(PipelineProblem, match="another analysis is under way"),
        replacing(tmp_path / "out"),
    ):
        pass


def test_how_many_seeds_find_a_failure() -> None:
    """1 - (1 - p)^n is at least 95 % from there on."""
    for probability in (0.5, 0.05, 0.001):
        number = int(needed(probability))
        assert 1 - (1 - probability) ** number >= 0.95 > 1 - (1 - probability) ** (number - 1)
    assert needed(1) == 1
    assert needed(0) == float("inf")
