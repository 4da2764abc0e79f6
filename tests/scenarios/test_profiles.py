"""Profile files: what may stand in them, what is said of their mistakes, and runs with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from watchkeeper import simulate
from watchkeeper.api.profile import profile_of
from watchkeeper.cli.main import run_command
from watchkeeper.model.trace.trace import parse
from watchkeeper.scenarios import ScenarioError
from watchkeeper.scenarios.profiles.codecs import CodecModel, CodecsModel
from watchkeeper.scenarios.profiles.profile import SimulationModel, load_profile, profile_text
from watchkeeper.sim.engine.latency_profile import DEFAULT, CodecProfile, Profile
from watchkeeper.sim.engine.random_streams import quantiles

SLOW = """\
watchkeeper_profile: 1
zookeeper:
  simulation:
    hop: {p0: 300, p50: 500, p99.9: 2000, p100: 9000}
    read_us: 90
  defaults: [sync]
"""


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A profile file that a user has written by hand."""
    path = tmp_path / "slow.yaml"
    path.write_text(SLOW)
    return path


# --- files -----------------------------------------------------------------------------


def test_what_is_given_replaces_the_default(slow: Path) -> None:
    """And nothing else changes."""
    found = profile_of(slow).latencies

    assert found.hop == quantiles([(0, 300), (50, 500), (99.9, 2000), (100, 9000)])
    assert found.read_us == 90
    assert (found.sync, found.election, found.fire_us) == (
        DEFAULT.sync,
        DEFAULT.election,
        DEFAULT.fire_us,
    )


def test_every_latency_can_be_given() -> None:
    """The form of a file knows what the simulation has, and nothing else."""
    sections = SimulationModel.model_fields | CodecsModel.model_fields
    assert set(sections) == set(Profile.__dataclass_fields__)
    assert set(CodecModel.model_fields) == set(CodecProfile.__dataclass_fields__)


def test_codecs_are_a_section_of_their_own(tmp_path: Path) -> None:
    """A file may have nothing else; what it does not name stays as it is."""
    gzip = {
        **{"fixed_bytes": 30, "message_bytes_per_1000": 40_000, "payload_bytes_per_1000": 350},
        **{"compress_bytes_per_s": 50_000_000, "decompress_bytes_per_s": 200_000_000},
    }
    file = tmp_path / "codecs.yaml"
    file.write_text(json.dumps({"watchkeeper_profile": 1, "codecs": {"gzip": gzip}}))
    found = profile_of(file).latencies

    assert found == replace(DEFAULT, gzip=CodecProfile(**gzip))
    assert found.gzip.compressed_bytes(messages=100, plain_bytes=31_000) == 30 + 4_000 + 10_500


def test_a_file_that_is_written_is_read_again(slow: Path, tmp_path: Path) -> None:
    """The same latencies, so the same digest."""
    again = tmp_path / "again.yaml"
    again.write_text(profile_text(load_profile(slow)))

    assert load_profile(again) == load_profile(slow)
    assert profile_of(again).digest == profile_of(slow).digest


WRONG = {
    "a version to come": ("profile: 1", "profile: 2", 1, "watchkeeper_profile", "expected 1"),
    "a word that is none": (
        "    read_us: 90",
        "    reed_us: 90",
        5,
        "zookeeper.simulation.reed_us",
        "did you mean 'read_us'?",
    ),
    "quantiles that fall": (
        "p50: 500",
        "p50: 200",
        4,
        "zookeeper.simulation.hop",
        "falls from 300 at p0 to 200 at p50",
    ),
    "no end": ("p100: 9000", "p98: 1000", 4, "zookeeper.simulation.hop", "from p0, the least"),
    "no quantile": ("p50", "median", 4, "zookeeper.simulation.hop", "the quantile 'median'"),
    "more than all": ("p99.9", "p101", 4, "zookeeper.simulation.hop", "the quantile 'p101'"),
    "a fraction": ("500", "0.5", 4, "zookeeper.simulation.hop", "has 0.5 at p50; expected whole"),
    "less than nothing": ("300", "-1", 4, "zookeeper.simulation.hop", "has -1 at p0"),
    "a table for a number": (
        "read_us: 90",
        "read_us: {p0: 90}",
        5,
        "zookeeper.simulation.read_us",
        "is not a whole number",
    ),
    "a number for a table": (
        "{p0: 300, p50: 500, p99.9: 2000, p100: 9000}",
        "500",
        4,
        "zookeeper.simulation.hop",
        "is not a mapping of quantiles",
    ),
    "given and not given": ("[sync]", "[hop]", 2, "zookeeper", "gives hop and says"),
    "no latency": ("[sync]", "[latency]", 2, "zookeeper", "'latency' among its defaults"),
    "no section to simulate with": (
        "  simulation:\n    hop: {p0: 300, p50: 500, p99.9: 2000, p100: 9000}\n    read_us: 90\n",
        "",
        2,
        "zookeeper",
        "needs `simulation`",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_mistakes_are_reported_with_file_line_and_field(what: str, tmp_path: Path) -> None:
    """As those of a scenario are."""
    right, wrong, line, field, message = WRONG[what]
    path = tmp_path / "mine.yaml"
    path.write_text(SLOW.replace(right, wrong))

    with pytest.raises(ScenarioError) as raised:
        profile_of(path)

    (problem,) = raised.value.problems
    assert str(raised.value).startswith(f"{path}:")
    assert message in problem.message
    assert (problem.field, problem.line) == (field, line)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a profile: watchkeeper_profile, zookeeper"),
        ("- 1\n", "expected fields such as watchkeeper_profile and zookeeper"),
        ("zookeeper: {simulation: {}}\n", "a profile needs `watchkeeper_profile`"),
        ("watchkeeper_profile: 1\n", "has no section `zookeeper`"),
        (f"watchkeeper_profile: 1  # {'x' * (1 << 20)}\n", "larger than 1 MiB; no profile is"),
    ],
)
def test_what_is_no_profile_is_said(text: str, message: str, tmp_path: Path) -> None:
    """Not in the words that a scenario has."""
    path = tmp_path / "mine.yaml"
    path.write_text(text)

    with pytest.raises(ScenarioError, match=message):
        profile_of(path)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    """With its name."""
    with pytest.raises(ScenarioError, match=r"none.yaml: cannot be read: No such file"):
        profile_of(tmp_path / "none.yaml")


