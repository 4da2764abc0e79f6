"""Replays what was explored: in the simulation, and on a real ZooKeeper.

A schedule is a plan, the bounds it was found within, and deeds. Replayed in the simulation
it has to reach the same violation. Live, one operation at a time is let through, and every
answer, every event and the znodes in the end are compared with what the exploration says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from explore.cluster import ClusterSystem
from explore.processes import State
from explore.story import deed_of
from explore.way import Taken, successors
from model.bounds import Bounds
from model.calm import BALANCE, CONSENSUS, COVER
from model.plan import Plan
from model.progress import PROGRESS
from model.properties import Judgement
from model.story import Deed, Schedule
from model.verdicts import Verdict, counted
from sim.conducting import Conductor
from sim.held import Told
from watchkeeper.cueing import NoSuchStep, cues_of, first_state, kept_at, system_for

if TYPE_CHECKING:
    from real.access import Access
    from real.conducting import Follower

ATTEMPTS = 3
MOST_DEEDS = 200
ROUNDS = 3
"""How often a circle is gone round, to show that it is one."""
ONE_FAULT_IN = 8
"""How seldom a random schedule takes a fault where it could do something else."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a replay."""

    conforms: bool
    """Whether every step went as the schedule says."""
    said: str
    """One sentence: that it conforms, or the first difference."""
    reached: bool = False
    """Whether the same property is violated."""
    limits: str = ""
    """What this replay cannot show."""


@dataclass(frozen=True, slots=True)
class Conformed:
    """What came of random schedules on a real ZooKeeper."""

    conforms: bool
    said: str
    schedules: int
    operations: int
    deeds: tuple[Deed, ...] = ()
    """The schedule with the first difference."""


def _ways(
    plan: Plan, bounds: Bounds, schedule: Schedule
) -> tuple[ClusterSystem, list[Taken], list[Taken]]:
    """A system in which a schedule can be followed, its steps, and those of its circle."""
    system, taken = system_for(plan, bounds, (*schedule.deeds, *schedule.circle))
    way, circle = taken[: len(schedule.deeds)], taken[len(schedule.deeds) :]
    if circle and circle[-1].after != circle[0].before:
        raise NoSuchStep("the circle of the schedule does not lead back to where it begins")
    return system, way, circle


# --- in the simulation -----------------------------------------------------------------

AT_REST = (PROGRESS.name, COVER.name, CONSENSUS.name, BALANCE.name)
"""What can only be judged when everybody has been let go."""


def replay_sim(plan: Plan, bounds: Bounds, schedule: Schedule, seed: int = 0) -> Replayed:
    """Follow a schedule in the simulation; the same property has to be violated there."""
    system, way, circle = _ways(plan, bounds, schedule)
    violates = schedule.violates
    plan = replace(plan, timeline=(), sometimes=(), never=())
    followed = Conductor(plan, _told(system), seed).follow(
        cues_of(system, [*way, *circle * ROUNDS]), rests=violates in AT_REST and not circle
    )
    if followed.differs:
        return Replayed(False, followed.differs)
    if not violates:
        return Replayed(True, f"conforms: {len(way)} steps")
    if circle:
        said = f"{violates} is violated: after {counted(len(way), 'step')} it goes round and "
        said += f"round, {counted(len(circle), 'step')} each time; {ROUNDS} rounds were made"
        return Replayed(True, said, reached=True)
    return _judged(violates, followed.judgement)


def _judged(violates: str, judgement: Judgement) -> Replayed:
    """Whether a property is violated; a rest at which anything is wrong is no good rest."""
    for name in AT_REST if violates == PROGRESS.name else (violates,):
        finding = judgement.finding(name)
        if finding.verdict is Verdict.VIOLATED:
            said = f"{violates} is violated: {finding.evidence}"
            return Replayed(True, said, reached=True)
    finding = judgement.finding(violates)
    return Replayed(True, f"{violates} is not violated in the simulation: {finding.evidence}")


def _told(system: ClusterSystem) -> Told:
    """The clocks and the names of the exploration."""
    process = {member.name: member.moves.process for member in system.members}
    return Told(
        now_ms=lambda node, life: process[node].now_ms(life),
        fresh_id=lambda node, life: process[node].fresh_id(life),
    )


# --- live ------------------------------------------------------------------------------


def replay_live(plan: Plan, bounds: Bounds, schedule: Schedule, access: Access) -> Replayed:
    """Follow a schedule on a real ZooKeeper, and go round its circle some times."""
    from real.conducting import CANNOT, Follower

    system, way, circle = _ways(plan, bounds, schedule)
    way += circle * ROUNDS
    with Follower(access) as follower:
        said = _follow(follower, system, way)
        answers = follower.operations
    if said:
        return Replayed(False, said, limits=CANNOT)
    return Replayed(
        True,
        f"conforms: {len(way)} steps, {answers} answers, every event and the znodes in the end",
        reached=True,
        limits=CANNOT,
    )


def _follow(follower: Follower, system: ClusterSystem, way: Sequence[Taken]) -> str:
    """The first difference; a machine that breaks connections by itself has to try again."""
    from real.conducting import Disturbed

    state = way[-1].after if way else first_state(system)
    for _ in range(ATTEMPTS - 1):
        try:
            return follower.follow(cues_of(system, way), kept_at(system, state))
        except Disturbed:
            continue
    return follower.follow(cues_of(system, way), kept_at(system, state))


def conform(plan: Plan, bounds: Bounds, schedules: int, seed: int, access: Access) -> Conformed:
    """Follow so many random schedules of the exploration on a real ZooKeeper."""
    from real.conducting import Follower

    system = ClusterSystem(plan, bounds)
    with Follower(access) as follower:
        for number in range(schedules):
            way = walk(system, Random(f"{seed}/{number}"))
            said = _follow(follower, system, way)
            if said:
                deeds = tuple(deed_of(system, taken) for taken in way)
                said = f"schedule {number + 1} of {schedules}, seed {seed}: {said}"
                return Conformed(False, said, number + 1, follower.operations, deeds)
        answers = follower.operations
    return Conformed(
        True, f"{schedules} schedules conform, {answers} answers in all", schedules, answers
    )


def walk(system: ClusterSystem, chance: Random, most: int = MOST_DEEDS) -> list[Taken]:
    """A random schedule: until nothing has to come any more, or so many deeds long."""
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
