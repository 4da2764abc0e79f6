"""The command `virtual`: verdicts, exit codes, replays, and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watchkeeper.cli.main import run_command

TEST = """
import threading, time
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from watchkeeper.virtual import faults, simulated

def lead(world, name, terms):
    client = KazooClient(hosts=world.hosts)
    client.start()
    try:
        client.retry(client.create, "/leader", ephemeral=True)
        terms.append(name)
    except NodeExistsError:
        pass
    time.sleep(1)

@simulated(seeds=20, until_s=10, faults=[faults.lost_reply(operation="create")])
def test_one_leads(world):
    terms = []
    for name in "ab":
        world.process(name, lead, world, name, terms)
    world.finally_(lambda: terms, name="a leader")

@simulated(seeds=5, until_s=10)
def test_that_holds(world):
    terms = []
    world.process("a", lead, world, "a", terms)
    world.finally_(lambda: terms == ["a"])

@simulated(seeds=5, until_s=10)
def test_that_says_nothing(world):
    world.process("a", time.sleep, 1)
    world.elements("none")

@simulated(seeds=2, until_s=10, watchdog_s=0.2)
def test_that_spins(world):
    def spin():
        while True:
            pass
    world.process("a", spin)

BEFORE = []

@simulated(seeds=2, until_s=10)
def test_that_differs(world):
    BEFORE.append(1)
    world.process("a", time.sleep, len(BEFORE))
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of tests."""
    name = f"test_{abs(hash(tmp_path.name))}.py"
    (tmp_path / name).write_text(TEST)
    monkeypatch.chdir(tmp_path)
    return name


CODES = {
    "test_one_leads": (1, "a leader is violated"),
    "test_that_holds": (0, "5 seeds, 5 holds"),
    "test_that_says_nothing": (2, "no element was taken"),
    "test_that_spins": (1, "in spin"),
}


@pytest.mark.parametrize("name", CODES)
def test_verdicts_are_exit_codes(
    file: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Holds, violated and unknown have an exit code each, and a loop without end is named."""
    code, words = CODES[name]

    assert run_command(["virtual", f"{file}::{name}"]) == code
    assert words in capsys.readouterr().out


def test_a_failing_run_is_replayed(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command that a failure prints gives the same run."""
    assert run_command(["virtual", f"{file}::test_one_leads", "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert run_command(["virtual", "--replay", f"{told['folder']}/replay.json", "--json"]) == 1

    again = json.loads(capsys.readouterr().out)
    assert again["fingerprint"] == told["failure"]["fingerprint"]


def test_seeds_on_several_processes(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same seeds have the same verdicts on one process and on two."""
    found = []
    for jobs in ("1", "2"):
        words = ["virtual", f"{file}::test_one_leads", "--keep-going", "--json"]
        assert run_command([*words, "--seeds", "0..39", "--jobs", jobs]) == 1
        found.append(json.loads(capsys.readouterr().out)[0])

    assert found[0]["verdicts"] == found[1]["verdicts"]
    assert found[0]["failure"]["fingerprint"] == found[1]["failure"]["fingerprint"]


@pytest.mark.slow
def test_seeds_on_spark(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same briefs in the same order; and a file that the workers cannot read is named."""
    pytest.importorskip("pyspark")
    found = []
    for more in ((), ("--master", "local[2]")):
        words = ["virtual", f"{file}::test_one_leads", "--keep-going", "--json", *more]
        assert run_command([*words, "--seeds", "0..59"]) == 1
        found.append(json.loads(capsys.readouterr().out)[0])

    assert found[0] == found[1]
    assert not Path("runs/.spark").exists()


def test_a_run_that_differs_is_found(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A variable of the module that changes from run to run makes runs differ."""
    words = ["virtual", f"{file}::test_that_differs", "--check-determinism"]

    assert run_command(words) == 3
    assert "not deterministic" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "name a file"),
        (["none.py"], "there is no file"),
        (["FILE::none"], "it has test_one_leads"),
        (["FILE", "--policy", "chance"], "is no policy"),
        (["FILE", "--seeds", "none"], "--seeds is a number"),
        (["FILE", "--seeds", "9..3"], "names no seed"),
        (["--replay", "FILE"], "is not a replay file"),
        (["broken.py"], "cannot be imported: SyntaxError"),
        (["empty.py"], "no test that is decorated"),
    ],
)
def test_wrong_input_is_a_sentence(
    file: str, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what was expected, with exit code 4."""
    Path("broken.py").write_text("(")
    Path("empty.py").write_text("")

    assert run_command(["virtual", *(word.replace("FILE", file) for word in words)]) == 4
    assert sentence in capsys.readouterr().err
