"""The folder of a failing run: its trace, its page, and what replays it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from watchkeeper.virtual.threads.task import Schedule
from watchkeeper.virtual.world.faults import Strike, strike_of
from watchkeeper.virtual.world.outcome import Outcome
from watchkeeper.virtual.world.run import Case

REPLAY = "replay.json"
TRACE = "trace.jsonl"
VERDICT = "verdict.json"
TEST = "test_replay.py"
TRANSCRIPT = "transcript.txt"


def write_failure(outcome: Outcome, case: Case, out: Path) -> Path:
    """Write a run's trace, transcript, pages, verdict, replay file and test; returns the folder.

    Files of an earlier run of the same name are replaced.
    """
    from watchkeeper.reports import write_all
    from watchkeeper.reports.exports.transcript import Mark, transcript

    folder = out / f"{_word(case.name)}-{_word(outcome.policy)}-{outcome.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TRACE).write_bytes(b"".join(outcome.trace.lines()))
    (folder / VERDICT).write_text(_json(outcome.to_json()))
    (folder / REPLAY).write_text(_json(replay_value(outcome, case)))
    (folder / TEST).write_text(replay_test(case, folder))
    marks = [Mark(*mark) for mark in _marks(outcome)]
    (folder / TRANSCRIPT).write_text(transcript(outcome.trace, marks))
    write_all(outcome.trace, folder)
    return folder


def _marks(outcome: Outcome) -> list[tuple[int, str]]:
    """A moment and a sentence of the transcript for each property that is violated."""
    return [
        (
            outcome.end_us if finding.at_us is None else finding.at_us,
            f"{finding.claim.name} is violated: {finding.evidence}",
        )
        for finding in outcome.violated
    ]


def replay_value(outcome: Outcome, case: Case) -> dict[str, Any]:
    """All that repeats a run, as a value that JSON has."""
    file, _, function = _place_of(case)
    return {
        "file": file,
        "test": function,
        "seed": outcome.seed,
        "policy": outcome.policy,
        "until_s": outcome.until_s,
        "plan": [strike.to_json() for strike in outcome.plan],
        "schedule": {
            "choices": {str(step): value for step, value in outcome.schedule.choices.items()},
            "preemptions": outcome.schedule.preemptions,
            "stalls_ns": {str(step): ns for step, ns in outcome.schedule.stalls_ns.items()},
        },
        "fingerprint": outcome.fingerprint,
        "violates": [finding.claim.name for finding in outcome.violated],
    }


def read_schedule(value: dict[str, Any]) -> Schedule:
    """The schedule of a replay file."""
    return Schedule(
        choices={int(step): int(index) for step, index in value["choices"].items()},
        preemptions=[int(step) for step in value["preemptions"]],
        stalls_ns={int(step): int(ns) for step, ns in value["stalls_ns"].items()},
    )


def read_plan(values: list[dict[str, Any]]) -> tuple[Strike, ...]:
    """The faults of a replay file."""
    return tuple(strike_of(value) for value in values)


def replay_test(case: Case, folder: Path) -> str:
    """A test for pytest that replays the run."""
    return (
        f'"""Replays a run of {case.name} that violated a property."""\n\n'
        "from pathlib import Path\n\n"
        "from watchkeeper.virtual import replay\n\n\n"
        "def test_replay():\n"
        f"    replay(Path(__file__).with_name({REPLAY!r}))\n"
    )


def _place_of(case: Case) -> tuple[str, str, str]:
    """The file of a test, its module and its name."""
    module = sys.modules.get(case.test.__module__)
    file = getattr(module, "__file__", None) or ""
    return str(Path(file).resolve()) if file else "", case.test.__module__, case.test.__qualname__


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"
