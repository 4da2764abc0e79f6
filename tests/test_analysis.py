"""Runs are analysed from their traces: every property a second time, measures, coverage.

One analysis serves most of these tests, since Spark takes its time: it has runs that hold and
runs that do not, a sweep, and runs of which a verdict or a trace was tampered with.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from model.verdicts import Verdict
from pipeline.analysis.agreement import TRACE
from pipeline.analysis.clusters import needed
from pipeline.analysis.store import replacing
from pipeline.problems import PipelineProblem
from pipeline.session import Wanted, session
from real.java import find_java
from real.problems import EnvironmentProblem
from tests.test_house import HOME
from watchkeeper import simulate
from watchkeeper.cli import run_command
from watchkeeper.folder import prepare, write_trace, write_verdict
from watchkeeper.result import Result

pytestmark = pytest.mark.xdist_group("analysis")

RUNS = (
    ("consumer-crash", "hardened", 0),
    ("consumer-crash", "documented", 0),
    ("session-expiry", "kafka_07", 0),
    ("gc-pause-zombie", "kafka_08", 0),
    ("consumer-restart-same-id", "kafka_07", 1),
    ("documented-floor-orphans", "documented", 0),
    ("new-topic-filter", "kafka_08", 0),
    ("partition-added", "documented", 0),
    ("broker-crash", "hardened", 0),
    ("exactly-once", "hardened", 0),
    ("at-most-once", "documented", 0),
)
"""Runs in which between them nearly every property holds, and is violated."""


class Shown(NamedTuple):
    """What the command left and printed."""

    code: int
    said: dict[str, Any]
    complaints: str
    out: Path


def write_run(out: Path, result: Result) -> Path:
    """The folder of a run, as the command line writes it."""
    home = prepare(out, result.trace.header.run_id)
    write_trace(home, result.trace)
    write_verdict(home, result.to_json())
    return home


def tampered_verdict(home: Path, name: str) -> None:
    """Turn round what the folder of a run says of a property."""
    said = json.loads((home / "verdict.json").read_text())
    [one] = [one for one in said["properties"] if one["name"] == name]
    one["verdict"] = "violated" if one["verdict"] == "holds" else "holds"
    (home / "verdict.json").write_text(json.dumps(said))


def tampered_trace(home: Path, event: str, change: tuple[str, str]) -> None:
    """Change the first event of a kind in the trace of a run."""
    lines = (home / "trace.jsonl").read_text().splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if event in line and change[0] in line)
    lines[at] = lines[at].replace(*change)
    (home / "trace.jsonl").write_text("".join(lines))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """One analysis of all that these tests need."""
    try:
        find_java()
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    home = tmp_path_factory.mktemp("analysis")
    for scenario, variant, seed in RUNS:
        write_run(home / "runs", simulate(scenario, variant=variant, seed=seed))
    tampered = simulate("consumer-crash", variant="hardened", seed=7)
    for number, name in enumerate(("single ownership", "full cover", "work bound")):
        tampered_verdict(write_run(home / f"verdict-{number}", tampered), name)
    tampered_trace(
        write_run(home / "trace-0", tampered),
        '"fetching"',
        ('"does":"ceases"', '"does":"begins"'),
    )
    sweep = ["sweep", "consumer-crash", "--variants", "documented,hardened", "--seeds", "0:4"]
    assert run_command([*sweep, "--no-shrink", "--out", str(home / "swept")]) == 0
    wanted = Wanted("local[2]", "tests", home / "scratch", "python", patience_s=600)
    with session(wanted), pytest.MonkeyPatch.context() as patch:
        yield analyzed(home, patch)


def analyzed(home: Path, patch: pytest.MonkeyPatch) -> Shown:
    """Run the command on a folder, and keep what it prints."""
    import io

    out, err = io.StringIO(), io.StringIO()
    patch.setattr("sys.stdout", out)
    patch.setattr("sys.stderr", err)
    code = run_command(["analyze", str(home), "--out", str(home / "out"), "--json"])
    patch.undo()
    assert out.getvalue(), err.getvalue()
    return Shown(code, json.loads(out.getvalue()), err.getvalue(), home / "out")


# --- every property a second time ------------------------------------------------------


def test_what_was_tampered_with_is_found_and_nothing_else(shown: Shown) -> None:
    """Three verdicts and a trace; the first run of that name keeps it, others get a number."""
    found = {(one["run"], one["property"]) for one in shown.said["differences"]}
    name = "consumer-crash-hardened-sim-7"
    traces = {run for run, what in found if what == TRACE}

    assert shown.code == 1
    assert len(traces) == 1
    [changed] = traces
    verdicts = {(run, what) for run, what in found if run != changed}
    assert {what for _, what in verdicts} == {"single ownership", "full cover", "work bound"}
    assert len(verdicts) == 3
    assert all(run.startswith(name) for run, _ in found)


def test_a_difference_is_told_in_a_sentence(shown: Shown) -> None:
    """Which property, which run, what both say."""
    said = shown.complaints.splitlines()

    assert len([line for line in said if "comes out as" in line or "sha256" in line]) == len(
        shown.said["differences"]
    )
    assert any("full cover was judged violated" in line for line in said)


def test_properties_that_hold_and_that_do_not_are_compared(shown: Shown) -> None:
    """Both verdicts of nearly every property are among the runs, so agreement says something."""
    seen: dict[str, set[Verdict]] = {}
    for scenario, variant, seed in RUNS:
        for one in simulate(scenario, variant=variant, seed=seed).findings:
            seen.setdefault(one.claim.name.partition(":")[0], set()).add(one.verdict)
    both = {name for name, verdicts in seen.items() if len(verdicts) > 1}

    assert both >= {
        *("single ownership", "strict single ownership", "truthful registry", "full cover"),
        *("balance", "consensus", "monotone offsets", "delivery to billing"),
    }
    assert both - set(shown.said["not_computed"]) <= set(shown.said["agreed"])


def test_what_is_not_computed_is_told(shown: Shown) -> None:
    """What faults did is counted by the world, and stands in no trace; and most of messages."""
    of_messages = {"order", "sane commits", "no starvation", "punctual sending"}

    assert set(shown.said["not_computed"]) == {"faults struck", *of_messages}


# --- the rest --------------------------------------------------------------------------


def test_failures_are_counted_over_all_runs_of_a_sweep(shown: Shown) -> None:
    """Not only over those whose traces were kept; and each has its smallest example."""
    [documented] = [
        one
        for one in shown.said["failures"]
        if "documented-floor" not in one["smallest"]
        and one["smallest"].startswith("consumer-crash-documented")
    ][:1]

    assert documented["of"] >= 4
    assert 0 < documented["per_1000"] <= 1000
    assert documented["interval"][0] < documented["per_1000"] <= documented["interval"][1]
    assert documented["events"] > 0


def test_measures_are_those_of_the_judges(shown: Shown) -> None:
    """What judges count on their way comes out of the tables, too."""
    rows = {(one["run"], one["group"]): one for one in shown.said["measures"]}
    for scenario, variant, seed in RUNS:
        result = simulate(scenario, variant=variant, seed=seed)
        stats = result.judgement.stats
        for group, counted in stats["groups"].items():
            row = rows[result.trace.header.run_id, group]
            wanted = {**counted, "zombie_window_us": stats["zombie_window_us"]}
            del wanted["rests"]
            assert {name: row[name] for name in wanted} == wanted
            assert (row["least_moves"] or 0) <= row["moves"]


def test_coverage_tells_what_was_interrupted_and_what_never_was(shown: Shown) -> None:
    """Every fault that there was, with every step."""
    faults: dict[str, dict[str, int]] = {}
    for one in shown.said["coverage"]:
        faults.setdefault(one["fault"], {})[one["step"]] = one["times"]

    assert set(faults) >= {"crash", "expire", "pause"}
    assert all(len(steps) == len(faults["crash"]) for steps in faults.values())
    assert faults["expire"]["waiting"] > 0
    assert faults["expire"]["asked to fence"] == 0


def test_the_folder_holds_tables(shown: Shown) -> None:
    """Events by run, and what was computed of them."""
    names = {path.name for path in (shown.out / "tables").iterdir()}

    assert names >= {"intervals", "overlaps_and_gaps", "moves", "herd", "zombies", "properties"}
    assert len(list((shown.out / "events").iterdir())) == shown.said["runs"]


def test_the_page_needs_nothing_but_itself(shown: Shown) -> None:
    """It loads nothing, and holds what the summary says."""
    page = (shown.out / "analyze.html").read_text()
    summary = json.loads((shown.out / "analysis.json").read_text())

    assert "src=" not in page
    assert "href=" not in page
    assert summary["agreed"] == shown.said["agreed"]
    assert (
        json.loads(page.partition('id="data">')[2].partition("</script>")[0])["agreed"]
        == (summary["agreed"])
    )


# --- when a failure became inevitable --------------------------------------------------

PAGE = HOME / "docs/how-to/analyze.md"
COMMANDS = [line for line in PAGE.read_text().splitlines() if line.startswith("watchkeeper ")]


def test_the_page_shows_what_happens(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands run, one after the other, in an empty folder; here with fewer branches.

    The last says that at the violation, if not before, the failure is decided.
    """
    del shown  # its session of Spark serves these, too
    monkeypatch.chdir(tmp_path)
    *runs, once, last = [line.replace("200", "3") for line in COMMANDS]

    assert [run_command([*shlex.split(one)[1:], "--no-pictures"]) for one in runs] == [0, 0]
    assert shlex.split(once)[:3] == shlex.split(last)[:3]
    assert run_command(shlex.split(last)[1:]) == 0
    summary = json.loads((tmp_path / "analysis/analysis.json").read_text())
    curve = summary["inevitable"]
    assert curve["points"][-1]["fail"] == curve["points"][-1]["of"] == 3
    assert curve["points"][0]["events"] == 0
    assert curve["decided"] is not None


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("consumer-crash-hardened-sim-1", "was not judged violated"),
        ("consumer-crash-hardened-sim-2", "there is no run"),
    ],
)
def test_what_does_not_fail_has_no_such_moment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], run: str, said: str
) -> None:
    """It is said before Spark is started."""
    write_run(tmp_path, simulate("consumer-crash", variant="hardened", seed=1))

    assert run_command(["analyze", str(tmp_path), "--inevitable", run]) == 4
    assert said in capsys.readouterr().err


# --- what is wrong with what was given -------------------------------------------------


def test_half_a_trace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before Spark is started; an earlier analysis stays."""
    home = write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))
    whole = (home / "trace.jsonl").read_bytes()
    (home / "trace.jsonl").write_bytes(whole[: len(whole) // 2])
    kept = tmp_path / "out"
    kept.mkdir()
    (kept / "analysis.json").write_text("{}")

    assert run_command(["analyze", str(tmp_path / "runs"), "--out", str(kept)]) == 4
    assert "is half a trace" in capsys.readouterr().err
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
    ("master", "said"),
    [
        ("spark://localhost:1", "nobody answers at spark://localhost:1"),
        ("lokal", "'lokal' is not a master of Spark"),
    ],
)
def test_a_master_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], master: str, said: str
) -> None:
    """In a sentence, and nothing is left behind."""
    write_run(tmp_path / "runs", simulate("consumer-crash", seed=1))
    out = tmp_path / "out"

    assert run_command(["analyze", str(tmp_path), "--master", master, "--out", str(out)]) == 4
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


def test_the_folder_of_somebody_is_left_alone(
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


def test_two_analyses_do_not_write_one_folder(tmp_path: Path) -> None:
    """The second is told to wait."""
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
