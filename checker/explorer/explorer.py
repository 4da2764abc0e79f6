"""The states of a system for those who browse them, one chosen step after the other.

A place is named by choices: the number of the step that was taken in each state on the way, in
the order in which a system lists its steps. So a link to it holds as long as the scenario and
the protocol are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

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


class Explorer:
    """Leads from state to state of a system."""

    def __init__(self, system: ClusterSystem) -> None:
        self.system = system
        self.first = first_state(system)
        """The state in which the search begins."""

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
        return BrowsedState(
            snapshots=snapshots_of(self.system, state),
            znodes=tuple(self._znodes(state)),
            choices=tuple(map(self._choice, successors(self.system, state))),
            disabled=disabled_actors(self.system, state),
            violates=tuple(self._violated(state)),
            is_at_rest=self._is_at_rest(state),
        )

    def graph(self, most: int) -> StateGraph | None:
        """Return all states that can be reached; None if they are more than `most`."""
        numbers = {self.first: 0}
        ends: list[list[int]] = []
        states = [self.first]
        for state in states:  # it grows behind the one that is looked at
            after = [taken.after for taken in successors(self.system, state)]
            states += [end for end in dict.fromkeys(after) if end not in numbers]
            if len(states) > most:
                return None
            ends.append([numbers.setdefault(end, len(numbers)) for end in after])
        return tuple(map(self._numbered, states, ends))

    def _numbered(self, state: State, ends: list[int]) -> BrowsedState:
        """Return a state whose choices have the numbers of the states that they lead to."""
        seen = self.state(state)
        choices = tuple(
            replace(choice, leads_to=end) for choice, end in zip(seen.choices, ends, strict=True)
        )
        return replace(seen, choices=choices)

    def _choice(self, taken: Taken) -> Choice:
        own = self.system.broken_by(taken.actor, taken.before, taken.step)
        after = self._violated(taken.after)
        return Choice(
            scheduled_step_of(self.system, taken),
            tuple(dict.fromkeys([own, *after] if own else after)),
            taken.step.is_idle,
        )

    def _violated(self, state: State) -> list[str]:
        """Return the properties that a state violates."""
        found, fetched = list[str](), 0
        for actor, number in enumerate(state[1:-1]):
            found.append(self.system.pair_violation(actor, state[0], number))
            own = self.system.exclusive(actor, number)
            if own & fetched:
                found.append(self.system.exclusion_violation(state))
            fetched |= own
        if self._is_at_rest(state):
            found += [name for name, _ in self.system.terminal_findings(state)]
        return list(dict.fromkeys(filter(None, found)))

    def _is_at_rest(self, state: State) -> bool:
        return not any(
            move.kind == FREE
            for actor, number in enumerate(state[1:-1])
            for move in self.system.moves(actor, state[0], number)
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
