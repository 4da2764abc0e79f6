"""A sweep from its command to its tables, traces, smallest failures, summary and page."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import HOME
from tests.support.pipeline.sweeps import CRASH, rows, summary, sweep
from watchkeeper import simulate
from watchkeeper.cli.main import run_command
from watchkeeper.console.signals import INTERRUPTS
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace, parse
from watchkeeper.pipeline.sweeps import chunk, runner_choice, store
from watchkeeper.pipeline.sweeps.rows import RunRow, schema
from watchkeeper.sim.world import Simulated
from watchkeeper.sweep import shrink

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of sixteen runs, in small chunks."""
    out = tmp_path_factory.mktemp("sweep") / "out"
    with pytest.MonkeyPatch.context() as patch:
        every_run_costs(patch, 0.05)
        assert sweep(out, "--runner", "process", "--chunk", "0.05") == 0
    return out


def every_run_costs(patch: pytest.MonkeyPatch, cost_s: float) -> None:
    """Runs are not timed, so that the number of chunks does not hang on the machine's mood."""
    patch.setattr(runner_choice, "look", lambda grid: runner_choice.Cost(cost_s, cost_s))


# --- tables ----------------------------------------------------------------------------


def test_there_is_a_row_for_every_run(swept: Path) -> None:
    """In the order of the grid, cell by cell, seed by seed; the self-test is none of them."""
    found = rows(swept)

    assert [row["number"] for row in found] == list(range(16))
    assert [(row["variant"], row["seed"]) for row in found] == [
        (variant, seed) for variant in ("hardened", "documented") for seed in range(8)
    ]
    assert not any(row["self_test"] for row in found)
    assert len(list((swept / "runs").iterdir())) > 1


def test_a_row_says_what_the_run_says(swept: Path) -> None:
    """Every column, against a run of the same seed by itself."""
    row = rows(swept)[11]
    result = simulate("consumer-crash", variant="documented", seed=3)

    assert row["run_id"] == result.trace.header.run_id
    assert row["fingerprint"] == result.fingerprint
    assert (row["verdict"], row["met"]) == (result.verdict.value, result.met)
    assert row["violated"] == result.violated
    assert row["signatures"] == result.to_json()["signatures"]
    assert [signature.partition(":")[0] for signature in row["signatures"]] == result.violated
    found = dict(row["properties"])
    assert list(found) == [finding.claim.name for finding in result.findings]
    for finding in result.findings:
        message = found[finding.claim.name]
        assert (message["verdict"], message["counts"], message["at_us"]) == (
            finding.verdict.value,
            finding.counts,
            finding.at_us,
        )
        assert message["evidence"] == (
            None if finding.verdict is Verdict.HOLDS else finding.evidence
        )
    assert [(effect["action"], dict(effect["counts"])) for effect in row["effects"]] == [
        (effect.action.label, effect.counts) for effect in result.effects
    ]
    group = result.judgement.stats["groups"]["billing"]
    assert (row["reads"], row["attempts"]) == (group["reads"], group["attempts"])
    assert row["time_to_rest_us"] == group["rest_after_us"]
    assert (row["events"], row["operations"]) == (len(result.trace), result.operations)


def test_moves_are_counted(swept: Path) -> None:
    """Three members join and one dies: a partition that another member fetches has moved."""
    result = simulate("consumer-crash", seed=2)
    last: dict[str, str] = {}
    moves = 0
    for event in result.trace.of_kind(EventKind.FETCHING):
        if event.detail["does"] == "begins":
            moves += last.setdefault(event.place, event.node) != event.node
            last[event.place] = event.node

    assert rows(swept)[2]["moves"] == moves > 3


def test_the_schema_is_written_out(swept: Path) -> None:
    """What the tables hold is what the schema says, for every column of a row."""
    for path in (swept / "runs").iterdir():
        assert pq.read_schema(path).remove_metadata() == schema()
    assert schema().names == list(RunRow.__struct_fields__)
    assert schema().field("properties").type.item_type.names == [
        *("verdict", "counts", "evidence", "at_us")
    ]


# --- the self-test ---------------------------------------------------------------------


def test_the_self_test_is_found_and_left_out(swept: Path) -> None:
    """It stands in a table of its own, marked."""
    [row] = pq.read_table(swept / "self-test" / "part-00000.parquet").to_pylist()

    assert row["self_test"]
    assert row["violated"] == ["truthful registry"]
    assert row["run_id"] not in {row["run_id"] for row in rows(swept)}
    assert summary(swept)["self_test"] == row["run_id"]


