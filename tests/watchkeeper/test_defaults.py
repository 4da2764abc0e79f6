"""Defaults of options: from variables, from a file, and what is printed of both."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.watchkeeper.test_again import SCENARIO
from watchkeeper.cli.main import app, run_command
from watchkeeper.console import completion
from watchkeeper.console.credentials import Credentials
from watchkeeper.console.defaults import defaults
from watchkeeper.run import live_run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a scenario, and a folder in it in which commands run."""
    (tmp_path / "project" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "inner")
    Path("two.yaml").write_text(SCENARIO)
    return tmp_path / "project"


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """The verdict of a run of the scenario."""
    run_command(["run", "two.yaml", "--no-pictures", "--json", *words])
    return json.loads(capsys.readouterr().out)


def test_an_option_comes_before_a_variable_and_that_before_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(capsys)["seed"] == 0
    (folder / "pyproject.toml").write_text("[tool.watchkeeper]\nseed = 3\n[tool.other]\nx = 1\n")
    assert ran(capsys)["seed"] == 3
    monkeypatch.setenv("WATCHKEEPER_SEED", "4")
    assert ran(capsys)["seed"] == 4
    monkeypatch.setenv("WATCHKEEPER_RUN_SEED", "5")
    assert ran(capsys)["seed"] == 5
    assert ran(capsys, "--seed", "6")["seed"] == 6


def test_the_nearest_file_holds_and_a_table_is_for_one_command(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "watchkeeper.toml").write_text("seed = 3\n")
    (folder / "inner" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert ran(capsys)["seed"] == 3, "a project without the table is passed by"
    (folder / "inner" / "watchkeeper.toml").write_text("seed = 8\n[run]\nseed = 9\n")
    assert ran(capsys)["seed"] == 9


def test_a_path_in_a_file_is_one_from_the_folder_of_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "watchkeeper.toml").write_text("out = 'kept'\n")

    assert ran(capsys)["files"][0] == "../kept/two-hardened-sim-0/verdict.json"
    assert (folder / "kept" / "latest").is_symlink()


