"""How a coroutine becomes a graph.

Theory of operation
  A coroutine can be neither copied nor compared. But one that is deterministic *is* the
  sequence of answers it was given. So a *node* here is a memory, with which a turn begins,
  and the answers since; it is numbered, and what follows from a node and an answer is found
  once, by running the turn again from its memory with these answers, and remembered.

  A loop within a turn that comes back to where it was comes back to its node (`pictures`).
  Where a turn ends, its memory begins the next: turns that end with equal memories meet in
  one node. That is a promise of the programmer's, and it is checked. Every new node is run
  twice, and what is asked has to be the same. A memory that equals an earlier one, but does
  not look like it, is kept beside that one, and from then on both are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from explore.guards import guarded, watched
from explore.pictures import Picture, picture_of
from explore.promises import (
    Busy,
    KeepsOnAsking,
    MemoryLies,
    NotHashable,
    NotTheSame,
    place_of,
    refuse_or_note,
    refuse_unless_ask,
    refuse_unless_coroutine,
)
from explore.set_order import refuse_orders_of_sets
from model.errors import ZooKeeperError
from model.operations import ZooKeeper
from model.program import Ended, Program

ZOOKEEPER = ZooKeeper()
LONGEST_TURN = 100_000
MOST_SILENT_TURNS = 200


class Node(Struct, frozen=True):
    """Where a program stands: its memory when the turn began, and what it was told since."""

    memory: Any
    answers: tuple[Any, ...]
    ask: Any
    """What it asks now; or that it has Ended."""
    failed: str = ""
    """The error that ended the turn before this one, if one did."""


@dataclass(frozen=True, slots=True)
class Came:
    """What running a turn came to."""

    ask: Any = None
    memory: Any = None
    is_over: bool = False
    failed: str = ""


class Unfolding:
    """Everything that one program can come to."""

    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.name = name
        self.nodes: list[Node] = []
        self._is_foreign = not getattr(program.turn, "__module__", "").startswith("model.")
        """Whether nobody has seen to it that it knows no clock; of the model tests do."""
        if self._is_foreign:
            refuse_orders_of_sets(name, program)
        self.runs = 0
        """How often a turn was run."""
        self._roots: dict[Any, int] = {}
        self._lookalikes: dict[Any, Any] = {}
        """Memory -> another that equals it and looks different."""
        self._after: dict[tuple[int, Any], int] = {}
        self._pictures: dict[int, Picture] = {}
        self._before: list[int] = []
        """Node -> the node one answer earlier in the same turn; -1 for the first."""

    def root(self, memory: Any, failed: str = "") -> int:
        """The node in which a turn begins with this memory; turns that ask nothing are taken."""
        for _ in range(MOST_SILENT_TURNS):
            try:
                number = self._roots.get(memory)
            except TypeError as error:
                raise NotHashable(self.name, memory, error) from None
            if number is not None:
                self._compare_looks(number, memory)
                return number
            came = self._run_twice(memory, ())
            if not came.is_over:
                return self._keep(Node(memory, (), came.ask, failed))
            if isinstance(came.memory, Ended):
                return self._keep(Node(memory, (), came.memory))
            memory, failed = came.memory, came.failed
        raise Busy(self.name, f"in turns that ask for nothing, with {memory!r},")

    def after(self, number: int, answer: Any) -> int:
        """The node after an answer."""
        key = (number, answer)
        after = self._after.get(key)
        if after is None:
            node = self.nodes[number]
            after = self._add(node.memory, (*node.answers, answer), number)
            self._after[key] = after
        return after

    def _add(self, memory: Any, answers: tuple[Any, ...], before: int) -> int:
        came = self._run_twice(memory, answers)
        if came.is_over:
            if isinstance(came.memory, Ended):
                return self._keep(Node(memory, answers, came.memory))
            return self.root(came.memory, came.failed)
        node = Node(memory, answers, came.ask)
        same = self._where_it_was(node, before)
        return same if same >= 0 else self._keep(node, before)

    def _where_it_was(self, node: Node, before: int) -> int:
        """The node of this turn to which a loop has come back; -1 for none."""
        picture: Picture = ()
        while before >= 0:
            round_ = len(node.answers) - len(self.nodes[before].answers)
            if self.nodes[before].ask == node.ask and _repeats(node.answers, round_):
                picture = picture or self._picture(node)
                if before not in self._pictures:
                    self._pictures[before] = self._picture(self.nodes[before])
                if self._pictures[before] == picture:
                    return before
            before = self._before[before]
        return -1

    def _keep(self, node: Node, before: int = -1) -> int:
        number = len(self.nodes)
        self.nodes.append(node)
        self._before.append(before)
        if not node.answers:
            self._roots[node.memory] = number
        return number

    # --- running -----------------------------------------------------------------------

    def _run_twice(self, memory: Any, answers: tuple[Any, ...]) -> Came:
        came = self._run(memory, answers)
        with watched(self.name) if self._is_foreign else nullcontext():
            again = self._run(memory, answers)
        if came != again:
            raise NotTheSame(self.name, self._line(memory, answers), came, again)
        other = self._lookalikes.get(memory)
        if other is not None:
            differs = self._run(other, answers)
            if differs != came:
                raise MemoryLies(self.name, memory, other, answers, came, differs)
        return came

    def _run(self, memory: Any, answers: tuple[Any, ...]) -> Came:
        """Run a turn with these answers; what it asks then, or how it ends."""
        self.runs += 1
        coroutine: Any = self.program.turn(ZOOKEEPER, self.program.me, memory)
        refuse_unless_coroutine(self.name, self.program.turn, coroutine)
        given = iter((None, *answers))
        try:
            with guarded(self.name):
                for asked, answer in enumerate(given):
                    if asked > LONGEST_TURN:
                        raise KeepsOnAsking(self.name, place_of(coroutine), LONGEST_TURN)
                    ask = coroutine.send(answer)
            refuse_unless_ask(self.name, ask, coroutine)
            return Came(ask)
        except StopIteration as done:
            return Came(memory=done.value, is_over=True)
        except ZooKeeperError as error:
            return Came(memory=memory, is_over=True, failed=str(error))
        except Exception as error:
            refuse_or_note(self.name, memory, answers, error)
            raise
        finally:
            coroutine.close()

    def _picture(self, node: Node) -> Picture:
        """How the coroutine looks in a node."""
        with self._suspended(node.memory, node.answers) as coroutine:
            return picture_of(coroutine)

    def place(self, number: int) -> str:
        """The line at which a turn stands in a node."""
        return self._line(self.nodes[number].memory, self.nodes[number].answers)

    def _line(self, memory: Any, answers: tuple[Any, ...]) -> str:
        """Where a turn stands after these answers."""
        with self._suspended(memory, answers) as coroutine:
            return place_of(coroutine) or f"at its end, {self._begins()}"

    def _begins(self) -> str:
        """Where the turn begins, for turns that are over."""
        code = getattr(self.program.turn, "__code__", None)
        return "" if code is None else f"in the turn at {code.co_filename}:{code.co_firstlineno}"

    @contextmanager
    def _suspended(self, memory: Any, answers: tuple[Any, ...]) -> Iterator[Any]:
        """A turn that was given these answers."""
        coroutine: Any = self.program.turn(ZOOKEEPER, self.program.me, memory)
        try:
            with suppress(StopIteration, ZooKeeperError):
                for answer in (None, *answers):
                    coroutine.send(answer)
            yield coroutine
        finally:
            coroutine.close()

    def run_again(self, equal: Callable[[Any], Any] = lambda memory: memory) -> None:
        """Run everything once more, and see that it comes to what it came to.

        What a program keeps beside its memory may change while the search goes on. Then what
        it did in the beginning it does not do any more. `equal` may give another memory that
        equals this one, to see whether it behaves alike.
        """
        for memory, number in list(self._roots.items()):
            self._compare(equal(memory), (), number)
        for (number, answer), after in list(self._after.items()):
            node = self.nodes[number]
            self._compare(equal(node.memory), (*node.answers, answer), after)

    def _compare(self, memory: Any, answers: tuple[Any, ...], number: int) -> None:
        came = self._run(memory, answers)
        if came.is_over and not isinstance(came.memory, Ended):
            is_same = self.root(came.memory, came.failed) == number
        else:
            is_same = self.nodes[number].ask == (came.memory if came.is_over else came.ask)
        if not is_same:
            node = self.nodes[number]
            first = Came(node.ask) if answers == node.answers else Came(None, node.memory, True)
            raise NotTheSame(self.name, self._line(memory, answers), first, came)

    # --- memories that are equal and look different ------------------------------------

    def _compare_looks(self, number: int, memory: Any) -> None:
        """An equal memory that looks different has to behave alike, from here on."""
        known = self.nodes[number].memory
        if memory is known or known in self._lookalikes or repr(memory) == repr(known):
            return
        self._lookalikes[known] = memory
        for node in list(self.nodes):
            if node.memory == known:
                came, other = self._run(known, node.answers), self._run(memory, node.answers)
                if came != other:
                    raise MemoryLies(self.name, known, memory, node.answers, came, other)


def _repeats(answers: tuple[Any, ...], round_: int) -> bool:
    """Whether the last so many answers were given twice running: a loop has gone round."""
    return answers[-round_:] == answers[-2 * round_ : -round_]