def test_a_sweep_whose_self_test_fails_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with judges that see nothing: no run of it is worth anything, and none is made."""
    honest = chunk.judge

    def blind(*given: Any) -> Any:
        judgement = honest(*given)
        findings = [replace(finding, verdict=Verdict.HOLDS) for finding in judgement.findings]
        return replace(judgement, findings=tuple(findings))

    monkeypatch.setattr(chunk, "judge", blind)

    assert sweep(tmp_path / "out", "--runner", "process") == 1
    message = capsys.readouterr().err
    assert "this sweep is invalid: its self-test self-test-stale-memory-sim-1" in message
    assert not (tmp_path / "out" / "runs").exists()


# --- determinism -----------------------------------------------------------------------


def test_a_run_that_differs_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Something draws on more than the seed: the command ends with 3 and says how to see it."""
    honest = chunk.simulate
    calls = iter(range(10**6))

    def moody(*given: Any, **more: Any) -> Simulated:
        done = honest(*given, **more)
        t_us, node, kind, *others = done.trace.rows[-1]
        done.trace.rows[-1] = (t_us + next(calls), node, kind, *others)  # type: ignore[assignment]
        return done

    monkeypatch.setattr(chunk, "simulate", moody)

    assert sweep(tmp_path / "out", "--runner", "process", "--no-shrink") == 3
    message = capsys.readouterr().out
    assert "came out differently when repeated" in message
    assert "watchkeeper run consumer-crash --variant hardened --seed 0 --check-deter" in message
    differing = summary(tmp_path / "out")["determinism"]["differing"]
    assert "consumer-crash-hardened-sim-0" in {row["run_id"] for row in differing}
    assert rows(tmp_path / "out")[0]["fingerprint_again"] is not None


def test_some_runs_are_run_twice(swept: Path) -> None:
    """And it is said how many."""
    twice = sum(row["repeated"] for row in rows(swept))

    assert twice >= 1
    assert summary(swept)["determinism"] == {"repeated": twice, "differing": []}


# --- failures, traces, commands --------------------------------------------------------


def test_failures_are_counted_by_the_way_they_fail(swept: Path) -> None:
    """Each with its density, its interval, its first run."""
    message = summary(swept)
    counts = Counter(signature for row in rows(swept) for signature in row["signatures"])

    assert {row["signature"]: row["number"] for row in message["failures"]} == counts
    for failure in message["failures"]:
        assert failure["per_1000"] == pytest.approx(1000 * failure["number"] / 16)
        assert failure["interval"][0] < failure["per_1000"] < failure["interval"][1]
        assert failure["cells"] == [1]
    assert message["verdicts"] == {
        **{"holds": 8, "violated": 8, "known limit": 0},
        **{"unknown": 0, "failed": 0},
    }
    met = {"as expected": 16, "known limit": 0, "not as expected": 0, "open": 0}
    assert message["met"] == met


def run_of(command: str, out: Path) -> dict[str, Any]:
    """What a command that a sweep has printed comes to."""
    words = shlex.split(command)
    assert words[:2] == ["watchkeeper", "run"]
    run_command([*words[1:], "--no-pictures", "--out", str(out)])
    verdict = out / "latest" / "verdict.json"
    message: dict[str, Any] = json.loads(verdict.read_text())
    return message


def test_the_commands_show_the_failures(swept: Path, tmp_path: Path) -> None:
    """The first run of each way, and the smallest scenario that was found for it."""
    for number, row in enumerate(summary(swept)["failures"]):
        first = run_of(row["first"]["command"], tmp_path / f"first-{number}")
        small = run_of(row["smallest"]["command"], tmp_path / f"small-{number}")
        for message in (first, small):
            assert row["signature"] in message["signatures"]
        assert small["stats"]["events"] < first["stats"]["events"] / 2


