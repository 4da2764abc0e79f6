"""A schedule as single actions for a replay, with operations and answers as values.

The steps of a schedule are texts in a file. The values they stand for (the operations,
answers and notifications) are found by following the same path through the state space. The
replay starts before the first step: brokers and first consumers start in actions of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from typing import Any

from watchkeeper.checker.actors.actor import COMMIT
from watchkeeper.checker.actors.actor_state import (
    ActorState,
    Broadcast,
    ProcessChange,
    missed,
    notified,
)
from watchkeeper.checker.actors.actors import State
from watchkeeper.checker.actors.transitions import Step
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.explanation import scheduled_step_of
from watchkeeper.checker.counterexample.path import Taken, successors
from watchkeeper.model.actor.events import Fired
from watchkeeper.model.actor.operations import Operation
from watchkeeper.model.counterexample.counterexample import ScheduledStep
from watchkeeper.model.counterexample.replay_steps import BEFORE, ExpectedZnode, ReplayStep
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.registry import paths

TAKES_PART = frozenset({StepKind.REPLY, StepKind.OLD_SESSION_EXPIRED, StepKind.LATE_REQUEST})
"""Steps after which the process itself receives the events of its change."""


class NoSuchStep(Exception):
    """A schedule has a step that is not enabled; the text says which."""


def first_state(system: ClusterSystem) -> State:
    """Return the state in which schedules begin."""
    return (*system.initial(), 0)


def system_for(
    plan: Plan, bounds: Bounds, steps: Sequence[ScheduledStep]
) -> tuple[ClusterSystem, list[Taken]]:
    """A system in which a schedule can be followed, and its steps.

    A schedule may have been found with reads folded into other steps, or without.
    """
    system = ClusterSystem(plan, bounds)
    try:
        return system, path_of(system, steps)
    except NoSuchStep as error:
        plain = ClusterSystem(plan, bounds, folds=False)
        try:
            return plain, path_of(plain, steps)
        except NoSuchStep:
            raise error from None


def path_of(system: ClusterSystem, steps: Sequence[ScheduledStep]) -> list[Taken]:
    """Return the path of a schedule; raises NoSuchStep."""
    state = first_state(system)
    path = []
    for number, scheduled in enumerate(steps, 1):
        taken = _taken(system, state, scheduled)
        if taken is None:
            raise NoSuchStep(
                f"step {number}: {scheduled.node} {scheduled.text} {scheduled.operation}".rstrip()
                + " cannot be done there: the scenario, its bounds, or the protocol are others "
                "than those the schedule was found with"
            )
        path.append(taken)
        state = taken.after
    return path


def _taken(system: ClusterSystem, state: State, scheduled: ScheduledStep) -> Taken | None:
    wanted = _fingerprint(scheduled)
    for taken in successors(system, state):
        if system.actors[taken.actor] != scheduled.node or taken.step.does != scheduled.does:
            continue
        if _fingerprint(scheduled_step_of(system, taken)) == wanted:
            return taken
    return None


def _fingerprint(scheduled: ScheduledStep) -> str:
    """Return a step as a text that survives a round trip through a file."""
    fields = (*astuple(scheduled),)
    return json.dumps(fields, sort_keys=True, default=str)


# --- steps -----------------------------------------------------------------------------


def replay_steps_of(system: ClusterSystem, path: Iterable[Taken]) -> Iterator[ReplayStep]:
    """Yield the replay steps of a path, those before its first step included."""
    yield from _initial_replay_steps(system)
    for number, taken in enumerate(path, 1):
        yield from _replay_steps(
            system,
            number,
            taken.actor,
            taken.step,
            _actor_states(system, taken.before),
            _actor_states(system, taken.after)[taken.actor],
            taken.before[0],
        )
        yield from _started_with_it(system, number, taken)


def _started_with_it(system: ClusterSystem, number: int, taken: Taken) -> Iterator[ReplayStep]:
    """Yield the starts of the other members of a process that starts again."""
    if taken.step.does is not StepKind.START or not taken.step.broadcast:
        return
    before, after = (_actor_states(system, state) for state in (taken.before, taken.after))
    for at, name in enumerate(system.actors):
        if at != taken.actor and before[at].phase == "gone" and after[at].phase == "running":
            yield ReplayStep(number, name, StepKind.START, session_after=after[at].session)


def _actor_states(system: ClusterSystem, state: State) -> list[ActorState]:
    return [
        member.local_states[number]
        for member, number in zip(system.members, state[1:], strict=False)
    ]


def _initial_replay_steps(system: ClusterSystem) -> Iterator[ReplayStep]:
    """How brokers, and the first members, reach the start of a schedule."""
    for done in system.initial_steps():
        after = done.after[done.actor]
        if done.step is None:
            name = system.actors[done.actor]
            yield ReplayStep(BEFORE, name, StepKind.START, session_after=after.session)
        else:
            yield from _replay_steps(
                system, BEFORE, done.actor, done.step, done.before, after, done.tree
            )


def _replay_steps(
    system: ClusterSystem,
    number: int,
    actor: int,
    step: Step,
    before: list[ActorState],
    after: ActorState,
    tree: int,
) -> Iterator[ReplayStep]:
    """The replay steps of one step: its action, the reads that follow, and a fault after it."""
    node, actor_state = system.actors[actor], before[actor]
    is_by_hand = system.members[actor].moves.process.commits_by_hand
    does, fault = step.does, step.then
    events = _events_sent(system, actor, step, before, tree)
    parts: list[tuple[StepKind, Any, Any]] = [(does, step.about, step.answer)]
    if fault is not None:
        first = step.followed_by[:1] if does in (StepKind.REPLY, StepKind.LATE_REQUEST) else ()
        parts = [(does, *first[0])] if first else [(does, _notification(actor_state, does), None)]
        parts += [(StepKind.REPLY, *read) for read in step.followed_by[len(first) :]]
        parts.append((fault, step.about, step.answer))
    else:
        parts += [(StepKind.REPLY, *read) for read in step.followed_by]
    for place, (kind, about, answer) in enumerate(parts):
        is_last = place == len(parts) - 1
        yield ReplayStep(
            number,
            node,
            kind,
            _watches_set_again(actor_state) if kind == StepKind.RECONNECT else about,
            answer,
            session=_session_of(actor_state, step, after) if place == 0 else after.session,
            session_after=after.session,
            events=events if is_last else {},
            late_requests=_late_requests(actor_state, after)
            if kind == StepKind.DELAYED_REQUEST
            else (),
            order=COMMIT if is_by_hand and kind == StepKind.READ_MESSAGE else None,
        )


def _notification(actor_state: ActorState, does: StepKind) -> Any:
    return actor_state.channel[0] if does == StepKind.NOTIFICATION else None


def _watches_set_again(actor_state: ActorState) -> tuple[tuple[str, str], ...]:
    """The watches that a client leaves again when it is connected again."""
    return tuple(sorted(actor_state.watches))


def _late_requests(before: ActorState, after: ActorState) -> tuple[Operation[Any], ...]:
    """What was left behind."""
    return tuple(operation for _, operation in after.late_requests[len(before.late_requests) :])


def _session_of(actor_state: ActorState, step: Step, after: ActorState) -> int:
    """Return the session that a step concerns."""
    does = step.does
    if does == StepKind.OLD_SESSION_EXPIRED:
        return next(orphan for orphan in actor_state.orphans if orphan not in after.orphans)
    if does == StepKind.LATE_REQUEST:
        return actor_state.late_requests[0][0]
    return actor_state.session


def _events_sent(
    system: ClusterSystem, actor: int, step: Step, before: list[ActorState], tree: int
) -> dict[int, tuple[Fired, ...]]:
    """Return the events that a step sends, by session."""
    events: dict[int, tuple[Fired, ...]] = {}
    if not step.broadcast and step.does != StepKind.RECONNECT:
        return events
    if isinstance(step.about, ProcessChange):
        return events
    is_notified = step.does in TAKES_PART and step.then in (None, StepKind.LEAVE)
    for at, actor_state in enumerate(before):
        if actor_state.link == "up" and actor_state.is_alive and (at != actor or is_notified):
            events[actor_state.session] = _sent(actor_state, step.broadcast)
    if step.does == StepKind.RECONNECT:
        missed_events = missed(system.service.trees[tree], before[actor])
        events[before[actor].session] = tuple(
            event for _, event in missed_events if event is not None
        )
    return events


def _sent(actor_state: ActorState, broadcast: Broadcast) -> tuple[Fired, ...]:
    return notified(actor_state, broadcast).channel[len(actor_state.channel) :]


# --- the end ---------------------------------------------------------------------------


def expected_znodes(system: ClusterSystem, state: State) -> tuple[ExpectedZnode, ...]:
    """Every znode in a state, but those that a service keeps for itself."""
    nodes = system.service.trees[state[0]].nodes
    return tuple(
        ExpectedZnode(
            path,
            znode.data,
            None if paths.parse_offset(path) is not None else znode.version,
            znode.owner,
        )
        for path, znode in sorted(nodes.items())
        if path != "/" and path != "/zookeeper" and not path.startswith("/zookeeper/")
    )
