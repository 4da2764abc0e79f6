"""Processes about one tree of znodes: what every system has, whatever is claimed of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explore.local import Cast, Local, hears
from explore.moves import Moves, Step
from explore.numbering import Numbering
from explore.system import FREE, Budget, Move
from model.plan import GroupPlan

State = tuple[int, ...]


class Member:
    """One actor: its moves, its group if it is a consumer, and its local values by number."""

    def __init__(self, name: str, moves: Moves, group: GroupPlan | None, begins: bool) -> None:
        self.name = name
        self.moves = moves
        self.group = group
        self.begins = begins
        """Whether it runs from the beginning."""
        self.locals: Numbering[Local] = Numbering()


class Processes:
    """Some members, and the budget for what befalls them."""

    def __init__(self, members: Sequence[Member], budget: Budget) -> None:
        self.members = list(members)
        self.budget = budget
        self.actors = tuple(member.name for member in self.members)
        self._casts: Numbering[Cast] = Numbering()
        assert self._casts.of(()) == 0, "nothing is cast by the number 0"

    def steps(self, actor: int, shared: int, local: int) -> list[Step]:
        """An actor's moves, by values."""
        member = self.members[actor]
        return list(member.moves.all(shared, member.locals[local]))

    def moves(self, actor: int, shared: int, local: int) -> Iterator[Move]:
        """An actor's moves, by numbers."""
        member = self.members[actor]
        before = member.locals[local]
        for step in member.moves.all(shared, before):
            kind = self.kind_of(member, step)
            if kind >= 0:
                yield Move(
                    step.does,
                    step.tree,
                    member.locals.of(step.local),
                    self._casts.of(step.cast),
                    kind,
                    self.breaks(before, shared, step),
                    step.is_left,
                )

    def kind_of(self, member: Member, step: Step) -> int:
        """The kind of a step; -1 where there is no budget for it."""
        return self.budget.kind(step.fault) if step.fault else FREE

    def breaks(self, local: Local, tree: int, step: Step) -> str:
        """What is violated by a step itself: nothing, unless a system says so."""
        return ""

    def broken_by(self, actor: int, state: State, step: Step) -> str:
        """The same of a step in a state."""
        return self.breaks(self.members[actor].locals[state[1 + actor]], state[0], step)

    def account_after(self, actor: int, step: Step, account: int) -> int:
        """The account after a step; -1 where there is no budget for it."""
        if not step.fault:
            return account
        kind = self.kind_of(self.members[actor], step)
        return int(self.budget.after[account, kind]) if kind >= 0 else -1

    def number_of(self, cast: Cast) -> int:
        """The number of what others learn."""
        return self._casts.of(cast)

    def hear(self, actor: int, local: int, cast: int) -> int:
        """What becomes of an actor when something has changed."""
        member = self.members[actor]
        return member.locals.of(hears(member.locals[local], self._casts[cast]))

    def values(self, state: State) -> dict[str, Local]:
        """Every process of a state by its name."""
        return {
            member.name: member.locals[local]
            for member, local in zip(self.members, state[1:], strict=False)
        }
