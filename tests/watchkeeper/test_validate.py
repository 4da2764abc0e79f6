"""What `watchkeeper validate` accepts, and how it names what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watchkeeper.cli.main import run_command
from watchkeeper.run.starter import SCENARIO

WRONG_FIELD = SCENARIO.replace("settle:", "setle:")
WRONG_VARIANT = SCENARIO.replace("  hardened: holds", "  kafka_09: holds")
NOT_OF_ITS_VARIANT = """\
name: replicated
about: a variant whose brokers elect no controller
clusters:
  main: {brokers: 3, layout: "0.8", leaders: controller, topics: {clicks: {partitions: 1}}}
timeline: []
expect: {kafka_07: holds}
"""


def written(folder: Path, **texts: str) -> Path:
    """A folder with a file for each text."""
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_shipped_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with the variants that it names: its own, and those of its expectations."""
    assert run_command(["validate", "--json", "claims-in-conflict", "few-retries"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "file": "claims-in-conflict",
            "scenario": "claims-in-conflict",
            "variants": ["kafka_08"],
        },
        {"file": "few-retries", "scenario": "few-retries", "variants": ["hardened", "kafka_08"]},
    ]


def test_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every scenario in it, once, and other files are left alone."""
    written(tmp_path, one=SCENARIO, two=SCENARIO)
    (tmp_path / "readme.md").write_text("no scenario")
    assert run_command(["validate", str(tmp_path), str(tmp_path / "one.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{tmp_path}/{name}.yaml: first (hardened)" for name in ("one", "two")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WRONG_FIELD, "setle: is not a field here; did you mean 'settle'?"),
        (WRONG_VARIANT, "kafka_09"),
        (NOT_OF_ITS_VARIANT, "kafka_07"),
        ("", "nothing"),
    ],
)
def test_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    """It is named with its file, and valid files are still listed."""
    written(tmp_path, valid=SCENARIO, wrong=text)
    assert run_command(["validate", str(tmp_path)]) == 4
    output = capsys.readouterr()
    assert output.out == f"{tmp_path}/valid.yaml: first (hardened)\n"
    assert output.err.startswith(f"{tmp_path}/wrong.yaml")
    assert words in output.err


def test_problems_of_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them, in one value."""
    written(tmp_path, one=WRONG_FIELD, two=WRONG_FIELD)
    assert run_command(["validate", "--json", str(tmp_path)]) == 4
    problems = json.loads(capsys.readouterr().out)["error"]["problems"]
    assert [(Path(one["file"]).name, one["field"]) for one in problems] == [
        ("one.yaml", "setle"),
        ("two.yaml", "setle"),
    ]


def test_a_folder_without_scenarios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check of nothing must not look like one that has passed."""
    assert run_command(["validate", str(tmp_path)]) == 4
    assert "there is no file *.yaml in this folder" in capsys.readouterr().err
