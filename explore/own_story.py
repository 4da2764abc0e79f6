"""Tells how a claim about users' own programs came to fail: each step, and how all stand then."""

from __future__ import annotations

from collections.abc import Iterator

from explore.circle import Circle
from explore.expanding import Violation
from explore.own_system import IN_VAIN, OwnSystem
from explore.processes import State
from explore.search import Search
from explore.story import deed_of, stands_of
from explore.way import successors, way_round, way_to
from model.story import Deed, Story, StoryStep

MOST_DATA = 40
LONGEST_CIRCLE = 60


def story_of(
    system: OwnSystem,
    search: Search,
    violation: Violation,
    why: str,
    circle: Circle | None = None,
) -> Story:
    """The story of a violation; `why` is what its last sentence says."""
    taken = way_to(system, search, violation)
    way_in, hops = way_round(system, search, circle) if circle is not None else ([], [])
    begins = len(taken) + len(way_in)
    steps = tuple(
        StoryStep(
            number, deed_of(system, one), stands_of(system, one.after), _owners(system, one.after)
        )
        for number, one in enumerate([*taken, *way_in, *hops], 1)
    )
    first = search.state(0)
    return Story(
        scenario="own programs",
        variant="",
        violates=violation.what,
        proof=f"after step {len(taken)} {why}",
        bound=str(system.budget),
        nodes=tuple(system.actors),
        steps=steps[: len(taken)],
        first=stands_of(system, first),
        first_owners=_owners(system, first),
        way_in=steps[len(taken) : begins],
        circle=steps[begins:],
    )


def _owners(system: OwnSystem, state: State) -> dict[str, str]:
    """Every ephemeral with its owner."""
    znodes = system.view(system.key_of(state)).znodes
    return {path: one.owner for path, one in znodes.items() if one.owner}


def lines_of(system: OwnSystem, story: Story, end: State) -> Iterator[str]:
    """A story to be read; `end` is the state it leads to."""
    for step in story.steps:
        yield _line(story, step.number, step.deed)
    yield story.proof
    width = max(len(name) for name in story.nodes)
    view = system.view(system.key_of(end))
    for name, stand in stands_of(system, end).items():
        if stand.phase != "running":
            yield f"      {name:{width}}  {stand.phase}"
            continue
        yield f"      {name:{width}}  {view[name].memory!r}"
        yield f"      {'':{width}}  session {stand.session}; waits for {stand.waits_for}"
    for path, znode in view.znodes.items():
        owner = f", of {znode.owner}" if znode.owner else ""
        earlier = "'s earlier session" if owner and not znode.is_current else ""
        yield f"      {path}{_data(znode.data)}{owner}{earlier}"


def afterwards(system: OwnSystem, story: Story, state: State) -> Iterator[str]:
    """What may come after a state, until all is as it was: round the circle, if there is one."""
    for step in (*story.way_in, *story.circle):
        yield _line(story, step.number, step.deed)
    if story.circle:
        begins = len(story.steps) + len(story.way_in)
        yield f"after step {story.circle[-1].number} all is as it was after step {begins}"
        return
    seen = {state: len(story.steps)}
    for number in range(len(story.steps) + 1, len(story.steps) + LONGEST_CIRCLE):
        can = [one for one in successors(system, state) if not one.step.fault]
        if not can:
            return
        taken = can[number % len(can)]
        yield _line(story, number, deed_of(system, taken))
        state = taken.after
        if state in seen:
            yield f"after step {number} all is as it was after step {seen[state]}"
            return
        seen[state] = number


def _line(story: Story, number: int, deed: Deed) -> str:
    width = max(len(name) for name in story.nodes)
    return f"{number:4}  {deed.node:{width}}  {_said(deed)}"


def _said(deed: Deed) -> str:
    """What was done, in a line."""
    said = f"{deed.does}: {deed.operation}" if deed.operation else deed.does
    answer = deed.answer
    if answer is None and deed.does == "is answered" and deed.operation.startswith("exists "):
        answer = "there is none"
    if answer is not None:
        error = answer.get("error") if isinstance(answer, dict) else None
        said += f" -> {error or answer}"
    return f"{said}   [{deed.fault}]" if deed.fault else said


def _data(data: bytes | None) -> str:
    return f" = {data[:MOST_DATA].decode('utf-8', 'replace')!r}" if data else ""


def why_not(system: OwnSystem, what: str, end: State) -> str:
    """Why a claim fails in a state, as far as can be said of somebody else's claim."""
    if what == IN_VAIN:
        return f"nothing has to come any more, and {' and '.join(system.in_vain(end))} still wait"
    if what in system.claims.at_rest:
        return f"nothing has to come any more, and this does not hold: {what}"
    return f"this does not hold: {what}"
