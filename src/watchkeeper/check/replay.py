"""Replays of counterexamples in the simulation, and of random schedules on a real ZooKeeper.

A schedule is a plan, the bounds it was found within, and steps. Replayed in the simulation
it has to reach the same violation. Live, one operation at a time is let through, and every
answer, every event and the znodes in the end are compared with what the exploration says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from watchkeeper.checker.actors.actors import State
from watchkeeper.checker.cluster import control_plane
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.cluster.terminal import ANSWERED
from watchkeeper.checker.counterexample.explanation import scheduled_step_of
from watchkeeper.checker.counterexample.path import Taken, successors
from watchkeeper.checker.counterexample.replay_steps import (
    NoSuchStep,
    expected_znodes,
    first_state,
    replay_steps_of,
    system_for,
)
from watchkeeper.model.counterexample.counterexample import Schedule, ScheduledStep
from watchkeeper.model.judgement.judge import Judgement
from watchkeeper.model.plan.bounds import Bounds
from watchkeeper.model.plan.plan import Plan
from watchkeeper.model.properties.at_quiescence import AGREED, BALANCE, CONSENSUS, COVER
from watchkeeper.model.properties.progress import PROGRESS
from watchkeeper.model.properties.verdicts import Verdict, counted, violation_phrase
from watchkeeper.sim.replay.replayer import Replayer
from watchkeeper.sim.replay.stepped_process import ScheduledValues

if TYPE_CHECKING:
    from watchkeeper.real.access import Access
    from watchkeeper.real.replay.replayer import Follower

ATTEMPTS = 3
MOST_STEPS = 200
ROUNDS = 3
"""How often the cycle of a lasso is repeated to confirm it."""
ONE_FAULT_IN = 8
"""A random schedule takes one fault in so many steps that have an alternative."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay."""

    conforms: bool
    """Whether every step went as the schedule says."""
    text: str
    """One sentence: that it conforms, or the first difference."""
    reached: bool = False
    """Whether the same property is violated."""
    limits: str = ""
    """The limits of this replay."""
    known_limit: str = ""
    """Why no client can avoid the violation, as the scenario says; else empty."""
    zookeeper: str = ""
    """Which ZooKeeper a live replay has used, in words."""


@dataclass(frozen=True, slots=True)
class Conformed:
    """The result of random schedules on a real ZooKeeper."""

    conforms: bool
    text: str
    schedules: int
    operations: int
    steps: tuple[ScheduledStep, ...] = ()
    """The schedule with the first difference."""
    zookeeper: str = ""
    """Which ZooKeeper was used, in words."""


def _ways(
    plan: Plan, bounds: Bounds, schedule: Schedule
) -> tuple[ClusterSystem, list[Taken], list[Taken]]:
    """A system in which a schedule can be followed, its steps, and those of its cycle."""
    system, taken = system_for(plan, bounds, (*schedule.steps, *schedule.cycle))
    way, cycle = taken[: len(schedule.steps)], taken[len(schedule.steps) :]
    if cycle and cycle[-1].after != cycle[0].before:
        raise NoSuchStep("the cycle of the schedule does not lead back to where it begins")
    return system, way, cycle


# --- in the simulation -----------------------------------------------------------------

JUDGED_AT_REST = (
    *(PROGRESS.name, COVER.name, CONSENSUS.name, AGREED.name, BALANCE.name),
    *(claim.name for claim in control_plane.AT_REST),
)
AT_REST = (*JUDGED_AT_REST, ANSWERED.name)
"""The properties that are judged only after every process was resumed."""


def replay_sim(
    plan: Plan, bounds: Bounds, schedule: Schedule, seed: int = 0, *, limit: str = ""
) -> Replayed:
    """Follow a schedule in the simulation; the same property has to be violated there.

    `limit` is why no client can avoid that, where the scenario says so.
    """
    system, way, cycle = _ways(plan, bounds, schedule)
    violates = schedule.violates
    plan = replace(system.initial_plan, timeline=(), sometimes=(), never=())
    followed = Replayer(plan, _told(system), seed).follow(
        replay_steps_of(system, [*way, *cycle * ROUNDS]),
        rests=violates in AT_REST and not cycle,
    )
    if followed.differs:
        return Replayed(False, followed.differs)
    if not violates:
        return Replayed(True, f"conforms: {len(way)} steps")
    if cycle:
        says = f"{violates} {violation_phrase(limit)}"
        message = f"{says}: after {counted(len(way), 'step')} it goes round and "
        message += f"round, {counted(len(cycle), 'step')} each time; {ROUNDS} rounds were made"
        return Replayed(True, message, reached=True, known_limit=limit)
    if violates == ANSWERED.name:
        return _answered(followed.waiting)
    return _judged(violates, followed.judgement, limit)


