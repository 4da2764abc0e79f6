"""What can be searched: actors about one shared value.

A state is the shared value, a local value for each actor, and what is left of the budget
for faults. A move is made by one actor: it depends on the shared value and on that actor's
local value alone, and changes both. What the others have to learn of it is *cast* to them,
and each takes it by itself. So the moves of a pair (shared, local) are found once, however
many states have that pair; that is what makes the search quick.

Values are numbers here. What they stand for is the system's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

FREE = 0
"""The kind of a move that has to come sooner or later."""
IDLE = 1
"""The kind of a move that may come any number of times and that nobody waits for."""
KINDS_BEFORE_FAULTS = 2


class Move(NamedTuple):
    """One thing an actor can do."""

    label: Any
    shared: int
    local: int
    cast: int = 0
    """What the other actors learn of it; 0 for nothing."""
    kind: int = FREE
    breaks: str = ""
    """What is violated by the move itself."""
    is_left: bool = False
    """Whether it is of what is left of earlier requests; such moves are told first."""


class System(Protocol):
    """What a search needs to know."""

    budget: Budget

    @property
    def actors(self) -> Sequence[str]:
        """Their names."""
        ...

    def initial(self) -> tuple[int, ...]:
        """The shared value and each actor's local value in the beginning."""
        ...

    def moves(self, actor: int, shared: int, local: int) -> Iterable[Move]:
        """Everything an actor can do."""
        ...

    def hear(self, actor: int, local: int, cast: int) -> int:
        """What becomes of an actor that learns of another's move."""
        ...

    def wrong(self, actor: int, shared: int, local: int) -> str:
        """What is violated while this pair stands; empty for nothing."""
        ...

    def exclusive(self, actor: int, local: int) -> int:
        """A set of bits; no two actors may have one bit at the same time."""
        ...

    def shared(self, state: tuple[int, ...]) -> str:
        """What is violated by a state in which two actors have one bit."""
        ...

    def looks_at(self, actor: int, local: int) -> int:
        """The regions that an actor's next moves look at, as bits; 0 where they do more."""
        ...

    def may_write(self, actor: int, local: int) -> int:
        """The regions that an actor may still write to while there are no more faults."""
        ...

    def left_writes(self, actor: int, local: int) -> int:
        """The regions to which what is left of an actor's earlier requests may write."""
        ...

    def is_private(self, actor: int, local: int) -> int:
        """1 where all that an actor can do, or can befall it, is nobody else's business."""
        ...

    def merged(self, actor: int, local: int) -> int:
        """The local value that stands for this one while there are no more faults."""
        ...

    def writes(self, cast: int) -> int:
        """The regions that a move has written to."""
        ...

    def wrong_at_rest(self, state: tuple[int, ...]) -> str:
        """What is violated in a state in which nothing has to come any more."""
        ...


class Budget:
    """How many moves of each kind there may be: a number for each state of the account."""

    def __init__(self, limits: Mapping[str, int], together: int | None = None) -> None:
        self.kinds = tuple(limits)
        self.limits = dict(limits)
        self.together = sum(limits.values()) if together is None else together
        spent = [
            counts
            for counts in product(*(range(limit + 1) for limit in limits.values()))
            if sum(counts) <= self.together
        ]
        spent.sort(key=lambda counts: (sum(counts), counts))
        number = {counts: at for at, counts in enumerate(spent)}
        self.spent = spent
        columns = KINDS_BEFORE_FAULTS + len(self.kinds)
        self.after: NDArray[np.int32] = np.full((len(spent), columns), -1, np.int32)
        """Account x kind -> account after one more of that kind; -1 where there is none left."""
        self.after[:, :KINDS_BEFORE_FAULTS] = np.arange(len(spent))[:, None]
        for at, counts in enumerate(spent):
            for kind in range(len(self.kinds)):
                more = (*counts[:kind], counts[kind] + 1, *counts[kind + 1 :])
                self.after[at, KINDS_BEFORE_FAULTS + kind] = number.get(more, -1)

        self.is_spent: NDArray[np.bool_] = np.all(self.after[:, KINDS_BEFORE_FAULTS:] < 0, axis=1)
        """Account -> whether there can be no more faults."""

    def kind(self, name: str) -> int:
        """The number of a kind; -1 where the budget has none of it."""
        if self.limits.get(name, 0) == 0:
            return -1
        return KINDS_BEFORE_FAULTS + self.kinds.index(name)

    def __str__(self) -> str:
        given = [f"{limit} {name}" for name, limit in self.limits.items() if limit]
        if not given:
            return "no faults"
        most = f", at most {self.together} together"
        return ", ".join(given) + (most if self.together < sum(self.limits.values()) else "")
