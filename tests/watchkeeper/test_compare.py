"""Both worlds side by side: what counts as a difference, and that real ones are found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.real.world.test_runs import SHORT_S, scenario
from tests.support.live_zookeeper import skip_without_zookeeper
from watchkeeper import simulate
from watchkeeper.api.result import Result
from watchkeeper.cli.main import run_command
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.run.comparison import Comparison, Side, final_owners, operations_in

SEEDS = 3


@pytest.fixture(scope="module")
def runs() -> tuple[Result, ...]:
    fields = scenario({"at": "3s", "crash": "group/1"}, session_s=SHORT_S)
    return tuple(simulate(fields, seed=seed) for seed in range(SEEDS))


def compared(runs: tuple[Result, ...], *live: Result, declared: str | None = None) -> Comparison:
    return Comparison(Side(runs), Side(live), declared)


def retold(result: Result, *, drop: str = "", rename: tuple[str, str] = ("", "")) -> Result:
    """The same run, were its trace another one."""
    old, new = rename
    rows = [
        tuple(json.loads(json.dumps(cell).replace(old, new)) if old else cell for cell in row)
        for row in result.trace.rows
        if row[2] != drop
    ]
    return replace(result, trace=Trace(result.trace.header, rows))  # type: ignore[arg-type]


def test_runs_of_one_world_do_not_differ(runs: tuple[Result, ...]) -> None:
    """A run that is one of the others lies within them."""
    done = compared(runs, runs[1])

    assert done.differences() == []
    assert done.agrees
    assert done.exit_code == 0


def test_another_verdict_is_a_difference(runs: tuple[Result, ...]) -> None:
    """The verdict and each property that has another one; a scenario may declare it."""
    findings = tuple(
        replace(finding, verdict=Verdict.VIOLATED)
        if finding.claim.name == "full cover"
        else finding
        for finding in runs[0].findings
    )
    differing = replace(runs[0], judgement=replace(runs[0].judgement, findings=findings))

    done = compared(runs, differing)

    assert not done.agrees
    assert done.exit_code == 1
    assert "the verdict: holds simulated, violated live" in done.differences()
    assert "full cover: holds simulated, violated live" in done.differences()
    assert compared(runs, differing, declared="no clock is the same").exit_code == 0


def test_another_owner_is_a_difference(runs: tuple[Result, ...]) -> None:
    """Who holds what in the end is compared place by place."""
    done = compared(runs, retold(runs[0], rename=("group/0", "group/9")))

    expected = "in the end group: clicks/0-0 is group/0's simulated, group/9's live"
    assert expected in done.differences()


def test_no_member_is_another_owner(runs: tuple[Result, ...]) -> None:
    """What is owned in one world alone is named."""
    done = compared(runs, retold(runs[0], drop=EventKind.APPLIED))

    assert "in the end group: clicks/0-0 is group/0's simulated, no member's live" in (
        done.differences()
    )


def test_more_work_is_a_difference(runs: tuple[Result, ...]) -> None:
    """Operations that no simulated run requested, attempts beyond all of theirs."""
    busier = simulate(
        scenario(
            {"at": "3s", "crash": "group/1"}, {"at": "4s", "start": "group/1"}, session_s=SHORT_S
        )
    )

    differences = compared(runs, busier).differences()

    assert any(difference.startswith("attempts of group: ") for difference in differences)
    quiet = compared(runs, retold(runs[0], drop=EventKind.REQUEST)).differences()
    assert "operations, multi: " in "".join(quiet)


def test_owners_are_those_of_the_registry(runs: tuple[Result, ...]) -> None:
    """Every partition is claimed by the one that is left."""
    owners = dict(final_owners(runs[0].trace))

    assert len(owners) == 4
    assert set(owners.values()) == {"group/0"}


def test_operations_are_counted_by_their_parts(runs: tuple[Result, ...]) -> None:
    """As the simulated ensemble has counted them."""
    assert operations_in(runs[0].trace).total() == runs[0].operations


def test_the_command_lays_both_worlds_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For real: the verdicts agree, the same one owns everything, and both traces are there."""
    skip_without_zookeeper()
    file = tmp_path / "short.yaml"
    fields: dict[str, Any] = scenario({"at": "3s", "leave": "group/1"})
    file.write_text(yaml.safe_dump(fields))
    command = ["compare", str(file), "--seeds", "5", "--out", str(tmp_path / "runs"), "--json"]

    code = run_command(command)

    message = json.loads(capsys.readouterr().out)
    assert code == 0, message["differences"]
    assert message["agrees"]
    assert message["live"]["verdicts"] == {"holds": 1}
    assert message["live"]["owners"][0]["owners"] == message["simulated"]["owners"][0]["owners"]
    assert message["live"]["operations"].keys() == message["simulated"]["operations"].keys()
    assert "member left" in message["live"]["time_to_rest_s"]
    assert all((Path(home) / "trace.jsonl").exists() for home in message["folders"])
