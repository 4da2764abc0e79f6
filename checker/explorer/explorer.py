"""The states of a system for those who browse them, one chosen step after the other.

A place is named by choices: the number of the step that was taken in each state on the way, in
the order in which a system lists its steps. So a link to it holds as long as the scenario and
the protocol are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from watchkeeper.checker.actors.actors import State
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.disabled import disabled_actors
from watchkeeper.checker.counterexample.explanation import scheduled_step_of, snapshots_of
from watchkeeper.checker.counterexample.path import Taken, successors
from watchkeeper.checker.counterexample.replay_steps import first_state, path_of
from watchkeeper.checker.state_space.system import FREE
from watchkeeper.model.counterexample.browsed_state import (
    BrowsedState,
    BrowsedZnode,
    Choice,
    StateGraph,
)
from watchkeeper.model.counterexample.counterexample import UNKNOWN_OWNER, ScheduledStep
from watchkeeper.model.trace.text import text

RESERVED = "/zookeeper"


class NoSuchChoice(Exception):
    """A place is named by a step that is not enabled there; the text says which."""


class Judged(NamedTuple):
    """What a state is, whatever leads to it."""

    violates: tuple[str, ...]
    """The properties that it violates."""
    is_at_rest: bool
    """Whether nothing has to come any more."""


class Explorer:
    """Leads from state to state of a system."""

    def __init__(self, system: ClusterSystem) -> None:
        self.system = system
        self.first = first_state(system)
        """The state in which the search begins."""
        self._judged: dict[State, Judged] = {}

    def way(self, choices: Sequence[int]) -> list[Taken]:
        """Return the steps of a place; raises NoSuchChoice."""
        state, taken = self.first, list[Taken]()
        for number, choice in enumerate(choices, 1):
            enabled = successors(self.system, state)
            if not 0 <= choice < len(enabled):
                raise NoSuchChoice(
                    f"choice {number} is {choice}, and {len(enabled)} steps are enabled there, "
                    "counted from 0: the link is of another scenario or version"
                )
            taken.append(enabled[choice])
            state = taken[-1].after
        return taken

    def choices_of(self, steps: Sequence[ScheduledStep]) -> list[int]:
        """Return the place to which the steps of a schedule lead; raises NoSuchStep."""
        return [
            successors(self.system, taken.before).index(taken)
            for taken in path_of(self.system, steps)
        ]

    def state(self, state: State) -> BrowsedState:
        """Return a state as people browse it."""
        choices = map(self._choice, successors(self.system, state))
        return self._browsed(state, tuple(choices))

    def graph(self, most: int) -> StateGraph | None:
        """Return all states that can be reached; None if they are more than `most`."""
        numbers = {self.first: 0}
        enabled: list[list[Taken]] = []
        states = [self.first]
        for state in states:  # it grows behind the one that is looked at
            enabled.append(successors(self.system, state))
            for taken in enabled[-1]:
                if taken.after not in numbers:
                    numbers[taken.after] = len(states)
                    states.append(taken.after)
            if len(states) > most:
                return None
        return tuple(
            self._browsed(
                state,
                tuple(replace(self._choice(one), leads_to=numbers[one.after]) for one in steps),
            )
            for state, steps in zip(states, enabled, strict=True)
        )

    def _browsed(self, state: State, choices: tuple[Choice, ...]) -> BrowsedState:
        judged = self._judgement(state)
        return BrowsedState(
            snapshots=snapshots_of(self.system, state),
            znodes=tuple(self._znodes(state)),
            choices=choices,
            disabled=disabled_actors(self.system, state),
            violates=judged.violates,
            is_at_rest=judged.is_at_rest,
        )

    def _choice(self, taken: Taken) -> Choice:
        own = self.system.broken_by(taken.actor, taken.before, taken.step)
        after = self._judgement(taken.after).violates
        return Choice(
            scheduled_step_of(self.system, taken),
            tuple(dict.fromkeys((own, *after) if own else after)),
            taken.step.is_idle,
        )

    def _judgement(self, state: State) -> Judged:
        """Judge a state, once: it is looked at from each state that leads to it, too."""
        judged = self._judged.get(state)
        if judged is None:
            judged = self._judged[state] = self._judge(state)
        return judged

    def _judge(self, state: State) -> Judged:
        found, fetched = list[str](), 0
        for actor, number in enumerate(state[1:-1]):
            found.append(self.system.pair_violation(actor, state[0], number))
            own = self.system.exclusive(actor, number)
            if own & fetched:
                found.append(self.system.exclusion_violation(state))
            fetched |= own
        is_at_rest = self._is_at_rest(state)
        if is_at_rest:
            found += [name for name, _ in self.system.terminal_findings(state)]
        return Judged(tuple(dict.fromkeys(filter(None, found))), is_at_rest)

    def _is_at_rest(self, state: State) -> bool:
        return not any(
            move.kind == FREE
            for actor, number in enumerate(state[1:-1])
            for move in self.system.moves(actor, state[0], number, with_faults=False)
        )

    def _znodes(self, state: State) -> Iterator[BrowsedZnode]:
        """Yield all znodes but the root and the service's own, by path."""
        current = {one.session for one in self.system.values(state).values() if one.is_alive}
        for path, znode in sorted(self.system.service.trees[state[0]].nodes.items()):
            if path == "/" or path == RESERVED or path.startswith(f"{RESERVED}/"):
                continue
            owner = self.system.name_of.get(znode.owner, UNKNOWN_OWNER) if znode.owner else ""
            yield BrowsedZnode(
                path, text(znode.data) or "", owner, bool(owner) and znode.owner not in current
            )
