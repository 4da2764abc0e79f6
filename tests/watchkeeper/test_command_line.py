"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from model.trace import parse
from scenarios import shipped
from watchkeeper import __version__, simulate
from watchkeeper.cli import run_command
from watchkeeper.printing import report

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


def test_changes_that_are_not_shown_are_the_earlier_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """So their number stands above the others."""
    groups = {"group": {"consumers": 20, "streams": {"clicks": 1}}}
    lines = Said(capsys, "run", small(groups=groups), "--no-pictures").out.splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("change "))
    assert lines[head + 1] == "(8 earlier ones)"
    assert lines[head + 2].split()[1] == "joined"


@pytest.mark.parametrize(("width", "is_list"), [(59, True), (60, False)])
def test_a_narrow_terminal_gets_a_list(width: int, is_list: bool) -> None:
    """Columns of three letters cannot be read."""
    out = StringIO()
    to = Console(file=out, width=width, force_terminal=True, color_system=None)
    report(simulate("steady-join"), to)
    lines = out.getvalue().splitlines()
    assert ("  verdict: holds" in lines) is is_list
    assert max(map(len, lines[1:20])) <= width
    assert not any(line != line.rstrip() for line in lines)


# --- mistakes of the user --------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["run", "consumer-crush"], ["consumer-crush", "did you mean 'consumer-crash'"]),
        (["run", "nowhere.yaml"], ["nowhere.yaml", "No such file"]),
        (["run", "."], ["cannot be read"]),
        (["run", ""], ["is empty", "consumer-crash"]),
        (["run", "/dev/zero"], ["/dev/zero", "device"]),
        (["diff", "/dev/zero", "/dev/zero"], ["/dev/zero", "regular file"]),
        (["run", "consumer-crash", "--variant", "harden"], ["--variant", "'hardened'"]),
        (["run", "consumer-crash", "--variant", ""], ["--variant", "'' is not a variant"]),
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "consumer-crush"], "there is no such file"),
        (["run", "consumer-crash", "--variant", "harden"], "'--variant'"),
        (["run"], "SCENARIO"),
        (["report", "nowhere"], "nowhere"),
        (["diff", "nowhere", "elsewhere"], "nowhere"),
        (["version", "--jsom"], "--jsom"),
    ],
)
def test_with_json_an_error_is_one_value_too(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever reads the output need not parse sentences."""
    told = Said(capsys, *words, "--json")
    assert told.code == 4
    assert set(told.json) == {"error"}
    assert set(told.json["error"]) == {"code", "said", "problems"}
    assert told.json["error"]["code"] == 4
    assert said in told.json["error"]["said"]
    assert told.json["error"]["said"] in told.err


def test_with_json_every_problem_of_a_file_has_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """File, line, field, and what is said."""
    path = Path("bad.yaml")
    path.write_text("name: bad\nclusters: {main: {topics: {t: {partitions: many}}}}\n")
    first, second = Said(capsys, "run", str(path), "--json").json["error"]["problems"]
    assert first == {
        "file": "bad.yaml",
        "line": 1,
        "field": "",
        "said": "a scenario needs `about`",
    }
    assert (second["line"], second["field"]) == (2, "clusters.main.topics.t.partitions")


def fails(*_: Any, **__: Any) -> Any:
    """What nobody has foreseen."""
    raise KeyError("unforeseen")


def test_a_defect_is_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4, what failed, what to do; the traceback for whoever asks for it."""
    monkeypatch.setattr("watchkeeper.commands.load", fails)
    said = Said(capsys, "run", "consumer-crash", "--json")
    assert said.code == 4
    assert "KeyError: 'unforeseen'" in said.json["error"]["said"]
    assert said.err.count("\n") == 1
    assert "please report it" in said.err
    monkeypatch.setenv("WATCHKEEPER_TRACEBACK", "1")
    assert "Traceback" in Said(capsys, "run", "consumer-crash").err


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


def without_a_reader(*words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command whose reader has closed the pipe before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            command(*words), stdout=writer, stderr=subprocess.PIPE, timeout=120, check=False
        )
    finally:
        os.close(writer)


@pytest.mark.parametrize("words", ["scenarios", "scenarios --json", "schema", "--help"])
def test_a_reader_that_stops_reading_is_no_error(words: str) -> None:
    """`watchkeeper scenarios | head -1` ends as if all of it had been read."""
    done = without_a_reader(*words.split())
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(("fields", "code"), [({}, 0), (NEVER, 1), (SOMETIMES, 2)])
def test_a_run_without_a_reader_keeps_its_exit_code(
    fields: dict[str, Any], code: int, form: list[str]
) -> None:
    """A script asks for the code, and `head` for the first line."""
    done = without_a_reader("run", small(**fields), "--no-pictures", *form)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", ["scenarios", "version", "schema", "--help"])
def test_output_that_cannot_be_written_is_said(words: str) -> None:
    """A full disk: a sentence, exit 4."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(command(words), stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 4
    assert done.stderr == b"standard output cannot be written: No space left on device\n"


def test_closed_outputs_change_nothing() -> None:
    """As under some supervisors; what is for standard error goes nowhere else."""
    shell = f"{' '.join(command('run', 'nowhere'))} 2>&-"
    done = subprocess.run(shell, shell=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (4, b"")
    shell = f"{' '.join(command('version'))} >&-"
    done = subprocess.run(shell, shell=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("out", ["rüns", b"\xff\xfe"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_letters_that_the_output_lacks_are_escaped(out: str | bytes, form: list[str]) -> None:
    """Of a folder's name, of whatever encoding."""
    words = [os.fsencode(word) for word in command("run", small(), "--no-pictures", *form)]
    done = subprocess.run(
        [*words, b"--out", os.fsencode(out)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    verdict = Path(os.fsdecode(out)) / "small-hardened-sim-0" / "verdict.json"
    assert json.loads(verdict.read_text())["files"][0] == str(verdict)


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Not as the marks of a markup."""
    said = Said(capsys, "run", small(), "--no-pictures", "--out", "[bold]:smile:")
    assert "[bold]:smile:/small-hardened-sim-0/trace.jsonl" in said.out


INTERRUPTED_AT = """
import os, signal, sys
module = sys.argv.pop(1)
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("somebody made another error of it")
sys.meta_path.insert(0, Interrupting())
sys.argv[0] = "watchkeeper"
from watchkeeper.cli import main
main()
"""


def interrupted_at(module: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command whose user presses Ctrl-C while a module is imported."""
    process = [sys.executable, "-c", INTERRUPTED_AT, module, *words]
    return subprocess.run(process, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("module", ["click", "yaml", "pydantic", "simpy"])
def test_interrupted_before_it_has_begun(module: str) -> None:
    """While modules are loaded: a word, and exit 2."""
    done = interrupted_at(module, "run", small(), "--json")
    assert done.returncode == 2
    assert done.stderr == b"interrupted\n"
    assert json.loads(done.stdout) == {
        "error": {"code": 2, "said": "interrupted", "problems": []}
    }


def test_interrupted_while_it_draws() -> None:
    """The verdict is kept and reported, and what is missing is named."""
    done = interrupted_at("matplotlib", "run", small(), "--json")
    folder = Path("runs/small-hardened-sim-0")
    assert done.returncode == 2
    assert {path.name for path in folder.iterdir()} == {"verdict.json", "trace.jsonl"}
    told = json.loads((folder / "verdict.json").read_text())
    assert json.loads(done.stdout) == told
    assert told["files"] == [str(folder / "verdict.json"), str(folder / "trace.jsonl")]
    assert done.stderr.startswith(b"interrupted: ownership.png, ")
    assert done.stderr.endswith(b"watchkeeper report runs/small-hardened-sim-0\n")


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


def test_unfinished_files_of_the_dead_are_removed(capsys: pytest.CaptureFixture[str]) -> None:
    """What a killed run leaves is gone after the next; what is being written is not."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folder = Path("runs/small-hardened-sim-0")
    folder.mkdir(parents=True)
    names = ("trace.jsonl", "verdict.json", "ownership.png", "probe")
    for name in names:
        (folder / f".{name}-{dead.pid}").write_text("half")
    alive = folder / f".trace.jsonl-{os.getppid()}"
    alive.write_text("half")
    Said(capsys, "run", small(), "--no-pictures")
    left = {path.name for path in folder.iterdir()}
    assert left == {"trace.jsonl", "verdict.json", alive.name}


def test_pictures_that_cannot_be_written_do_not_cost_the_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up while they are drawn."""

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("reports.write_all", full)
    said = Said(capsys, "run", small())
    verdict = Path("runs/small-hardened-sim-0/verdict.json")
    assert said.code == 4
    assert "No space left on device" in said.err
    assert str(verdict) in said.err
    assert json.loads(verdict.read_text())["verdict"] == "holds"


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_folder_in_the_way_of_a_package_is_said(form: list[str]) -> None:
    """`python -m` looks into the working folder first."""
    Path("model").mkdir()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    done = subprocess.run(
        command("version", *form), capture_output=True, env=environment, check=False
    )
    assert done.returncode == 4
    assert done.stderr.startswith(b"watchkeeper needs its own package 'model'")
    assert done.stderr.count(b"\n") == 1
    if form:
        assert json.loads(done.stdout)["error"]["code"] == 4


def test_the_module_can_be_run() -> None:
    """`python -m watchkeeper` is the command."""
    done = subprocess.run(command("version"), capture_output=True, check=True, env=os.environ)
    assert done.stdout.decode().strip() == __version__
