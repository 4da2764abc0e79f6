"""Explains a violation: each step, the state after it, and what it violates in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from watchkeeper.checker.actors.actor_state import ActorState
from watchkeeper.checker.actors.actors import Actors, State
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.cluster.control_plane import OF_WRITES, WRITER, registry_in_words
from watchkeeper.checker.counterexample.disabled import disabled_actors
from watchkeeper.checker.counterexample.path import Taken, lasso_steps, path_to
from watchkeeper.checker.search.liveness import Liveness
from watchkeeper.checker.search.search import Search
from watchkeeper.checker.search.successors import Violation
from watchkeeper.model.actor.effects import NextEvent, Partition
from watchkeeper.model.actor.events import Command, Fired, Notification
from watchkeeper.model.actor.operations import Operation, Pipelined
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.counterexample.counterexample import (
    UNKNOWN_OWNER,
    Counterexample,
    CounterexampleStep,
    ProcessSnapshot,
    ScheduledStep,
)
from watchkeeper.model.plan.bounds import variants_in_words
from watchkeeper.model.properties.ownership import MONOTONE, OWN_NODES, SINGLE, STRICT, TRUTHFUL
from watchkeeper.model.properties.progress import PROGRESS
from watchkeeper.model.registry import paths
from watchkeeper.model.trace.text import described_answer, in_words


def counterexample_of(
    system: ClusterSystem, search: Search, violation: Violation, live: Liveness | None = None
) -> Counterexample:
    """The counterexample of a violation; `live` holds the lasso if no
    converged state is reached."""
    taken = path_to(system, search, violation)
    lasso = live.lasso if live is not None and violation.what == PROGRESS.name else None
    stem, hops = lasso_steps(system, search, lasso) if lasso is not None else ([], [])
    steps = [
        _step_of(system, number, hop) for number, hop in enumerate([*taken, *stem, *hops], 1)
    ]
    begins = len(taken) + len(stem)
    first = search.state(0)
    if live is not None and violation.what == PROGRESS.name:
        is_stuck = live.stuck is not None
        proof = _no_convergence(len(taken), steps[begins:], is_stuck=is_stuck)
        proof += _outlived(system, search.state(violation.state))
    else:
        proof = _proof(system, taken, search.state(violation.state), violation)
    return Counterexample(
        scenario=system.plan.name,
        variant=variants_in_words(system.plan),
        violates=violation.what,
        proof=proof,
        bound=str(system.budget),
        nodes=system.actors,
        steps=tuple(steps[: len(taken)]),
        first=snapshots_of(system, first),
        first_owners=_owners(system, first),
        first_registry=registry_of(system, first),
        stem=tuple(steps[len(taken) : begins]),
        cycle=tuple(steps[begins:]),
    )


def _step_of(system: ClusterSystem, number: int, taken: Taken) -> CounterexampleStep:
    return CounterexampleStep(
        number,
        scheduled_step_of(system, taken),
        snapshots_of(system, taken.after),
        _owners(system, taken.after),
        disabled_actors(system, taken.before),
        registry_of(system, taken.after),
    )


def scheduled_step_of(system: Actors, taken: Taken) -> ScheduledStep:
    """What was done in a step."""
    step = taken.step
    return ScheduledStep(
        node=system.actors[taken.actor],
        does=step.does,
        fault=step.fault,
        operation=in_words(step.about),
        answer=described_answer(step.answer) if isinstance(step.about, Operation) else None,
        then=step.then,
        reads=tuple(
            (in_words(operation), described_answer(answer))
            for operation, answer in step.followed_by
        ),
    )


# --- how all stand ---------------------------------------------------------------------


def snapshots_of(system: Actors, state: State) -> dict[str, ProcessSnapshot]:
    """Where every process stands."""
    return {
        member.name: _snapshot_of(member.local_states[number], member.moves.process.effect_of)
        for member, number in zip(system.members, state[1:], strict=False)
    }


def _snapshot_of(actor_state: ActorState, effect_of: Any) -> ProcessSnapshot:
    return ProcessSnapshot(
        phase=actor_state.phase,
        waits_for=_waits_for(effect_of(actor_state)) if actor_state.phase == "running" else "",
        session=_session(actor_state),
        fetching=tuple(str(fetch.partition) for fetch in actor_state.fetching),
        notifications=tuple(
            _text_of(notification) for notification in (*actor_state.inbox, *actor_state.channel)
        ),
    )


def _waits_for(effect: Any) -> str:
    if isinstance(effect, Ended):
        return ""
    if isinstance(effect, NextEvent):
        return "a notification" if effect.timeout_ms != 0 else "a poll of its notifications"
    if isinstance(effect, Operation | Pipelined):
        return f"{effect.purpose}: {in_words(effect)}"
    return type(effect).__name__


def _session(actor_state: ActorState) -> str:
    if actor_state.link == "none" or not actor_state.session:
        return "none"
    if actor_state.is_alive:
        return "alive" if actor_state.link == "up" else "alive, not connected"
    return "dead" if actor_state.link == "expired" else "dead, and it does not know"


def _text_of(notification: Notification) -> str:
    if isinstance(notification, Fired):
        return in_words(notification)
    return notification.kind.value if isinstance(notification, Command) else notification.value


def registry_of(system: ClusterSystem, state: State) -> dict[str, str]:
    """What the registry says of the control plane; empty without one."""
    if system.control_plane is None:
        return {}
    return registry_in_words(system, system.service.trees[state[0]].nodes)


def _owners(system: ClusterSystem, state: State) -> dict[str, str]:
    owners = {}
    for path, znode in sorted(system.service.trees[state[0]].nodes.items()):
        claim = paths.parse_owner(path)
        if claim is not None:
            owners[str(claim[1])] = system.name_of.get(znode.owner, UNKNOWN_OWNER)
    return owners


# --- why it is one ---------------------------------------------------------------------


def _proof(system: ClusterSystem, taken: list[Taken], state: State, violation: Violation) -> str:
    """One sentence that says what is wrong, with the steps that show it."""
    what = violation.what
    if what in (SINGLE.name, STRICT.name):
        return _two_owners(system, taken, what)
    if what == TRUTHFUL.name:
        return _untruthful(system, taken)
    if what in (OWN_NODES.name, MONOTONE.name):
        return _violating_step(system, taken, what)
    if what in {claim.name for claim in OF_WRITES}:
        last = taken[-1]
        evidence = dict(system.written_by(last.before[0], last.step).violations)[what]
        return f"in step {len(taken)}: {evidence.replace(WRITER, system.actors[last.actor])}"
    found = dict(system.terminal_findings(state))
    evidence = found.get(what, what)
    return f"after step {len(taken)} nothing has to come any more: {_without_time(evidence)}"


def _no_convergence(since: int, lasso: Sequence[CounterexampleStep], *, is_stuck: bool) -> str:
    """Why no converged state is reached since a step, and which processes go round instead."""
    then = f"after step {since}" if since else "from the beginning"
    never = f"{then} no converged state is reachable any more, even if nothing else goes wrong"
    if not lasso:
        return never
    who = " and ".join(sorted({step.scheduled.node for step in lasso}))
    first, last = lasso[0].number, lasso[-1].number
    between = "and" if last == first + 1 else "to"
    steps = f"in step {first}" if first == last else f"in steps {first} {between} {last}"
    if is_stuck:
        return f"{never}; {who} may go round for ever, {steps}"
    return (
        f"{then} {who} may go round for ever, {steps}, and no converged state is reached, though "
        "no process is passed over and nothing else goes wrong"
    )


def _outlived(system: ClusterSystem, state: State) -> str:
    """The sessions that outlive their programs in a state; empty without any."""
    names = [
        name
        for name, actor_state in system.values(state).items()
        if actor_state.phase == "abandoned" and actor_state.is_alive
    ]
    return "".join(f"; the session of {name} outlives its program" for name in names)


def _without_time(evidence: str) -> str:
    return evidence.partition(", ")[2] if evidence.startswith("at rest at") else evidence


def _fetching(system: ClusterSystem, state: State, actor: int) -> set[Partition]:
    actor_state = system.members[actor].local_states[state[1 + actor]]
    return {fetch.partition for fetch in actor_state.fetching}


def _since(system: ClusterSystem, taken: list[Taken], actor: int, partition: Partition) -> int:
    """The step in which a member began to fetch a partition for the last time."""
    since = len(taken)
    for number in range(len(taken), 0, -1):
        if partition not in _fetching(system, taken[number - 1].after, actor):
            break
        since = number
    return since


def _two_owners(system: ClusterSystem, taken: list[Taken], what: str) -> str:
    state = taken[-1].after
    for actor in range(len(system.members)):
        for other in range(actor):
            both = _fetching(system, state, actor) & _fetching(system, state, other)
            same_group = system.members[actor].group is system.members[other].group
            for partition in sorted(both) if same_group else ():
                pair = sorted((_since(system, taken, at, partition), at) for at in (actor, other))
                (begun, first), (begins, second) = pair
                how = "both sessions are alive" if what == SINGLE.name else "both processes run"
                return (
                    f"{system.actors[first]} has fetched {partition} since step {begun}; "
                    f"{system.actors[second]} begins at step {begins}; {how}: two owners"
                )
    raise AssertionError("two owners are two that fetch one partition")


def _untruthful(system: ClusterSystem, taken: list[Taken]) -> str:
    state = taken[-1].after
    owners = _owners(system, state)
    for actor, member in enumerate(system.members):
        if system.pair_violation(actor, state[0], state[1 + actor]):
            for partition in sorted(_fetching(system, state, actor)):
                whose = owners.get(str(partition), UNKNOWN_OWNER)
                if whose != member.name or system.is_earlier_claim(actor, state, partition):
                    whose = f"an earlier session of {whose}" if whose == member.name else whose
                    begun = _since(system, taken, actor, partition)
                    return (
                        f"{member.name} has fetched {partition} since step {begun}, its session "
                        f"is alive, and after step {len(taken)} {whose} has the claim"
                    )
    raise AssertionError("a member fetches what it has not claimed")


def _violating_step(system: ClusterSystem, taken: list[Taken], what: str) -> str:
    last = scheduled_step_of(system, taken[-1])
    if what == MONOTONE.name:
        return f"in step {len(taken)} {last.node} commits a lower offset: {last.operation}"
    return (
        f"in step {len(taken)} {last.node} deletes a znode of another session that is alive: "
        f"{last.operation}"
    )
