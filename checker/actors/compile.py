"""Compilation of a coroutine into a graph.

Theory of operation
  A coroutine can be neither copied nor compared. But a deterministic one is determined by the
  answers it was given. So a *node* is the state with which a turn began and the answers since.
  Nodes are numbered. What follows a node and an answer is computed once, by running the turn
  again from its state with these answers, and cached.

  A loop within a turn that returns to an earlier point returns to its node: suspended
  coroutines are compared by snapshots of their frames. Where a turn ends, its state begins
  the next turn, so turns that end in equal states meet in one node.

  All this rests on a contract that the author of a program has to keep: a turn depends on its
  state and its answers alone. It is checked. Every new node is run twice and has to request
  the same effect. A state that equals an earlier one and looks different is kept as its
  lookalike; from then on both are run and compared.

  The programs of the model keep the contract by tests, which run all turns of a search again.
  Each of their nodes is run once; and the coroutine that has come to a node waits there, so
  that the first answer continues it. Only further answers run the turn from its begin.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from watchkeeper.checker.actors.frame_snapshot import Snapshot, snapshot_of
from watchkeeper.checker.contracts.contracts import (
    NeverWaits,
    NotDeterministic,
    NotHashable,
    TurnNeverEnds,
    UnequalStates,
    place_of,
    refuse_or_annotate,
    refuse_unless_coroutine,
    refuse_unless_effect,
)
from watchkeeper.checker.contracts.determinism import guarded, watched
from watchkeeper.checker.contracts.set_iteration import refuse_set_iteration
from watchkeeper.model.actor.errors import ZooKeeperError
from watchkeeper.model.actor.operations import ZooKeeper
from watchkeeper.model.actor.program import Ended, Program

ZOOKEEPER = ZooKeeper()
LONGEST_TURN = 100_000
MOST_SILENT_TURNS = 200
MOST_WAITING = 10_000
"""How many coroutines wait for an answer; one takes a kilobyte or two."""


class Node(Struct, frozen=True):
    """A point of a program: the state when the turn began, and the answers since."""

    state: Any
    answers: tuple[Any, ...]
    effect: Any
    """The effect it waits for, or Ended."""


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """Where running a turn has led: to an effect, to the end of the turn, or to an error."""

    effect: Any = None
    state: Any = None
    is_over: bool = False
    failed: str = ""


class CompiledProgram:
    """The graph of one program, which grows as the search needs it."""

    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.name = name
        self.nodes: list[Node] = []
        self._is_foreign = not getattr(program.turn, "__module__", "").startswith(
            "watchkeeper.model."
        )
        """Whether the contract is checked; that the model's programs keep it is tested."""
        if self._is_foreign:
            refuse_set_iteration(name, program)
        self._waiting: OrderedDict[int, Any] = OrderedDict()
        """Node -> a coroutine that waits there, for programs that are not checked."""
        self.runs = 0
        """How many times a turn was run."""
        self._roots: dict[Any, int] = {}
        self._lookalikes: dict[Any, Any] = {}
        """State -> one that equals it and looks different."""
        self._after: dict[tuple[int, Any], int] = {}
        self._failures: dict[tuple[int, Any], str] = {}
        """Node and answer -> the error with which that answer ends the turn."""
        self._snapshots: dict[int, Snapshot] = {}
        self._before: list[int] = []
        """Node -> the node one answer earlier in the same turn; -1 for the first."""

    def root(self, state: Any) -> int:
        """Return the node at which a turn begins in a state; empty turns are skipped."""
        for _ in range(MOST_SILENT_TURNS):
            try:
                number = self._roots.get(state)
            except TypeError as error:
                raise NotHashable(self.name, state, error) from None
            if number is not None:
                self._compare_lookalikes(number, state)
                return number
            outcome, coroutine = self._outcome(state, ())
            if not outcome.is_over:
                return self._keep(Node(state, (), outcome.effect), coroutine)
            if isinstance(outcome.state, Ended):
                return self._keep(Node(state, (), outcome.state))
            state = outcome.state
        raise NeverWaits(self.name, f"in turns without an effect, with {state!r},")

    def after(self, number: int, answer: Any) -> int:
        """Return the node after an answer."""
        key = (number, answer)
        after = self._after.get(key)
        if after is None:
            node = self.nodes[number]
            after = self._next_node(node.state, (*node.answers, answer), number)
            self._after[key] = after
        return after

    def failure_after(self, number: int, answer: Any) -> str:
        """Return the error with which an answer ends the turn; empty for none.

        `after` has been called with both.
        """
        return self._failures.get((number, answer), "")

    def _next_node(self, state: Any, answers: tuple[Any, ...], before: int) -> int:
        outcome, coroutine = self._outcome(state, answers, self._waiting.pop(before, None))
        if outcome.is_over:
            if isinstance(outcome.state, Ended):
                return self._keep(Node(state, answers, outcome.state))
            if outcome.failed:
                self._failures[before, answers[-1]] = outcome.failed
            return self.root(outcome.state)
        node = Node(state, answers, outcome.effect)
        same = self._loop_head(node, before)
        return same if same >= 0 else self._keep(node, coroutine, before)

    def _loop_head(self, node: Node, before: int) -> int:
        """Return the earlier node of this turn that a loop has returned to; -1 for none.

        Snapshots are slow, so they are taken only where the effect is the same and the last
        answers have come twice in a row: a loop that goes on with new answers is at another
        point, whatever its frames hold.
        """
        snapshot: Snapshot = ()
        while before >= 0:
            length = len(node.answers) - len(self.nodes[before].answers)
            if self.nodes[before].effect == node.effect and _repeats(node.answers, length):
                snapshot = snapshot or self._snapshot(node)
                if before not in self._snapshots:
                    self._snapshots[before] = self._snapshot(self.nodes[before])
                if self._snapshots[before] == snapshot:
                    return before
            before = self._before[before]
        return -1

    def _keep(self, node: Node, coroutine: Any = None, before: int = -1) -> int:
        number = len(self.nodes)
        self.nodes.append(node)
        self._before.append(before)
        if coroutine is not None:
            self._waiting[number] = coroutine
            if len(self._waiting) > MOST_WAITING:
                self._waiting.popitem(last=False)[1].close()
        if not node.answers:
            self._roots[node.state] = number
        return number

    # --- running -----------------------------------------------------------------------

    def _begun(self, state: Any) -> Any:
        """Return the coroutine of a turn, before its first effect."""
        coroutine = self.program.turn(ZOOKEEPER, self.program.me, state)
        refuse_unless_coroutine(self.name, self.program.turn, coroutine)
        return coroutine

    def _outcome(
        self, state: Any, answers: tuple[Any, ...], waiting: Any = None
    ) -> tuple[TurnOutcome, Any]:
        """Return where a turn leads, and the coroutine that is there now.

        `waiting` is one that waits for the last of the answers. A program that may break the
        contract is run twice, from its begin, and none of its coroutines waits.
        """
        if self._is_foreign:
            outcome, coroutine = self._run_twice(state, answers), None
        else:
            coroutine = self._begun(state) if waiting is None else waiting
            given = (None, *answers) if waiting is None else answers[-1:]
            outcome = self._sent(coroutine, state, answers, given)
        lookalike = self._lookalikes.get(state)
        if lookalike is not None:
            other_outcome = self._run(lookalike, answers)
            if other_outcome != outcome:
                raise UnequalStates(self.name, state, lookalike, answers, outcome, other_outcome)
        return outcome, coroutine

    def _run_twice(self, state: Any, answers: tuple[Any, ...]) -> TurnOutcome:
        outcome = self._run(state, answers)
        with watched(self.name):
            repeated = self._run(state, answers)
        if outcome != repeated:
            raise NotDeterministic(self.name, self._line(state, answers), outcome, repeated)
        return outcome

    def _run(self, state: Any, answers: tuple[Any, ...]) -> TurnOutcome:
        """Run a turn with these answers; return the effect it requests then, or how it ends."""
        coroutine = self._begun(state)
        try:
            with guarded(self.name):
                return self._sent(coroutine, state, answers, (None, *answers))
        finally:
            coroutine.close()

    def _sent(
        self, coroutine: Any, state: Any, answers: tuple[Any, ...], given: tuple[Any, ...]
    ) -> TurnOutcome:
        """Give answers to a turn, the last ones of all its answers; return where that leads."""
        self.runs += 1
        try:
            effect = None
            for answer in given:
                effect = coroutine.send(answer)
            if len(answers) > LONGEST_TURN:
                raise TurnNeverEnds(self.name, place_of(coroutine), LONGEST_TURN)
            refuse_unless_effect(self.name, effect, coroutine)
            return TurnOutcome(effect)
        except StopIteration as done:
            return TurnOutcome(state=done.value, is_over=True)
        except ZooKeeperError as error:
            return TurnOutcome(state=state, is_over=True, failed=str(error))
        except Exception as error:
            refuse_or_annotate(self.name, state, answers, error)
            raise

    def _snapshot(self, node: Node) -> Snapshot:
        """Return the snapshot of the coroutine in a node."""
        with self._suspended(node.state, node.answers) as coroutine:
            return snapshot_of(coroutine)

    def place(self, number: int) -> str:
        """Return the source line of a node."""
        return self._line(self.nodes[number].state, self.nodes[number].answers)

    def _line(self, state: Any, answers: tuple[Any, ...]) -> str:
        """Return the source line of a turn after these answers."""
        with self._suspended(state, answers) as coroutine:
            return place_of(coroutine) or f"at its end, {self._begins()}"

    def _begins(self) -> str:
        """Return the first line of the turn, for turns that have ended."""
        code = getattr(self.program.turn, "__code__", None)
        return "" if code is None else f"in the turn at {code.co_filename}:{code.co_firstlineno}"

    @contextmanager
    def _suspended(self, state: Any, answers: tuple[Any, ...]) -> Iterator[Any]:
        """Run a turn up to these answers; it is closed afterwards."""
        coroutine: Any = self.program.turn(ZOOKEEPER, self.program.me, state)
        try:
            with suppress(StopIteration, ZooKeeperError):
                for answer in (None, *answers):
                    coroutine.send(answer)
            yield coroutine
        finally:
            coroutine.close()

    def run_all_again(self, equal: Callable[[Any], Any] = lambda state: state) -> None:
        """Run everything once more, and see that it comes to what it came to.

        What a program keeps beside its memory may change while the search goes on. Then what
        it did in the beginning it does not do any more. `equal` may give another memory that
        equals this one, to see whether it behaves alike.
        """
        for state, number in list(self._roots.items()):
            self._compare(equal(state), (), number)
        for (number, answer), after in list(self._after.items()):
            node = self.nodes[number]
            self._compare(equal(node.state), (*node.answers, answer), after)

    def _compare(self, state: Any, answers: tuple[Any, ...], number: int) -> None:
        outcome = self._run(state, answers)
        if outcome.is_over and not isinstance(outcome.state, Ended):
            is_same = self.root(outcome.state) == number
        else:
            is_same = self.nodes[number].effect == (
                outcome.state if outcome.is_over else outcome.effect
            )
        if not is_same:
            node = self.nodes[number]
            first = (
                TurnOutcome(node.effect)
                if answers == node.answers
                else TurnOutcome(None, node.state, True)
            )
            raise NotDeterministic(self.name, self._line(state, answers), first, outcome)

    # --- states that are equal and look different --------------------------------------

    def _compare_lookalikes(self, number: int, state: Any) -> None:
        """Compare the behaviour of a state with that of an equal one that looks different.

        Equality is the program's own `__eq__`: it may leave out a field that decides what
        the turn does. The representation of a value usually shows such a field.
        """
        known = self.nodes[number].state
        if state is known or known in self._lookalikes or repr(state) == repr(known):
            return
        self._lookalikes[known] = state
        for node in list(self.nodes):
            if node.state == known:
                outcome, lookalike = (
                    self._run(known, node.answers),
                    self._run(state, node.answers),
                )
                if outcome != lookalike:
                    raise UnequalStates(self.name, known, state, node.answers, outcome, lookalike)


def _repeats(answers: tuple[Any, ...], length: int) -> bool:
    """Whether the last `length` answers have come twice in a row."""
    return answers[-length:] == answers[-2 * length : -length]
