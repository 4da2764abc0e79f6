"""Properties of a run in virtual time, judged while it runs and at its end.

A check sees the world after each turn of a thread (`turn`), and gives its finding at the end.
What a run does not exercise it does not judge: a lock that was never taken has no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from watchkeeper.model.properties.verdicts import Finding, Property, Verdict
from watchkeeper.virtual.threads.errors import VirtualTimeError

if TYPE_CHECKING:
    from watchkeeper.virtual.threads.task import Task
    from watchkeeper.virtual.world.world import World

Predicate = Callable[..., object]
"""A function of nothing, or of the world; false or an AssertionError means that it fails."""


class Check:
    """A property, and what is known about it so far."""

    claim: Property

    def turn(self, world: World) -> None:
        """A thread has had a turn."""

    def end(self, world: World) -> Finding:
        """The finding, once the run is over."""
        raise NotImplementedError

    def _finding(
        self,
        verdict: Verdict,
        evidence: str,
        at_us: int | None = None,
        exercised: int | None = None,
        *,
        counts: bool = True,
    ) -> Finding:
        return Finding(self.claim, verdict, evidence, at_us, counts, exercised)


def outcome_of(predicate: Predicate, world: World) -> str:
    """What is wrong by a predicate; empty if nothing is."""
    try:
        takes_world = predicate.__code__.co_argcount > (
            1 if hasattr(predicate, "__self__") else 0
        )
    except AttributeError:
        takes_world = False
    try:
        result = predicate(world) if takes_world else predicate()
    except AssertionError as error:
        return str(error) or "an assertion failed"
    except Exception as error:
        raise VirtualTimeError(
            f"the predicate {getattr(predicate, '__name__', predicate)!r} of the test fails by "
            f"{type(error).__name__}: {error}; a predicate returns a value, or asserts"
        ) from error
    return "" if result is None or result else "it does not hold"


class Always(Check):
    """A predicate that holds after each turn of each thread."""

    def __init__(self, name: str, predicate: Predicate) -> None:
        says = (predicate.__doc__ or name).strip().splitlines()[0]
        self.claim = Property(name, "always", says)
        self._predicate = predicate
        self._broken: tuple[int, str] | None = None
        self._turns = 0

    def turn(self, world: World) -> None:
        """Look at it."""
        self._turns += 1
        if self._broken is None and (problem := outcome_of(self._predicate, world)):
            self._broken = (world.now_us, problem)

    def end(self, world: World) -> Finding:
        """Violated since the first turn after which it did not hold."""
        if self._broken is None:
            return self._finding(
                Verdict.HOLDS, f"it held after each of {self._turns:,} turns", None, self._turns
            )
        at_us, problem = self._broken
        return self._finding(Verdict.VIOLATED, problem, at_us, self._turns)


class Eventually(Check):
    """A predicate that is true at some moment within some time after the last fault.

    That it was true before the fault says nothing of whether the program recovers.
    """

    def __init__(self, name: str, predicate: Predicate, within_s: float) -> None:
        says = (predicate.__doc__ or name).strip().splitlines()[0]
        self.claim = Property(name, "eventually", says)
        self._predicate = predicate
        self.within_s = within_s
        self.held_at_us: int | None = None
        """When it was first seen to be true since the last fault."""
        self._held_before = False
        """Whether it was true before the last fault."""

    def turn(self, world: World) -> None:
        """Look at it, until it is true; and again after a fault."""
        if self.held_at_us is None or self.held_at_us < world.calm_since_us:
            self._held_before = self._held_before or self.held_at_us is not None
            self.held_at_us = None if outcome_of(self._predicate, world) else world.now_us

    def end(self, world: World) -> Finding:
        """Violated if it did not come true in time; unknown if the run was too short for that."""
        self.turn(world)
        calm_us = world.calm_since_us
        ends_us = calm_us + int(self.within_s * 1e6)
        if self.held_at_us is not None and self.held_at_us <= ends_us:
            return self._finding(Verdict.HOLDS, f"true at {self.held_at_us / 1e6:.3f} s")
        if self._held_before and world.is_silent and world.silent_since_us < ends_us:
            return self._finding(
                Verdict.UNKNOWN,
                f"it was true before the last fault, and {world.silent_since_us / 1e6:g} s, when "
                "the last process ended, is too soon to be true again; let them run longer",
            )
        if self.held_at_us is not None or world.now_us >= ends_us or world.is_silent:
            return self._finding(
                Verdict.VIOLATED,
                f"not true within {self.within_s:g} s of the last fault",
                min(ends_us, world.now_us),
            )
        return self._finding(
            Verdict.UNKNOWN,
            f"the run ended at {world.now_us / 1e6:g} s, but it has time until "
            f"{ends_us / 1e6:g} s; let the run last longer",
        )


class AtEnd(Check):
    """A predicate that holds when the run is over."""

    def __init__(self, name: str, predicate: Predicate) -> None:
        says = (predicate.__doc__ or name).strip().splitlines()[0]
        self.claim = Property(name, "end", says)
        self._predicate = predicate

    def end(self, world: World) -> Finding:
        """Look at it."""
        problem = outcome_of(self._predicate, world)
        if problem:
            return self._finding(Verdict.VIOLATED, problem, world.now_us)
        return self._finding(Verdict.HOLDS, "it holds at the end")


@dataclass(slots=True)
class Entry:
    """One thread within a section."""

    task: Task
    since_us: int
    client: Any = None
    session: int = 0

    @property
    def name(self) -> str:
        """The process and the thread."""
        return self.task.process.name

    def is_safe(self, world: World) -> bool:
        """Whether the session that it entered with lives, and its client is connected in it."""
        if self.client is None:
            return True
        known = self.client.client_id
        return (
            bool(self.client.connected)
            and known is not None
            and known[0] == self.session
            and self.session in world.zookeeper.ensemble.head.sessions
        )


@dataclass(eq=False)
class Exclusion(Check):
    """Mutual exclusion: at most `most` threads are within a section at once.

    The strict form counts a thread only while its client is connected in the session that it had
    when it entered, and the server has that session. No lock can keep out a holder whose session
    has ended and who does not know it: the plain form counts these as well. Where a section has
    clients the plain form is reported, and the verdict of the run does not depend on it.
    """

    name: str
    most: int = 1
    is_strict: bool = True
    inside: list[Entry] = field(default_factory=list)
    entries: int = 0
    has_clients: bool = False
    broken: tuple[int, str] | None = None

    def __post_init__(self) -> None:
        which = f"{self.most} threads" if self.most > 1 else "one thread"
        at_once = ", in a session that lives" if self.is_strict else ""
        suffix = ", strict" if self.is_strict else ""
        self.claim = Property(
            f"mutual exclusion of {self.name}{suffix}",
            "always",
            f"at most {which} at once{at_once}",
        )

    def enter(self, entry: Entry, world: World) -> None:
        """A thread enters the section."""
        self.inside.append(entry)
        self.entries += 1
        self.has_clients |= entry.client is not None
        if len(self.inside) > self.most:
            world.judge_turns(self)
            self.turn(world)

    def turn(self, world: World) -> None:
        """Count the threads within the section."""
        if len(self.inside) <= self.most or self.broken is not None:
            return
        alive = [entry for entry in self.inside if entry.task.process.is_alive]
        counted = [entry for entry in alive if not self.is_strict or entry.is_safe(world)]
        if len(counted) > self.most:
            names = " and ".join(
                f"{entry.name} (since {entry.since_us / 1e6:.3f} s)" for entry in counted
            )
            self.broken = (world.now_us, f"{names} are in {self.name} at once")

    def end(self, world: World) -> Finding:
        """Violated since the first moment with too many threads."""
        if self.broken is not None:
            at_us, evidence = self.broken
            counts = self.is_strict or not self.has_clients
            return self._finding(Verdict.VIOLATED, evidence, at_us, self.entries, counts=counts)
        if not self.entries:
            return self._finding(Verdict.UNKNOWN, f"no thread entered {self.name}", None, 0)
        return self._finding(
            Verdict.HOLDS, f"{self.entries} entries, never too many at once", None, self.entries
        )


class Elements(Check):
    """No element is lost or doubled: what was put is taken once, or is still there.

    An element whose put ended in an error may have been put or not, and may be taken once.
    """

    def __init__(self, name: str, left: Callable[[], Collection[Any]] | None = None) -> None:
        self.claim = Property(
            f"elements of {name}", "end", "each element that was put is taken once, or is left"
        )
        self._left = left
        self.surely: list[Any] = []
        self.maybe: list[Any] = []
        self.taken: list[Any] = []
        self.held: list[Any] = []
        """What a thread has or had, and may have given back."""
        self.excused = 0
        """How many may be lost: a get ended in an error, or its process crashed in it."""
        self._broken: tuple[int, str] | None = None

    def put(self, element: Any) -> None:
        """An element was put, whether it was in doubt before or not."""
        if element in self.maybe:
            self.maybe.remove(element)
        self.surely.append(element)

    def put_in_doubt(self, element: Any) -> None:
        """A put ended in an error: the element may be there."""
        self.maybe.append(element)

    def hold(self, element: Any) -> None:
        """A thread has an element that it may give back: it is not lost from now on."""
        self.held.append(element)

    def excuse(self) -> None:
        """A get ended in an error: an element may be gone that nothing has taken."""
        self.excused += 1

    def took(self, element: Any, world: World) -> None:
        """An element was taken."""
        if element in self.taken and self._broken is None:
            self._broken = (world.now_us, f"{element!r} was taken twice")
        self.taken.append(element)

    def end(self, world: World) -> Finding:
        """Compare what was put, taken and left."""
        exercised = len(self.taken)
        if self._broken is not None:
            return self._finding(Verdict.VIOLATED, self._broken[1], self._broken[0], exercised)
        left = list(self._left()) if self._left is not None else []
        kept = [*self.taken, *self.held, *left]
        gone = [each for each in self.surely if each not in kept]
        if len(gone) > self.excused:
            evidence = f"{gone[-1]!r} was put and is lost"
            return self._finding(Verdict.VIOLATED, evidence, world.now_us, exercised)
        for element in self.taken:
            if element in left:
                evidence = f"{element!r} was taken and is still there"
                return self._finding(Verdict.VIOLATED, evidence, world.now_us, exercised)
        if not exercised:
            return self._finding(Verdict.UNKNOWN, "no element was taken", None, 0)
        return self._finding(
            Verdict.HOLDS,
            f"{len(self.surely)} put, {exercised} taken, {len(left)} left",
            None,
            exercised,
        )


class NoThreadDied(Check):
    """No thread ends by an exception, but for those that are expected."""

    def __init__(self, expected: tuple[type[BaseException], ...] = ()) -> None:
        self.claim = Property("no thread died", "always", "no thread ends by an exception")
        self._expected = expected

    def end(self, world: World) -> Finding:
        """Name the first thread that died."""
        for task, error, at_us in world.deaths:
            if not isinstance(error, self._expected):
                why = f"{type(error).__name__}: {error}".rstrip(": ")
                text = f"{task.name} of {task.process.name} died of {why}"
                return self._finding(Verdict.VIOLATED, text, at_us)
        return self._finding(Verdict.HOLDS, "no thread died")


class NoThreadBlocked(Check):
    """No thread waits for ever: at the end of the run none has waited for so long."""

    def __init__(self, longer_than_s: float, ignored: tuple[str, ...] = ()) -> None:
        self.claim = Property(
            "no thread blocked", "end", f"no thread waits for {longer_than_s:g} s without a limit"
        )
        self._longer_than_s = longer_than_s
        self._ignored = ignored

    def end(self, world: World) -> Finding:
        """Name the thread that has waited longest."""
        for task in world.blocked_tasks(self._longer_than_s):
            if task.is_daemon or any(word in task.name for word in self._ignored):
                continue
            since_s = task.blocked_since_ns / 1e9
            text = (
                f"{task.name} of {task.process.name} waits for {task.blocked_on} "
                f"since {since_s:.3f} s"
            )
            return self._finding(Verdict.VIOLATED, text, task.blocked_since_ns // 1000)
        return self._finding(Verdict.HOLDS, "no thread waits for ever")


class NothingLeft(Check):
    """At the end there is no znode below a path."""

    def __init__(self, path: str, *, except_for: tuple[str, ...] = ()) -> None:
        self.claim = Property(f"nothing left in {path}", "end", f"no znode is left below {path}")
        self._path = path.rstrip("/")
        self._except_for = except_for

    def end(self, world: World) -> Finding:
        """Name the first znode that is left."""
        nodes = world.zookeeper.ensemble.head.nodes
        left = sorted(
            path
            for path in nodes
            if path.startswith(f"{self._path}/")
            and path not in self._except_for
            and not path.startswith("/zookeeper")
        )
        if left:
            return self._finding(Verdict.VIOLATED, f"{left[0]} is left", world.now_us)
        return self._finding(Verdict.HOLDS, "no znode is left")
