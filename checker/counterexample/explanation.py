"""Tells a counterexample: each step, how all stand after it, and why it is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explore.cluster import ClusterSystem
from explore.expanding import Violation
from explore.impossible import impossible
from explore.liveness import Liveness
from explore.local import Local
from explore.processes import Processes, State
from explore.search import Search
from explore.way import Taken, way_round, way_to
from model import registry
from model.answers import Fired, Note, Ordered
from model.asks import NextNote, Partition
from model.describe import described_answer, in_words
from model.operations import Operation, Pipelined
from model.ownership import MONOTONE, OWN_NODES, SINGLE, STRICT, TRUTHFUL
from model.program import Ended
from model.progress import PROGRESS
from model.story import Deed, Stand, Story, StoryStep


def story_of(
    system: ClusterSystem, search: Search, violation: Violation, live: Liveness | None = None
) -> Story:
    """The story of a violation; `live` has what is to be told where no good rest comes."""
    taken = way_to(system, search, violation)
    circle = live.circle if live is not None and violation.what == PROGRESS.name else None
    way_in, hops = way_round(system, search, circle) if circle is not None else ([], [])
    steps = [_told(system, number, one) for number, one in enumerate([*taken, *way_in, *hops], 1)]
    begins = len(taken) + len(way_in)
    first = search.state(0)
    if live is not None and violation.what == PROGRESS.name:
        is_stuck = live.stuck is not None
        proof = _no_good_rest(len(taken), steps[begins:], is_stuck=is_stuck)
    else:
        proof = _proof(system, taken, search.state(violation.state), violation)
    return Story(
        scenario=system.plan.name,
        variant=system.plan.variant,
        violates=violation.what,
        proof=proof,
        bound=str(system.budget),
        nodes=system.actors,
        steps=tuple(steps[: len(taken)]),
        first=stands_of(system, first),
        first_owners=_owners(system, first),
        way_in=tuple(steps[len(taken) : begins]),
        circle=tuple(steps[begins:]),
    )


def _told(system: ClusterSystem, number: int, taken: Taken) -> StoryStep:
    return StoryStep(
        number,
        deed_of(system, taken),
        stands_of(system, taken.after),
        _owners(system, taken.after),
        impossible(system, taken.before),
    )


def deed_of(system: Processes, taken: Taken) -> Deed:
    """What was done in a step."""
    step = taken.step
    return Deed(
        node=system.actors[taken.actor],
        does=step.does,
        fault=step.fault,
        operation=in_words(step.about),
        answer=described_answer(step.answer) if isinstance(step.about, Operation) else None,
        reads=tuple(
            (in_words(operation), described_answer(answer))
            for operation, answer in step.followed_by
        ),
    )


# --- how all stand ---------------------------------------------------------------------


def stands_of(system: Processes, state: State) -> dict[str, Stand]:
    """Where every process stands."""
    return {
        member.name: _stand(member.locals[number], member.moves.process.ask)
        for member, number in zip(system.members, state[1:], strict=False)
    }


def _stand(local: Local, ask_of: Any) -> Stand:
    return Stand(
        phase=local.phase,
        waits_for=_waits_for(ask_of(local)) if local.phase == "running" else "",
        session=_session(local),
        fetching=tuple(str(one.partition) for one in local.fetching),
        notes=tuple(_note(note) for note in (*local.inbox, *local.channel)),
    )


def _waits_for(ask: Any) -> str:
    if isinstance(ask, Ended):
        return ""
    if isinstance(ask, NextNote):
        return "a note" if ask.timeout_ms != 0 else "a look at its notes"
    if isinstance(ask, Operation | Pipelined):
        return f"{ask.purpose}: {in_words(ask)}"
    return type(ask).__name__


def _session(local: Local) -> str:
    if local.link == "none" or not local.session:
        return "none"
    if local.is_alive:
        return "alive" if local.link == "up" else "alive, not connected"
    return "dead" if local.link == "expired" else "dead, and it does not know"


def _note(note: Note) -> str:
    if isinstance(note, Fired):
        return in_words(note)
    return note.order.value if isinstance(note, Ordered) else note.value


def _owners(system: ClusterSystem, state: State) -> dict[str, str]:
    names = {
        session: member.name
        for member in system.members
        for session in member.moves.process.sessions
    }
    owners = {}
    for path, znode in sorted(system.service.trees[state[0]].nodes.items()):
        claim = registry.parse_owner(path)
        if claim is not None:
            owners[str(claim[1])] = names.get(znode.owner, "nobody")
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
        return _bad_deed(system, taken, what)
    found = dict(system.findings_at_rest(state))
    said = found.get(what, what)
    return f"after step {len(taken)} nothing has to come any more: {_without_time(said)}"


def _no_good_rest(since: int, circle: Sequence[StoryStep], *, is_stuck: bool) -> str:
    """Why no good rest comes, or none has to, since a step; and who goes round meanwhile."""
    then = f"after step {since}" if since else "from the beginning"
    never = f"{then} no good rest comes any more, whatever is done and even if nothing else goes "
    if not circle:
        return f"{never}wrong"
    who = " and ".join(sorted({step.deed.node for step in circle}))
    first, last = circle[0].number, circle[-1].number
    between = "and" if last == first + 1 else "to"
    steps = f"in step {first}" if first == last else f"in steps {first} {between} {last}"
    if is_stuck:
        return f"{never}wrong; {who} may go round for ever, {steps}"
    return (
        f"{then} {who} may go round for ever, {steps}, and no good rest comes, though nobody is "
        "passed over and nothing else goes wrong"
    )


def _without_time(said: str) -> str:
    return said.partition(", ")[2] if said.startswith("at rest at") else said


def _fetching(system: ClusterSystem, state: State, actor: int) -> set[Partition]:
    local = system.members[actor].locals[state[1 + actor]]
    return {one.partition for one in local.fetching}


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
    for one in range(len(system.members)):
        for other in range(one):
            both = _fetching(system, state, one) & _fetching(system, state, other)
            same_group = system.members[one].group is system.members[other].group
            for partition in sorted(both) if same_group else ():
                pair = sorted((_since(system, taken, at, partition), at) for at in (one, other))
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
        if system.wrong(actor, state[0], state[1 + actor]):
            for partition in sorted(_fetching(system, state, actor)):
                whose = owners.get(str(partition), "nobody")
                if whose != member.name or system.is_earlier_claim(actor, state, partition):
                    whose = f"an earlier session of {whose}" if whose == member.name else whose
                    begun = _since(system, taken, actor, partition)
                    return (
                        f"{member.name} has fetched {partition} since step {begun}, its session "
                        f"is alive, and after step {len(taken)} the claim is {whose}'s"
                    )
    raise AssertionError("somebody fetches what it has not claimed")


def _bad_deed(system: ClusterSystem, taken: list[Taken], what: str) -> str:
    last = deed_of(system, taken[-1])
    if what == MONOTONE.name:
        return f"in step {len(taken)} {last.node} commits a lower offset: {last.operation}"
    return (
        f"in step {len(taken)} {last.node} deletes a znode of another session that is alive: "
        f"{last.operation}"
    )
