"""How a cluster comes to the state in which a search begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from watchkeeper.checker.actors.actor_state import ActorState, notified
from watchkeeper.checker.actors.actors import Member
from watchkeeper.checker.actors.transitions import Step
from watchkeeper.model.counterexample.step_kind import StepKind

MOST_STEPS = 100_000


class CannotExplore(Exception):
    """A plan that the search cannot take; the text says why."""


class NeverSettles(CannotExplore):
    """A group that does not come to rest although no fault strikes and every process moves."""

    def __init__(self, movers: Sequence[str]) -> None:
        self.movers = tuple(movers)
        """The processes that go round."""
        super().__init__(
            f"the group does not come to rest before the search begins: {' and '.join(movers)} "
            "may go round for ever; `watchkeeper explore` shows the steps"
        )


class InitialStep(NamedTuple):
    """A start or a step of a process before the search begins."""

    actor: int
    step: Step | None
    """None for a start."""
    tree: int
    """The tree before it."""
    before: list[ActorState]
    after: list[ActorState]

    @property
    def tree_after(self) -> int:
        """The tree after it."""
        return self.tree if self.step is None else self.step.tree


def initial_steps(
    members: list[Member], tree: int, *, is_quiescent: bool, brokers_rest: bool = True
) -> Iterator[InitialStep]:
    """Yield the steps of brokers until they are quiescent, then those of the first consumers.

    Consumers only start, unless `is_quiescent`: then they run until they are quiescent too.
    Without `brokers_rest` that goes for brokers as well.
    """
    states = [ActorState() for _ in members]
    for is_consumer in (False, True):
        for at, member in enumerate(members):
            if (member.group is not None) == is_consumer and member.starts_first:
                before = states
                states = [*before]
                states[at] = member.moves.process.started(ActorState(), 0)
                yield InitialStep(at, None, tree, before, states)
        if is_quiescent or (brokers_rest and not is_consumer):
            for done in _until_quiescent(members, tree, states):
                yield done
                tree, states = done.tree_after, done.after


def _until_quiescent(
    members: list[Member], tree: int, states: list[ActorState]
) -> Iterator[InitialStep]:
    """Let one process after the other make its free steps, until none has any.

    A process that goes round by itself may only wait for another one. So from the first state
    that comes again all have their turns; if a state comes again then, no rest comes.
    """
    seen: dict[tuple[int, ...], None] = {}
    movers: dict[str, None] = {}
    turn, is_fair = 0, False
    for _ in range(MOST_STEPS):
        found = _first_step(members, tree, states, turn)
        if found is None:
            return
        at, step = found
        numbers = (
            member.local_states.of(state) for member, state in zip(members, states, strict=True)
        )
        key = (turn, tree, *numbers)
        if key in seen and is_fair:
            break
        if key in seen:
            is_fair, seen, movers = True, {}, {}
        seen[key] = None
        movers[members[at].name] = None
        turn = (at + 1) % len(members) if is_fair else 0
        before = states
        states = [
            step.state if other == at else notified(actor_state, step.broadcast)
            for other, actor_state in enumerate(before)
        ]
        yield InitialStep(at, step, tree, before, states)
        tree = step.tree
    raise NeverSettles(sorted(movers))


def _first_step(
    members: list[Member], tree: int, states: list[ActorState], turn: int
) -> tuple[int, Step] | None:
    """The next free step, of the process whose turn it is or of the first one after it."""
    for at in (*range(turn, len(members)), *range(turn)):
        for step in members[at].moves.all(tree, states[at]):
            if not step.fault and not step.is_idle and step.does != StepKind.EMPTY_POLL:
                return at, step
    return None