WRONG = {
    "sede = 1": "'sede' is no option; did you mean 'seed'?",
    "[rum]\nseed = 1": "[rum] is no command; did you mean 'run'?",
    "[run]\nsed = 1": "'sed' is no option of `run`; did you mean 'seed'?",
    "budget = '3m'": "is an option of single commands; write it in a table, as [explore]",
    "seed = [1, 2]": "'seed' has one value, and here is a list",
    "[run]\npictures = 'no'": "'pictures' is 'no'; expected true or false",
    "seed = ": "cannot be read: Invalid value (at end of document)",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_a_sentence(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "watchkeeper.toml"
    file.write_text(text)

    assert run_command(["scenarios"]) == 4
    said = capsys.readouterr().err
    assert said.startswith(str(file))
    assert WRONG[text] in said
    assert run_command(["run", "--help"]) == 0, "help is there all the same"


def test_a_mistyped_variable_is_a_sentence_and_one_of_others_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WATCHKEEPER_HOME_OF_OURS", "x")
    assert run_command(["scenarios"]) == 0
    monkeypatch.setenv("WATCHKEEPER_VARIENT", "x")
    capsys.readouterr()
    assert run_command(["scenarios"]) == 4
    assert capsys.readouterr().err == (
        "WATCHKEEPER_VARIENT is no variable of watchkeeper; did you mean WATCHKEEPER_VARIANT?\n"
    )


def test_a_value_that_is_none_is_refused_with_its_place(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "watchkeeper.toml").write_text("seed = 'many'\n")

    assert run_command(["run", "two.yaml"]) == 4
    assert f"It is the default in {folder / 'watchkeeper.toml'}." in capsys.readouterr().err


def test_what_holds_is_shown_without_secrets(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "watchkeeper.toml").write_text("auth = ['digest:me:secret']\n[sweep]\njobs = 2\n")
    monkeypatch.setenv("WATCHKEEPER_SEED", "4")

    assert run_command(["defaults"]) == 0
    shown = capsys.readouterr().out
    assert "secret" not in shown
    rows = {tuple(line.split()) for line in shown.splitlines()}
    assert rows >= {
        ("all", "--auth", "digest:...", "watchkeeper.toml"),
        ("sweep", "--jobs", "2", "watchkeeper.toml", "[sweep]"),
        ("all", "--seed", "4", "WATCHKEEPER_SEED"),
    }
    run_command(["defaults", "--all"])
    assert "WATCHKEEPER_SWEEP_JOBS" in capsys.readouterr().out
    run_command(["defaults", "--json"])
    assert [row["option"] for row in json.loads(capsys.readouterr().out)["defaults"]] == [
        *("auth", "jobs", "seed")
    ]


def test_defaults_for_live_runs_do_not_stop_a_simulation(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WATCHKEEPER_ZOOKEEPER", "zk1:2181")
    monkeypatch.setenv("WATCHKEEPER_AUTH", "digest:me:secret digest:you:secret")
    (folder / "watchkeeper.toml").write_text("[explore]\nbudget = '9m'\n")

    assert ran(capsys)["verdict"] == "holds"
    Path("bounded.yaml").write_text(SCENARIO + "bounds: {crash: 1}\n")
    assert run_command(["explore", "bounded.yaml", "--max-states", "40"]) == 2


def test_credentials_of_the_environment_reach_a_client_and_no_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[live_run.Where] = []

    def stop(world: str, credentials: Credentials, **given: Any) -> live_run.Where:
        seen.append(live_run.Where(given["zookeeper"], credentials))
        raise KeyboardInterrupt

    monkeypatch.setattr(live_run, "where", stop)
    monkeypatch.setenv("WATCHKEEPER_AUTH", "digest:me:secret")
    run_command(["run", "two.yaml", "--world", "live", "--zookeeper", "zk1:2181"])
    run_command(
        ["run", "two.yaml", "--world", "live", "--zookeeper", "zk1:2181", "--auth", "digest:a:b"]
    )
    run_command(["run", "two.yaml", "--world", "live"])

    assert [where.credentials.auth for where in seen] == [
        ("digest:me:secret",),
        ("digest:a:b",),
        (),
    ]
    assert [where.options for where in seen] == [
        ("--zookeeper zk1:2181",),
        ("--zookeeper zk1:2181", "--auth digest:..."),
        (),
    ]


def test_two_files_in_one_folder_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "watchkeeper.toml").write_text("seed = 1\n")
    (folder / "pyproject.toml").write_text("[tool.watchkeeper]\nseed = 2\n")

    assert run_command(["scenarios"]) == 4
    assert "are both there; keep one of them" in capsys.readouterr().err


def test_a_variable_for_every_option_is_its_own(folder: Path) -> None:
    """No two options have one variable, so that each says what it means."""
    found = defaults(app, folder, {"WATCHKEEPER_OUT": "x", "WATCHKEEPER_SWEEP_OUT": "y"})

    assert found.of_commands["run"] == {"out": "x"}
    assert found.of_commands["sweep"] == {"out": "y"}, "which is another folder"
    assert "out" not in found.of_commands.get("topics", {}).get("describe", {})
    assert "out" not in found.of_commands.get("analyze", {})


def test_a_command_of_a_command_has_a_table(folder: Path) -> None:
    (folder / "watchkeeper.toml").write_text("auth = ['a:b']\n[topics.create]\npartitions = 2\n")

    topics = defaults(app, folder, {"WATCHKEEPER_TOPICS_CREATE_DRY_RUN": "1"}).of_commands[
        "topics"
    ]
    assert topics["create"]["auth"] == topics["describe"]["auth"] == ["a:b"]
    assert topics["create"]["dry_run"] == "1"
    assert topics["create"]["partitions"] == "2"


# --- standard input and completion -----------------------------------------------------


def test_a_scenario_is_read_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that repeats it reads the scenario that the folder keeps."""

    def given(text: str) -> None:
        stdin = SimpleNamespace(buffer=io.BytesIO(text.encode()), isatty=lambda: False)
        monkeypatch.setattr("sys.stdin", stdin)

    given(SCENARIO)
    assert run_command(["run", "-", "--seed", "2", "--no-pictures", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["command"] == (
        "watchkeeper run runs/two-hardened-sim-2/scenario.yaml --variant hardened --seed 2"
    )
    assert run_command([*report["command"].split()[1:], "--no-pictures", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fingerprint"] == report["fingerprint"]
    given("name: two\nabout: nothing\n")
    assert run_command(["run", "-"]) == 4
    assert capsys.readouterr().err.startswith("standard input")


def completed(name: str, words: list[str], begun: str) -> list[str]:
    context = app.commands["run"].make_context("run", words, resilient_parsing=True)
    found = getattr(completion, name)(context, app.commands["run"].params[0], begun)
    return [item.value for item in found if item.type == "plain"]


def test_names_are_completed(capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys)

    assert completed("scenarios", [], "consumer-cr") == ["consumer-crash"]
    assert completed("scenarios", [], "two.y") == [], "files are left to the shell"
    assert completed("variants", [], "kafka") == ["kafka_07", "kafka_08"]
    assert "runs/two-hardened-sim-0" in completed("runs", [], "")


# --- a folder in place of a file, and the reverse --------------------------------------

MIXED_UP = {
    "run folder": "folder: cannot be read: it is a folder; name a file in it",
    "run two.yaml --profile folder": "folder: is a folder; name a profile file",
    "run two.yaml --out two.yaml": "a part of that path is a file, and no folder",
    "sweep two.yaml --out two.yaml": "two.yaml is a file, and no folder",
    "open two.yaml": "two.yaml is a file; expected a folder with runs",
    "virtual folder": "folder is a folder; name a file of tests in it",
    "init two.yaml": "a part of that path is a file, and no folder",
    "analyze two.yaml": "two.yaml:1 is not a line of a trace",
    "broker --log-dir two.yaml": "two.yaml: a part of that path is a file, and no folder",
}


@pytest.mark.parametrize("command", MIXED_UP)
def test_a_folder_is_no_file(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("folder").mkdir()

    assert run_command(command.split()) == 4
    said = capsys.readouterr().err
    assert MIXED_UP[command] in said
    assert "defect" not in said
