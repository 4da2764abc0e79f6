"""How a cluster comes to the state in which a search begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from explore.local import Local, hears
from explore.moves import Step
from explore.processes import Member

MOST_STEPS = 100_000


class CannotExplore(Exception):
    """A plan that the search cannot take; the text says why."""


class Begun(NamedTuple):
    """A process starts, or makes a step, before the search begins."""

    actor: int
    step: Step | None
    """None where it starts."""
    tree: int
    """The tree before it."""
    before: list[Local]
    after: list[Local]

    @property
    def tree_after(self) -> int:
        """The tree after it."""
        return self.tree if self.step is None else self.step.tree


def beginning(members: list[Member], tree: int, *, is_settled: bool) -> Iterator[Begun]:
    """Brokers start and come to rest, then consumers start, which come to rest if settled."""
    locals_ = [Local() for _ in members]
    for is_consumer in (False, True):
        for at, member in enumerate(members):
            if (member.group is not None) == is_consumer and member.begins:
                before = locals_
                locals_ = [*before]
                locals_[at] = member.moves.process.begun(Local(), 0)
                yield Begun(at, None, tree, before, locals_)
        if not is_consumer or is_settled:
            for done in _to_rest(members, tree, locals_):
                yield done
                tree, locals_ = done.tree_after, done.after


def _to_rest(members: list[Member], tree: int, locals_: list[Local]) -> Iterator[Begun]:
    """One process after the other does what it has to, until nobody has."""
    for _ in range(MOST_STEPS):
        found = _first_step(members, tree, locals_)
        if found is None:
            return
        at, step = found
        before = locals_
        locals_ = [
            step.local if other == at else hears(local, step.cast)
            for other, local in enumerate(before)
        ]
        yield Begun(at, step, tree, before, locals_)
        tree = step.tree
    raise CannotExplore("the cluster does not come to rest by itself before the search begins")


def _first_step(
    members: list[Member], tree: int, locals_: list[Local]
) -> tuple[int, Step] | None:
    for at, member in enumerate(members):
        for step in member.moves.all(tree, locals_[at]):
            if not step.fault and not step.is_idle and step.does != "hears nothing yet":
                return at, step
    return None
