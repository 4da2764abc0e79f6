"""The pytest fixture for other people's suites: what a failing test shows."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from watchkeeper.cli.main import run_command

FAILING = """
    def test_it(run_scenario):
        result = run_scenario("consumer-crash", seed=7)
        assert result.violated
"""

PUT_TOGETHER = """
    def test_it(run_scenario):
        run_scenario({
            "name": "mine",
            "about": "put together in a test",
            "clusters": {"main": {"brokers": 1, "topics": {"clicks": {"partitions": 2}}}},
            "groups": {"group": {"consumers": 1, "streams": {"clicks": 1}}},
            "timeline": [{"at": "0s", "produce": "clicks", "rate": "10/s"}],
            "never": [{"event": "rebalance completed"}],
            "settle": "8s",
        }, seed=3).check()
"""

PASSING = """
    def test_it(run_scenario):
        run_scenario("consumer-crash").check()
"""


def reproducing_command(result: pytest.RunResult) -> list[str]:
    """The words of the command that a report gives."""
    line = [outline for outline in result.outlines if "watchkeeper run" in outline][-1]
    return shlex.split(line[line.index("watchkeeper run") :])[1:]


def test_a_failure_comes_with_its_run(pytester: pytest.Pytester) -> None:
    """The properties and the command that runs it again."""
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*13 hold  single ownership*"])
    assert reproducing_command(result) == [
        "run",
        "consumer-crash",
        "--variant",
        "hardened",
        "--seed",
        "7",
    ]


def test_the_command_works_for_a_scenario_from_no_file(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scenario is kept in a file, and running it gives the same verdict."""
    pytester.makepyfile(PUT_TOGETHER)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    words = reproducing_command(result)
    assert Path(words[1]).exists()
    assert run_command([*words, "--no-pictures"]) == 1
    assert "never: rebalance completed" in capsys.readouterr().out


def test_no_report_names_a_file_that_does_not_exist(pytester: pytest.Pytester) -> None:
    """A scenario from no file is the test's own fields, until it is kept."""
    pytester.makepyfile(PUT_TOGETHER)
    result = pytester.runpytest_subprocess()
    result.stdout.fnmatch_lines(["*reproduce *simulate(<the fields of 'mine'>, seed=3, *"])
    result.stdout.no_fnmatch_line("*mine.yaml*")


def test_nothing_is_said_when_all_is_well(pytester: pytest.Pytester) -> None:
    """A passing test says nothing and leaves no files."""
    pytester.makepyfile(PASSING)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    assert not any("watchkeeper run" in line for line in result.outlines)
    assert not Path("runs").exists()


def test_it_stands_in_the_list_of_fixtures(pytester: pytest.Pytester) -> None:
    """With a sentence of what it does."""
    result = pytester.runpytest_inprocess("--fixtures")
    result.stdout.fnmatch_lines(["run_scenario*", "*Run a scenario like*"])
