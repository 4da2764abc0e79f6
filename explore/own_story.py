"""Tells how a claim about users' own programs came to fail: each step, and how all stand then."""

from __future__ import annotations

from collections.abc import Iterator

from explore.own_system import IN_VAIN, OwnSystem
from explore.search import Search, Violation
from explore.story import deed_of, stands_of
from explore.way import way_to
from model.story import Deed, Story, StoryStep

State = tuple[int, ...]
MOST_DATA = 40


def story_of(system: OwnSystem, search: Search, violation: Violation, why: str) -> Story:
    """The story of a violation; `why` is what its last sentence says."""
    taken = way_to(system, search, violation)
    steps = tuple(
        StoryStep(
            number, deed_of(system, one), stands_of(system, one.after), _owners(system, one.after)
        )
        for number, one in enumerate(taken, 1)
    )
    return Story(
        scenario="own programs",
        variant="",
        violates=violation.what,
        proof=f"after step {len(taken)} {why}",
        bound=str(system.budget),
        nodes=tuple(system.actors),
        steps=steps,
    )


def _owners(system: OwnSystem, state: State) -> dict[str, str]:
    """Every ephemeral with its owner."""
    znodes = system.view(system.key_of(state)).znodes
    return {path: one.owner for path, one in znodes.items() if one.owner}


def lines_of(system: OwnSystem, story: Story, end: State) -> Iterator[str]:
    """A story to be read; `end` is the state it leads to."""
    width = max(len(name) for name in story.nodes)
    for step in story.steps:
        yield f"{step.number:4}  {step.deed.node:{width}}  {_said(step.deed)}"
    yield story.proof
    view = system.view(system.key_of(end))
    for name, stands in view.programs.items():
        if not stands.is_running:
            yield f"      {name:{width}}  {stands.phase}"
            continue
        at = story.steps[-1].stands[name] if story.steps else stands_of(system, end)[name]
        yield f"      {name:{width}}  {stands.memory!r}"
        yield f"      {'':{width}}  session {at.session}; waits for {at.waits_for}"
    for path, znode in view.znodes.items():
        owner = f", of {znode.owner}" if znode.owner else ""
        earlier = "'s earlier session" if owner and not znode.is_current else ""
        if path != "/":
            yield f"      {path}{_data(znode.data)}{owner}{earlier}"


def _said(deed: Deed) -> str:
    """What was done, in a line."""
    said = f"{deed.does}: {deed.operation}" if deed.operation else deed.does
    if deed.answer is not None:
        said += f" -> {deed.answer}"
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
