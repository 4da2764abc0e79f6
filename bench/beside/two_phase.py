"""Two-phase commit as a system to search: a coordinator, and managers of one resource each.

The model is L. Lamport's ("Consensus on Transaction Commit", 2004). A manager prepares and says
so, or aborts by itself; the coordinator commits when all have prepared, or aborts at any moment
before; managers follow what it has sent. Messages stay, and are taken in any order.

The shared value is what was sent: which managers have prepared, and what was decided. It also
has whether a manager has committed or aborted, which follows from the managers, so that the
states are those of the other two texts, one for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from watchkeeper.checker.state_space.intern import Interner
from watchkeeper.checker.state_space.system import Budget, Move, UnreducedSystem

WORKING, PREPARED, COMMITTED, ABORTED = range(4)
"""What a manager is."""
UNDECIDED = 0
"""What the coordinator has decided: nothing; later COMMITTED or ABORTED."""
CONSISTENT = "a manager has committed and another has aborted"


class Sent(NamedTuple):
    """What every process can see."""

    prepared: int = 0
    """A bit for each manager that has said that it is prepared."""
    decided: int = UNDECIDED
    has_committed: bool = False
    has_aborted: bool = False


class TwoPhaseCommit(UnreducedSystem):
    """The coordinator is actor 0; its local value has a bit for each manager that it heard of."""

    exercised_by_moves: tuple[str, ...] = ()

    def __init__(self, managers: int) -> None:
        self.actors = ("coordinator", *(f"manager {number}" for number in range(managers)))
        self.everyone = (1 << managers) - 1
        self.budget = Budget({})
        self.sent: Interner[Sent] = Interner()

    def initial(self) -> tuple[int, ...]:
        """Return the first state: nothing is sent, nothing heard, every manager at work."""
        return (self.sent.of(Sent()), 0, *(WORKING for _ in self.actors[1:]))

    def moves(
        self, actor: int, shared: int, local: int, *, with_faults: bool = True
    ) -> Iterable[Move]:
        """Return the steps that change something; none of them is a fault."""
        sent = self.sent[shared]
        if actor == 0:
            return self._of_coordinator(sent, local)
        return self._of_manager(sent, 1 << (actor - 1), local)

    def _of_coordinator(self, sent: Sent, heard: int) -> Iterable[Move]:
        if sent.decided != UNDECIDED:
            return
        if heard == self.everyone:
            yield self._move("commits", sent._replace(decided=COMMITTED), heard)
        yield self._move("aborts", sent._replace(decided=ABORTED), heard)
        bit = 1
        while bit <= self.everyone:
            if sent.prepared & ~heard & bit:
                yield self._move("hears of a manager", sent, heard | bit)
            bit <<= 1

    def _of_manager(self, sent: Sent, bit: int, state: int) -> Iterable[Move]:
        if state == WORKING:
            prepared = sent._replace(prepared=sent.prepared | bit)
            yield self._move("prepares", prepared, PREPARED)
            yield self._move("aborts by itself", sent._replace(has_aborted=True), ABORTED)
        if sent.decided == COMMITTED != state:
            yield self._move("commits", sent._replace(has_committed=True), COMMITTED)
        if sent.decided == ABORTED != state:
            yield self._move("aborts", sent._replace(has_aborted=True), ABORTED)

    def _move(self, label: str, sent: Sent, local: int) -> Move:
        return Move(label, self.sent.of(sent), local)

    def pair_violation(self, actor: int, shared: int, local: int) -> str:
        """Return the property if a manager has committed and another has aborted."""
        sent = self.sent[shared]
        return CONSISTENT if sent.has_committed and sent.has_aborted else ""

    def receive(self, actor: int, local: int, broadcast: int) -> int:
        """Nothing is broadcast: each actor looks at what was sent."""
        return local

    def terminal_violation(self, state: tuple[int, ...]) -> str:
        """A state without a step is one in which everything is decided."""
        return ""

    def is_exercised_at_rest(self, state: tuple[int, ...]) -> bool:
        """No property is judged at rest."""
        return False
