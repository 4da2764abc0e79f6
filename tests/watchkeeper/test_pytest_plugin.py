"""The pytest fixture for other people's suites: what a failing test shows."""

from __future__ import annotations

import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from watchkeeper.cli.main import run_command
from watchkeeper.scenarios import load

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


VIOLATED = """
    def test_it(run_scenario):
        assert run_scenario("gc-pause-zombie", variant="kafka_08").holds
"""

PLAIN = """
    from watchkeeper import simulate

    def test_it():
        result = simulate("gc-pause-zombie", variant="kafka_08")
        assert result.holds
"""

SEEDS = """
    import pytest

    @pytest.mark.watchkeeper(seeds=3, variant="kafka_07")
    def test_it(run_scenario, watchkeeper_seed):
        result = run_scenario("steady-join")
        assert (result.seed, result.plan.variant) == (watchkeeper_seed, "kafka_07")
        assert run_scenario("steady-join", seed=9, variant="hardened").seed == 9
"""

SCENARIO = """\
name: mine
about: one consumer takes all partitions
clusters: {main: {brokers: 1, topics: {clicks: {partitions: 2}}}}
groups: {group: {consumers: 1, streams: {clicks: 1}}}
timeline: [{at: 0s, produce: clicks, rate: 10/s}]
never: [{event: rebalance completed}]
settle: 8s
"""
INI = "[pytest]\nwatchkeeper_seeds = 2\nwatchkeeper_out = kept\nwatchkeeper_shrink = 0\n"
SECTION = "watchkeeper: the run"


def shown_lines(result: pytest.RunResult) -> list[str]:
    """The lines of the section about the run."""
    [at] = [at for at, line in enumerate(result.outlines) if SECTION in line]
    rest = result.outlines[at + 1 :]
    return rest[: next(at for at, line in enumerate(rest) if line.startswith(("==", "--", "__")))]


def reproducing_command(result: pytest.RunResult) -> list[str]:
    """The words of the command that a report gives."""
    line = [outline for outline in result.outlines if "again: watchkeeper run" in outline][-1]
    return shlex.split(line[line.index("watchkeeper run") :])[1:]


def test_a_failure_comes_with_its_run(pytester: pytest.Pytester) -> None:
    """The verdict and the command that runs it again."""
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["consumer-crash, hardened, seed 7: holds"])
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


@pytest.mark.parametrize(
    "source", [VIOLATED, pytest.param(PLAIN, marks=pytest.mark.slow)], ids=["fixture", "variable"]
)
def test_a_violation_takes_twelve_lines(pytester: pytest.Pytester, source: str) -> None:
    """Property, sentence, moment, reason, command and page; also of a plain `simulate`."""
    pytester.makepyfile(source)
    result = pytester.runpytest_subprocess(
        "--watchkeeper-out", "kept", "--watchkeeper-shrink", "0"
    )
    result.assert_outcomes(failed=1)
    lines = shown_lines(result)
    assert len(lines) <= 12
    assert lines[:2] == [
        "gc-pause-zombie, kafka_08, seed 0: violated",
        "billing/1 stood still at 14.000 s for 6.00 s.",
    ]
    assert lines[2].startswith("single ownership: at 20.082 s billing/0 and billing/1 fetch")
    assert "  14.000 s  billing/1 stood still for 6.00 s" in lines
    assert lines[-2] == "again: watchkeeper run gc-pause-zombie --variant kafka_08 --seed 0"
    page = Path(lines[-1].removeprefix("page: "))
    assert page.parts[:2] == ("kept", "failed")
    assert "What needs a look" in page.read_text()


@pytest.mark.slow
def test_a_smaller_scenario_fails_in_the_same_way(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is written beside the run, and its command shows the same violation."""
    pytester.makepyfile(VIOLATED)
    result = pytester.runpytest_subprocess("--watchkeeper-shrink", "60")
    lines = shown_lines(result)
    assert len(lines) <= 12
    words = shlex.split(lines[-1].removeprefix("smallest: watchkeeper "))
    smaller, given = load(words[1]), load("gc-pause-zombie")
    assert len(smaller.document.data["timeline"]) <= len(given.document.data["timeline"])
    assert len(smaller.text) < len(given.text)
    assert run_command([*words, "--no-pictures"]) == 1
    assert "single ownership" in capsys.readouterr().out


def test_a_marker_gives_seeds_and_a_variant(pytester: pytest.Pytester) -> None:
    """A test each; what the test itself names stays."""
    pytester.makepyfile(SEEDS)
    result = pytester.runpytest_subprocess("-v")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*test_it[[]seed0[]]*", "*test_it[[]seed2[]]*"])


def test_a_file_with_a_scenario_is_a_test(pytester: pytest.Pytester) -> None:
    """It fails unless the run is as the scenario expects; other files of such names are none."""
    Path("test_mine.yaml").write_text(SCENARIO)
    Path("test_good.yaml").write_text(SCENARIO.replace("never", "sometimes"))
    Path("test_data.yaml").write_text("answers: 42\n")
    pytester.makeini(
        "[pytest]\nwatchkeeper_seeds = 2\nwatchkeeper_out = kept\nwatchkeeper_shrink = 0\n"
    )
    result = pytester.runpytest_subprocess("--junitxml", "report.xml")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["never: rebalance completed: *", "again: *test_mine.yaml *"])
    cases = {
        (case.get("classname"), case.get("name")): {
            one.get("name"): one.get("value") for one in case.iter("property")
        }
        for case in ElementTree.parse("report.xml").iter("testcase")
    }
    facts = cases["test_mine.yaml", "seed1"]
    assert facts["watchkeeper_verdict"] == "violated"
    assert (facts["watchkeeper_variant"], facts["watchkeeper_seed"]) == ("hardened", "1")
    assert len(facts["watchkeeper_fingerprint"] or "") == 64


@pytest.mark.slow
def test_the_workers_of_xdist_share_the_seeds(pytester: pytest.Pytester) -> None:
    """A seed is a test of its own, so that it can run anywhere."""
    pytester.makepyfile(VIOLATED)
    result = pytester.runpytest_subprocess(
        "-n", "2", "--watchkeeper-seeds", "2", "--watchkeeper-shrink", "0"
    )
    result.assert_outcomes(failed=2)
    pages = [line for line in result.outlines if line.startswith("page: ")]
    assert len({Path(page.removeprefix("page: ")).read_text() for page in pages}) == 2


@pytest.mark.slow
def test_a_job_of_github_gets_annotations_and_a_summary(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the log and in the file that it names; nothing elsewhere."""
    pytester.makepyfile(VIOLATED)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    result = pytester.runpytest_subprocess()
    [line] = [line for line in result.outlines if line.startswith("::error ")]
    assert "::gc-pause-zombie, kafka_08, seed 0: violated%0A" in line
    assert "single ownership: at 20.082 s" in Path("summary.md").read_text()


def test_seeds_have_to_be_a_number(pytester: pytest.Pytester) -> None:
    """What is wrong, and what was expected."""
    result = pytester.runpytest_subprocess("--watchkeeper-seeds", "many")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--watchkeeper-seeds is 'many'; expected a whole number*"])


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
