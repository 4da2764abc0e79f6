"""Runs one program against a live ZooKeeper: performs its effects and returns the answers.

One thread runs the program. Every other thread (kazoo's, the fetchers', the one that reads
orders) puts its events into one queue, and the program's thread takes them out in order: a
reply answers a request, a notification goes to the inbox. So a program sees an event before
any data that is newer than it.

How to read it: `run` takes turns, `_turn` performs the effects of one turn, `_dispatch`
handles what comes out of the queue. `task_driver` adds tasks beside the program.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, Protocol
from uuid import uuid4

from watchkeeper.model.actor.effects import (
    CloseSession,
    Connected,
    Emit,
    FetchExactly,
    Forget,
    FreshId,
    KnownPositions,
    NewSession,
    NextEvent,
    Now,
    Positions,
    Sleep,
)
from watchkeeper.model.actor.errors import Failure, SessionExpired, ZooKeeperError
from watchkeeper.model.actor.events import Command, Fired, Notification, SessionEvent, is_quiet
from watchkeeper.model.actor.inbox import without_superseded
from watchkeeper.model.actor.operations import (
    QUIET_PURPOSES,
    WRITES,
    Operation,
    Pipelined,
    ZooKeeper,
)
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.program import Fetching as AnyFetching
from watchkeeper.model.actor.program_errors import NotAnEffect
from watchkeeper.model.trace.kinds import QUIET_KINDS, EventKind
from watchkeeper.model.trace.text import described_answer, described_operation
from watchkeeper.real.client.client import Client, ClientEvent, Reply
from watchkeeper.real.trace.writer import EventSink

ZOOKEEPER = ZooKeeper()

SESSION_EVENTS = {
    "suspended": SessionEvent.SUSPENDED,
    "connected": SessionEvent.CONNECTED,
    "expired": SessionEvent.EXPIRED,
}


class Fetching(AnyFetching, Protocol):
    """The fetching side of a member."""

    def fetch_exactly(self, fetches: Any, stopped: Callable[[], None]) -> bool:
        """Fetch exactly these; False if `stopped` is called once the others have stopped."""


class StepHooks(Protocol):
    """Hooks around the operations of a program; they may block it there."""

    def before(self, purpose: str) -> None:
        """The program is about to send a request of this purpose."""

    def after(self, purpose: str) -> None:
        """The answer has arrived, and the program has not seen it yet."""


class FetchingStopped:
    """Every fetcher that had to stop has stopped."""


class Abandonment:
    """The program is to end without another step; wakes up its thread."""


class Abandoned(Exception):
    """Ends the turn of a program that is abandoned."""


class Driver:
    """Runs one program."""

    def __init__(
        self,
        program: Program,
        writer: EventSink,
        connect: Callable[[Callable[[ClientEvent], None]], Client],
        fetching: Fetching | None = None,
        steps: StepHooks | None = None,
        skew_ms: int = 0,
    ) -> None:
        self.program = program
        self.writer = writer
        self.queue: SimpleQueue[Any] = SimpleQueue()
        """Events in order: ClientEvent, Command, FetchingStopped, Abandonment."""
        self.client = connect(self.queue.put)
        self.fetching = fetching
        self.steps = steps
        self.skew_ms = skew_ms
        self.inbox: deque[Notification] = deque()
        self.generation = 0
        """The session that the program knows of, counted from 1; 0 before the first."""
        self._replies: dict[int, Reply] = {}
        self._is_idle = False
        self._is_abandoned = False
        self._has_fetching_stopped = True
        self._handlers: dict[type[Any], Callable[[Any], Any]] = {
            Now: lambda effect: self.now_ms(),
            FreshId: lambda effect: uuid4().hex,
            KnownPositions: self._known_positions,
            Forget: self._forget,
            Emit: self._emit,
            NextEvent: self._next_event,
            Sleep: self._sleep,
            NewSession: self._new_session,
            CloseSession: self._close_session,
            Connected: self._connected,
            FetchExactly: self._fetch_exactly,
        }

    def now_ms(self) -> int:
        """The clock of this process, in milliseconds since 1970."""
        return time.time_ns() // 1_000_000 + self.skew_ms

    def run(self) -> Ended:
        """Take turn after turn until the program ends; return how it ended.

        A program that is abandoned does not return: its process goes on with the client.
        """
        program = self.program
        state = program.initial_state
        self.client.start()
        while True:
            coroutine: Any = program.turn(ZOOKEEPER, program.me, state)
            try:
                outcome = self._turn(coroutine)
            except ZooKeeperError as error:
                self._turn_failed(error)
                continue
            except Abandoned:
                coroutine.close()
                self._keep_session()
            if isinstance(outcome, Ended):
                self._end(outcome)
                return outcome
            state = outcome

    def _turn(self, coroutine: Any) -> Any:
        answer: Any = None
        while True:
            if self._is_abandoned:
                raise Abandoned
            try:
                effect = self._next_effect(coroutine, answer)
            except StopIteration as done:
                return done.value
            handler = self._handlers.get(type(effect))
            answer = handler(effect) if handler is not None else self._operate(effect)

    def _next_effect(self, coroutine: Any, answer: Any) -> Any:
        return coroutine.send(answer)

    def _turn_failed(self, error: ZooKeeperError) -> None:
        self._write(EventKind.TURN_FAILED, {"error": str(error)})

    def _end(self, ended: Ended) -> None:
        self._stop_fetching()
        self._write(EventKind.ENDED, {"why": ended.reason, "failed": ended.failed})
        if self.client.state != "closed":
            self.client.close()

    # --- a session that outlives the program ---------------------------------------------

    def abandon(self) -> None:
        """End the program, from any thread; the client keeps the session."""
        self._is_abandoned = True
        self.queue.put(Abandonment())

    def _keep_session(self) -> NoReturn:
        """Keep the client, and write what becomes of its session; no program reads the rest."""
        self._stop_work()
        self._write(EventKind.ABANDONED)
        while True:
            event = self.queue.get()
            if isinstance(event, ClientEvent) and event.content in SESSION_EVENTS:
                self._note_state(event)
                # No program wants the next session.
                if event.content == "expired":
                    self.client.close()

    def _stop_work(self) -> None:
        """Stop what works for the program beside it."""
        self._stop_fetching()

    def _stop_fetching(self) -> None:
        if self.fetching is not None:
            self.fetching.stop()

    # --- events --------------------------------------------------------------------------

    def _receive(self, wait_s: float | None) -> bool:
        """Take one event out of the queue; False if none came within `wait_s`."""
        try:
            event = self.queue.get() if wait_s is None else self.queue.get(timeout=wait_s)
        except Empty:
            return False
        self._dispatch(event)
        return True

    def _dispatch(self, event: Any) -> None:
        if isinstance(event, Command):
            self._deliver(event, {"what": event.kind.value, "topic": event.topic})
        elif isinstance(event, FetchingStopped):
            self._has_fetching_stopped = True
        elif isinstance(event, Abandonment):
            raise Abandoned
        elif isinstance(event.content, Reply):
            self._replies[event.content.ticket] = event.content
        elif isinstance(event.content, Fired):
            detail = {"what": event.content.what.value, "path": event.content.path}
            # An event of a later session must not reach a program that has not requested
            # that session yet; its new session starts with an empty inbox.
            if event.generation == self.generation:
                self._deliver(event.content, detail, event.at_ns)
        else:
            self._state_changed(event)

    def _receive_all(self) -> None:
        while not self.queue.empty():
            self._receive(0)

    def _note_state(self, event: ClientEvent) -> bool:
        """Write a change of the connection; return whether it began a session."""
        is_new = event.content == "connected" and event.generation != self.generation
        detail = {"new": is_new} if event.content == "connected" else {}
        self._write(event.content, detail, event.at_ns)
        return is_new

    def _state_changed(self, event: ClientEvent) -> None:
        # A new session is no notification: the program learns of it by requesting one.
        if not self._note_state(event):
            self._deliver(SESSION_EVENTS[event.content], {"what": event.content}, event.at_ns)

    def _deliver(
        self, notification: Notification, detail: dict[str, Any], at_ns: int | None = None
    ) -> None:
        self.inbox.append(notification)
        self._write(EventKind.NOTIFIED, detail, at_ns)

    def _wait_for(self, is_there: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Handle events until a condition holds or the time is up; return whether it holds."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not is_there():
            left = None if end is None else end - time.monotonic()
            if (left is not None and left <= 0) or not self._receive(left):
                return is_there()
        return True

    # --- ZooKeeper ---------------------------------------------------------------------

    def _operate(self, effect: Any) -> Any:
        if not isinstance(effect, Operation | Pipelined):
            raise NotAnEffect(self.writer.node, effect)
        if self._is_idle and effect.purpose not in QUIET_PURPOSES:
            self._busy()
        self._step("before", effect)
        self._receive_all()
        # What has arrived before the request is in the inbox now. A successful write removes
        # exactly these superseded notifications; later ones stay (`without_superseded`).
        received_before = len(self.inbox)
        described = described_operation(effect)
        self._write(EventKind.REQUEST, described)
        batch = effect.operations if isinstance(effect, Pipelined) else (effect,)
        tickets = self.client.submit(batch, self.generation)
        zxid = 0
        if isinstance(tickets, Failure):
            answer: Any = tickets
        else:
            self._wait_for(self._all_answered(tickets))
            replies = [self._replies.pop(ticket) for ticket in tickets]
            zxid = zxid_of_writes(batch, replies)
            answer = self._answer_of(effect, [reply.answer for reply in replies])
        self.inbox = without_superseded(self.inbox, effect, answer, received_before)
        self._write_answer(effect, described["op"], answer, zxid)
        self._step("after", effect)
        return answer

    def _all_answered(self, tickets: Sequence[int]) -> Callable[[], bool]:
        """Whether every one of these requests has its reply.

        Each look goes on behind the last answered one: a pipeline may have thousands.
        """
        waiting = iter(tickets)
        ticket = next(waiting, None)

        def look() -> bool:
            nonlocal ticket
            while ticket is not None and ticket in self._replies:
                ticket = next(waiting, None)
            return ticket is None

        return look

    def _answer_of(self, effect: Operation[Any] | Pipelined, answers: list[Any]) -> Any:
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        if not isinstance(effect, Pipelined):
            return answers[0]
        for answer in answers:
            if isinstance(answer, Failure) and answer.ends_connection:
                return answer
        return tuple(answers)

    def _write_answer(self, effect: Any, word: str, answer: Any, zxid: int) -> None:
        detail = {"op": word, "purpose": effect.purpose, "answer": described_answer(answer)}
        self.writer.write(EventKind.RESPONSE, detail, session=self.client.session, zxid=zxid)

    def _step(self, when: str, effect: Operation[Any] | Pipelined) -> None:
        if self.steps is not None:
            for purpose in (
                effect.purposes if isinstance(effect, Pipelined) else (effect.purpose,)
            ):
                getattr(self.steps, when)(purpose)

    # --- sessions ----------------------------------------------------------------------

    def _new_session(self, effect: NewSession) -> None:
        self._busy()
        self._wait_for(self._has_session)
        # From here on the program belongs to this session.
        # Notifications of the old session are dropped, orders are kept.
        self.generation = self.client.generation
        self._receive_all()
        self.inbox = deque(
            notification for notification in self.inbox if isinstance(notification, Command)
        )

    def _has_session(self) -> bool:
        # A session may end before the program learns that it has begun.
        if self.client.state == "expired":
            self.client.open_session()
        return self.client.state == "connected"

    def _connected(self, effect: Connected) -> Any:
        self._busy()
        self._wait_for(
            lambda: self.client.state != "suspended" or self.client.generation != self.generation
        )
        if self.client.generation != self.generation or self.client.state == "expired":
            return Failure(SessionExpired)
        return None

    def _close_session(self, effect: CloseSession) -> None:
        self.client.close()

    # --- notifications and time ----------------------------------------------------------

    def _next_event(self, effect: NextEvent) -> Notification | None:
        self._receive_all()
        if not self.inbox and effect.timeout_ms != 0:
            if not self._is_idle:
                self._is_idle = True
                self._write(EventKind.WAITING)
            timeout_s = None if effect.timeout_ms is None else effect.timeout_ms / 1000
            self._wait_for(self._need_not_wait, timeout_s)
        if not self.inbox:
            return None
        notification = self.inbox.popleft()
        if not is_quiet(notification):
            self._busy()
        return notification

    def _need_not_wait(self) -> bool:
        return bool(self.inbox)

    def _busy(self) -> None:
        if self._is_idle:
            self._is_idle = False
            self._write(EventKind.WOKEN)

    def _sleep(self, effect: Sleep) -> None:
        self._busy()
        self._write(EventKind.SLEEPING, {"ms": effect.duration_ms})
        self._wait_for(lambda: False, effect.duration_ms / 1000)

    # --- fetching ----------------------------------------------------------------------

    def _fetch_exactly(self, effect: FetchExactly) -> None:
        if self.fetching is None:
            return
        self._has_fetching_stopped = False
        if self.fetching.fetch_exactly(effect.fetches, lambda: self.queue.put(FetchingStopped())):
            self._has_fetching_stopped = True
            return
        self._busy()
        self._wait_for(lambda: self._has_fetching_stopped)

    def _known_positions(self, effect: KnownPositions) -> Positions:
        return self.fetching.known_positions() if self.fetching is not None else ()

    def _forget(self, effect: Forget) -> None:
        if self.fetching is not None:
            self.fetching.forget(effect.partitions)

    # --- the trace ---------------------------------------------------------------------

    def _emit(self, effect: Emit) -> None:
        if effect.kind not in QUIET_KINDS:
            self._busy()
        self.writer.write(effect.kind, dict(effect.detail), topic=effect.topic)

    def _write(self, kind: str, detail: Any = None, at_ns: int | None = None) -> None:
        self.writer.write(kind, detail or {}, session=self.client.session, at_ns=at_ns)


def zxid_of_writes(batch: tuple[Operation[Any], ...], replies: list[Reply]) -> int:
    """The zxid of the last write among these; 0 without a write."""
    zxids = (
        reply.zxid
        for operation, reply in zip(batch, replies, strict=True)
        if type(operation) in WRITES
    )
    return max(zxids, default=0)