def _answered(waiting: Sequence[str]) -> Replayed:
    if not waiting:
        return Replayed(True, f"{ANSWERED.name} is not violated in the simulation")
    who = " and ".join(waiting)
    text = f"{ANSWERED.name} is violated: the application of {who} waits for a result"
    return Replayed(True, text, reached=True)


def _judged(violates: str, judgement: Judgement, limit: str) -> Replayed:
    """Return whether a property is violated; a converged state has no violation at all."""
    found = {finding.claim.name: finding for finding in judgement.findings}
    for name in JUDGED_AT_REST if violates == PROGRESS.name else (violates,):
        finding = found.get(name)
        if finding is not None and finding.verdict is Verdict.VIOLATED:
            message = f"{violates} {violation_phrase(limit)}: {finding.evidence}"
            return Replayed(True, message, reached=True, known_limit=limit)
    evidence = found[violates].evidence
    return Replayed(True, f"{violates} is not violated in the simulation: {evidence}")


def _told(system: ClusterSystem) -> ScheduledValues:
    """The clocks and the names of the exploration."""
    process = {member.name: member.moves.process for member in system.members}
    return ScheduledValues(
        now_ms=lambda node, life: process[node].now_ms(life),
        fresh_id=lambda node, life: process[node].fresh_id(life),
    )


# --- live ------------------------------------------------------------------------------


def replay_live(plan: Plan, bounds: Bounds, schedule: Schedule, access: Access) -> Replayed:
    """Follow a schedule on a real ZooKeeper, and go round its circle some times."""
    from watchkeeper.real.replay.replayer import CANNOT, Follower

    system, way, cycle = _ways(plan, bounds, schedule)
    way += cycle * ROUNDS
    with Follower(access) as follower:
        message = _follow(follower, system, way)
        answers = follower.operations
    if message:
        return Replayed(False, message, limits=CANNOT)
    return Replayed(
        True,
        f"conforms: {len(way)} steps, {answers} answers, every event and the znodes in the end",
        reached=True,
        limits=CANNOT,
    )


def _follow(follower: Follower, system: ClusterSystem, way: Sequence[Taken]) -> str:
    """The first difference; a machine that breaks connections by itself has to try again."""
    from watchkeeper.real.replay.replayer import Disturbed

    state = way[-1].after if way else first_state(system)
    for _ in range(ATTEMPTS - 1):
        try:
            return follower.follow(replay_steps_of(system, way), expected_znodes(system, state))
        except Disturbed:
            continue
    return follower.follow(replay_steps_of(system, way), expected_znodes(system, state))


def conform(plan: Plan, bounds: Bounds, schedules: int, seed: int, access: Access) -> Conformed:
    """Follow so many random schedules of the exploration on a real ZooKeeper."""
    from watchkeeper.real.replay.replayer import Follower

    system = ClusterSystem(plan, bounds)
    with Follower(access) as follower:
        for number in range(schedules):
            way = walk(system, Random(f"{seed}/{number}"))
            message = _follow(follower, system, way)
            if message:
                steps = tuple(scheduled_step_of(system, taken) for taken in way)
                message = f"schedule {number + 1} of {schedules}, seed {seed}: {message}"
                return Conformed(False, message, number + 1, follower.operations, steps)
        answers = follower.operations
    return Conformed(
        True, f"{schedules} schedules conform, {answers} answers in all", schedules, answers
    )


def walk(system: ClusterSystem, chance: Random, most: int = MOST_STEPS) -> list[Taken]:
    """A random schedule: until nothing has to come any more, or so many steps long."""
    state: State = first_state(system)
    way: list[Taken] = []
    while len(way) < most:
        found = successors(system, state)
        plain = [taken for taken in found if not taken.step.fault]
        faults = [taken for taken in found if taken.step.fault]
        if not any(not taken.step.is_idle for taken in plain) and not faults:
            break
        chosen = faults if faults and chance.randrange(ONE_FAULT_IN) == 0 else plain or faults
        way.append(chosen[chance.randrange(len(chosen))])
        state = way[-1].after
    return way
