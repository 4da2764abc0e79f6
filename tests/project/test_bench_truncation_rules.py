"""The bench of truncation rules reads what TLC prints, and compares it with the search here.

TLC and the published models are no part of the project. Where `TLA2TOOLS_JAR` names the jar and
`KAFKA_MODELS` a checkout of hachikuji/kafka-specification, TLC runs here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bench.tla.checker import TlcProblem, TlcSaid, config_of, parsed, run_tlc, states_of
from bench.tla.states import UnreadableState, partition_of, variables_of
from bench.truncation_rules import Figures, Row

from tests import HOME
from watchkeeper.checker.replication.partition import Bounds, LeaderAndIsr, initial
from watchkeeper.checker.replication.published import INVARIANTS, MODELS, PublishedSteps
from watchkeeper.checker.replication.search import sentences
from watchkeeper.model.registry.payloads import NO_LEADER
from watchkeeper.model.replication.replica_log import Record
from watchkeeper.model.replication.variants import KAFKA_08
from watchkeeper.real.errors import EnvironmentProblem

BENCH = HOME / "bench" / "truncation_rules.py"
BOUNDS = Bounds(replicas=2, log=1, records=1, epochs=2)
HEAD = """\
TLC2 Version 2026.01.02.030405 (rev: abcdef0)
Running breadth-first search Model-Checking with fp 0 and seed 0 with 1 worker on 2 cores.
Starting... (2026-01-02 03:04:05)
Computing initial states...
Finished computing initial states: 1 distinct state generated at 2026-01-02 03:04:06.
"""
FIRST = """\
/\\ quorumState = [leader |-> "NONE", leaderEpoch |-> -1, isr |-> {r0, r1}]
/\\ nextLeaderEpoch = 0
/\\ replicaLog = ( r0 :> [endOffset |-> 0, records |-> (0 :> -1)] @@
  r1 :> [endOffset |-> 0, records |-> (0 :> -1)] )
/\\ leaderAndIsrRequests = {}
/\\ replicaState = ( r0 :> [leader |-> "NONE", leaderEpoch |-> -1, hw |-> 0, isr |-> {}] @@
  r1 :> [leader |-> "NONE", leaderEpoch |-> -1, hw |-> 0, isr |-> {}] )
/\\ nextRecordId = 0
"""
SECOND = """\
/\\ quorumState = [leader |-> r1, leaderEpoch |-> 0, isr |-> {r0, r1}]
/\\ nextLeaderEpoch = 1
/\\ replicaLog = ( r0 :> [endOffset |-> 0, records |-> (0 :> -1)] @@
  r1 :> [endOffset |-> 0, records |-> (0 :> -1)] )
/\\ leaderAndIsrRequests = {[leader |-> r1, leaderEpoch |-> 0, isr |-> {r0, r1}]}
/\\ replicaState = ( r0 :> [leader |-> "NONE", leaderEpoch |-> -1, hw |-> 0, isr |-> {}] @@
  r1 :> [leader |-> "NONE", leaderEpoch |-> -1, hw |-> 0, isr |-> {}] )
