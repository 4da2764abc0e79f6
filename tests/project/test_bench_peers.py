"""The bench of peers: the models count the same states, turns are fair, who is missing is said.

TLC is no part of the project. Where `TLA2TOOLS_JAR` names its jar, TLC runs here. Stateright is
built by the bench alone: it takes a minute.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench.beside import checkers
from bench.beside.checkers import TLA, NotThere, built_stateright
from bench.beside.contest import OURS, Contest, in_turns, report_of
from bench.beside.two_phase import CONSISTENT, PREPARED, TwoPhaseCommit

from tests import HOME
from watchkeeper.checker.search.search import Search, SearchOptions
from watchkeeper.checker.state_space.system import Move

STATES = {1: 12, 2: 56, 3: 288, 5: 8832}
"""Managers -> the distinct states of the model, as Stateright counts them."""


@pytest.mark.parametrize("managers", STATES)
def test_two_phase_commit_has_its_states_and_is_consistent(managers: int) -> None:
    """The search sees what the other checkers see; 288 for three is a published count."""
    found = checkers.ours(managers)

    assert found.states == STATES[managers]


class Hasty(TwoPhaseCommit):
    """A coordinator that commits without having heard of everyone."""

    def _of_coordinator(self, sent, heard):  # type: ignore[no-untyped-def]
        for move in super()._of_coordinator(sent, heard):
            yield move
            if move.label == "aborts":
                yield from self._hastily(sent, heard)

    def _hastily(self, sent, heard):  # type: ignore[no-untyped-def]
        yield self._move("commits", sent._replace(decided=2), heard)


def test_a_hasty_coordinator_is_found() -> None:
    """The property can fail: a manager aborts by itself, and another commits."""
    found = Search(Hasty(2), SearchOptions(reduces=False, keeps_edges=False)).run()

    assert [violation.what for violation in found.violations] == [CONSISTENT]


def test_a_prepared_manager_does_not_abort_by_itself() -> None:
    """Who has said that it is prepared follows the coordinator."""
    system = TwoPhaseCommit(1)
    _, *first = system.initial()
    prepared = next(iter(system.moves(1, 0, first[1])))
    labels = [move.label for move in system.moves(1, prepared.shared, PREPARED)]

    assert isinstance(prepared, Move)
    assert (prepared.local, labels) == (PREPARED, [])


@pytest.mark.parametrize("text", [checkers.RUST, TLA], ids=["Rust", "TLA+"])
def test_the_other_texts_have_the_same_steps(text: Path) -> None:
    """Each has a step for each of those here, and no other."""
    found = text.read_text(encoding="utf-8")
    in_rust = re.search(r"enum Step \{([^}]*)\}", found)
    in_tla = re.search(r"^Next ==(.*?)\n\n", found, re.MULTILINE | re.DOTALL)
    part = in_rust or in_tla
    assert part is not None
    words = {word for word in re.findall(r"[A-Z][a-z]+", part[1]) if word != "Managers"}
    words -= {"Next", "Decision"}

    decisions = {"Decide"} if in_rust else {"Commit", "Abort"}
    assert words == {"Hear", "Prepare", "Give", "Follow"} | decisions


def test_tlc_counts_the_same_states() -> None:
    """TLC itself, where its jar is there."""
    jar = os.environ.get("TLA2TOOLS_JAR")
    if not jar:
        pytest.skip("TLC runs where TLA2TOOLS_JAR names tla2tools.jar")

    assert checkers.tlc(Path(jar), 3).states == STATES[3]


# --- turns and the table ---------------------------------------------------------------


def test_participants_take_turns_and_each_pair_gives_a_ratio() -> None:
    """Another one begins in each round; the ratio says how many times as good ours is."""
    order: list[str] = []
    taken = {OURS: iter([2.0, 4.0]), "other": iter([1.0, 8.0])}

    def measured(who: str) -> float:
        order.append(who)
        return next(taken[who])

    runs = {who: lambda who=who: measured(who) for who in taken}  # type: ignore[misc]
    contest = in_turns(Contest("some", "s", more_is_better=False), runs, 2)

    assert order == [OURS, "other", "other", OURS]
    assert contest.times_better("other") == pytest.approx((0.5 + 2.0) / 2)
    contest.more_is_better = True
    assert contest.times_better("other") == pytest.approx((2.0 + 0.5) / 2)


def test_who_is_missing_stands_below_the_table() -> None:
    """Its name, and the reason."""
    contest = Contest("some", "s", more_is_better=False, values={OURS: [1.0]})
    contest.missing["other"] = "it is not installed"

    report = report_of([contest])

    assert report.notes == ["some, other: left out: it is not installed"]
    assert [row[1] for row in report.rows] == [OURS]


def test_without_cargo_and_jar_the_search_runs_alone(tmp_path: Path) -> None:
    """The command says what it lacks, and measures the rest."""
    done = subprocess.run(
        [
            *(sys.executable, str(HOME / "bench/peers.py"), "--only", "search,events"),
            *("--managers", "3", "--entries", "1000", "--rounds", "1", "--json"),
        ],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    found = json.loads(done.stdout)
    searched = found["search, 3 managers"]
    assert set(searched["values"]) == {OURS}
    assert "cargo is not installed" in searched["missing"]["Stateright"]
    assert "--tlc" in searched["missing"]["TLC"]
    assert set(found["events, one after the other"]["values"]) == {OURS, "SimPy"}


def test_a_build_that_fails_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of cargo says why, such as a registry that cannot be reached."""
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\necho 'first' >&2\necho 'no such registry' >&2\nexit 101\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(NotThere, match=r"stateright 0\.31\.0: no such registry"):
        built_stateright(tmp_path)
