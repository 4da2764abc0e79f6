"""What was explored, as cues for a world that follows: the schedule of deeds, value by value.

Deeds are words. What they stand for (the very operations, answers and notes) is found by
going the same way through the exploration again. The way begins before its first step:
brokers and whoever begins come to rest in cues of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from explore.cluster import ClusterSystem
from explore.local import Cast, Local, hears, missed
from explore.moves import Step
from explore.processes import State
from explore.story import deed_of
from explore.way import Taken, successors
from model import registry
from model.answers import Fired
from model.bounds import Bounds
from model.cues import BEFORE, Cue, Kept
from model.operations import Operation
from model.plan import Plan
from model.story import Deed

TAKES_PART = frozenset({"is answered", "session ends", "arrives late"})
"""Deeds after which their own process is told of what they changed."""


class NoSuchStep(Exception):
    """A schedule has a step that cannot be taken; the text says which."""


def first_state(system: ClusterSystem) -> State:
    """The state in which schedules begin."""
    return (*system.initial(), 0)


def system_for(
    plan: Plan, bounds: Bounds, deeds: Sequence[Deed]
) -> tuple[ClusterSystem, list[Taken]]:
    """A system in which a schedule can be followed, and its steps.

    A schedule may have been found with reads folded into other steps, or without.
    """
    system = ClusterSystem(plan, bounds)
    try:
        return system, way_of(system, deeds)
    except NoSuchStep as error:
        plain = ClusterSystem(plan, bounds, folds=False)
        try:
            return plain, way_of(plain, deeds)
        except NoSuchStep:
            raise error from None


def way_of(system: ClusterSystem, deeds: Sequence[Deed]) -> list[Taken]:
    """The steps that a schedule tells of."""
    state = first_state(system)
    way = []
    for number, deed in enumerate(deeds, 1):
        taken = _taken(system, state, deed)
        if taken is None:
            raise NoSuchStep(
                f"step {number}: {deed.node} {deed.does} {deed.operation}".rstrip()
                + " cannot be done there: the scenario, its bounds, or the protocol are others "
                "than those the schedule was found with"
            )
        way.append(taken)
        state = taken.after
    return way


def _taken(system: ClusterSystem, state: State, deed: Deed) -> Taken | None:
    wanted = _words(deed)
    for taken in successors(system, state):
        if system.actors[taken.actor] != deed.node or taken.step.does != deed.does:
            continue
        if _words(deed_of(system, taken)) == wanted:
            return taken
    return None


def _words(deed: Deed) -> str:
    """A deed in words that a file keeps as they are."""
    said = (deed.node, deed.does, deed.fault, deed.operation, deed.answer, deed.reads)
    return json.dumps(said, sort_keys=True, default=str)


# --- cues ------------------------------------------------------------------------------


def cues_of(system: ClusterSystem, way: Iterable[Taken]) -> Iterator[Cue]:
    """The cues of a way, those of its beginning first."""
    yield from _beginning(system)
    for number, taken in enumerate(way, 1):
        yield from _cues(
            system,
            number,
            taken.actor,
            taken.step,
            _locals(system, taken.before),
            _locals(system, taken.after)[taken.actor],
            taken.before[0],
        )


def _locals(system: ClusterSystem, state: State) -> list[Local]:
    return [
        member.locals[number] for member, number in zip(system.members, state[1:], strict=False)
    ]


def _beginning(system: ClusterSystem) -> Iterator[Cue]:
    """How brokers, and whoever begins, come to where a schedule begins."""
    for done in system.beginning():
        after = done.after[done.actor]
        if done.step is None:
            name = system.actors[done.actor]
            yield Cue(BEFORE, name, "starts", session_after=after.session)
        else:
            yield from _cues(system, BEFORE, done.actor, done.step, done.before, after, done.tree)


def _cues(
    system: ClusterSystem,
    number: int,
    actor: int,
    step: Step,
    before: list[Local],
    after: Local,
    tree: int,
) -> Iterator[Cue]:
    """The cues of one step: what is done, the reads that follow, and a fault at its heels."""
    node, local = system.actors[actor], before[actor]
    does, _, fault = step.does.partition(", then ")
    heard = _heard(system, actor, step, before, tree)
    acts: list[tuple[str, Any, Any]] = [(does, step.about, step.answer)]
    if fault:
        first = step.followed_by[:1] if does in ("is answered", "arrives late") else ()
        acts = [(does, *first[0])] if first else [(does, _note(local, does), None)]
        acts += [("is answered", *read) for read in step.followed_by[len(first) :]]
        acts.append((fault, step.about, step.answer))
    else:
        acts += [("is answered", *read) for read in step.followed_by]
    for place, (act, about, answer) in enumerate(acts):
        is_last = place == len(acts) - 1
        yield Cue(
            number,
            node,
            act,
            _left_again(local) if act == "is connected again" else about,
            answer,
            session=_concerned(local, step, after) if place == 0 else after.session,
            session_after=after.session,
            heard=heard if is_last else {},
            ghosts=_ghosts(local, after) if act == "leaves a request behind" else (),
        )


def _note(local: Local, does: str) -> Any:
    return local.channel[0] if does == "hears" else None


def _left_again(local: Local) -> tuple[tuple[str, str], ...]:
    """The watches that a client leaves again when it is connected again."""
    return tuple(sorted(local.watches))


def _ghosts(before: Local, after: Local) -> tuple[Operation[Any], ...]:
    """What was left behind."""
    return tuple(operation for _, operation in after.ghosts[len(before.ghosts) :])


def _concerned(local: Local, step: Step, after: Local) -> int:
    """The session that a step is about."""
    does = step.does.partition(", then ")[0]
    if does == "session ends":
        return next(one for one in local.orphans if one not in after.orphans)
    if does == "arrives late":
        return local.ghosts[0][0]
    return local.session


def _heard(
    system: ClusterSystem, actor: int, step: Step, before: list[Local], tree: int
) -> dict[int, tuple[Fired, ...]]:
    """What is sent to whom; of its own process only where that is told."""
    heard: dict[int, tuple[Fired, ...]] = {}
    if not step.cast and step.does != "is connected again":
        return heard
    does, _, fault = step.does.partition(", then ")
    is_told = does in TAKES_PART and fault in ("", "is told to leave")
    for at, local in enumerate(before):
        if local.link == "up" and local.is_alive and (at != actor or is_told):
            heard[local.session] = _sent(local, step.cast)
    if step.does == "is connected again":
        told = missed(system.service.trees[tree], before[actor])
        heard[before[actor].session] = tuple(event for _, event in told if event is not None)
    return heard


def _sent(local: Local, cast: Cast) -> tuple[Fired, ...]:
    return hears(local, cast).channel[len(local.channel) :]


# --- the end ---------------------------------------------------------------------------


def kept_at(system: ClusterSystem, state: State) -> tuple[Kept, ...]:
    """Every znode in a state, but those that a service keeps for itself."""
    nodes = system.service.trees[state[0]].nodes
    return tuple(
        Kept(
            path,
            znode.data,
            None if registry.parse_offset(path) is not None else znode.version,
            znode.owner,
        )
        for path, znode in sorted(nodes.items())
        if path != "/" and path != "/zookeeper" and not path.startswith("/zookeeper/")
    )
