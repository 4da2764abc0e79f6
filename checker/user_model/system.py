"""Programs of users as a system to search.

It does for them what `cluster` does for a plan, with three differences. Claims may look at
whole states, so no step is left out by the reduction. Sleeps last, and a session takes a step
to open: a program that holds something while it sleeps is seen to hold it. And a timer that
expires is a step that has to come, since a program may do its work by the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from watchkeeper.checker.actors.actor import Actor
from watchkeeper.checker.actors.actor_state import ActorState
from watchkeeper.checker.actors.actors import Actors, Member
from watchkeeper.checker.actors.compile import CompiledProgram
from watchkeeper.checker.actors.transitions import Step, Transitions
from watchkeeper.checker.actors.znode_store import ZnodeStore
from watchkeeper.checker.state_space.intern import Interner
from watchkeeper.checker.state_space.system import Budget, UnreducedSystem
from watchkeeper.checker.user_model.view import (
    ProgramView,
    State,
    program_view,
    view_of,
    waits_in_vain,
)
from watchkeeper.model.actor.effects import NewSession, Sleep
from watchkeeper.model.actor.program import Program
from watchkeeper.model.counterexample.step_kind import StepKind
from watchkeeper.model.plan.bounds import FaultKind

Claim = Callable[[State], object]
"""A property of a state."""
IN_VAIN = "no process waits in vain"
"""The property that is violated where a program waits for what will not come."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The properties to check, by name."""

    always: Mapping[str, Claim]
    at_rest: Mapping[str, Claim]
    eventually: Mapping[str, Claim]
    sometimes: Mapping[str, Claim]


class UserTransitions(Transitions):
    """The steps of a process whose sleeps last."""

    def _running(self, tree: int, actor_state: ActorState) -> Iterator[Step]:
        yield from super()._running(tree, actor_state)
        effect = self.process.effect_of(actor_state)
        if isinstance(effect, Sleep):
            after = self.process.resumed(actor_state, None)
            if after != actor_state:
                yield Step(StepKind.SLEEP, tree, after)
        elif isinstance(effect, NewSession) and actor_state.link in ("none", "expired"):
            after = self.process.resumed(self.process.with_session(actor_state), None)
            yield Step(StepKind.NEW_SESSION, tree, after)


class UserSystem(UnreducedSystem, Actors):
    """Some programs around one tree of znodes."""

    def __init__(
        self,
        programs: Mapping[str, Program],
        claims: Claims,
        faults: Mapping[str, int],
        together: int | None = None,
    ) -> None:
        self.claims = claims
        each = 2 + 2 * sum(faults.values())
        self.service = ZnodeStore(
            range(1, 1 + each * len(programs)),
            lists_in_reverse=lambda session: (session - 1) // each % 2 == 1,
        )
        possible_faults = frozenset(FaultKind(name) for name, count in faults.items() if count)
        late = len(programs) - faults.get(FaultKind.JOIN, 0)
        members = [
            self._member(name, program, at, each, possible_faults, starts_first=at < late)
            for at, (name, program) in enumerate(programs.items())
        ]
        super().__init__(members, Budget(faults, together))
        self._seen: list[dict[int, int]] = [{} for _ in self.members]
        """Local value -> the number of what claims see of it, by member."""
        self._views: Interner[ProgramView] = Interner()
        self._judged: dict[tuple[int, ...], str] = {}
        self._judged_terminal: dict[tuple[int, ...], str] = {}

    def _member(
        self,
        name: str,
        program: Program,
        at: int,
        each: int,
        faults: frozenset[FaultKind],
        *,
        starts_first: bool,
    ) -> Member:
        sessions = tuple(range(1 + each * at, 1 + each * (at + 1)))
        process = Actor(name, CompiledProgram(program, name), sessions, pauses_last=True)
        own = faults - {FaultKind.JOIN} if starts_first else faults
        moves = UserTransitions(process, self.service, own, resends=False)
        return Member(name, moves, None, starts_first)

    # --- what the search calls ---------------------------------------------------------

    def initial(self) -> tuple[int, ...]:
        """Return an empty tree, and every program at its first request."""
        numbers = [
            member.local_states.of(
                member.moves.process.started(ActorState(), 0)
                if member.starts_first
                else ActorState()
            )
            for member in self.members
        ]
        return (self.service.first, *numbers)

    def pair_violation(self, actor: int, shared: int, actor_state: int) -> str:
        """Nothing: claims are about whole states."""
        return ""

    # --- violations --------------------------------------------------------------------

    def state_violation(self, state: tuple[int, ...]) -> str:
        """Return the first violated claim of those that hold always."""
        key = self.key_of(state)
        name = self._judged.get(key)
        if name is None:
            name = self._judged[key] = self._first_that_fails(self.claims.always, key)
        return name

    def terminal_violation(self, state: tuple[int, ...]) -> str:
        """Return the property that a terminal state violates; empty for none."""
        if self.in_vain(state):
            return IN_VAIN
        key = self.key_of(state)
        name = self._judged_terminal.get(key)
        if name is None:
            name = self._first_that_fails(self.claims.at_rest, key)
            self._judged_terminal[key] = name
        return name

    def is_exercised_at_rest(self, state: tuple[int, ...]) -> bool:
        """Every terminal state: claims are about any of them."""
        return True

    def in_vain(self, state: tuple[int, ...]) -> list[str]:
        """Return the programs that wait for something other than a notification."""
        return [
            member.name
            for member, actor_state in zip(self.members, state[1:], strict=False)
            if waits_in_vain(member.moves.process, member.local_states[actor_state])
        ]

    def _first_that_fails(self, claims: Mapping[str, Claim], key: tuple[int, ...]) -> str:
        view = self.view(key)
        return next((name for name in claims if not self.holds(name, claims[name], view)), "")

    def holds(self, name: str, claim: Claim, view: State) -> bool:
        """Evaluate a claim; an error that it raises gets a note with the name of the claim."""
        try:
            return bool(claim(view))
        except Exception as error:
            error.add_note(f"in the claim {name!r}, about {view}")
            raise

    def key_of(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """Return what claims can see of a state, by numbers."""
        key = [state[0]]
        for seen, member, actor_state in zip(self._seen, self.members, state[1:], strict=False):
            number = seen.get(actor_state)
            if number is None:
                view_of_program = program_view(
                    member.moves.process, member.local_states[actor_state]
                )
                number = seen[actor_state] = self._views.of(view_of_program)
            key.append(number)
        return tuple(key)

    def view(self, key: tuple[int, ...]) -> State:
        """Return the state that claims are evaluated on."""
        views = {
            name: self._views[number] for name, number in zip(self.actors, key[1:], strict=True)
        }
        return view_of(self.service.trees[key[0]], views, self.name_of)
