"""Two-phase commit as a system to be searched; other tools agree on how many states it has."""

from __future__ import annotations

from collections.abc import Iterator

from watchkeeper.checker.state_space.intern import Interner
from watchkeeper.checker.state_space.system import Budget, Move, UnreducedSystem

Shared = tuple[str, frozenset[str]]
"""What the manager has decided, and the messages that were sent; none is ever taken back."""


class TwoPhaseCommit(UnreducedSystem):
    """Resource managers, and one manager of transactions who counts who is prepared."""

    def __init__(self, managers: int) -> None:
        self.managers = managers
        self.actors = (*(f"resource {at}" for at in range(managers)), "transaction")
        self.budget = Budget({})
        self.exercised_by_moves = ()
        self.shared: Interner[frozenset[str]] = Interner()
        self.local: Interner[object] = Interner()

    def initial(self) -> tuple[int, ...]:
        nothing = self.shared.of(frozenset())
        working = self.local.of("working")
        begun = self.local.of(("init", frozenset()))
        return (nothing, *[working] * self.managers, begun)

    def moves(
        self, actor: int, shared: int, local: int, *, with_faults: bool = True
    ) -> Iterator[Move]:
        sent, state = self.shared[shared], self.local[local]
        if actor == self.managers:
            yield from self._of_transaction(sent, state)
            return
        if state == "working":
            yield self._move("prepares", sent | {f"prepared {actor}"}, "prepared")
            yield self._move("aborts", sent, "aborted")
        if "commit" in sent and state != "committed":
            yield self._move("receives the commit", sent, "committed")
        if "abort" in sent and state != "aborted":
            yield self._move("receives the abort", sent, "aborted")

    def _of_transaction(self, sent: frozenset[str], state: object) -> Iterator[Move]:
        decided, prepared = state  # type: ignore[misc]
        if decided != "init":
            return
        for at in range(self.managers):
            if f"prepared {at}" in sent and at not in prepared:
                yield self._move(f"hears of {at}", sent, ("init", prepared | {at}))
        if len(prepared) == self.managers:
            yield self._move("commits", sent | {"commit"}, ("committed", prepared))
        yield self._move("aborts", sent | {"abort"}, ("aborted", prepared))

    def _move(self, label: str, sent: frozenset[str], state: object) -> Move:
        return Move(label, self.shared.of(sent), self.local.of(state))

    def receive(self, actor: int, local: int, broadcast: int) -> int:
        raise AssertionError("nothing is cast here")

    def pair_violation(self, actor: int, shared: int, local: int) -> str:
        return ""

    def may_write(self, actor: int, local: int) -> int:
        return 1

    def written_regions(self, broadcast: int) -> int:
        raise AssertionError("nothing is cast here")

    def is_exercised_at_rest(self, state: tuple[int, ...]) -> bool:
        return True

    def terminal_violation(self, state: tuple[int, ...]) -> str:
        return ""
