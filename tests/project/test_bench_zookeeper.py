"""The benches that hold this project's ZooKeeper against Apache's: what they find, made small."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import HOME
from tests.support.live_zookeeper import skip_without_zookeeper

pytest.importorskip("kazoo")
sys.path.append(str(HOME / "bench"))

import kazoo_suite
import wire_differential
import zookeeper_clients
import zookeeper_hostile
from bench.support import zookeepers
from bench.support.zookeepers import Kind, Wanted
from bench.wire import jute
from bench.wire.jute import OPEN, Op
from bench.wire.mutated_frames import MOST_BYTES, MutatedFrames, Owed, owed_to
from bench.wire.steps import Burst, Expire, Step, Steps
from kazoo_suite import Comparison, Outcome

from watchkeeper.model.actor.operations import Create, GetData
from watchkeeper.model.wire.requests import decode_request

BENCH = HOME / "bench"


def report_of(name: str, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What a small run of a bench says, as JSON."""
    done = subprocess.run(
        [sys.executable, str(BENCH / f"{name}.py"), *arguments, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


# --- kazoo's suite -----------------------------------------------------------------------


def test_a_failure_in_the_clean_up_fails_the_test() -> None:
    """A test that passes and cannot be cleaned up has failed; one that was stopped hangs."""
    outcomes = kazoo_suite.outcomes_of(
        [
            {"test": "a", "outcome": "passed", "why": "", "seconds": 1},
            {"test": "a", "outcome": "failed", "why": "ValueError", "seconds": 1},
            {"test": "b", "outcome": "failed", "why": "Hangs: not within 3 s", "seconds": 3},
            {"test": "c", "outcome": "passed", "why": "", "seconds": 1},
        ]
    )

    assert [outcomes[name].outcome for name in "abc"] == ["failed", "hangs", "passed"]


def compared(java: str, python: str, *again: tuple[str, str]) -> Comparison:
    """A test with one outcome on each kind of servers, and in further runs."""
    both: dict[Kind, kazoo_suite.Outcomes] = {
        "java": {"t": Outcome(java)},
        "python": {"t": Outcome(python)},
    }
    return Comparison(both, {"t": list(again)})


def test_only_a_test_that_fails_each_time_on_ours_is_worse() -> None:
    """Tests wait for times that a busy machine does not keep: one failure shows nothing."""
    assert compared("passed", "failed", ("passed", "hangs")).worse == ["t"]
    assert compared("passed", "failed", ("passed", "passed")).worse == []
    assert compared("failed", "hangs").differing == []
    assert compared("failed", "passed").worse == []
    assert compared("passed", "failed", ("passed", "passed")).passed("python") == 1
    assert compared("passed", "failed", ("passed", "hangs")).passed("python") == 0
    assert not compared("passed", "failed", ("passed", "passed")).is_steady("t")


NEEDS_WHAT_IS_NOT_THERE = ("Reconfig", "ReadOnly", "update_host_list", "ssl", "SSL", "sasl")
"""Words in the names of tests that need a reconfiguration, TLS, SASL, or three servers."""


@pytest.mark.slow
def test_a_third_of_kazoos_own_tests_pass(tmp_path: Path) -> None:
    """Each passes at least once in four runs: they wait for times that a machine may not keep."""
    run = kazoo_suite.Run("python", 1, 90, tmp_path / "kazoo.log")
    third = sorted(kazoo_suite.all_tests())[::3]

    first = run.outcomes(third)
    left = [test for test in third if first[test].outcome not in ("passed", "skipped")]
    for _ in range(3):
        left = [
            test for test in left if not any(word in test for word in NEEDS_WHAT_IS_NOT_THERE)
        ]
        again = run.outcomes(left) if left else {}
        left = [test for test in left if again[test].outcome != "passed"]

    assert left == []
    assert sum(outcome.outcome == "passed" for outcome in first.values()) > len(third) / 2


REFUSED = "Reconfig"
"""What the simulated ZooKeeper refuses; Apache's server executes it."""


@pytest.mark.parametrize("each", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_kazoos_suite_passes_in_virtual_time(each: int, tmp_path: Path) -> None:
    """With three servers, each test of the default handler passes; none waits for real time."""
    log = tmp_path / "kazoo.log"
    run = kazoo_suite.Run("virtual", 3, 90, log)
    tests = [test for test in kazoo_suite.all_tests() if kazoo_suite.is_virtual(test)][::each]

    outcomes = run.outcomes(tests)

    wrong = {
        test: outcome
        for test, outcome in outcomes.items()
        if outcome.outcome not in ("passed", "skipped") and REFUSED not in test
    }
    assert not wrong, log.read_text()[-20_000:]
    assert sum(outcome.outcome == "passed" for outcome in outcomes.values()) > 290 // each


@pytest.mark.slow
def test_kazoo_suite() -> None:
    """The tests of one file pass on ours, with servers that come and go."""
    report = report_of("kazoo_suite", "--kinds", "python", "--only", "test_counter")

    assert report["python"]["passed"] == 5
    assert report["python"]["failed"] == report["python"]["lost"] == 0


# --- the protocol of the benches -----------------------------------------------------------


def test_requests_are_those_of_the_product() -> None:
    """What the benches write, the server reads as it is meant."""
    create = jute.create("/a", b"x", OPEN, 3)
    read = jute.with_watch("/a", True)

    body = decode_request(jute.request(7, Op.CREATE, create)[4:]).body
    assert isinstance(body, Create)
    assert (body.path, body.data, body.ephemeral, body.sequential) == ("/a", b"x", True, True)
    assert decode_request(jute.request(7, Op.GET_DATA, read)[4:]).body == GetData("/a", True)


@given(st.lists(st.binary(max_size=30), max_size=6), st.binary(max_size=3))
def test_a_server_owes_an_answer_to_each_whole_frame(payloads: list[bytes], rest: bytes) -> None:
    """Frames that are whole are owed an answer; the rest of one is owed patience."""
    data = b"".join(map(jute.framed, payloads))
    # The answer to a request with the xid of events cannot be told from an event.
    owed = sum(payload[:4] != jute.INT.pack(jute.EVENT_XID) for payload in payloads)

    assert owed_to(data + rest) == Owed(owed, "not whole" if rest else "whole")
    assert owed_to(data + jute.INT.pack(-1)) == Owed(owed, "bad length")
    too_long = jute.INT.pack(MOST_BYTES + 1)
    assert owed_to(data + too_long) == Owed(owed, "bad length")


def test_mutated_frames_come_again_by_their_seed() -> None:
    """A run that has found something can be repeated."""
    one, other = MutatedFrames(Random(5)), MutatedFrames(Random(5))

    frames = [one.frame() for _ in range(300)]
    assert frames == [other.frame() for _ in range(300)]
    endings = {owed_to(frame).ending for frame in frames}
    assert endings == {"whole", "bad length", "not whole"}


def script(seed: int, *, servers: int = 1) -> list[Step]:
    """The first script of a seed."""
    return Steps(Random(seed), "/r", slots=3, servers=servers).script(2_000)


def test_scripts_come_again_by_their_seed() -> None:
    """A script is its seed, and has every opcode and every kind of step."""
    steps = script(1)

    assert steps == script(1)
    assert steps != script(2)
    requests = [each for step in steps for each in getattr(step, "requests", ())]
    assert {int(op) for op in Op} - {request.opcode for request in requests} <= {
        *(Op.CHECK, Op.SASL, Op.CLOSE, Op.SET_WATCHES, Op.SET_WATCHES_2)
    }
    assert len({type(step) for step in steps}) == 6


# --- the differential ----------------------------------------------------------------------


def options(**changed: Any) -> Any:
    """The options of a small run that compares ours with ours."""
    arguments = {
        **{"operations": 300, "servers": 1, "slots": 3, "seed": 1, "script": 150},
        **{"shrink": 12, "differences": 1, "kinds": ("python", "python")},
    }
    return wire_differential.Namespace(**{**arguments, **changed})


@pytest.mark.slow
def test_ours_does_not_differ_from_itself() -> None:
    """The bench is sure of what it compares: two equal servers do not differ."""
    found = wire_differential.compared(options())

    assert found.operations >= 300
    assert found.differences == {}


@pytest.mark.slow
def test_a_server_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that grant another timeout are found out, in a few steps."""
    starts = iter(range(1_000))

    def start(kind: Kind, wanted: Wanted) -> Any:
        if next(starts) % 2:
            wanted = replace(wanted, max_session_ms=25_000)
        return zookeepers.start(kind, wanted)

    monkeypatch.setattr(wire_differential, "start", start)
    found = wire_differential.compared(options())

    (difference,) = found.differences.values()
    assert len(difference.steps) <= 2
    assert "25000" in "\n".join(wire_differential.explained(difference, ("python", "python")))


def test_a_signature_has_no_names_and_numbers() -> None:
    """The same mistake at another place counts as the same difference."""
    steps = (Expire(0, drops=True),)
    notes = [(5, int(Op.CREATE), 9, 0, "/a")], [(5, int(Op.CREATE), 9, -110, None)]
    others = [(8, int(Op.CREATE), 3, 0, "/b")], [(8, int(Op.CREATE), 3, -110, None)]

    one, other = (
        wire_differential.Difference(steps, {"slot 0": pair[0]}, {"slot 0": pair[1]})
        for pair in (notes, others)
    )

    assert wire_differential.signature_of(one) == wire_differential.signature_of(other)
    assert wire_differential.signature_of(one) == ("Expire", "CREATE str", "CREATE -110")


# --- other clients -------------------------------------------------------------------------


def test_events_are_taken_out_of_the_answers() -> None:
    """Events come at any moment, so what is printed around them is one text."""
    text = "one\n\nWATCHER::\n\nWatchedEvent state:X\ntwo\n"

    assert zookeeper_clients.without_events(text) == ("WatchedEvent state:X", "one\ntwo\n")


def test_what_servers_cannot_share_is_taken_out() -> None:
    """Times and session ids differ; the time of the root and the owner of no session do not."""
    text = "ctime = Mon\nmtime = Thu Jan 01 00:00:00 UTC 1970\nephemeralOwner = 0x1ab\n"

    assert zookeeper_clients.normalised(text + "ephemeralOwner = 0x0", "h:1") == (
        "ctime = a time\nmtime = Thu Jan 01 00:00:00 UTC 1970\n"
        "ephemeralOwner = a session\nephemeralOwner = 0x0"
    )


@pytest.mark.slow
def test_clients() -> None:
    """Apache's command-line client prints the same on both."""
    skip_without_zookeeper()
    report = report_of("zookeeper_clients", "--only", "java")

    assert report["java"]["code"] == 0
    assert report["java"]["differing"] == []


# --- hostile input and speed ---------------------------------------------------------------


def test_a_traceback_in_the_log_is_found() -> None:
    """Reasons of closed connections are no exceptions."""
    reasons = "closed: the client has closed it\nclosed: a frame of -2 bytes\n"

    assert zookeeper_hostile.exceptions_in(reasons) == []
    assert zookeeper_hostile.exceptions_in(f"{reasons}Traceback (most recent call last):\n")
    assert zookeeper_hostile.exceptions_in("ERROR:asyncio:Fatal error")


@pytest.mark.slow
def test_hostile() -> None:
    """Each frame has its due, and the log shows no exception."""
    report = report_of("zookeeper_hostile", "--frames", "600", "--half-open", "20")

    assert report["wrong"] == report["exceptions"] == []
    assert report["counts"]["half-open connections closed in time"] == 20


@pytest.mark.slow
def test_speed() -> None:
    """Each measure is taken, and every request is answered without an error."""
    report = report_of(
        "zookeeper_speed",
        *("--kinds", "python", "--requests", "40", "--rounds", "1", "--clients", "15"),
    )

    assert {"creates", "gets, pipelined", "creates, raw"} <= set(report["rates"])
    assert len(report["herd"]["ours, in memory"]["last_ms"]) == 1


def test_a_burst_counts_its_requests() -> None:
    """A step without requests is one operation."""
    burst = Burst(0, script(1)[0].requests * 3)  # type: ignore[union-attr]

    assert wire_differential.number_of(burst) == 3
    assert wire_differential.number_of(Expire(0, drops=True)) == 1