/\\ nextRecordId = 0
"""
COMPLETE = f"""{HEAD}\
Progress(9) at 2026-01-02 03:05:06: 1,234 states generated, 567 distinct states found, 89 left.
Model checking completed. No error has been found.
31552 states generated, 10681 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 17.
Finished in 04s at (2026-01-02 03:05:10)
"""
VIOLATED = f"""{HEAD}\
Error: Invariant StrongIsr is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
{FIRST}
State 2: <ControllerElectLeader line 1, col 1 to line 2, col 2 of module KafkaReplication>
{SECOND}
2827 states generated, 1294 distinct states found, 534 states left on queue.
The depth of the complete state graph search is 2.
Finished in 02s at (2026-01-02 03:05:10)
"""
VIOLATED_AT_ONCE = f"""{HEAD}\
Error: Invariant LeaderInIsr is violated by the initial state:
{FIRST}
Finished in 00s at (2026-01-02 03:05:10)
"""
NOT_EVALUATED = f"""{HEAD}\
Error: Evaluating invariant TypeOk failed.
Attempted to check equality of integer -1 with non-integer:
[id |-> 0, epoch |-> 0]
Error: The behavior up to this point is:
State 1: <Initial predicate>
{FIRST}
40 states generated, 38 distinct states found, 28 states left on queue.
The depth of the complete state graph search is 4.
Finished in 00s at (2026-01-02 03:05:10)
"""


def test_a_search_to_the_end() -> None:
    """Lines of progress are not taken for the counts at the end."""
    said = parsed(COMPLETE)

    assert said == TlcSaid(
        version="Version 2026.01.02.030405 (rev: abcdef0)",
        generated=31_552,
        distinct=10_681,
        queued=0,
        depth=17,
        violated="",
        failed="",
        states=(),
    )


def test_a_violation() -> None:
    """The counterexample is read state by state."""
    said = parsed(VIOLATED)

    assert (said.violated, said.steps, said.distinct, said.queued) == ("StrongIsr", 1, 1_294, 534)
    assert [partition_of(state).cell.leader for state in said.states] == [NO_LEADER, 1]


def test_a_violation_by_the_first_state() -> None:
    """It has one state, no step, and no counts."""
    said = parsed(VIOLATED_AT_ONCE)

    assert (said.violated, said.steps, len(said.states)) == ("LeaderInIsr", 0, 1)
    assert partition_of(said.states[0]) == initial(2)


def test_an_invariant_that_cannot_be_evaluated() -> None:
    """It is no violation; the reason is kept."""
    said = parsed(NOT_EVALUATED)

    assert said.violated == ""
    assert said.failed == (
        "Evaluating invariant TypeOk failed. "
        "Attempted to check equality of integer -1 with non-integer:"
    )


@pytest.mark.parametrize(
    "text",
    [
        COMPLETE.replace("Finished in", "Killed after"),
        COMPLETE.replace("TLC2 Version", "Version"),
        f"{HEAD}Error: Parsing or semantic analysis failed.\nFinished in 00s at (now)",
    ],
)
def test_what_is_no_end_of_a_search(text: str) -> None:
    with pytest.raises(TlcProblem, match="TLC"):
        parsed(text)


def test_a_dump_is_read_like_a_counterexample() -> None:
    """Its headlines end with the number."""
    dump = f"State 1:\n{FIRST}\nState 2:\n{SECOND}\n"

    first, second = map(partition_of, states_of(dump))

    steps = PublishedSteps(replace(KAFKA_08, truncation=MODELS[0].rule), BOUNDS)
    assert sentences(steps, [first, second]) == ("the controller elects 1 (epoch 0, ISR {0, 1})",)


def test_a_log_is_read() -> None:
    """Up to its end; the offsets behind it are no records."""
    text = SECOND.replace(
        "r1 :> [endOffset |-> 0, records |-> (0 :> -1)]",
        "r1 :> [endOffset |-> 1, records |-> (0 :> [id |-> 0, epoch |-> 0] @@ 1 :> -1)]",
    )

    state = partition_of(text)

    assert state.replicas[1].log == (Record(0, 0),)
    assert state.sent == {LeaderAndIsr(0, 1, frozenset({0, 1}))}


def test_values() -> None:
    text = (
        '/\\ a = << 1, "b c", {} >>\n/\\ d = [e |-> {-2, f}]\n/\\ g = (1 :> h @@ 2 :> (3 :> 4))'
    )

    assert variables_of(text) == {
        "a": [1, "b c", []],
        "d": {"e": [-2, "f"]},
        "g": {1: "h", 2: {3: 4}},
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/\\ a = [b |-> 1", "expected, not the end"),
        ("/\\ a = ?", "value expected"),
        ("a = 1", "expected, not a"),
        ("/\\ a = 1", "no state of a replicated partition"),
        (SECOND.replace("nextLeaderEpoch = 1", "nextLeaderEpoch = 7"), "does not follow"),
    ],
)
def test_what_is_no_state(text: str, expected: str) -> None:
    with pytest.raises(UnreadableState, match=expected):
        partition_of(text)


def test_the_bounds_in_the_words_of_the_models() -> None:
    """Epochs are counted from 0, so the largest is one less than their number."""
    assert config_of(BOUNDS, "WeakIsr") == (
        "CONSTANTS\n  Replicas = {r0, r1}\n  LogSize = 1\n  MaxRecords = 1\n"
        "  MaxLeaderEpoch = 1\nINIT Init\nNEXT Next\nINVARIANT WeakIsr\n"
    )


def test_what_counts_as_a_difference() -> None:
    """The number of states only where both saw all, and what was found in any case."""
    holds = Figures("holds", 10, 20, 3, is_complete=True, seconds=1.0)
    violated = Figures("3 steps", 7, 9, 3, is_complete=False, seconds=1.0)

    def differs(ours: Figures, tlc: Figures | None, *, same: bool | None = None) -> str:
        return Row(BOUNDS, MODELS[0], "WeakIsr", ours, tlc, same).differs()

    assert differs(holds, holds) == differs(holds, None) == ""
    assert differs(violated, replace(violated, distinct=5)) == ""
    assert differs(holds, violated) == "holds here, 3 steps in TLC"
    assert differs(holds, replace(holds, distinct=11)) == "10 states here, 11 in TLC"
    assert differs(holds, holds, same=False) == "other states in TLC"


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the bench from any folder."""
    return subprocess.run(
        [sys.executable, str(BENCH), *arguments],
        capture_output=True,
        text=True,
        cwd=BENCH.anchor,
        check=False,
    )


