"""A violation that no client can avoid is a known limit, wherever a verdict is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watchkeeper import simulate
from watchkeeper.api.tables import console
from watchkeeper.check.battery import cells_of, search_cell
from watchkeeper.check.battery_report import cell_in_words
from watchkeeper.checker.search.search import SearchOptions
from watchkeeper.cli.main import run_command
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.run.compare import Compared, show
from watchkeeper.run.comparison import Comparison, Side
from watchkeeper.scenarios import load

LIMIT = "no client of ZooKeeper can prevent that"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a folder of its own."""
    monkeypatch.chdir(tmp_path)


def test_a_run_says_that_it_is_a_known_limit_and_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither the first line nor the table says that hardened is violated as expected."""
    code = run_command(["run", "gc-pause-zombie", "--no-pictures"])
    shown = capsys.readouterr().out

    assert code == 0
    assert shown.startswith("gc-pause-zombie, hardened, simulated, seed 0: known limit\n")
    assert LIMIT in shown.splitlines()[1]
    assert "strict single ownership  always  known limit  at" in shown
    assert "violated" not in shown


def test_the_verdict_of_a_run_has_the_sentence() -> None:
    """The verdict itself stays what the trace shows."""
    limited = simulate("gc-pause-zombie").to_json()
    expected = simulate("gc-pause-zombie", variant="kafka_08").to_json()

    assert (limited["verdict"], limited["met"]) == ("violated", True)
    assert LIMIT in limited["known_limit"]
    assert (expected["met"], expected["known_limit"]) == (True, None)
    assert simulate("consumer-crash").to_json()["known_limit"] is None


def test_a_comparison_says_that_it_is_a_known_limit_and_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the first lines, the table and the JSON; the property said `violated`."""
    result = simulate("gc-pause-zombie")
    side = Side((result,))
    done = Compared(Comparison(side, side, None), (Path("sim"), Path("live")))

    show(done, console())
    shown = capsys.readouterr().out
    told = done.to_json()

    assert LIMIT in shown.splitlines()[1]
    assert "violated" not in shown
    assert set(side.verdicts) == {"known limit"}
    assert set(side.verdicts_of("strict single ownership")) == {"known limit"}
    assert told["simulated"]["verdicts"] == {"known limit": 1}
    assert LIMIT in told["known_limit"]


def test_what_stands_for_a_run_says_that_it_is_a_known_limit() -> None:
    assert ": known limit strict single ownership, " in repr(simulate("gc-pause-zombie"))


def test_an_analysis_says_of_which_variant_a_failure_is_a_known_limit() -> None:
    """From the verdict beside a trace, and from the summary of a sweep."""
    pytest.importorskip("pyspark")
    from watchkeeper.analyze.runs import gathered

    run_command(["run", "gc-pause-zombie", "--no-pictures"])
    of_runs = gathered((Path("runs"),)).known_limits
    of = ["--variants", "hardened,kafka_08", "--seeds", "1"]
    run_command(
        ["sweep", "gc-pause-zombie", *of, "--runner", "process", "--no-shrink", "--out", "swept"]
    )
    of_sweeps = gathered((Path("swept"),)).known_limits

    assert [list(limits) for limits in of_runs.values()] == [["hardened"]]
    assert of_runs.keys() <= of_sweeps.keys()
    assert all(LIMIT in limits["hardened"] for limits in of_sweeps.values())


def test_what_is_not_expected_is_no_known_limit(tmp_path: Path) -> None:
    """Another violation than the one that the sentence explains."""
    text = (
        "name: mine\nabout: x\n"
        "clusters: {main: {brokers: 1, topics: {clicks: {partitions_per_broker: 3}}}}\n"
        "groups: {billing: {consumers: 2, streams: {clicks: 1}}}\n"
        "expect: {documented: {violated: [strict single ownership], limit: It cannot be.}}\n"
    )
    (tmp_path / "mine.yaml").write_text(text)
    result = simulate(tmp_path / "mine.yaml", variant="documented")

    assert (result.met, result.known_limit, result.exit_code) == (False, "", 1)
    assert "expected violated: strict single ownership" in str(result)


def test_a_sweep_counts_known_limits_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the first line, the table, the failures, and the page."""
    pytest.importorskip("pyarrow")
    of = ["sweep", "gc-pause-zombie", "--variants", "hardened,kafka_08", "--seeds", "2"]
    code = run_command([*of, "--runner", "process", "--no-shrink", "--out", "swept"])
    shown = capsys.readouterr().out

    assert code == 0
    assert "2 x 2 runs: 2 violated, 2 at a known limit; 2 as expected" in shown
    assert "known limit of hardened: A paused process" in shown
    summary = json.loads(Path("swept/summary.json").read_text())
    assert summary["violated"]["number"] == 2
    assert (summary["verdicts"]["violated"], summary["verdicts"]["known limit"]) == (2, 2)
    [cell] = [cell for cell in summary["cells"] if cell["variant"] == "hardened"]
    assert (cell["verdicts"], cell["violated"]["number"]) == ({"known limit": 2}, 0)
    assert summary["met"] == {
        **{"as expected": 2, "known limit": 2},
        **{"not as expected": 0, "open": 0},
    }
    [limits] = [
        failure["known_limits"] for failure in summary["failures"] if failure["known_limits"]
    ]
    assert list(limits) == ["hardened"]
    assert "2 are violated, 2 are at a known limit" in Path("swept/sweep.html").read_text()


BOUNDS = "bounds: {expire: 1, together: 1, consumers: 2, partitions: 4}\n"
"""One search, which finds the limit and goes on."""


@pytest.fixture
def bounded() -> str:
    """The scenario with bounds of its own."""
    text = load("gc-pause-zombie").text
    Path("bounded.yaml").write_text(text + BOUNDS)
    return "bounded.yaml"


def test_a_search_says_that_it_is_a_known_limit(
    bounded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The search goes on for the other properties, which hold."""
    code = run_command(["explore", bounded, "--json"])
    found = json.loads(capsys.readouterr().out)

    verdicts = {row["name"]: row["verdict"] for row in found["properties"]}
    assert code == 0
    assert LIMIT in found["known_limit"]
    _, schedule, _, page = found["files"]
    says = "strict single ownership is a known limit"
    assert says in Path(page).read_text()
    assert run_command(["replay", schedule]) == 0
    replayed = capsys.readouterr().out.splitlines()
    assert replayed[0].startswith(f"{says}: ")
    assert LIMIT in replayed[1]
    assert verdicts.pop("strict single ownership") == "violated"
    assert verdicts.pop("monotone offsets") == "unknown", "the search has no messages"
    assert set(verdicts.values()) == {"holds"}


def test_a_cell_of_a_battery_says_that_it_is_a_known_limit() -> None:
    """Each search of a battery has its verdict in the table; the cell is no violation."""
    scenario = load("gc-pause-zombie")
    cells, _ = cells_of(scenario.plan("hardened"))
    [cell] = [one for one in cells if (one.row, one.column) == ("expiry", "settled")]

    searched = search_cell(scenario, cell, SearchOptions(finds_all=True))

    assert searched.verdict is Verdict.HOLDS
    assert cell_in_words(searched) == "known limit: strict single ownership (6)"


def test_a_search_that_ends_early_is_unknown(
    bounded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The limit may be found, but the other properties are not known to hold."""
    code = run_command(["explore", bounded, "--max-states", "25000"])
    shown = capsys.readouterr().out

    assert code == 2
    assert shown.splitlines()[0].endswith("unknown, with a known limit so far")
