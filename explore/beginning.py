"""How a cluster comes to the state in which a search begins."""

from __future__ import annotations

from explore.local import Local, hears
from explore.moves import Moves, Step

MOST_STEPS = 100_000


class CannotExplore(Exception):
    """A plan that the search cannot take; the text says why."""


def come_to_rest(processes: list[Moves], tree: int, locals_: list[Local]) -> int:
    """Let one process after the other do what it has to, until nobody has; the tree then.

    `locals_` holds how the processes stand, and is changed.
    """
    for _ in range(MOST_STEPS):
        step, at = _first_step(processes, tree, locals_)
        if step is None:
            return tree
        tree = step.tree
        locals_[at] = step.local
        for other, local in enumerate(locals_):
            if other != at:
                locals_[other] = hears(local, step.cast)
    raise CannotExplore("the cluster does not come to rest by itself before the search begins")


def _first_step(
    processes: list[Moves], tree: int, locals_: list[Local]
) -> tuple[Step | None, int]:
    for at, moves in enumerate(processes):
        for step in moves.all(tree, locals_[at]):
            if not step.fault and not step.is_idle and step.does != "hears nothing yet":
                return step, at
    return None, -1
