"""`watchkeeper explore-replicas`, and the counterexample that it finds."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from watchkeeper.check import control_plane_command, replicas
from watchkeeper.checker.replication.counterexample import breaches_in, counterexample_of
from watchkeeper.checker.replication.partition import Bounds, Fault, LeaderAndIsr, initial
from watchkeeper.checker.replication.search import MEMBERS, PROPERTIES, search
from watchkeeper.cli.main import run_command
from watchkeeper.model.controller.state_machines.variants import CONTROLLERS
from watchkeeper.model.counterexample.replicas import Breach, ReplicasCounterexample, Role
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.variants import KAFKA_08, REPLICATIONS

HOME = Path(__file__).parents[2]
FINDINGS = (HOME / "docs/findings-replication.md").read_text()
STRONG = "strong ISR"


def said_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """The exit code and the JSON of the command."""
    code = run_command(["explore-replicas", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def found(*faults: Fault, name: str = STRONG, epochs: int = 3) -> ReplicasCounterexample:
    """The nearest violation in `kafka_08` with two replicas."""
    bounds = Bounds(replicas=2, log=2, records=2, epochs=epochs, faults=frozenset(faults))
    return counterexample_of(search(KAFKA_08, bounds, properties=(name,)), name)


# --- the command -----------------------------------------------------------------------


def listed_in_findings() -> dict[str, tuple[list[str], list[str]]]:
    """The nearest violations on the page of findings: fault -> options and steps."""
    part = FINDINGS.split("## The nearest violations")[1]
    blocks = re.findall(r"\*\*(.+?)\*\* \(`(.+?)`\)\n\n((?:\d+\. .+\n?)+)", part)
    return {
        name: (command.split()[2:], re.findall(r"\d+\. (.+)", steps))
        for name, command, steps in blocks
    }


@pytest.mark.parametrize("word", ["", *replicas.FAULTS])
def test_the_findings_are_found_and_written_as_pages(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of the seven on the page of findings, with the same steps."""
    faults = ["--fault", word] if word else []
    code, report = said_by(capsys, *faults, "--out", str(tmp_path))

    name = replicas.FAULTS[word].value if word else "no fault"
    assert (code, report["verdict"]) == (1, "violated")
    assert (faults, report["steps"]) == listed_in_findings()[name]
    assert [Path(file).name for file in report["files"]] == [
        "verdict.json",
        "counterexample.html",
    ]
    assert all(Path(file).is_file() for file in report["files"])
    assert len(listed_in_findings()) == 1 + len(replicas.FAULTS)


def test_a_search_may_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--variant", "hardened", "--epochs", "2", "--fault", "crash")
    code, report = said_by(capsys, *words, "--out", str(tmp_path))

    assert (code, report["verdict"], report["complete"]) == (0, "holds", True)
    assert report["steps"] is None
    [file] = report["files"]
    assert Path(file).parent.name == "replicas-hardened-crash-2-epochs-explore"


def test_a_limit_makes_it_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = said_by(capsys, "--max-states", "100", "--out", str(tmp_path))
    assert (code, report["verdict"], report["complete"]) == (2, "unknown", False)


