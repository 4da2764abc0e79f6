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
from model.story import Deed
from model.verdicts import Verdict
from sim.conducting import Conductor
from sim.held import Told
from watchkeeper.cueing import cues_of, first_state, kept_at, system_for

if TYPE_CHECKING:
    from real.access import Access
    from real.conducting import Follower

ATTEMPTS = 3
MOST_DEEDS = 200
ROUNDS = 3
"""How often a circle is gone round, to show that it is one."""
LONGEST_CIRCLE = 2_000
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


# --- in the simulation -----------------------------------------------------------------

AT_REST = frozenset({COVER.name, CONSENSUS.name, BALANCE.name, PROGRESS.name})
"""What can only be judged when everybody has been let go."""


def replay_sim(
    plan: Plan, bounds: Bounds, deeds: Sequence[Deed], violates: str, seed: int = 0
) -> Replayed:
    """Follow a schedule in the simulation; the same property has to be violated there."""
    system, way = system_for(plan, bounds, deeds)
    circle = circle_after(system, way) if violates == PROGRESS.name else None
    rounds = [*circle.way_in, *circle.round * ROUNDS] if circle is not None else []
    plan = replace(plan, timeline=(), sometimes=(), never=())
    followed = Conductor(plan, _told(system), seed).follow(
        cues_of(system, [*way, *rounds]), rests=violates in AT_REST and circle is None
    )
    if followed.differs:
        return Replayed(False, followed.differs)
    if not violates:
        return Replayed(True, f"conforms: {len(way)} steps")
    if circle is not None:
        said = f"{violates} is violated: after {len(way) + len(circle.way_in)} steps it goes "
        said += f"round and round, {len(circle.round)} steps each time; {ROUNDS} rounds were made"
        return Replayed(True, said, reached=True)
    finding = followed.judgement.finding(violates)
    if finding.verdict is Verdict.VIOLATED:
        return Replayed(True, f"{violates} is violated: {finding.evidence}", reached=True)
    return Replayed(True, f"{violates} is not violated in the simulation: {finding.evidence}")


@dataclass(frozen=True, slots=True)
class Circle:
    """How something goes on for ever."""

    way_in: list[Taken]
    round: list[Taken]


def circle_after(system: ClusterSystem, way: Sequence[Taken]) -> Circle | None:
    """How a schedule goes on without a fault, everybody in turn; None where it ends."""
    state = way[-1].after if way else first_state(system)
    turn, taken, seen = 0, list[Taken](), dict[tuple[State, int], int]()
    while (state, turn) not in seen:
        if len(taken) >= LONGEST_CIRCLE:
            return None
        seen[state, turn] = len(taken)
        free = [
            one for one in successors(system, state) if not (one.step.fault or one.step.is_idle)
        ]
        if not free:
            return None
        taken.append(min(free, key=lambda one: (one.actor - turn) % len(system.members)))
        state, turn = taken[-1].after, (taken[-1].actor + 1) % len(system.members)
    begins = seen[state, turn]
    return Circle(taken[:begins], taken[begins:])


def _told(system: ClusterSystem) -> Told:
    """The clocks and the names of the exploration."""
    process = {member.name: member.moves.process for member in system.members}
    return Told(
        now_ms=lambda node, life: process[node].now_ms(life),
        fresh_id=lambda node, life: process[node].fresh_id(life),
    )


# --- live ------------------------------------------------------------------------------


def replay_live(plan: Plan, bounds: Bounds, deeds: Sequence[Deed], access: Access) -> Replayed:
    """Follow a schedule on a real ZooKeeper."""
    from real.conducting import CANNOT, Follower

    system, way = system_for(plan, bounds, deeds)
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
