"""Runs a program as a SimPy process: takes its asks, and sends the answers back.

One loop does it. A coroutine is sent an answer and yields its next ask; most asks are
answered on the spot, the others with an event that the process waits for. A turn that
ends gives the memory of the next; one that raises leaves the memory as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from simpy.events import Event

from model.answers import is_quiet
from model.asks import (
    CloseSession,
    Connected,
    FetchExactly,
    Forget,
    FreshId,
    KnownPositions,
    NewSession,
    NextNote,
    Now,
    Sleep,
    Tell,
)
from model.describe import described_answer, described_operation
from model.errors import ZooKeeperError
from model.inbox import without_older_notes
from model.operations import Operation, Pipelined, ZooKeeper
from model.program import Ended
from model.trace import NOTHING
from sim.client import Client
from sim.fetching import Fetching
from sim.kernel import Kernel
from sim.machine import Caller
from sim.mistakes import NotAnAsk, ProgramLoops
from sim.node import Node

if TYPE_CHECKING:
    from sim.threads import Threads

Steps = Generator[Event, Any, Any]
ZOOKEEPER = ZooKeeper()
REQUESTS = (Operation, Pipelined)
QUIET_PURPOSES = frozenset({"commit"})
"""What a member may ask for in the middle of its rest."""


class Driver:
    """One program at work."""

    def __init__(self, kernel: Kernel, node: Node, fetcher: Fetching | None) -> None:
        self.kernel = kernel
        self.node = node
        self.fetcher = fetcher
        self.before: Callable[[str], None] | None = None
        """Called with the purpose of what is about to be asked: a fault may strike."""
        self.after: Callable[[str], None] | None = None
        """Called when the answer has come and the program has not seen it yet."""
        self.on_end: Callable[[Ended], None] | None = None
        self.caller = Caller()
        """The program, as one of the threads of its process."""
        self._is_idle = False
        self._steps = 0
        """Asks and turns since it was last seen that time passes."""
        self._seen_us = -1
        self._at_once: dict[type[Any], Callable[[Any], Any]] = {
            Now: lambda ask: node.clock_ms(),
            FreshId: lambda ask: kernel.streams(f"names/{node.name}").hexadecimal(32),
            KnownPositions: lambda ask: fetcher.known_positions() if fetcher else (),
            Forget: self._forget,
            Tell: self._tell,
        }
        """Asks that are answered on the spot."""
        self._later: dict[type[Any], Callable[[Any], Event | None]] = {
            NextNote: self._next_note,
            Sleep: self._sleep,
            NewSession: self._new_session,
            CloseSession: self._close_session,
            Connected: self._connected,
            FetchExactly: self._fetch_exactly,
        }
        """Asks whose answer is the value of an event; None where it is there already."""

    def join(self, threads: Threads) -> None:
        """Let the program ask what threads ask, and threads what only a program can."""
        self._at_once = {**threads.at_once, **self._at_once}
        for kind in threads.kinds:
            self._later.setdefault(kind, lambda ask: self._as_event(threads, ask))
        threads.operate = self._operate_for

    def _as_event(self, threads: Threads, ask: Any) -> Event:
        event = Event(self.kernel)
        threads.answer(self.caller, ask, lambda answer: self.kernel.settle(event, answer))
        return event

    def run(self) -> Steps:
        """The life of the process: turn after turn until the program is over."""
        program = self.node.program
        memory = program.first_memory
        failures = 0
        while True:
            self._count_step()
            coroutine: Any = program.turn(ZOOKEEPER, program.me, memory)
            started_us = self.kernel.now_us
            try:
                outcome = yield from self._turn(coroutine)
            except ZooKeeperError as error:
                self._write("turn fails", {"error": str(error)})
                failures = failures + 1 if self.kernel.now_us == started_us else 0
                if failures > MOST_FAILURES_AT_ONCE:
                    why = f"failed {failures} times at one moment, last with: {error}"
                    raise ProgramLoops(self.node.name, why) from error
                continue
            except Exception as error:
                error.add_note(f"in {self.node.name} at {self.kernel.now_us / 1e6:.6f} s")
                raise
            if outcome is KILLED:
                coroutine.close()
                return
            if isinstance(outcome, Ended):
                self._end(outcome)
                return
            memory = outcome

    def _turn(self, coroutine: Any) -> Steps:
        """Take one turn; its outcome, or KILLED."""
        node = self.node
        at_once, later = self._at_once, self._later
        answer: Any = None
        while True:
            try:
                ask = coroutine.send(answer)
            except StopIteration as done:
                return done.value
            kind = type(ask)
            self._count_step()
            if kind in at_once:
                answer = at_once[kind](ask)
                continue
            if self.before is not None and isinstance(ask, REQUESTS):
                for purpose in _purposes(ask):
                    self.before(purpose)
                yield from self._stand_still()
                if not node.is_alive:
                    return KILLED
            event = later[kind](ask) if kind in later else self._operate(ask)
            answer = None if event is None else (yield event)
            if node.is_paused or not node.is_alive:
                yield from self._stand_still()
                if not node.is_alive:
                    return KILLED
            if kind is NextNote:
                answer = self._take()

    def _count_step(self) -> None:
        """Find out whether the program goes on and on while no time passes."""
        self._steps += 1
        if self._steps < MOST_STEPS_AT_ONCE:
            return
        if self._seen_us == self.kernel.now_us:
            said = f"has gone on for {MOST_STEPS_AT_ONCE:,} steps at one moment"
            raise ProgramLoops(self.node.name, said)
        self._steps, self._seen_us = 0, self.kernel.now_us

    def _stand_still(self) -> Steps:
        """Wait while the process is paused."""
        while self.node.is_paused and self.node.is_alive:
            yield self.node.until_resumed()

    # --- ZooKeeper ---------------------------------------------------------------------

    def _operate(self, ask: Any) -> Event:
        """Send an operation; the event that its answer has come."""
        if not isinstance(ask, REQUESTS):
            raise NotAnAsk(self.node.name, ask)
        if self._is_idle and ask.purpose not in QUIET_PURPOSES:
            self._is_idle = False
            self._write("wakes")
        client = self.node.client
        assert client is not None, "a process that asks ZooKeeper has a client"
        described = described_operation(ask)
        self._write("asks", described)
        event = Event(self.kernel)
        known = len(self.node.inbox)

        def answered(answer: Any, zxid: int) -> None:
            if self.node.inbox:
                self.node.inbox = without_older_notes(self.node.inbox, ask, answer, known)
            self._note_answer(ask, described["op"], answer, zxid)
            self.kernel.settle(event, answer)

        client.request(ask, answered)
        return event

    def _operate_for(
        self, ask: Operation[Any] | Pipelined, reply: Callable[[Any], object]
    ) -> None:
        """Send an operation for a thread."""
        described = described_operation(ask)
        self._write("asks", described)

        def answered(answer: Any, zxid: int) -> None:
            self._note_answer(ask, described["op"], answer, zxid)
            reply(answer)

        self._client.request(ask, answered)

    def _note_answer(
        self, ask: Operation[Any] | Pipelined, word: str, answer: Any, zxid: int
    ) -> None:
        node = self.node
        if not node.is_alive:
            return
        self.kernel.operations += len(ask.operations) if type(ask) is Pipelined else 1
        client = node.client
        assert client is not None, "whoever has an answer has asked through a client"
        self.kernel.write(
            node.name,
            "answers",
            {"op": word, "for": ask.purpose, "answer": described_answer(answer)},
            session=client.session,
            group=node.group,
            zxid=zxid,
        )
        if self.after is not None:
            for purpose in _purposes(ask):
                self.after(purpose)

    def _new_session(self, ask: NewSession) -> Event:
        self._busy()
        event = Event(self.kernel)
        self._client.new_session(event.succeed)
        return event

    def _connected(self, ask: Connected) -> Event:
        self._busy()
        event = Event(self.kernel)
        self._client.wait_connected(event.succeed)
        return event

    def _close_session(self, ask: CloseSession) -> Event:
        event = Event(self.kernel)
        self._client.close(event.succeed)
        return event

    @property
    def _client(self) -> Client:
        assert self.node.client is not None, "a process that has sessions has a client"
        return self.node.client

    # --- notes and time ----------------------------------------------------------------

    def _next_note(self, ask: NextNote) -> Event | None:
        """Wait for a note, or for the time to be up; `_take` takes it then."""
        node = self.node
        if ask.timeout_ms is not None and ask.timeout_ms < 0:
            raise ValueError(f"a program cannot wait for {ask.timeout_ms} ms")
        if node.inbox or ask.timeout_ms == 0:
            return None
        if not self._is_idle:
            self._is_idle = True
            self._write("waits")
        event = Event(self.kernel)

        def ring(_: Any = None) -> None:
            if not event.triggered:
                event.succeed()

        node.when_note(ring)
        if ask.timeout_ms is not None:
            self.kernel.after(ask.timeout_ms * 1000, ring, None)
        return event

    def _take(self) -> Any:
        self.node.when_note(None)
        if not self.node.inbox:
            return None
        note = self.node.inbox.popleft()
        if not is_quiet(note):
            self._busy()
        return note

    def _busy(self) -> None:
        if self._is_idle:
            self._is_idle = False
            self._write("wakes")

    def _sleep(self, ask: Sleep) -> Event:
        if ask.duration_ms < 0:
            raise ValueError(f"a program cannot sleep for {ask.duration_ms} ms")
        self._busy()
        self._write("sleeps", {"ms": ask.duration_ms})
        event = Event(self.kernel)
        self.kernel.after(ask.duration_ms * 1000, event.succeed, None)
        return event

    # --- fetching ----------------------------------------------------------------------

    def _fetch_exactly(self, ask: FetchExactly) -> Event | None:
        if self.fetcher is None:
            return None
        quiet = self.fetcher.fetch_exactly(ask.fetches)
        if quiet is not None:
            self._busy()
        return quiet

    def _forget(self, ask: Forget) -> None:
        if self.fetcher is not None:
            self.fetcher.forget(ask.partitions)

    # --- the trace ---------------------------------------------------------------------

    def _tell(self, ask: Tell) -> None:
        self._busy()
        self.kernel.write(
            self.node.name, ask.kind, dict(ask.detail), group=self.node.group, topic=ask.topic
        )

    def _write(self, kind: str, detail: Mapping[str, Any] = NOTHING) -> None:
        client = self.node.client
        self.kernel.write(
            self.node.name,
            kind,
            detail,
            session=client.session if client is not None else 0,
            group=self.node.group,
        )

    def _end(self, ended: Ended) -> None:
        self._write("ends", {"why": ended.reason, "failed": ended.failed})
        if self.on_end is not None:
            self.on_end(ended)


def _purposes(ask: Operation[Any] | Pipelined) -> tuple[str, ...]:
    return ask.purposes if isinstance(ask, Pipelined) else (ask.purpose,)


class _Killed:
    """The outcome of a turn whose process was killed in the middle of it."""


KILLED = _Killed()
MOST_FAILURES_AT_ONCE = 1_000
MOST_STEPS_AT_ONCE = 100_000