def test_a_page_of_an_earlier_search_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same search finds nothing within a limit; the page that it wrote before is gone."""
    _, report = said_by(capsys, "--fault", "unclean", "--out", str(tmp_path))
    page = Path(report["files"][1])
    assert page.is_file()
    said_by(capsys, "--fault", "unclean", "--max-states", "50", "--out", str(tmp_path))
    assert not page.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--rule", "kip-101", "--fault", "power", "--log", "1", "--records", "1"),
        ("--property", "weak-isr", "--fault", "unclean"),
    ],
)
def test_the_command_that_is_printed_repeats_the_search(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = said_by(capsys, *words, "--out", str(tmp_path / "1"))
    _, *again = first["command"].split()[1:]
    _, second = said_by(capsys, *again, "--out", str(tmp_path / "2"))

    kept = ("variant", "rule", "property", "faults", "bound", "verdict", "states", "steps")
    assert [first[word] for word in kept] == [second[word] for word in kept]
    for at in range(0, len(words), 2):
        assert " ".join(words[at : at + 2]) in first["command"]


def test_the_report_has_steps_and_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["explore-replicas", "--fault", "crash", "--out", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert "the shortest way to violate strong ISR, 8 steps:" in text
    assert "   7  replica 1 crashes and restarts" in text
    assert "replica 1 is in the ISR {0, 1} in ZooKeeper and has nothing there" in text


def test_the_words_of_the_command_are_those_of_the_search() -> None:
    """The command names them itself, so that `--help` imports no search."""
    assert tuple(replicas.FAULTS) == control_plane_command.FAULTS
    assert tuple(replicas.RULE_NAMES) == control_plane_command.RULES
    assert tuple(replicas.PROPERTY_NAMES.values()) == control_plane_command.PROPERTIES
    same = replace(REPLICATIONS["documented"], name="kafka_08") == KAFKA_08
    assert same, "it differs in nothing that this search has"
    assert ("documented", *control_plane_command.REPLICA_VARIANTS) == tuple(REPLICATIONS)
    assert tuple(CONTROLLERS) == control_plane_command.BROKER_VARIANTS


# --- the counterexample ----------------------------------------------------------------


def test_the_states_of_a_counterexample() -> None:
    """A restarted follower takes an old request and cuts what is committed."""
    path = found(Fault.CRASH)
    before, restarted, last = (path.steps[at].after for at in (5, 6, 7))

    leader, follower = before.replicas
    assert (leader.role, leader.epoch, leader.isr) == ("leads", 0, (0, 1))
    assert (leader.log, leader.high_watermark, leader.end) == (((0, 0),), 1, 1)
    assert (follower.role, follower.follows, follower.high_watermark) == ("follows", 0, 0)
    assert restarted.replicas[1].role == "knows no leader"
    assert restarted.replicas[1].epoch is None
    assert restarted.replicas[1].log == follower.log
    assert last.replicas[1].log == ()
    assert path.breaches == (Breach(leader=0, member=1, offset=0),)
    assert [step.fault for step in path.steps if step.fault] == [Fault.CRASH.value]
    assert (before.faults, restarted.faults) == ((Fault.CRASH.value,), ())


def test_requests_are_open_to_replicas_that_know_less() -> None:
    path = found(Fault.CRASH)
    open_to = [[one.open_to for one in step.after.requests] for step in path.steps]
    assert open_to[:5] == [[(0, 1)], [(1,)], [(1,)], [()], [()]]
    assert open_to[6:] == [[(1,)], [()]], "a process without memory may take it again"


def test_hardened_takes_no_old_request_after_a_restart() -> None:
    """Its request is not open to a process that has read another epoch in ZooKeeper."""
    from watchkeeper.checker.replication.counterexample import state_of
    from watchkeeper.checker.replication.partition import Steps
    from watchkeeper.model.replication.variants import HARDENED

    old, new = (LeaderAndIsr(epoch, 0, frozenset({0, 1})) for epoch in (0, 1))
    begin = initial(2)
    restarted = begin.replicas[1]._replace(has_looked=False)
    state = begin.with_replica(1, restarted)._replace(cell=new, sent=frozenset({old, new}))
    for variant, takers in ((KAFKA_08, [(0, 1), (0, 1)]), (HARDENED, [(0,), (0, 1)])):
        steps = Steps(variant, Bounds(replicas=2, log=1, records=1, epochs=2))
        assert [one.open_to for one in state_of(steps, state).requests] == takers


def test_every_property_has_a_proof() -> None:
    """What is committed may lack in the ISR of ZooKeeper, or in that of the leader."""
    strong, weak = found(), found(Fault.POWER, name="weak ISR")
    assert strong.proof.endswith("in the ISR {0, 1} in ZooKeeper and has nothing there")
    assert weak.proof.endswith("of this leader and has nothing there")

    begin = initial(2)
    outside = begin._replace(cell=LeaderAndIsr(0, 0, frozenset({1})))
    assert list(breaches_in(outside, "leader in ISR")) == [Breach(leader=0)]
    assert not PROPERTIES["leader in ISR"](outside)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_breach_is_where_the_property_is_violated(name: str) -> None:
    """A record may lack, or be another one; what is not committed may differ."""
    led = LeaderAndIsr(0, 0, frozenset({0, 1}))
    begin = initial(2)._replace(cell=led)
    leader = begin.replicas[0]._replace(
        log=(Record(0, 0), Record(0, 1)), high_watermark=1, believes=led
    )
    for log, breaches in (
        ((), [Breach(0, 1, 0)]),
        ((Record(1, 2),), [Breach(0, 1, 0)]),
        ((Record(0, 0), Record(1, 2)), []),
    ):
        member = begin.replicas[1]._replace(log=log)
        state = begin.with_replica(0, leader).with_replica(1, member)
        assert list(breaches_in(state, name)) == breaches
        assert PROPERTIES[name](state) is not bool(breaches)


def test_every_state_can_be_written(tmp_path: Path) -> None:
    """Each role is one that the pages know."""
    path = found(Fault.REPLY)
    roles = {one.role for step in path.steps for one in step.after.replicas}
    assert roles <= set(get_args(Role))
    assert any(one.awaits_reply for step in path.steps for one in step.after.replicas)
    assert json.loads(json.dumps(asdict(path)))["violates"] == STRONG
