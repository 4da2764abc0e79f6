"""Runs a program as a SimPy process: takes its asks, and sends the answers back.

One loop does it. A coroutine is sent an answer and yields its next ask; most asks are
answered on the spot, the others with an event that the process waits for. A turn that
ends gives the memory of the next; one that raises leaves the memory as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from simpy.events import Event

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
from model.errors import ZooKeeperError
from model.operations import Operation, Pipelined, ZooKeeper
from model.program import Ended
from sim.describe import described_answer, described_operation
from sim.fetcher import Fetcher
from sim.kernel import Kernel
from sim.node import Node

Steps = Generator[Event, Any, Any]
ZOOKEEPER = ZooKeeper()
QUIET_PURPOSES = frozenset({"commit"})
"""What a member may ask for in the middle of its rest."""


class Driver:
    """One program at work."""

    def __init__(self, kernel: Kernel, node: Node, fetcher: Fetcher | None) -> None:
        self.kernel = kernel
        self.node = node
        self.fetcher = fetcher
        self.before: Callable[[str], None] | None = None
        """Called with the purpose of what is about to be asked: a fault may strike."""
        self.after: Callable[[str], None] | None = None
        """Called when the answer has come and the program has not seen it yet."""
        self.on_end: Callable[[Ended], None] | None = None
        self._is_idle = False
        self._names = kernel.streams(f"names/{node.name}")
        self._local: dict[type[Any], Callable[[Any], Any]] = {
            Now: lambda ask: node.clock_ms(),
            FreshId: lambda ask: self._names.hexadecimal(32),
            KnownPositions: lambda ask: fetcher.known_positions() if fetcher else (),
            Forget: self._forget,
            Tell: self._tell,
        }
        self._waiting: dict[type[Any], Callable[[Any], Steps]] = {
            NextNote: self._next_note,
            Sleep: self._sleep,
            NewSession: self._new_session,
            CloseSession: self._close_session,
            Connected: self._connected,
            FetchExactly: self._fetch_exactly,
        }

    def run(self) -> Steps:
        """The life of the process: turn after turn until the program is over."""
        program = self.node.program
        memory = program.first_memory
        failures = 0
        while True:
            coroutine: Any = program.turn(ZOOKEEPER, program.me, memory)
            started_us = self.kernel.now_us
            try:
                outcome = yield from self._turn(coroutine)
            except ZooKeeperError as error:
                self._write("turn fails", {"error": str(error)})
                failures = failures + 1 if self.kernel.now_us == started_us else 0
                if failures > MOST_FAILURES_AT_ONCE:
                    raise ProgramLoops(self.node.name, error) from error
                continue
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
        answer: Any = None
        while True:
            try:
                ask = coroutine.send(answer)
            except StopIteration as done:
                return done.value
            kind = type(ask)
            if kind in self._local:
                answer = self._local[kind](ask)
                continue
            if kind in self._waiting:
                answer = yield from self._waiting[kind](ask)
            elif isinstance(ask, Operation | Pipelined):
                answer = yield from self._operate(ask)
            else:
                raise NotAnAsk(node.name, ask)
            yield from self._stand_still()
            if not node.is_alive:
                return KILLED

    def _stand_still(self) -> Steps:
        """Wait while the process is paused."""
        while self.node.is_paused and self.node.is_alive:
            yield self.node.until_resumed()

    # --- ZooKeeper ---------------------------------------------------------------------

    def _operate(self, ask: Operation[Any] | Pipelined) -> Steps:
        purpose = ask.purpose
        if self._is_idle and purpose not in QUIET_PURPOSES:
            self._is_idle = False
            self._write("wakes")
        if self.before is not None:
            self.before(purpose)
            yield from self._stand_still()
            if not self.node.is_alive:
                return None
        described = described_operation(ask)
        client = self.node.client
        assert client is not None, "a process that asks ZooKeeper has a client"
        self._write("asks", described)
        event = Event(self.kernel)
        client.request(ask, lambda answer, zxid: event.succeed((answer, zxid)))
        answer, zxid = yield event
        self.kernel.operations += len(ask.operations) if type(ask) is Pipelined else 1
        if not self.node.is_alive:
            return None
        self.node.drop_older_notes(ask, answer)
        self.kernel.write(
            self.node.name,
            "answers",
            {"op": described["op"], "for": purpose, "answer": described_answer(answer)},
            session=client.session,
            group=self.node.group,
            zxid=zxid,
        )
        if self.after is not None:
            self.after(purpose)
        return answer

    def _new_session(self, ask: NewSession) -> Steps:
        self._busy()
        client = self.node.client
        assert client is not None, "a process that asks for a session has a client"
        event = Event(self.kernel)
        client.new_session(event.succeed)
        yield event
        return None

    def _connected(self, ask: Connected) -> Steps:
        self._busy()
        client = self.node.client
        assert client is not None, "a process that waits for a connection has a client"
        event = Event(self.kernel)
        client.wait_connected(event.succeed)
        return (yield event)

    def _close_session(self, ask: CloseSession) -> Steps:
        client = self.node.client
        assert client is not None, "a process that ends its session has a client"
        event = Event(self.kernel)
        client.close(event.succeed)
        yield event
        return None

    # --- notes and time ----------------------------------------------------------------

    def _next_note(self, ask: NextNote) -> Steps:
        node = self.node
        if node.inbox:
            return self._take()
        if ask.timeout_ms == 0:
            return None
        if not self._is_idle:
            self._is_idle = True
            self._write("waits")
        event = Event(self.kernel)

        def ring(value: Any = None) -> None:
            if not event.triggered:
                event.succeed()

        node.when_note(ring)
        if ask.timeout_ms is not None:
            self.kernel.after(ask.timeout_ms * 1000, ring, None)
        yield event
        node.when_note(None)
        yield from self._stand_still()
        return self._take() if node.inbox else None

    def _take(self) -> Any:
        note = self.node.inbox.popleft()
        self._busy()
        return note

    def _busy(self) -> None:
        if self._is_idle:
            self._is_idle = False
            self._write("wakes")

    def _sleep(self, ask: Sleep) -> Steps:
        self._busy()
        self._write("sleeps", {"ms": ask.duration_ms})
        event = Event(self.kernel)
        self.kernel.after(ask.duration_ms * 1000, event.succeed, None)
        yield event
        return None

    # --- fetching ----------------------------------------------------------------------

    def _fetch_exactly(self, ask: FetchExactly) -> Steps:
        if self.fetcher is not None:
            quiet = self.fetcher.fetch_exactly(ask.fetches)
            if quiet is not None:
                self._busy()
                yield quiet
        return None

    def _forget(self, ask: Forget) -> None:
        if self.fetcher is not None:
            self.fetcher.forget(ask.partitions)

    # --- the trace ---------------------------------------------------------------------

    def _tell(self, ask: Tell) -> None:
        self._busy()
        self.kernel.write(
            self.node.name, ask.kind, dict(ask.detail), group=self.node.group, topic=ask.topic
        )

    def _write(self, kind: str, detail: Any = None) -> None:
        client = self.node.client
        self.kernel.write(
            self.node.name,
            kind,
            detail if detail is not None else {},
            session=client.session if client is not None else 0,
            group=self.node.group,
        )

    def _end(self, ended: Ended) -> None:
        self._write("ends", {"why": ended.reason, "failed": ended.failed})
        if self.on_end is not None:
            self.on_end(ended)


class _Killed:
    """The outcome of a turn whose process was killed in the middle of it."""


KILLED = _Killed()
MOST_FAILURES_AT_ONCE = 1_000


class NotAnAsk(TypeError):
    """A program awaited something that no world can answer."""

    def __init__(self, node: str, ask: object) -> None:
        super().__init__(
            f"{node} awaited {type(ask).__name__!r}, which is not an operation; protocol code "
            "may only await what model.operations and model.asks provide"
        )


class ProgramLoops(RuntimeError):
    """A program fails again and again while no time passes."""

    def __init__(self, node: str, error: Exception) -> None:
        super().__init__(
            f"{node} failed {MOST_FAILURES_AT_ONCE} times at one moment, last with: {error}; "
            "after an error a turn has to wait for something before it tries again"
        )
