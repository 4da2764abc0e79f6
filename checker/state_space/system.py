"""The systems that can be searched: actors around one shared value.

A state is the shared value, a local state for each actor, and the fault account: what is left
of the budget for faults. A move is made by one actor. It depends on the shared value and on
that actor's local state alone, and changes both. What the others learn of it is *broadcast*,
and each of them receives it independently. So the moves of a pair (shared, local) are
computed once, however many states contain the pair; this makes the search fast.

All values are interned: they are numbers here, and only the system knows what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

FREE = 0
"""The kind of a move that has to come sooner or later (weak fairness)."""
IDLE = 1
"""The kind of a move that may come any number of times, and on which no liveness depends."""
KINDS_BEFORE_FAULTS = 2


class Move(NamedTuple):
    """A transition of one actor."""

    label: Any
    shared: int
    local: int
    broadcast: int = 0
    """What the other actors learn of it; 0 for nothing."""
    kind: int = FREE
    step_violation: str = ""
    """The safety property that the move itself violates; empty for none."""
    is_leftover: bool = False
    """Whether a late request or an orphaned session makes it; such moves are listed first."""
    exercises: int = 0
    """A bit for each of the system's `exercised_by_moves` that the move exercises."""


class System(Protocol):
    """What a search calls."""

    budget: Budget

    @property
    def exercised_by_moves(self) -> Sequence[str]:
        """The properties that only some moves exercise."""
        ...

    @property
    def actors(self) -> Sequence[str]:
        """The names of the actors."""
        ...

    def initial(self) -> tuple[int, ...]:
        """Return the initial shared value and the initial local state of each actor."""
        ...

    def moves(
        self, actor: int, shared: int, local: int, *, with_faults: bool = True
    ) -> Iterable[Move]:
        """Return the moves of an actor, whatever the budget allows.

        Without faults those of the kinds FREE and IDLE, in the same order.
        """
        ...

    def receive(self, actor: int, local: int, broadcast: int) -> int:
        """Return the local state of an actor after the broadcast of another's move."""
        ...

    def pair_violation(self, actor: int, shared: int, local: int) -> str:
        """Return the safety property that every state with this pair violates; empty for none."""
        ...

    def exclusive(self, actor: int, local: int) -> int:
        """Return a set of bits, of which no two actors may hold the same one at a time."""
        ...

    def exclusion_violation(self, state: tuple[int, ...]) -> str:
        """Return the property that a state violates in which two actors hold the same bit."""
        ...

    def reads_from(self, actor: int, local: int) -> int:
        """Return the regions that an actor's next moves read; 0 where they do more than read."""
        ...

    def may_write(self, actor: int, local: int) -> int:
        """Return the regions that an actor may still write without further faults."""
        ...

    def leftover_writes(self, actor: int, local: int) -> int:
        """Return the regions that an actor's late requests and orphaned sessions may write."""
        ...

    def is_private(self, actor: int, local: int) -> int:
        """Return 1 where the moves of an actor are independent of the others, and invisible."""
        ...

    def canonical(self, actor: int, local: int) -> int:
        """Return the local state that represents this one once no more faults can come."""
        ...

    def written_regions(self, broadcast: int) -> int:
        """Return the regions that a move with this broadcast has written."""
        ...

    def terminal_violation(self, state: tuple[int, ...]) -> str:
        """Return the property that a terminal state violates; empty for none."""
        ...

    def is_exercised_at_rest(self, state: tuple[int, ...]) -> bool:
        """Whether a terminal state has anything that properties at rest can be judged by."""
        ...


class UnreducedSystem:
    """What a system answers of which no reduction and no exclusion is wanted."""

    def exclusive(self, actor: int, local: int) -> int:
        """No bits: properties are about whole states."""
        return 0

    def exclusion_violation(self, state: tuple[int, ...]) -> str:
        """No actor holds exclusive bits here."""
        raise AssertionError("nothing is exclusive here")

    def reads_from(self, actor: int, local: int) -> int:
        """No region: a property may see every step."""
        return 0

    def may_write(self, actor: int, local: int) -> int:
        """No region, since no reduction uses one."""
        return 0

    def leftover_writes(self, actor: int, local: int) -> int:
        """No region, since no reduction uses one."""
        return 0

    def is_private(self, actor: int, local: int) -> int:
        """Return 0: a property may see every step."""
        return 0

    def canonical(self, actor: int, local: int) -> int:
        """Itself."""
        return local

    def written_regions(self, broadcast: int) -> int:
        """No region, since no reduction uses one."""
        return 0


class Budget:
    """How many faults of each kind there may be: a number for each state of the account."""

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
        """Return the number of a kind; -1 where the budget has none of it."""
        if self.limits.get(name, 0) == 0:
            return -1
        return KINDS_BEFORE_FAULTS + self.kinds.index(name)

    def __str__(self) -> str:
        given = [f"{limit} {name}" for name, limit in self.limits.items() if limit]
        if not given:
            return "no faults"
        most = f", at most {self.together} together"
        return ", ".join(given) + (most if self.together < sum(self.limits.values()) else "")
