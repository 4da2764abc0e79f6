"""The states of a system for those who browse them, one chosen step after the other.

A place is named by choices: the number of the step that was taken in each state on the way, in
the order in which a system lists its steps. So a link to it holds as long as the scenario and
the protocol are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from watchkeeper.checker.actors.actors import State
from watchkeeper.checker.cluster.cluster import ClusterSystem
from watchkeeper.checker.counterexample.disabled import disabled_actors
from watchkeeper.checker.counterexample.explanation import (
    registry_of,
    scheduled_step_of,
    snapshots_of,
)
from watchkeeper.checker.counterexample.path import Taken, successors
from watchkeeper.checker.counterexample.replay_steps import first_state, path_of
from watchkeeper.checker.state_space.system import FREE
from watchkeeper.model.counterexample.browsed_state import (
    NOT_HELD,
    BrowsedClaim,
    BrowsedState,
    BrowsedZnode,
    Choice,
    PathInGraph,
    StateGraph,
)
from watchkeeper.model.counterexample.counterexample import UNKNOWN_OWNER, ScheduledStep
from watchkeeper.model.registry import paths
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
        numbers, enabled = self._reach([self.first], most)
        if any(taken.after not in numbers for steps in enabled for taken in steps):
            return None
        return self._graph_of(numbers, enabled)

    def around(self, path: Sequence[Taken], most: int) -> PathInGraph:
        """Return the states of a path and those near it.

        The states that are fewer steps from the path come first, until the graph has `most`.
        """
        on_path = [self.first, *(taken.after for taken in path)]
        numbers, enabled = self._reach(on_path, most)
        choices = (enabled[numbers[taken.before]].index(taken) for taken in path)
        return PathInGraph(self._graph_of(numbers, enabled), tuple(choices))

    def _reach(
        self, begin: Iterable[State], most: int
    ) -> tuple[dict[State, int], list[list[Taken]]]:
        """Number these states and those that they lead to, up to `most`; with their steps."""
        states = list(dict.fromkeys(begin))
        numbers = {state: number for number, state in enumerate(states)}
        enabled: list[list[Taken]] = []
        for state in states:  # it grows behind the one that is looked at
            enabled.append(successors(self.system, state))
            for taken in enabled[-1]:
                if taken.after not in numbers and len(states) < most:
                    numbers[taken.after] = len(states)
                    states.append(taken.after)
        return numbers, enabled

    def _graph_of(self, numbers: Mapping[State, int], enabled: list[list[Taken]]) -> StateGraph:
        return tuple(
            self._browsed(
                state,
                tuple(
                    replace(self._choice(one), leads_to=numbers.get(one.after, NOT_HELD))
                    for one in steps
                ),
            )
            for state, steps in zip(numbers, enabled, strict=True)
        )

    def _browsed(self, state: State, choices: tuple[Choice, ...]) -> BrowsedState:
        judged = self._judgement(state)
        return BrowsedState(
            snapshots=snapshots_of(self.system, state),
            znodes=tuple(self._znodes(state)),
            choices=choices,
            claims=self._claims(state),
            registry=registry_of(self.system, state),
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
            for move in self.system.moves(actor, state[0], number)
        )

    def _znodes(self, state: State) -> Iterator[BrowsedZnode]:
        """Yield all znodes but the root and the service's own, by path."""
        current = self._current_sessions(state)
        for path, znode in sorted(self.system.service.trees[state[0]].nodes.items()):
            if path == "/" or path == RESERVED or path.startswith(f"{RESERVED}/"):
                continue
            owner = self.system.name_of.get(znode.owner, UNKNOWN_OWNER) if znode.owner else ""
            yield BrowsedZnode(
                path, text(znode.data) or "", owner, bool(owner) and znode.owner not in current
            )

    def _claims(self, state: State) -> dict[str, BrowsedClaim]:
        """Return the claim of each partition that has one."""
        current = self._current_sessions(state)
        claims = {}
        for path, znode in sorted(self.system.service.trees[state[0]].nodes.items()):
            claim = paths.parse_owner(path)
            if claim is not None:
                owner = self.system.name_of.get(znode.owner, UNKNOWN_OWNER)
                is_earlier = owner != UNKNOWN_OWNER and znode.owner not in current
                claims[str(claim[1])] = BrowsedClaim(owner, is_earlier)
        return claims

    def _current_sessions(self, state: State) -> set[int]:
        """Return the sessions that processes use and that are alive."""
        return {one.session for one in self.system.values(state).values() if one.is_alive}
