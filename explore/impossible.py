"""What could not be done in a state, and why: who had to wait for others, or for nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from explore.local import Local
from explore.moves import Step
from explore.processes import Processes, State
from model.asks import NextNote

STARTS = {"absent": "join", "gone": "restart"}
"""Phase -> the fault by which such a process begins to run."""


def impossible(system: Processes, state: State) -> tuple[str, ...]:
    """A sentence about each process that could do nothing in a state of its own accord."""
    return tuple(_sentences(system, state))


def _sentences(system: Processes, state: State) -> Iterator[str]:
    for actor, member in enumerate(system.members):
        steps = system.steps(actor, state[0], state[1 + actor])
        if any(not step.fault and not step.is_idle for step in steps):
            continue
        local = member.locals[state[1 + actor]]
        if local.phase == "running":
            ask = member.moves.process.ask(local)
            yield f"{member.name} {_waiting(ask, steps)}"
        elif local.phase == "over":
            yield f"{member.name} has come to the end of its program"
        elif not _may_start(system, actor, steps, state[-1]):
            yield f"{member.name} {_not_running(local, steps)}"


def _waiting(ask: Any, steps: list[Step]) -> str:
    """Why a process that runs can do nothing; a timer of its own may wake it all the same."""
    if not isinstance(ask, NextNote):
        return f"waits for the answer to {type(ask).__name__}, and there is none yet"
    if any(step.is_idle and step.about is None for step in steps):
        return "waits for a note or its timer, and no note is under way"
    return "waits for a note, and none is under way"


def _may_start(system: Processes, actor: int, steps: list[Step], account: int) -> bool:
    return any(
        step.fault in STARTS.values() and system.account_after(actor, step, account) >= 0
        for step in steps
    )


def _not_running(local: Local, steps: list[Step]) -> str:
    """Why a process does not run, and why it does not begin to."""
    fault = STARTS[local.phase]
    was = "is gone" if local.phase == "gone" else "has not started"
    if any(step.fault == fault for step in steps):
        return f"{was}, and the budget has no {fault} left"
    return f"{was}, and the bound has no {fault}"