def test_without_a_jar() -> None:
    """The table has our columns alone, and a line says why."""
    done = bench("--bounds", "2,1,1,2")

    assert done.returncode == 0, done.stderr
    assert "TLC's columns are left out: give the jar by --tlc" in done.stdout
    assert "TLC distinct" not in done.stdout
    assert done.stdout.count("KIP-320") == 1 + len(INVARIANTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bounds", "2,1"], "four numbers are expected"),
        (["--tlc", "/no/such.jar"], "both --tlc JAR and --models FOLDER"),
        (["--tlc", "/no/such.jar", "--models", "/no"], "the jar of TLC, is not a file"),
    ],
)
def test_wrong_options(arguments: list[str], message: str) -> None:
    done = bench(*arguments)

    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def jar_and_models() -> tuple[Path, Path]:
    """Where TLC and the models are; skips the test where they are not given."""
    paths = [os.environ.get(name, "") for name in ("TLA2TOOLS_JAR", "KAFKA_MODELS")]
    if not all(paths):
        pytest.skip(
            "TLC runs where TLA2TOOLS_JAR names tla2tools.jar and KAFKA_MODELS a checkout of "
            "hachikuji/kafka-specification"
        )
    return Path(paths[0]), Path(paths[1])


def test_a_missing_jar(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="jar of TLC, is not a file"):
        run_tlc(tmp_path / "none.jar", tmp_path, "Kip320", BOUNDS, "")


@pytest.mark.slow
def test_tlc_has_the_same_states_and_the_same_violations() -> None:
    """One by one, of every model within small bounds."""
    jar, models = jar_and_models()
    done = bench(
        *("--bounds", "2,1,1,3", "--tlc", str(jar), "--models", str(models)),
        *("--states", "100000", "--json"),
    )

    assert done.returncode == 0, done.stdout
    rows = json.loads(done.stdout)["rows"]
    assert {row["invariant"]: row["same_states"] for row in rows}["every state"] is True
    assert len(rows) == len(MODELS) * (len(INVARIANTS) + 2)