def test_shrinking_keeps_its_time_and_gives_the_smallest_so_far(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With no time the first failing run is the result; with more time the search goes on."""
    out = tmp_path / "out"
    sweep(out, "--runner", "process", "--shrink-time", "0.000001")
    [so_far, *_] = summary(out)["failures"]
    message = capfd.readouterr()

    assert "in at most 1e-06 s" in message.err
    assert "the time was over before it was the smallest" in message.out
    assert not so_far["smallest"]["complete"]
    begun = run_of(so_far["smallest"]["command"], tmp_path / "begun")
    assert so_far["signature"] in begun["signatures"]

    sweep(out, "--runner", "process", "--shrink-time", "3600")
    [found, *_] = summary(out)["failures"]
    assert found["smallest"]["complete"]
    assert found["smallest"]["runs"] > so_far["smallest"]["runs"]
    ended = run_of(found["smallest"]["command"], tmp_path / "ended")
    assert found["signature"] in ended["signatures"]
    assert ended["stats"]["events"] < begun["stats"]["events"] / 2

    before = {path: path.read_text() for path in (out / "smallest").iterdir()}
    sweep(out, "--runner", "process")
    assert {path: path.read_text() for path in (out / "smallest").iterdir()} == before


def test_traces_are_those_of_the_runs(swept: Path) -> None:
    """Of failures and of a sample of the others, in the form that `report` reads."""
    by_id = {row["run_id"]: row for row in rows(swept)}
    kept = {path.name: path / "trace.jsonl" for path in (swept / "traces").iterdir()}

    assert {name for name, row in by_id.items() if row["signatures"]} < set(kept)
    assert len(kept) == 8 + 1
    for name, path in kept.items():
        with path.open("rb") as file:
            trace: Trace = parse(file, name=str(path))
        assert trace.fingerprint == by_id[name]["fingerprint"]
        assert trace.header.run_id == name
        assert trace.header.versions["watchkeeper"]


def test_few_traces_are_kept_of_many_failures(tmp_path: Path) -> None:
    """Each failure signature has one before any has two."""
    sweep(tmp_path / "out", "--runner", "process", "--traces", "2", "--no-shrink")
    by_id = {row["run_id"]: row for row in rows(tmp_path / "out")}
    kept = [by_id[path.name]["signatures"] for path in (tmp_path / "out" / "traces").iterdir()]

    assert len({signature for signatures in kept for signature in signatures}) >= 2
    assert len(kept) == 3


def test_values_that_change_have_scenarios_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of one of them is run again from its file."""
    changes = ("--set", "timeline.1.at=8s,14s", "--no-shrink")
    assert sweep(tmp_path / "out", "--runner", "process", *changes) == 0
    message = capsys.readouterr().out
    assert "timeline.1.at  variant" in message

    found = rows(tmp_path / "out")
    assert len({row["run_id"] for row in found}) == len(found) == 32
    assert dict(found[0]["parameters"]) == {"timeline.1.at": "8s"}
    command = summary(tmp_path / "out")["failures"][0]["first"]["command"]
    assert "scenarios/consumer-crash-p0.yaml" in command
    again = run_of(command, tmp_path / "again")
    first = next(row for row in found if row["run_id"].startswith("consumer-crash-p0-doc"))
    assert again["variant"] == first["variant"]
    by_id = {row["run_id"]: row["fingerprint"] for row in found}
    run_id = summary(tmp_path / "out")["failures"][0]["first"]["run_id"]
    assert again["fingerprint"] == by_id[run_id]


def test_runs_that_break_off_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error in a run ends neither the others nor the sweep; the command ends with 4."""
    honest = chunk.simulate

    def breaks(plan: Any, seed: int, **more: Any) -> Simulated:
        if seed == 5:
            raise KeyError("clicks")
        return honest(plan, seed, **more)

    monkeypatch.setattr(chunk, "simulate", breaks)

    assert sweep(tmp_path / "out", "--runner", "process", "--no-shrink") == 4
    message = capsys.readouterr().out
    assert "the run failed: KeyError in breaks" in message
    assert "2 runs ended in an error; that is a defect" in message
    assert [row["seed"] for row in rows(tmp_path / "out") if row["verdict"] == "failed"] == [5, 5]


@pytest.mark.parametrize(
    ("scenario", "options", "code"),
    [
        ("consumer-crash", ("--variants", "hardened"), 0),
        ("consumer-crash", ("--variants", "documented", "--set", "expect.documented=holds"), 1),
        ("consumer-crash", ("--set", "timeline.1.at=14s", "--set", "settle=1s"), 2),
    ],
)
def test_exit_codes(scenario: str, options: tuple[str, ...], code: int, tmp_path: Path) -> None:
    """0 as expected, 1 not, 2 where it cannot be said."""
    of = ("sweep", scenario, "--seeds", "3", "--runner", "process", "--no-shrink")

    assert sweep(tmp_path / "out", *options, of=of) == code


# --- going on --------------------------------------------------------------------------


def test_the_same_command_goes_on(
    swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is finished is not done again; what is missing is."""
    out = tmp_path / "out"
    shutil.copytree(swept, out)
    parts = sorted((out / "runs").iterdir())
    parts[1].unlink()
    shutil.rmtree(out / "traces" / "consumer-crash-documented-sim-4")
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    done: list[int] = []
    honest = chunk.run_row

    def counting(cell: Any, seed: int, number: int, **more: Any) -> RunRow:
        done.append(number)
        return honest(cell, seed, number, **more)

    monkeypatch.setattr(chunk, "run_row", counting)

    assert sweep(out, "--runner", "process") == 0
    rewritten = {"part-00000.parquet", "summary.json", "sweep.html", ".under-way"}
    for path, at in before.items():
        same = path.stat().st_mtime_ns == at
        assert same or path.name in rewritten, path
    assert done == [row["number"] for row in pq.read_table(parts[1]).to_pylist()]
    assert rows(out) == rows(swept)
    assert summary(out)["cells"] == summary(swept)["cells"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "9"), "holds another sweep: one of the seeds 0..7"),
        (("--variants", "hardened"), 'one of the variants ["hardened", "documented"]'),
        (("--set", "settle=9s"), "one with the values {}"),
    ],
)
def test_another_command_is_refused(
    arguments: tuple[str, ...], message: str, swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder holds one sweep, which is left as it is."""
    before = rows(swept)

    assert sweep(swept, *arguments) == 4
    assert message in capsys.readouterr().err
    assert rows(swept) == before


def test_a_scenario_that_was_changed_is_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even if it bears the same name: its runs would be mixed with those of before."""
    text = Path("scenarios/files/consumer-crash.yaml")
    file = tmp_path / "mine.yaml"
    original = (HOME / text).read_text()
    file.write_text(original)
    of = ("sweep", str(file), "--seeds", "2", "--runner", "process")
    assert sweep(tmp_path / "out", of=of) == 0
    file.write_text(original.replace("14s", "13s"))

    assert sweep(tmp_path / "out", of=of) == 4
    assert "one of that scenario, before it was changed" in capsys.readouterr().err


def test_results_of_other_code_are_not_mixed(
    swept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sweep that was begun before the program changed is not gone on with."""
    from watchkeeper.sweep import grid as sweep_grid

    monkeypatch.setattr(sweep_grid, "code_digest", lambda: "another")

    assert sweep(swept) == 4
    assert "by another state of the code of watchkeeper" in capsys.readouterr().err


def test_one_process_has_the_folder(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second one is refused while the first is at work."""
    with store.opened(swept):
        assert sweep(swept) == 4
    assert "another sweep is under way" in capsys.readouterr().err
    assert sweep(swept) == 0


# --- what may be in the way ------------------------------------------------------------


def test_a_folder_of_a_user_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sweep begins in an empty folder, or goes on in its own."""
    (tmp_path / "thesis.tex").write_text("years")

    assert sweep(tmp_path) == 4
    assert "is not the folder of a sweep, and not empty (it holds thesis.tex)" in (
        capsys.readouterr().err
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.tex"]


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, and what to do."""
    (tmp_path / "file").write_text("")

    assert sweep(tmp_path / "file" / "out") == 4
    assert "cannot be written: Not a directory; choose another with --out" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("after", [1, pytest.param(3, marks=pytest.mark.slow), 6])
def test_a_full_disk(
    after: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was finished is kept, nothing half-written is left, and the same command goes on."""
    honest, calls = os.fsync, iter(range(10**6))
    small = ("--runner", "process", "--chunk", "0.05", "--no-shrink", "--traces", "1")

    def full(descriptor: int) -> None:
        if next(calls) >= 2 * after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        honest(descriptor)

    out = tmp_path / "out"
    every_run_costs(monkeypatch, 0.05)
    monkeypatch.setattr(os, "fsync", full)
    assert sweep(out, *small) == 4
    message = capsys.readouterr().err
    assert (
        "cannot be written: No space left on device; what was finished before is kept" in message
    )
    assert not list(out.rglob(".*unfinished"))
    kept = {path.name: path.read_bytes() for path in out.glob("runs/*")}
    assert len(kept) == max(after - 2, 0)
    monkeypatch.undo()

    assert sweep(out, *small) == 0
    assert [row["number"] for row in rows(out)] == list(range(16))
    assert {name: (out / "runs" / name).read_bytes() for name in kept} == kept


@pytest.mark.parametrize("harm", ["cut", "other"])
def test_a_table_that_is_no_such_thing(
    harm: str, swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, and what to do; once it is removed the same command makes it again."""
    out = tmp_path / "out"
    shutil.copytree(swept, out)
    part = sorted((out / "runs").iterdir())[0]
    if harm == "cut":
        part.write_bytes(part.read_bytes()[:-100])
    else:
        pq.write_table(pa.table({"x": [1]}), part)

    assert sweep(out) == 4
    message = capsys.readouterr().err
    assert str(part) in message
    assert "remove that file, and the same command makes it again" in message
    part.unlink()
    assert sweep(out, "--runner", "process") == 0
    assert rows(out) == rows(swept)


def test_a_manifest_that_is_no_such_thing(
    swept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not written over."""
    out = tmp_path / "out"
    shutil.copytree(swept, out)
    (out / "sweep.json").write_text("{")

    assert sweep(out) == 4
    assert "is no manifest of a sweep" in capsys.readouterr().err
    assert (out / "sweep.json").read_text() == "{"


def test_what_a_killed_process_has_left_is_removed(swept: Path, tmp_path: Path) -> None:
    """Unfinished files count for nothing."""
    out = tmp_path / "out"
    shutil.copytree(swept, out)
    (out / "runs" / ".part-00007.parquet-unfinished").write_bytes(b"PAR1")
    (out / ".scratch").mkdir()

    assert sweep(out, "--runner", "process") == 0
    assert not list(out.rglob(".*unfinished"))
    assert not (out / ".scratch").exists()
    assert rows(out) == rows(swept)


def test_ctrl_c_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with 2 and says that it can be gone on with."""
    honest = chunk.run_row

    def tired(cell: Any, seed: int, number: int, **more: Any) -> RunRow:
        if number == 9:
            raise KeyboardInterrupt
        return honest(cell, seed, number, **more)

    monkeypatch.setattr(chunk, "run_row", tired)
    out = tmp_path / "out"
    every_run_costs(monkeypatch, 0.05)
    small = ("--runner", "process", "--chunk", "0.05", "--no-shrink")
    assert sweep(out, *small) == 2
    message = capsys.readouterr().err
    monkeypatch.undo()
    kept = len(rows(out))
    assert 0 < kept <= 9
    said, _, command = message.rpartition("\ncontinue with: ")
    assert f"interrupted: {kept} of 16 runs are kept in {out} (" in said
    assert said.endswith(f"; nothing is known of the other {16 - kept}")

    assert run_command(shlex.split(command)[1:]) == 0
    assert len(rows(out)) == 16


def test_ctrl_c_while_failures_are_made_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All runs are in the report; the same command looks for the smaller scenarios."""
    honest = shrink.signatures_until

    def tired(*given: Any) -> Any:
        INTERRUPTS.came = True
        raise KeyboardInterrupt

    monkeypatch.setattr(INTERRUPTS, "came", False)
    monkeypatch.setattr(shrink, "signatures_until", tired)
    words = ["sweep", "consumer-crash", "--variants", "documented", "--seeds", "4"]
    words += ["--out", str(tmp_path / "out"), "--shrink-time", "5", "--runner", "process"]

    assert run_command([*words, "--json"]) == 2
    told = capsys.readouterr()
    report = json.loads(told.out)
    assert report["runs"] == 4
    assert "interrupted: the report has all 4 runs" in told.err
    assert [one["smallest"] and one["smallest"]["complete"] for one in report["failures"]] == [
        False,
        *[None] * (len(report["failures"]) - 1),
    ]

    INTERRUPTS.came = False
    monkeypatch.setattr(shrink, "signatures_until", honest)
    run_command([*shlex.split(report["command"])[1:], "--json"])
    again = json.loads(capsys.readouterr().out)
    assert again["verdicts"] == report["verdicts"]
    assert again["failures"]
    assert all(one["smallest"]["runs"] > 0 for one in again["failures"])


def test_the_extra_is_named_where_a_library_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables need pyarrow, which the first install does not bring."""
    from watchkeeper.pipeline.sweeps import rows as table_rows

    monkeypatch.setattr(table_rows, "find_spec", lambda name: None)

    assert sweep(tmp_path / "out") == 4
    assert "needs pyarrow, which is not installed; pip install 'watchkeeper[arrow]'" in (
        capsys.readouterr().err
    )


# --- what is said ----------------------------------------------------------------------


def test_json_is_one_value(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same as the summary, with the files."""
    assert sweep(swept, "--json") == 0
    message = json.loads(capsys.readouterr().out)
    files = message.pop("files")

    assert message == json.loads((swept / "summary.json").read_text())
    assert all(Path(name).exists() for name in files)
    assert message["command"] == shlex.join(
        ["watchkeeper", *CRASH[:2], "--seeds", "8", *CRASH[2:4]]
    ) + (f" --out {swept}")


def test_who_works_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By auto, by the work there is."""
    every_run_costs(monkeypatch, 0.05)
    sweep(tmp_path / "out", "--no-shrink")
    assert "runner  process: " in capsys.readouterr().err
    sweep(tmp_path / "out", "--no-shrink")
    assert "runner  process: every run is finished" in capsys.readouterr().err


def test_many_cells_are_printed_as_maps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A map a variant; where nothing was seen, it is said what that is worth."""
    of = ("sweep", "retries-against-timeout", "--seeds", "1", "--variants", "kafka_08")
    config = "groups.billing.config"
    changes = (
        f"{config}.zookeeper.session.timeout.ms=4000,6000",
        f"{config}.rebalance.max.retries=2,3,8",
        f"{config}.rebalance.backoff.ms=500,2000,4000",
    )
    options = [word for change in changes for word in ("--set", change)]

    assert sweep(tmp_path / "out", "--runner", "process", "--no-shrink", *options, of=of) == 1
    message = capsys.readouterr().out
    assert "kafka_08, violated of 1,000 runs, by rebalance.backoff.ms" in message
    assert "zookeeper.session.timeout.ms  rebalance.max.retries  500    2000   4000" in message
    assert "6000                          8                      1,000  -      -" in message
    assert "- means none of 1 runs: 0 to 793 of 1,000" in message


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_a_browser_draws_the_page(swept: Path, tmp_path: Path) -> None:
    """The map, a row a cell, the failure signatures with their commands."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command = [BROWSER or "", *flags, f"--user-data-dir={tmp_path}/browser", "--dump-dom"]

    done = subprocess.run(
        [*command, (swept / "sweep.html").as_uri()], capture_output=True, text=True, timeout=120
    )

    assert done.stdout.count('class="cell"') == 2
    assert done.stdout.count('data-tip=""') == 4
    for row in summary(swept)["failures"]:
        assert row["first"]["command"] in done.stdout
        assert row["smallest"]["command"] in done.stdout


def test_the_page_needs_nothing_else(swept: Path) -> None:
    """No network, no other file; what is said in it cannot become a part of it."""
    text = (swept / "sweep.html").read_text()

    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert "default-src 'none'" in text


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_can_be_parsed(swept: Path, tmp_path: Path) -> None:
    """It is JavaScript."""
    text = (swept / "sweep.html").read_text()
    (tmp_path / "page.js").write_text(text.rpartition("<script>")[2].partition("</script>")[0])

    check = ["node", "--check", str(tmp_path / "page.js")]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")


# --- the campaign ----------------------------------------------------------------------


def test_the_campaign_agrees_with_the_audit() -> None:
    """Where the audit warns that attempts run out, runs show it; where it does not, they do not.

    Where it says that only the last pause saves them, chance decides.
    """
    from watchkeeper.model.audit.retry_budget import RetryBudget
    from watchkeeper.pipeline.sweeps.grid import Grid
    from watchkeeper.sweep.grid import Request, planned

    timeouts = ("groups.billing.config.zookeeper.session.timeout.ms=6000,10000",)
    plan = planned(
        Request("retries-against-timeout", Path("unused"), variants="kafka_08", changes=timeouts)
    )
    grid = Grid(plan.grid.cells, range(2))
    for cell in grid.cells:
        timeout, retries, backoff = (int(value) for _, value in cell.parameters)
        finding, notification = RetryBudget(timeout, retries, backoff).judge()
        found = {chunk.run_row(cell, seed, 1).verdict for seed in grid.seeds}
        if finding:
            assert "violated" in found or retries * backoff == timeout, cell.parameters
        elif not notification and (retries - 1) * backoff > timeout + 2000:
            assert found == {"holds"}, cell.parameters


def test_a_look_takes_no_longer_than_it_has_to() -> None:
    """Of a few cells one seed each."""
    from watchkeeper.sweep.grid import Request, planned

    grid = planned(Request("consumer-crash", Path("unused"))).grid
    cost = runner_choice.look(grid)

    assert 0 < cost.cheapest_s <= cost.mean_s
