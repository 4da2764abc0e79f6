"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest
from rich.console import Console

from tests.support.patience import PATIENCE_S
from watchkeeper import __version__, simulate
from watchkeeper.api.result import report
from watchkeeper.cli.main import app, run_command
from watchkeeper.model.trace.trace import parse
from watchkeeper.scenarios import load, shipped
from watchkeeper.scenarios.shipped_files import abouts

RUN_FIELDS = {
    "scenario",
    "variant",
    "consumers",
    "world",
    "seed",
    "verdict",
    "properties",
    "signatures",
    "expected",
    "met",
    "known_limit",
    "warnings",
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


class CommandOutput:
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


NEVER = {"never": [{"event": "rebalance completed"}]}
SOMETIMES = {"sometimes": [{"event": "session expired"}]}


# --- run -------------------------------------------------------------------------------


def test_run_says_what_happened_first_and_then_where_things_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Headline, a sentence, properties, faults, changes, the command again, the files."""
    message = CommandOutput(capsys, "run", "consumer-crash")
    lines = message.out.splitlines()
    assert message.code == 0, message.err
    assert lines[0] == "consumer-crash, hardened, simulated, seed 0: holds, as expected"
    assert lines[1].startswith("billing/1 was killed at 14.000 s; its 2 partitions were unread")
    assert lines[3].startswith("13 hold  single ownership, strict single ownership,")
    words = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    order = ["13", "timeline", "change", "reproduce", "trace", "files"]
    assert [word for word in words if word in order] == order
    assert "crash billing/1" in message.out
    folder = Path("runs/consumer-crash-hardened-sim-0")
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "verdict.json",
        "scenario.yaml",
        "trace.jsonl",
        "index.html",
        "ownership.png",
        "ownership.html",
        "spacetime.html",
        "connections.png",
    }
    assert all(str(folder / name) in message.out for name in names)


def test_all_shows_a_row_a_property(capsys: pytest.CaptureFixture[str]) -> None:
    """Also those that hold, and those that the run says nothing of."""
    words = ("run", "rolling-restart", "--no-pictures")
    folded = CommandOutput(capsys, *words).out.splitlines()
    shown = CommandOutput(capsys, *words, "--all").out.splitlines()

    assert not any(line.startswith("property ") for line in folded)
    assert [line.split()[1] for line in folded if "not exercised  " in line] == ["not"]
    head = next(at for at, line in enumerate(shown) if line.startswith("property "))
    assert shown[head].split() == ["property", "kind", "verdict", "evidence"]
    assert any("(unknown)  not exercised: it takes" in line for line in shown)
    assert "in parentheses: shown, but no part of the verdict" in shown


def test_run_json_is_one_value_with_the_promised_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing else is on standard output, and the folder holds the same."""
    message = CommandOutput(capsys, "run", "consumer-crash", "--json", "--seed", "3")
    output = message.json
    assert set(output) == RUN_FIELDS
    assert (output["scenario"], output["variant"], output["world"], output["seed"]) == (
        "consumer-crash",
        "hardened",
        "sim",
        3,
    )
    assert output["verdict"] == "holds"
    assert output["met"] is True
    crash = next(fault for fault in output["faults"] if fault["kind"] == "crash")
    assert crash["target"] == "billing/1"
    assert crash["at_s"] == 14.0
    assert crash["effects"]["processes killed"] == 1
    for row in output["properties"]:
        assert set(row) == {"name", "kind", "verdict", "evidence", "counts", "exercised"}
    verdict = Path("runs/consumer-crash-hardened-sim-3/verdict.json")
    assert json.loads(verdict.read_text()) == output
    assert all(Path(name).exists() for name in output["files"])


def test_the_command_it_prints_makes_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The fingerprint is that of the first run."""
    first = CommandOutput(capsys, "run", small(), "--seed", "9", "--json", "--no-pictures").json
    words = first["command"].split()
    assert words[0] == "watchkeeper"
    second = CommandOutput(capsys, *words[1:], "--json", "--no-pictures").json
    assert first["fingerprint"] == second["fingerprint"]


def test_without_pictures_none_are_left_from_before(capsys: pytest.CaptureFixture[str]) -> None:
    """A second run in the same folder leaves nothing of the first."""
    scenario = small()
    CommandOutput(capsys, "run", scenario)
    folder = Path("runs/small-hardened-sim-0")
    assert (folder / "ownership.png").exists()
    CommandOutput(capsys, "run", scenario, "--no-pictures")
    assert {path.name for path in folder.iterdir()} == {
        *("verdict.json", "scenario.yaml", "trace.jsonl")
    }


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
    assert CommandOutput(capsys, "run", small(**fields), "--no-pictures").code == code


def test_an_expected_violation_is_success(capsys: pytest.CaptureFixture[str]) -> None:
    """What a scenario expects of an unsound variant is what it is meant to show."""
    message = CommandOutput(
        capsys, "run", "gc-pause-zombie", "--variant", "kafka_08", "--json", "--no-pictures"
    )
    assert message.json["verdict"] == "violated"
    assert message.json["met"] is True
    assert message.code == 0


def test_what_counts_is_the_variant_that_ran(capsys: pytest.CaptureFixture[str]) -> None:
    """Each variant has a folder and a fingerprint of its own."""
    prints = {
        variant: CommandOutput(
            capsys, "run", "steady-join", "--variant", variant, "--json", "--no-pictures"
        ).json["fingerprint"]
        for variant in ("hardened", "kafka_07", "kafka_08")
    }
    assert len(set(prints.values())) == 3
    assert len(list(Path("runs").glob("*-sim-*"))) == 3


def test_changes_that_are_not_shown_are_the_earlier_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """So their number stands above the others."""
    groups = {"group": {"consumers": 20, "streams": {"clicks": 1}}}
    lines = CommandOutput(capsys, "run", small(groups=groups), "--no-pictures").out.splitlines()
    head = next(at for at, line in enumerate(lines) if line.startswith("change "))
    assert lines[head + 1] == "(8 earlier ones)"
    assert lines[head + 2].split()[1] == "joined"


@pytest.mark.parametrize(("width", "is_list"), [(59, True), (60, False)])
def test_a_narrow_terminal_gets_a_list(width: int, is_list: bool) -> None:
    """Columns of three letters cannot be read."""
    out = StringIO()
    to = Console(file=out, width=width, force_terminal=True, color_system=None)
    report(simulate("steady-join"), to, shows_all=True)
    report(simulate("steady-join"), to)
    lines = out.getvalue().splitlines()
    assert ("  verdict: holds" in lines) is is_list
    assert any(line.startswith("13 hold") for line in lines)
    assert not any(line.lstrip().startswith(":") for line in lines)
    assert max(map(len, lines[1:20])) <= width
    assert not any(line != line.rstrip() for line in lines)


# --- mistakes of the user --------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["run", "consumer-crush"], ["consumer-crush", "did you mean 'consumer-crash'"]),
        (["run", "nowhere.yaml"], ["nowhere.yaml", "No such file"]),
        (["run", "."], ["cannot be read"]),
        (["run", ""], ["is empty", "broker-crash"]),
        (["run", "/dev/zero"], ["/dev/zero", "device"]),
        (["diff", "/dev/zero", "/dev/zero"], ["/dev/zero", "regular file"]),
        (["run", "consumer-crash", "--variant", "harden"], ["--variant", "'hardened'"]),
        (["run", "consumer-crash", "--variant", ""], ["--variant", "'' is not a variant"]),
        (["run", "consumer-crash", "--seed", "many"], ["--seed", "many"]),
        (["run"], ["SCENARIO", "Try 'watchkeeper run --help'"]),
        (["rum"], ["No such command 'rum'", "Did you mean 'run'?", "Try 'watchkeeper --help'"]),
        (
            ["run", "consumer-crash", "--picture"],
            ["'--picture'", "Did you mean '--pictures'?", "Try 'watchkeeper run --help'"],
        ),
        (
            ["activity", "fed", "logs", "out"],
            ["Did you mean 'feed'?", "Try 'watchkeeper activity --help'"],
        ),
        (
            ["activity", "feed", "logs", "out", "--steam"],
            ["Did you mean '--stream'?", "Try 'watchkeeper activity feed --help'"],
        ),
        (["report", "nowhere"], ["nowhere"]),
        (["diff", "nowhere", "elsewhere"], ["nowhere"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_usage_errors(
    words: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 4, a sentence on standard error, nothing on standard output, no traceback."""
    message = CommandOutput(capsys, *words)
    assert message.code == 4
    assert message.out == ""
    assert "Traceback" not in message.err
    for part in parts:
        assert part in message.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "consumer-crush"], "there is no such file"),
        (["run", "consumer-crash", "--variant", "harden"], "'--variant'"),
        (["run"], "SCENARIO"),
        (["report", "nowhere"], "nowhere"),
        (["diff", "nowhere", "elsewhere"], "nowhere"),
        (["variants", "--jsom"], "--jsom"),
    ],
)
def test_with_json_an_error_is_one_value_too(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that reads the output need not parse sentences."""
    output = CommandOutput(capsys, *words, "--json")
    assert output.code == 4
    assert set(output.json) == {"error"}
    assert set(output.json["error"]) == {"code", "message", "problems"}
    assert output.json["error"]["code"] == 4
    assert message in output.json["error"]["message"]
    assert output.json["error"]["message"] in output.err


def test_with_json_every_problem_of_a_file_has_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """File, line, field, and what is said."""
    path = Path("bad.yaml")
    path.write_text("name: bad\nclusters: {main: {topics: {t: {partitions: many}}}}\n")
    first, second = CommandOutput(capsys, "run", str(path), "--json").json["error"]["problems"]
    assert first == {
        "file": "bad.yaml",
        "line": 1,
        "field": "",
        "message": "a scenario needs `about`",
    }
    assert (second["line"], second["field"]) == (2, "clusters.main.topics.t.partitions")


def fails(*_: Any, **__: Any) -> Any:
    """An unforeseen failure."""
    raise KeyError("unforeseen")


def test_a_defect_is_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4, what failed, what to do; the traceback for a user that asks for it."""
    monkeypatch.setattr("watchkeeper.run.run.load", fails)
    message = CommandOutput(capsys, "run", "consumer-crash", "--json")
    assert message.code == 4
    assert "KeyError: 'unforeseen'" in message.json["error"]["message"]
    assert message.err.count("\n") == 1
    assert "please report it" in message.err
    monkeypatch.setenv("WATCHKEEPER_TRACEBACK", "1")
    assert "Traceback" in CommandOutput(capsys, "run", "consumer-crash").err


def test_bad_scenarios_are_named_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    """File, line, field, value, what was expected."""
    path = Path("bad.yaml")
    path.write_text("name: bad\nabout: x\nclusters: {main: {topics: {t: {partitions: many}}}}\n")
    message = CommandOutput(capsys, "run", str(path))
    assert message.code == 4
    assert message.err.startswith("bad.yaml:3: clusters.main.topics.t.partitions: 'many' is not")


def test_an_output_folder_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    """It is said before the run, with what to do."""
    Path("file").write_text("not a folder")
    message = CommandOutput(capsys, "run", "mass-start-herd", "--out", "file/runs")
    assert message.code == 4
    assert "file/runs" in message.err
    assert "--out" in message.err
    assert message.out == ""


# --- the other commands ----------------------------------------------------------------


def test_scenarios_lists_all_with_what_they_show(capsys: pytest.CaptureFixture[str]) -> None:
    """As text and as JSON."""
    output = CommandOutput(capsys, "scenarios", "--json").json
    assert [row["name"] for row in output] == shipped()
    assert all(row["about"] and row["expect"] for row in output)
    text = CommandOutput(capsys, "scenarios").out
    assert all(name in text for name in shipped())


def test_variants_lists_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Every variant with every question."""
    output = CommandOutput(capsys, "variants", "--json").json
    names = [row["name"] for row in output]
    assert names == ["documented", "documented_ceil", "kafka_07", "kafka_08", "hardened"]
    assert "hardened" in CommandOutput(capsys, "variants").out


def test_schema_is_a_json_schema_that_shipped_scenarios_meet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An editor could use it."""
    output = CommandOutput(capsys, "schema").json
    assert output["$schema"].endswith("/schema")
    assert {"name", "about", "clusters", "timeline"} <= set(output["properties"])


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, and exit code 0."""
    message = CommandOutput(capsys, "--version")
    assert (message.code, message.out) == (0, f"watchkeeper {__version__}\n")


# --- help ------------------------------------------------------------------------------


def all_commands(
    group: click.Group, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that call it."""
    for name, command in group.commands.items():
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from all_commands(command, (*words, name))


def test_help_lists_the_commands_in_sections(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command stands below one heading."""
    lines = CommandOutput(capsys, "--help").out.splitlines()
    heads = ["Run and check:", "Sweep and analyse:", "Operate:", "Logs:"]
    assert [line for line in lines if line in heads] == heads
    for name in app.commands:
        assert sum(line.split()[:1] == [name] for line in lines) == 1


@pytest.mark.parametrize(
    ("words", "command"),
    list(all_commands(app)),
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_every_help_has_an_example_that_can_be_run(
    words: tuple[str, ...], command: click.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example is a command line that this command understands."""
    text = CommandOutput(capsys, *words, "--help").out
    _, found, examples = text.partition("Example")
    assert found
    commands = [line.strip() for line in examples.splitlines()[1:] if line.strip()]
    assert commands
    for line in commands:
        first, *given = shlex.split(line.partition(" > ")[0])
        assert first == "watchkeeper"
        reached: click.Command = app
        while isinstance(reached, click.Group) and given:
            reached = reached.commands[given.pop(0)]
        reached.make_context("example", given)


def test_report_draws_the_same_pictures_again(capsys: pytest.CaptureFixture[str]) -> None:
    """From the trace alone, byte for byte."""
    CommandOutput(capsys, "run", small())
    folder = Path("runs/small-hardened-sim-0")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in before:
        if name.endswith((".png", ".html")):
            (folder / name).unlink()
    message = CommandOutput(capsys, "report", str(folder), "--json")
    assert message.code == 0, message.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert all(Path(name).exists() for name in message.json["files"])


def test_diff_of_a_run_with_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing differs: exit 0."""
    CommandOutput(capsys, "run", small(), "--no-pictures")
    folder = "runs/small-hardened-sim-0"
    message = CommandOutput(capsys, "diff", folder, folder)
    assert message.code == 0
    assert "the same" in message.out
    assert CommandOutput(capsys, "diff", folder, folder, "--json").json == {"same": True}


@pytest.mark.parametrize("option", ["--seed=1", "--variant=kafka_08"])
def test_diff_names_the_first_event_and_what_followed(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seeds and variants part somewhere; both sides are shown."""
    CommandOutput(capsys, "run", "gc-pause-zombie", "--no-pictures")
    CommandOutput(capsys, "run", "gc-pause-zombie", "--no-pictures", option)
    first, two = sorted(str(path) for path in Path("runs").glob("*-sim-*"))
    message = CommandOutput(capsys, "diff", first, two, "--json")
    output = message.json
    assert message.code == 1
    assert output["same"] is False
    assert output["one"] != output["other"]
    assert output["one_after"] or output["other_after"]
    text = CommandOutput(capsys, "diff", first, two).out
    assert output["node"] in text


# --- processes -------------------------------------------------------------------------


def command(*words: str) -> list[str]:
    """The command in a process of its own."""
    return [sys.executable, "-m", "watchkeeper", *words]


INTERRUPTED_AFTER = """
import os, signal, sys
from watchkeeper.sim.engine.kernel import Kernel
number = int(sys.argv.pop(1))
write = Kernel.write
def interrupting(self, *event, **more):
    global number
    write(self, *event, **more)
    if number and len(self.rows) >= number:
        number = 0
        os.kill(os.getpid(), signal.SIGINT)
Kernel.write = interrupting
sys.argv[0] = "watchkeeper"
from watchkeeper.__main__ import main
main()
"""


def test_interrupted_runs_are_on_disk_and_say_that_they_are_partial() -> None:
    """Ctrl-C after a hundred events: exit 2, and the trace so far can be read and judged."""
    words = ["run", small("long", settle="24h"), "--no-pictures"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AFTER, "100", *words],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    folder = Path("runs/long-hardened-sim-0")
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert b"Traceback" not in done.stderr
    with (folder / "trace.jsonl").open("rb") as file:
        trace = parse(file, name="trace.jsonl")
    assert trace.header.partial
    assert len(trace) >= 100
    assert json.loads((folder / "verdict.json").read_text())["verdict"] == "unknown"
    assert b"partial" in done.stdout or b"interrupted" in done.stdout


def without_a_reader(*words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command whose reader has closed the pipe before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            command(*words),
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
            check=False,
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
@pytest.mark.parametrize("words", ["scenarios", "--version", "schema", "--help"])
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
    shell = f"{' '.join(command('--version'))} >&-"
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
    message = CommandOutput(capsys, "run", small(), "--no-pictures", "--out", "[bold]:smile:")
    assert "[bold]:smile:/small-hardened-sim-0/trace.jsonl" in message.out


INTERRUPTED_AT = """
import os, signal, sys
module = sys.argv.pop(1)
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("a failure of another kind")
sys.meta_path.insert(0, Interrupting())
sys.argv[0] = "watchkeeper"
from watchkeeper.__main__ import main
main()
"""


def interrupted_at(module: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command whose user presses Ctrl-C while a module is imported."""
    process = [sys.executable, "-c", INTERRUPTED_AT, module, *words]
    return subprocess.run(process, capture_output=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("module", ["click", "yaml", "pydantic", "simpy"])
def test_interrupted_before_it_has_begun(module: str) -> None:
    """While modules are loaded: a word, and exit 2."""
    done = interrupted_at(module, "run", small(), "--json")
    assert done.returncode == 2
    assert done.stderr == b"interrupted\n"
    assert json.loads(done.stdout) == {
        "error": {"code": 2, "message": "interrupted", "problems": []}
    }


def test_interrupted_while_it_draws() -> None:
    """The verdict and its page are kept, and what is missing is named."""
    done = interrupted_at("matplotlib", "run", small(), "--json")
    folder = Path("runs/small-hardened-sim-0")
    assert done.returncode == 2
    assert {path.name for path in folder.iterdir()} == {
        *("verdict.json", "scenario.yaml", "trace.jsonl", "index.html")
    }
    verdict = json.loads((folder / "verdict.json").read_text())
    assert json.loads(done.stdout) == verdict
    names = ("verdict.json", "scenario.yaml", "trace.jsonl", "index.html")
    assert verdict["files"] == [str(folder / name) for name in names]
    assert done.stderr.startswith(b"interrupted: ownership.png, ")
    assert done.stderr.endswith(b"watchkeeper report runs/small-hardened-sim-0\n")


LIBRARIES = ("matplotlib", "networkx", "numpy", "hypothesis", "kazoo", "pyspark", "pyarrow")
READERS = ("simpy", "pydantic", "watchkeeper.scenarios.scenario")
UNUSED_PARTS = (
    *("watchkeeper.api.profile", "watchkeeper.api.fence", "watchkeeper.reports.why.chain"),
    *("watchkeeper.model.controller.broker", "watchkeeper.model.mutants.catalogue"),
    *("watchkeeper.model.log.log", "watchkeeper.model.replication.replica"),
    *("watchkeeper.model.properties.control_plane.judges", "watchkeeper.checker.contracts"),
    *("watchkeeper.sim.brokers.hosts", "watchkeeper.sim.brokers.replica_process"),
    *("watchkeeper.real", "watchkeeper.virtual", "watchkeeper.pipeline"),
)
"""What a run without a controller, stored messages, violations or a mutant does not need."""


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["run", "--help"], (*LIBRARIES, *READERS, "rich", "yaml")),
        (["scenarios"], (*LIBRARIES, *READERS, "watchkeeper.model.actor.effects")),
        (["variants"], (*LIBRARIES, *READERS)),
        (["run", "steady-join", "--no-pictures"], (*LIBRARIES, *UNUSED_PARTS)),
    ],
    ids=("help", "scenarios", "variants", "run"),
)
def test_a_command_imports_only_what_it_needs(
    arguments: list[str], unneeded: tuple[str, ...], tmp_path: Path
) -> None:
    """What makes a command start quickly, without a clock."""
    probe = (
        "import sys\n"
        "from watchkeeper.cli.main import run_command\n"
        f"code = run_command({arguments!r})\n"
        f"print(sorted({{*{unneeded!r}}} & set(sys.modules)), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_the_list_of_scenarios_is_what_their_files_say(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The list is made without the schema; it says the same as with it."""
    assert abouts() == {name: load(name).about for name in shipped()}
    rows = CommandOutput(capsys, "scenarios", "--json").json
    assert {row["name"]: row["about"] for row in rows} == abouts()


def test_check_determinism_of_a_deterministic_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs agree."""
    message = CommandOutput(
        capsys, "run", small(), "--check-determinism", "--no-pictures", "--json"
    )
    assert message.code == 0


def test_check_determinism_names_the_first_difference(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that draws on the process, not on the seed: exit 3, with event and time."""
    from watchkeeper.model.group import registration

    shipped_registration = registration.registration
    calls: list[int] = []

    def different_each_time(me: Any, now_ms: int) -> bytes:
        calls.append(now_ms)
        return shipped_registration(me, now_ms) + b" " * len(calls)

    monkeypatch.setattr(registration, "registration", different_each_time)
    message = CommandOutput(capsys, "run", small(), "--check-determinism", "--no-pictures")
    assert message.code == 3
    assert "first run" in message.err
    assert "at 1.00" in message.err
    assert "event" in message.err


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
    CommandOutput(capsys, "run", small(), "--no-pictures")
    left = {path.name for path in folder.iterdir()}
    assert left == {"scenario.yaml", "trace.jsonl", "verdict.json", alive.name}


def test_pictures_that_cannot_be_written_do_not_cost_the_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up while they are drawn."""

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("watchkeeper.reports.write_all", full)
    message = CommandOutput(capsys, "run", small())
    verdict = Path("runs/small-hardened-sim-0/verdict.json")
    assert message.code == 4
    assert "No space left on device" in message.err
    assert str(verdict) in message.err
    assert json.loads(verdict.read_text())["verdict"] == "holds"


def test_a_folder_with_the_name_of_a_package_disturbs_nothing() -> None:
    """`python -m` looks into the working folder first; the packages stand in one of ours."""
    Path("model").mkdir()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    done = subprocess.run(
        command("variants", "--json"), capture_output=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)


def test_the_module_can_be_run() -> None:
    """`python -m watchkeeper` is the command."""
    done = subprocess.run(command("--version"), capture_output=True, check=True, env=os.environ)
    assert done.stdout.decode().strip() == f"watchkeeper {__version__}"


def test_a_run_warns_of_short_patience(capsys: pytest.CaptureFixture[str]) -> None:
    """By name, in the report and in JSON; a search has it among its remarks."""
    of = ("run", "retries-against-timeout", "--variant", "kafka_08", "--no-pictures")
    message = CommandOutput(capsys, *of)
    [warning] = CommandOutput(capsys, *of, "--json").json["warnings"]

    assert "\nwarning   short patience, billing: 4 attempts with 2000 ms between" in message.out
    assert (warning["name"], warning["group"]) == ("short patience", "billing")
    assert warning["message"] in message.out
    assert CommandOutput(capsys, *of[:2], "--no-pictures", "--json").json["warnings"] == []
    explored = ("explore", *of[1:4], "--max-states", "10", "--json")
    assert (
        f"short patience, billing: {warning['message']}"
        in (CommandOutput(capsys, *explored).json["remarks"])
    )


def test_a_sweep_warns_of_short_patience(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In the words of a run, each warning once, for the cells that give up; on the page too."""
    ran = ("run", "retries-against-timeout", "--variant", "kafka_08", "--no-pictures", "--json")
    wanted = CommandOutput(capsys, *ran).json["warnings"]
    timeout = "groups.billing.config.zookeeper.session.timeout.ms=6000"
    retries = "groups.billing.config.rebalance.max.retries=4"
    backoff = "groups.billing.config.rebalance.backoff.ms=2000"
    values = ("--set", timeout, "--set", retries, "--set", backoff)
    of = ("sweep", "retries-against-timeout", *values, "--seeds", "1", "--out", f"{tmp_path}/s")
    swept = (*of, "--variants", "kafka_08,hardened", "--no-shrink", "--runner", "process")

    assert CommandOutput(capsys, *swept, "--json").json["warnings"] == wanted
    warning = f"short patience, billing: {wanted[0]['message']}"
    assert warning in CommandOutput(capsys, *swept).out
    assert f"<p>Warning: {warning}.</p>" in (tmp_path / "s" / "sweep.html").read_text()
