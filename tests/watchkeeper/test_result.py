"""What a result of `simulate` is made into: files, tables, and what a notebook shows."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from watchkeeper import simulate
from watchkeeper.api.result import Result
from watchkeeper.cli.main import run_command
from watchkeeper.console import extras


@pytest.fixture(scope="module")
def violated() -> Result:
    """A run that violates what its scenario expects to be violated."""
    return simulate("session-expiry", variant="kafka_07")


def test_the_files_are_those_of_the_command(
    violated: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "session-expiry", "--variant", "kafka_07", "--out", str(tmp_path / "runs")]
    run_command([*words, "--json"])
    by_command = Path(json.loads(capsys.readouterr().out)["files"][0]).parent

    page = violated.write(tmp_path / "mine")

    assert page == tmp_path / "mine" / "index.html"
    names = {path.name for path in by_command.iterdir()}
    assert {path.name for path in page.parent.iterdir()} == names
    for name in ("trace.jsonl", "scenario.yaml"):
        assert (page.parent / name).read_bytes() == (by_command / name).read_bytes()


def test_without_pictures_the_verdict_is_what_there_is(violated: Result, tmp_path: Path) -> None:
    file = violated.write(tmp_path / "mine", pictures=False)

    assert file.name == "verdict.json"
    assert json.loads(file.read_text())["verdict"] == "violated"


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(
    violated: Result, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(OSError, match="a part of that path is a file, and no folder"):
        violated.write(tmp_path / "file")


def test_tables_have_a_row_for_each_event_and_for_each_property(violated: Result) -> None:
    events = violated.to_frame().to_pylist()
    assert len(events) == len(violated.trace)
    for row, event in zip(events, violated.trace, strict=True):
        assert {**row, "detail": json.loads(row["detail"])} == {
            **event._asdict(),
            "detail": json.loads(json.dumps(event.detail)),
        }

    properties = violated.to_frame("properties").to_pylist()
    counting = [row for row in properties if row["counts"]]
    assert [row["name"] for row in counting if row["verdict"] == "violated"] == violated.violated
    with pytest.raises(ValueError, match="expected 'events' or 'properties'"):
        violated.to_frame("faults")


def test_a_table_names_the_extra_that_it_needs(
    violated: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(extras.MissingExtra, match=r"pip install 'watchkeeper\[arrow\]'"):
        violated.to_frame()


def test_a_notebook_shows_what_a_report_begins_with(violated: Result) -> None:
    texts: list[str] = []
    opened: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert opened.pop() == tag

        def handle_data(self, data: str) -> None:
            texts.append(data.strip())

    Reader().feed(violated._repr_html_())

    assert opened == [], "every element is closed"
    shown = " ".join(filter(None, texts))
    assert "session-expiry, kafka_07, simulated, seed 0: violated" in shown
    assert all(name in shown for name in violated.violated)
    assert violated.why[0].lines[0].text in shown
    assert shown.endswith(violated.command)


WITHOUT = """
import sys

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "pyarrow", "py4j", "greenlet", "kazoo"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuses())
import watchkeeper.api.pytest_plugin
from watchkeeper import simulate, strategies
assert simulate("consumer-crash").holds
assert "pyspark" not in sys.modules
"""


def test_the_plugin_and_simulate_need_no_spark() -> None:
    """Nor any library but those that every installation has, Hypothesis and pytest."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