# --- runs ------------------------------------------------------------------------------


def test_a_run_takes_the_latencies_of_its_profile(slow: Path) -> None:
    """It is another run, and says whose latencies it has."""
    plain = simulate("consumer-crash")
    result = simulate("consumer-crash", profile=slow)

    assert result.fingerprint != plain.fingerprint
    assert result.fingerprint == simulate("consumer-crash", profile=str(slow)).fingerprint
    assert result.trace.header.profile == profile_of(slow).digest
    assert result.command.endswith(f"--seed 0 --profile {slow}")
    assert f"profile {slow}, digest {profile_of(slow).digest}" in " ".join(str(result).split())


def test_a_run_without_a_profile_says_nothing_of_one() -> None:
    """Its trace, its name and what it prints are as they were before there were profiles."""
    result = simulate("consumer-crash")

    assert b"profile" not in next(result.trace.lines())
    assert "profile" not in result.to_json()
    assert "profile" not in result.command


def test_the_default_written_down_is_the_default(tmp_path: Path) -> None:
    """A profile that changes nothing changes no run."""
    path = tmp_path / "same.yaml"
    path.write_text(f"watchkeeper_profile: 1\nzookeeper: {{simulation: {{read_us: {25}}}}}\n")
    result = simulate("consumer-crash", profile=path)

    assert result.fingerprint == simulate("consumer-crash").fingerprint
    assert result.trace.header.profile == ""


@pytest.mark.parametrize("profile", [5, b"slow.yaml", {"read_us": 5}])
def test_what_names_no_file_is_said(profile: Any) -> None:
    """What it is, and what was expected."""
    with pytest.raises(TypeError, match=r"^profile is .*; expected the path of a profile file"):
        simulate("consumer-crash", profile=profile)


def run(*arguments: str) -> int:
    """Run a scenario by the command, without pictures."""
    return run_command(["run", "consumer-crash", "--no-pictures", *arguments])


def test_the_command_keeps_runs_with_profiles_apart(
    slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder of their own, whose files say which profile it was."""
    out = tmp_path / "runs"
    arguments = ("--profile", str(slow), "--out", str(out), "--check-determinism", "--json")
    assert run(*arguments) == 0

    digest = profile_of(slow).digest
    message = json.loads(capsys.readouterr().out)
    home = out / f"consumer-crash-hardened-sim-0-{digest}"
    verdict = json.loads((home / "verdict.json").read_text())
    assert verdict["profile"] == message["profile"] == {"file": str(slow), "digest": digest}
    assert f"--profile {slow}" in verdict["command"]
    assert verdict["deterministic"] is True
    with (home / "trace.jsonl").open("rb") as file:
        trace = parse(file, name="trace")
    assert trace.header.profile == digest
    assert trace.fingerprint == verdict["fingerprint"]


def test_a_live_run_has_no_profile(slow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It takes as long as it takes."""
    assert run("--profile", str(slow), "--world", "live") == 4
    assert "--profile is for simulated runs" in capsys.readouterr().err


def test_the_command_says_what_is_wrong_with_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one JSON value too, with the place."""
    path = tmp_path / "mine.yaml"
    path.write_text(SLOW.replace("500", "5"))

    assert run("--profile", str(path), "--json") == 4
    (problem,) = json.loads(capsys.readouterr().out)["error"]["problems"]
    assert (problem["file"], problem["line"]) == (str(path), 4)
    assert problem["field"] == "zookeeper.simulation.hop"
