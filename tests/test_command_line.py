"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from model.trace import parse
from scenarios import shipped
from watchkeeper import __version__
from watchkeeper.cli import run_command

RUN_FIELDS = {
    "scenario",
    "variant",
    "world",
    "seed",
    "verdict",
    "properties",
    "expected",
    "met",
    "faults",
    "changes",
    "stats",
    "fingerprint",
    "command",
    "deterministic",
    "files",
}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a folder of its own."""
    monkeypatch.chdir(tmp_path)


class Said:
    """What a command said, and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str) -> None:
        self.code = run_command(list(words))
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> Any:
        """Its one JSON value."""
        return json.loads(self.out)


def small(name: str = "small", **fields: Any) -> str:
    """Write a small scenario into the present folder; the file's name."""
    wanted = {
        "name": name,
        "about": "one consumer",
        "clusters": {"main": {"brokers": 1, "topics": {"clicks": {"partitions_per_broker": 2}}}},
        "groups": {"group": {"consumers": 1, "streams": {"clicks": 1}}},
        "timeline": [{"at": "0s", "produce": "clicks", "rate": "10/s"}],
        "settle": "10s",
        **fields,
    }
    path = Path(f"{name}.yaml")
    path.write_text(json.dumps(wanted))  # JSON is YAML
    return str(path)


NEVER = {"never": [{"event": "rebalance ends"}]}
SOMETIMES = {"sometimes": [{"event": "session expired"}]}


# --- run -------------------------------------------------------------------------------


def test_run_prints_the_table_first_and_then_where_things_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Headline, properties, faults, changes, the command again, the files."""
    said = Said(capsys, "run", "consumer-crash")
    lines = said.out.splitlines()
    assert said.code == 0, said.err
    assert lines[0] == "consumer-crash, hardened, simulated, seed 0: holds, as expected"
    assert lines[1].split() == ["property", "kind", "verdict", "evidence"]
    words = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    order = ["property", "timeline", "change", "again", "trace", "files"]
    assert [word for word in words if word in order] == order
    assert "crash billing/1" in said.out
    folder = Path("runs/consumer-crash-hardened-sim-0")
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "verdict.json",
        "trace.jsonl",
        "ownership.png",
        "ownership.html",
        "spacetime.html",
        "connections.png",
    }
    assert all(str(folder / name) in said.out for name in names)


def test_run_json_is_one_value_with_the_promised_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing else is on standard output, and the folder holds the same."""
    said = Said(capsys, "run", "consumer-crash", "--json", "--seed", "3")
    told = said.json
    assert set(told) == RUN_FIELDS
    assert (told["scenario"], told["variant"], told["world"], told["seed"]) == (
        "consumer-crash",
        "hardened",
        "sim",
        3,
    )
    assert told["verdict"] == "holds"
    assert told["met"] is True
    crash = next(fault for fault in told["faults"] if fault["kind"] == "crash")
    assert crash["target"] == "billing/1"
    assert crash["at_s"] == 14.0
    assert crash["effects"]["processes killed"] == 1
    for one in told["properties"]:
        assert set(one) == {"name", "kind", "verdict", "evidence", "counts"}
    verdict = Path("runs/consumer-crash-hardened-sim-3/verdict.json")
    assert json.loads(verdict.read_text()) == told
    assert all(Path(name).exists() for name in told["files"])


def test_the_command_it_prints_makes_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The fingerprint is that of the first run."""
    first = Said(capsys, "run", small(), "--seed", "9", "--json", "--no-pictures").json
    words = first["command"].split()
    assert words[0] == "watchkeeper"
    second = Said(capsys, *words[1:], "--json", "--no-pictures").json
    assert first["fingerprint"] == second["fingerprint"]


def test_without_pictures_none_are_left_from_before(capsys: pytest.CaptureFixture[str]) -> None:
    """A second run in the same folder leaves nothing of the first."""
    scenario = small()
    Said(capsys, "run", scenario)
    folder = Path("runs/small-hardened-sim-0")
    assert (folder / "ownership.png").exists()
    Said(capsys, "run", scenario, "--no-pictures")
    assert {path.name for path in folder.iterdir()} == {"verdict.json", "trace.jsonl"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, 0),
        (NEVER, 1),
        (SOMETIMES, 2),
        ({**NEVER, "expect": {"hardened": {"violated": []}}}, 1),
        ({"expect": {"hardened": "holds"}}, 0),
        ({"expect": {"hardened": {"violated": ["balance"]}}}, 1),
        ({**SOMETIMES, "expect": {"hardened": "holds"}}, 2),
    ],
    ids=["holds", "violated", "unknown", "unexpected", "expected", "should fail", "open"],
)
def test_exit_codes(
    fields: dict[str, Any], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 holds or as expected, 1 violated or not as expected, 2 unknown."""
    assert Said(capsys, "run", small(**fields), "--no-pictures").code == code


