"""Programs of a user's own as a system to be searched.

It is what `cluster` is for a plan, with three differences. Claims may look at whole states,
so nobody's steps are passed over. Pauses last, and a session is not there at once: a program
that holds something while it sleeps is seen to hold it. And a timer that runs out is a step
that has to come, since a program may do its work by the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from explore.local import Local
from explore.moves import Moves, Step
from explore.numbering import Numbering
from explore.process import Process
from explore.processes import Member, Processes
from explore.service import Service
from explore.system import Budget
from explore.unfolding import Unfolding
from explore.view import Look, State, look_at, view_of, waits_in_vain
from model.asks import NewSession, Sleep
from model.program import Program

Claim = Callable[[State], object]
"""Whether something holds of a state."""
IN_VAIN = "nobody waits in vain"
"""What is violated where a program waits for what will not come."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What is claimed of the states, each by its name."""

    always: Mapping[str, Claim]
    at_rest: Mapping[str, Claim]
    eventually: Mapping[str, Claim]
    sometimes: Mapping[str, Claim]


class OwnMoves(Moves):
    """The moves of a process whose pauses last."""

    def _at_work(self, tree: int, local: Local) -> Iterator[Step]:
        yield from super()._at_work(tree, local)
        ask = self.process.ask(local)
        if isinstance(ask, Sleep):
            after = self.process.answered(local, None)
            if after != local:
                yield Step("has slept", tree, after)
        elif isinstance(ask, NewSession) and local.link in ("none", "expired"):
            after = self.process.answered(self.process.with_session(local), None)
            yield Step("gets a session", tree, after)


class OwnSystem(Processes):
    """Some programs about one tree of znodes."""

    def __init__(
        self,
        programs: Mapping[str, Program],
        claims: Claims,
        faults: Mapping[str, int],
        together: int | None = None,
    ) -> None:
        self.claims = claims
        each = 2 + 2 * sum(faults.values())
        self.service = Service(range(1, 1 + each * len(programs)))
        can_befall = frozenset(name for name, count in faults.items() if count)
        late = len(programs) - faults.get("join", 0)
        members = [
            self._member(name, program, at, each, can_befall, begins=at < late)
            for at, (name, program) in enumerate(programs.items())
        ]
        super().__init__(members, Budget(faults, together))
        self._name_of = {
            session: member.name
            for member in self.members
            for session in member.moves.process.sessions
        }
        self._seen: list[dict[int, int]] = [{} for _ in self.members]
        """Local value -> the number of what claims see of it, by member."""
        self._looks: Numbering[Look] = Numbering()
        self._judged: dict[tuple[int, ...], str] = {}
        self._judged_at_rest: dict[tuple[int, ...], str] = {}

    def _member(
        self,
        name: str,
        program: Program,
        at: int,
        each: int,
        faults: frozenset[str],
        *,
        begins: bool,
    ) -> Member:
        sessions = tuple(range(1 + each * at, 1 + each * (at + 1)))
        process = Process(name, Unfolding(program, name), sessions, pauses_last=True)
        own = faults - {"join"} if begins else faults
        moves = OwnMoves(process, self.service, own, resends=False)
        return Member(name, moves, None, begins)

    # --- what the search asks ----------------------------------------------------------

    def initial(self) -> tuple[int, ...]:
        """An empty tree, and every program at its first request."""
        numbers = [
            member.locals.of(member.moves.process.begun(Local(), 0) if member.begins else Local())
            for member in self.members
        ]
        return (self.service.first, *numbers)

    def wrong(self, actor: int, shared: int, local: int) -> str:
        """Nothing: claims are about whole states."""
        return ""

    def exclusive(self, actor: int, local: int) -> int:
        """Nothing: claims are about whole states."""
        return 0

    def shared(self, state: tuple[int, ...]) -> str:
        """Nobody has bits here."""
        raise AssertionError("nothing is exclusive here")

    def looks_at(self, actor: int, local: int) -> int:
        """No region: a claim may see every step."""
        return 0

    def may_write(self, actor: int, local: int) -> int:
        """No region, since nobody looks at one."""
        return 0

    def left_writes(self, actor: int, local: int) -> int:
        """No region, since nobody looks at one."""
        return 0

    def is_private(self, actor: int, local: int) -> int:
        """Nothing: a claim may see every step."""
        return 0

    def merged(self, actor: int, local: int) -> int:
        """Itself."""
        return local

    def writes(self, cast: int) -> int:
        """No region, since nobody looks at one."""
        return 0

    # --- what is wrong -----------------------------------------------------------------

    def wrong_state(self, state: tuple[int, ...]) -> str:
        """The first claim that has to hold always and does not."""
        key = self.key_of(state)
        name = self._judged.get(key)
        if name is None:
            name = self._judged[key] = self._first_that_fails(self.claims.always, key)
        return name

    def wrong_at_rest(self, state: tuple[int, ...]) -> str:
        """What is wrong in a state in which nothing has to come any more."""
        if self.in_vain(state):
            return IN_VAIN
        key = self.key_of(state)
        name = self._judged_at_rest.get(key)
        if name is None:
            name = self._first_that_fails(self.claims.at_rest, key)
            self._judged_at_rest[key] = name
        return name

    def in_vain(self, state: tuple[int, ...]) -> list[str]:
        """Who waits for something else than a note."""
        return [
            member.name
            for member, local in zip(self.members, state[1:], strict=False)
            if waits_in_vain(member.moves.process, member.locals[local])
        ]

    def _first_that_fails(self, claims: Mapping[str, Claim], key: tuple[int, ...]) -> str:
        view = self.view(key)
        return next((name for name in claims if not self.holds(name, claims[name], view)), "")

    def holds(self, name: str, claim: Claim, view: State) -> bool:
        """Whether a claim holds of a state; whatever it raises says which claim it was."""
        try:
            return bool(claim(view))
        except Exception as error:
            error.add_note(f"in the claim {name!r}, about {view}")
            raise

    def key_of(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """What claims can see of a state, by numbers."""
        key = [state[0]]
        for seen, member, local in zip(self._seen, self.members, state[1:], strict=False):
            number = seen.get(local)
            if number is None:
                look = look_at(member.moves.process, member.locals[local])
                number = seen[local] = self._looks.of(look)
            key.append(number)
        return tuple(key)

    def view(self, key: tuple[int, ...]) -> State:
        """What claims see."""
        looks = {
            name: self._looks[number] for name, number in zip(self.actors, key[1:], strict=True)
        }
        return view_of(self.service.trees[key[0]], looks, self._name_of)
