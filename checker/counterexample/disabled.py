"""Which processes are disabled in a state, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from watchkeeper.checker.actors.actor_state import ActorState
from watchkeeper.checker.actors.actors import Actors, State
from watchkeeper.checker.actors.transitions import Step
from watchkeeper.model.actor.effects import NextEvent
from watchkeeper.model.counterexample.counterexample import Phase
from watchkeeper.model.plan.bounds import FaultKind

STARTS: dict[Phase, FaultKind] = {"absent": FaultKind.JOIN, "gone": FaultKind.RESTART}
"""Phase -> the fault by which such a process begins to run."""


def disabled_actors(system: Actors, state: State) -> tuple[str, ...]:
    """Return a sentence about each process that has no free step in a state."""
    return tuple(_sentences(system, state))


def _sentences(system: Actors, state: State) -> Iterator[str]:
    for actor, member in enumerate(system.members):
        steps = system.steps(actor, state[0], state[1 + actor])
        if any(not step.fault and not step.is_idle for step in steps):
            continue
        actor_state = member.local_states[state[1 + actor]]
        if actor_state.phase == "running":
            effect = member.moves.process.effect_of(actor_state)
            yield f"{member.name} {_waiting(effect, steps)}"
        elif actor_state.phase == "over":
            yield f"{member.name} has come to the end of its program"
        elif actor_state.phase == "abandoned":
            session = "keeps its session" if actor_state.is_alive else "has no session any more"
            yield f"{member.name} runs no program, and its process {session}"
        elif not _may_start(system, actor, steps, state[-1]):
            yield f"{member.name} {_not_running(actor_state, steps)}"


def _waiting(effect: Any, steps: list[Step]) -> str:
    """Why a process that runs can do nothing; a timer of its own may wake it all the same."""
    if not isinstance(effect, NextEvent):
        return f"waits for the answer to {type(effect).__name__}, and there is none yet"
    if any(step.is_idle and step.about is None for step in steps):
        return "waits for a notification or its timer, and no notification is under way"
    return "waits for a notification, and none is under way"


def _may_start(system: Actors, actor: int, steps: list[Step], account: int) -> bool:
    return any(
        step.fault in STARTS.values() and system.account_after(actor, step, account) >= 0
        for step in steps
    )


def _not_running(actor_state: ActorState, steps: list[Step]) -> str:
    """Why a process does not run, and why it does not begin to."""
    fault = STARTS[actor_state.phase]
    was = "is gone" if actor_state.phase == "gone" else "has not started"
    if any(step.fault == fault for step in steps):
        return f"{was}, and the budget has no {fault} left"
    return f"{was}, and the bound has no {fault}"