def test_an_expected_violation_is_success(capsys: pytest.CaptureFixture[str]) -> None:
    """What a scenario expects of an unsound variant is what it is meant to show."""
    said = Said(
        capsys, "run", "gc-pause-zombie", "--variant", "kafka_08", "--json", "--no-pictures"
    )
    assert said.json["verdict"] == "violated"
    assert said.json["met"] is True
    assert said.code == 0


def test_what_counts_is_the_variant_that_ran(capsys: pytest.CaptureFixture[str]) -> None:
    """Each variant has a folder and a fingerprint of its own."""
    prints = {
        variant: Said(
            capsys, "run", "steady-join", "--variant", variant, "--json", "--no-pictures"
        ).json["fingerprint"]
        for variant in ("hardened", "kafka_07", "kafka_08")
    }
    assert len(set(prints.values())) == 3
    assert len(list(Path("runs").iterdir())) == 3


# --- mistakes of the user --------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["run", "consumer-crush"], ["consumer-crush", "did you mean 'consumer-crash'"]),
        (["run", "nowhere.yaml"], ["nowhere.yaml", "No such file"]),
        (["run", "."], ["cannot be read"]),
        (["run", "consumer-crash", "--variant", "harden"], ["harden", "'hardened'"]),
        (["run", "consumer-crash", "--seed", "many"], ["--seed", "many"]),
        (["run"], ["SCENARIO"]),
        (["rum"], ["rum"]),
        (["run", "consumer-crash", "--pics"], ["--pics"]),
        (["report", "nowhere"], ["nowhere"]),
        (["diff", "nowhere", "elsewhere"], ["nowhere"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_usage_errors(
    words: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 4, a sentence on standard error, nothing on standard output, no traceback."""
    said = Said(capsys, *words)
    assert said.code == 4
    assert said.out == ""
    assert "Traceback" not in said.err
    for part in parts:
        assert part in said.err


def test_bad_scenarios_are_named_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    """File, line, field, value, what was expected."""
    path = Path("bad.yaml")
    path.write_text("name: bad\nabout: x\nclusters: {main: {topics: {t: {partitions: many}}}}\n")
    said = Said(capsys, "run", str(path))
    assert said.code == 4
    assert said.err.startswith("bad.yaml:3: clusters.main.topics.t.partitions: 'many' is not")


def test_an_output_folder_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    """It is said before the run, with what to do."""
    Path("file").write_text("not a folder")
    said = Said(capsys, "run", "mass-start-herd", "--out", "file/runs")
    assert said.code == 4
    assert "file/runs" in said.err
    assert "--out" in said.err
    assert said.out == ""


# --- the other commands ----------------------------------------------------------------


def test_scenarios_lists_all_with_what_they_show(capsys: pytest.CaptureFixture[str]) -> None:
    """As text and as JSON."""
    told = Said(capsys, "scenarios", "--json").json
    assert [row["name"] for row in told] == shipped()
    assert all(row["about"] and row["expect"] for row in told)
    text = Said(capsys, "scenarios").out
    assert all(name in text for name in shipped())


def test_variants_lists_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Every variant with every question."""
    told = Said(capsys, "variants", "--json").json
    names = [row["name"] for row in told]
    assert names == ["documented", "documented_ceil", "kafka_07", "kafka_08", "hardened"]
    assert "hardened" in Said(capsys, "variants").out


def test_schema_is_a_json_schema_that_shipped_scenarios_meet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An editor could use it."""
    told = Said(capsys, "schema").json
    assert told["$schema"].endswith("/schema")
    assert {"name", "about", "clusters", "timeline"} <= set(told["properties"])


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """As text and as JSON."""
    assert Said(capsys, "version").out == f"{__version__}\n"
    assert Said(capsys, "version", "--json").json == {"watchkeeper": __version__}


def test_report_draws_the_same_pictures_again(capsys: pytest.CaptureFixture[str]) -> None:
    """From the trace alone, byte for byte."""
    Said(capsys, "run", small())
    folder = Path("runs/small-hardened-sim-0")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in before:
        if name.endswith((".png", ".html")):
            (folder / name).unlink()
    said = Said(capsys, "report", str(folder), "--json")
    assert said.code == 0, said.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert all(Path(name).exists() for name in said.json["files"])


def test_diff_of_a_run_with_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing differs: exit 0."""
    Said(capsys, "run", small(), "--no-pictures")
    folder = "runs/small-hardened-sim-0"
    said = Said(capsys, "diff", folder, folder)
    assert said.code == 0
    assert "the same" in said.out
    assert Said(capsys, "diff", folder, folder, "--json").json == {"same": True}


@pytest.mark.parametrize("other", ["--seed=1", "--variant=kafka_08"])
def test_diff_names_the_first_event_and_what_followed(
    other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seeds and variants part somewhere; both sides are shown."""
    Said(capsys, "run", "gc-pause-zombie", "--no-pictures")
    Said(capsys, "run", "gc-pause-zombie", "--no-pictures", other)
    one, two = sorted(str(path) for path in Path("runs").iterdir())
    said = Said(capsys, "diff", one, two, "--json")
    told = said.json
    assert said.code == 1
    assert told["same"] is False
    assert told["one"] != told["other"]
    assert told["one_after"] or told["other_after"]
    text = Said(capsys, "diff", one, two).out
    assert told["node"] in text


# --- processes -------------------------------------------------------------------------


def command(*words: str) -> list[str]:
    """The command in a process of its own."""
    return [sys.executable, "-m", "watchkeeper", *words]


def test_interrupted_runs_are_on_disk_and_say_that_they_are_partial() -> None:
    """Ctrl-C: exit 2, and the trace so far can be read, drawn and compared."""
    scenario = small("long", settle="24h")
    process = subprocess.Popen(
        command("run", scenario, "--no-pictures"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    folder = Path("runs/long-hardened-sim-0")
    while not folder.exists() and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, (out, err)
    assert b"Traceback" not in err
    with (folder / "trace.jsonl").open("rb") as file:
        trace = parse(file, name="trace.jsonl")
    assert trace.header.partial
    assert len(trace) > 50
    assert json.loads((folder / "verdict.json").read_text())["verdict"] == "unknown"
    assert b"partial" in out or b"interrupted" in out


def test_a_reader_that_stops_reading_is_no_error() -> None:
    """`watchkeeper scenarios | head -1` ends quietly."""
    shell = f"{' '.join(command('scenarios'))} | head -1"
    done = subprocess.run(shell, shell=True, capture_output=True, timeout=60, check=False)
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_help_imports_nothing_heavy() -> None:
    """What makes `--help` quick, without a clock: it loads neither SimPy nor matplotlib."""
    probe = (
        "import sys\n"
        "from watchkeeper.cli import run_command\n"
        "run_command(['run', '--help'])\n"
        "heavy = {'simpy', 'matplotlib', 'networkx', 'pydantic', 'hypothesis', 'kazoo', 'rich'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_check_determinism_of_a_deterministic_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs agree."""
    said = Said(capsys, "run", small(), "--check-determinism", "--no-pictures", "--json")
    assert said.code == 0


def test_check_determinism_names_the_first_difference(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that draws on the process, not on the seed: exit 3, with event and time."""
    from model import joining

    shipped_registration = joining.registration
    calls: list[int] = []

    def different_each_time(me: Any, now_ms: int) -> bytes:
        calls.append(now_ms)
        return shipped_registration(me, now_ms) + b" " * len(calls)

    monkeypatch.setattr(joining, "registration", different_each_time)
    said = Said(capsys, "run", small(), "--check-determinism", "--no-pictures")
    assert said.code == 3
    assert "first run" in said.err
    assert "at 1.00" in said.err
    assert "event" in said.err


def test_the_module_can_be_run() -> None:
    """`python -m watchkeeper` is the command."""
    done = subprocess.run(command("version"), capture_output=True, check=True, env=os.environ)
    assert done.stdout.decode().strip() == __version__
