"""Processes around one tree of znodes: the part that all searched systems share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.checker.actors.actor_state import ActorState, Broadcast, ProcessChange, notified
from watchkeeper.checker.actors.transitions import Step, Transitions
from watchkeeper.checker.state_space.intern import Interner
from watchkeeper.checker.state_space.system import FREE, Budget, Move
from watchkeeper.model.plan.plan import GroupPlan

State = tuple[int, ...]


class Member:
    """One actor: its steps, its group if it is a consumer, and its interned local states."""

    def __init__(
        self, name: str, moves: Transitions, group: GroupPlan | None, starts_first: bool
    ) -> None:
        self.name = name
        self.moves = moves
        self.group = group
        self.starts_first = starts_first
        """Whether it runs before the search starts."""
        self.local_states: Interner[ActorState] = Interner()


class Actors:
    """Some members, and the budget for their faults."""

    def __init__(self, members: Sequence[Member], budget: Budget) -> None:
        self.members = list(members)
        self.exercised_by_moves: tuple[str, ...] = ()
        self.budget = budget
        self.actors = tuple(member.name for member in self.members)
        self.name_of = {
            session: member.name
            for member in self.members
            for session in member.moves.process.sessions
        }
        """Session -> the member that may use it."""
        self._broadcasts: Interner[Broadcast] = Interner()
        assert self._broadcasts.of(()) == 0, "nothing is cast by the number 0"

    def steps(self, actor: int, shared: int, actor_state: int) -> list[Step]:
        """Return the steps of an actor, by values."""
        member = self.members[actor]
        return list(member.moves.all(shared, member.local_states[actor_state]))

    def moves(
        self, actor: int, shared: int, actor_state: int, *, with_faults: bool = True
    ) -> Iterator[Move]:
        """Yield the moves of an actor, by numbers."""
        member = self.members[actor]
        before = member.local_states[actor_state]
        for step in member.moves.all(shared, before, with_faults=with_faults):
            kind = self.kind_of(member, step)
            if kind >= 0:
                yield Move(
                    step.does,
                    step.tree,
                    member.local_states.of(step.state),
                    self._broadcasts.of(step.broadcast),
                    kind,
                    self.step_violation(before, shared, step),
                    step.is_leftover,
                    self.exercises(shared, step),
                )

    def kind_of(self, member: Member, step: Step) -> int:
        """Return the kind of a step in the budget; -1 where the budget has none of it."""
        return self.budget.kind(step.fault) if step.fault else FREE

    def step_violation(self, actor_state: ActorState, tree: int, step: Step) -> str:
        """Return the property that a step itself violates; systems override this."""
        return ""

    def exercises(self, tree: int, step: Step) -> int:
        """Return a bit for each of `exercised_by_moves` that a step exercises."""
        return 0

    def broken_by(self, actor: int, state: State, step: Step) -> str:
        """Return the property that a step from a whole state violates."""
        return self.step_violation(
            self.members[actor].local_states[state[1 + actor]], state[0], step
        )

    def account_after(self, actor: int, step: Step, account: int) -> int:
        """Return the fault account after a step; -1 where no budget is left for it."""
        if not step.fault:
            return account
        kind = self.kind_of(self.members[actor], step)
        return int(self.budget.after[account, kind]) if kind >= 0 else -1

    def broadcast_number(self, broadcast: Broadcast) -> int:
        """Return the number of a broadcast."""
        return self._broadcasts.of(broadcast)

    def receive(self, actor: int, actor_state: int, broadcast: int) -> int:
        """Return the local state of an actor after a broadcast."""
        member = self.members[actor]
        before, received = member.local_states[actor_state], self._broadcasts[broadcast]
        if received and isinstance(received[0], ProcessChange):
            return member.local_states.of(member.moves.with_process(before, received[0]))
        return member.local_states.of(notified(before, received))

    def failed_turns(self, rows: NDArray[Any]) -> dict[str, str]:
        """Return for each member an error that ended a turn; none where no turn has failed.

        `rows` holds a state a row: the tree, the local states, the fault account.
        """
        found = {}
        for place, member in enumerate(self.members, start=1):
            states = enumerate(member.local_states.values)
            failed = {number: state.failed for number, state in states if state.failed}
            if failed:
                seen = np.intersect1d(list(failed), rows[:, place])
                if seen.size:
                    found[member.name] = failed[int(seen[0])]
        return found

    def values(self, state: State) -> dict[str, ActorState]:
        """Return the processes of a state by name."""
        return {
            member.name: member.local_states[actor_state]
            for member, actor_state in zip(self.members, state[1:], strict=False)
        }
