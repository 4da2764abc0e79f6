"""Runs a program: takes its effects and sends the answers back.

One loop does it. A coroutine is sent an answer and yields its next effect; most effects are
answered at once, the others with a SimPy event, whose callback continues the loop: a process
of SimPy would run a generator for each wait. A turn that ends returns the state for the next
one; a turn that raises leaves the state as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from simpy.events import Event

from watchkeeper.model.actor.effects import (
    CloseSession,
    Connected,
    Emit,
    Fetch,
    FetchExactly,
    Forget,
    FreshId,
    KnownPositions,
    NewSession,
    NextEvent,
    Now,
    Sleep,
)
from watchkeeper.model.actor.errors import ZooKeeperError
from watchkeeper.model.actor.events import is_quiet
from watchkeeper.model.actor.inbox import without_superseded
from watchkeeper.model.actor.operations import QUIET_PURPOSES, Operation, Pipelined, ZooKeeper
from watchkeeper.model.actor.program import Ended
from watchkeeper.model.actor.program import Fetching as AnyFetching
from watchkeeper.model.actor.program_errors import NotAnEffect, ProgramLoops
from watchkeeper.model.trace.kinds import QUIET_KINDS, EventKind
from watchkeeper.model.trace.text import described_answer, described_operation
from watchkeeper.model.trace.trace import NOTHING
from watchkeeper.sim.disk.host_costs import Caller
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.zookeeper.client import Client

if TYPE_CHECKING:
    from watchkeeper.sim.process.tasks import Tasks

ZOOKEEPER = ZooKeeper()
REQUESTS = (Operation, Pipelined)


class AnswerFollows(Enum):
    """What stands for the answer to a request until it comes."""

    ANSWER_FOLLOWS = "the answer follows"


ANSWER_FOLLOWS = AnswerFollows.ANSWER_FOLLOWS


class Fetching(AnyFetching, Protocol):
    """The fetching side of a simulated member."""

    def fetch_exactly(self, fetches: Iterable[Fetch]) -> Event | None:
        """Fetch these and no others; an event that triggers when the others have stopped."""


class Driver:
    """The driver of one program."""

    def __init__(self, kernel: Kernel, node: Node, fetcher: Fetching | None) -> None:
        self.kernel = kernel
        self.node = node
        self.fetcher = fetcher
        self.before: Callable[[str], None] | None = None
        """Called with the purpose of a request before it is sent: a fault may strike."""
        self.after: Callable[[str], None] | None = None
        """Called when the reply has come and the program has not seen it yet."""
        self.on_end: Callable[[Ended], None] | None = None
        self.caller = Caller()
        """The program, as a caller of RPCs beside the tasks of its process."""
        self._program = node.program
        self._state: Any = None
        self._coroutine: Any = None
        """The turn that is under way."""
        self._turn_began_us = 0
        self._failures = 0
        """The turns that have failed one after the other at one moment."""
        self._takes_event = False
        """Whether the program waits for a notification."""
        self._is_waiting = False
        """Whether the program waits for a notification, and has not been woken."""
        self._waits = 0
        """How often it has waited: tells the timeout of this wait from those of earlier ones."""
        self._is_sending = False
        """Whether the client is about to take a request, and may refuse it."""
        self._refusal: Event | None = None
        self._answer: Any = None
        """The answer to an effect that did not have to wait."""
        self._is_idle = False
        self._steps = 0
        """Effects and turns since the clock was last seen to advance."""
        self._seen_us = -1
        self._at_once: dict[type[Any], Callable[[Any], Any]] = {
            Now: lambda effect: node.clock_ms(),
            FreshId: lambda effect: kernel.streams(f"names/{node.name}").hexadecimal(32),
            KnownPositions: lambda effect: fetcher.known_positions() if fetcher else (),
            Forget: self._forget,
            Emit: self._emit,
        }
        """Effects that are answered at once."""
        self._later: dict[type[Any], Callable[[Any], Event | AnswerFollows | None]] = {
            NextEvent: self._next_event,
            Sleep: self._sleep,
            NewSession: self._new_session,
            CloseSession: self._close_session,
            Connected: self._connected,
            FetchExactly: self._fetch_exactly,
        }
        """Effects whose answer is the value of an event; None where it is there already."""

    def join(self, tasks: Tasks) -> None:
        """Answer the effects of tasks for the program too, and operations for tasks."""
        self._at_once = {**tasks.at_once, **self._at_once}
        for kind in tasks.kinds:
            self._later.setdefault(kind, lambda effect: self._as_event(tasks, effect))
        tasks.operate = self._operate_for

    def _as_event(self, tasks: Tasks, effect: Any) -> Event:
        event = Event(self.kernel)
        tasks.answer(self.caller, effect, lambda answer: self.kernel.settle(event, answer))
        return event

    def start(self) -> None:
        """Run the program, from this moment on."""
        self._program = self.node.program
        self._state = self._program.initial_state
        self.kernel.at_once(self._begin, None)

    def _begin(self, _: None) -> None:
        self._begin_turn()
        self._go_on(None)

    def _begin_turn(self) -> None:
        self._steps += 1
        if self._steps >= MOST_STEPS_AT_ONCE:
            self._check_steps()
        program = self._program
        self._coroutine = program.turn(ZOOKEEPER, program.me, self._state)
        self._turn_began_us = self.kernel.now_us

    def _go_on(self, answer: Any) -> None:
        """Send the program its answers, until it waits for one that comes later or is over."""
        at_once = self._at_once
        try:
            while True:
                try:
                    effect = self._coroutine.send(answer)
                except StopIteration as done:
                    answer = None
                    if not self._end_turn(done.value):
                        return
                    continue
                except ZooKeeperError as error:
                    answer = None
                    self._fail_turn(error)
                    continue
                self._steps += 1
                if self._steps >= MOST_STEPS_AT_ONCE:
                    self._check_steps()
                kind = type(effect)
                if kind in at_once:
                    answer = at_once[kind](effect)
                    continue
                if self.before is not None and not self._outlives_faults(effect):
                    return
                if not self._perform(effect):
                    return
                answer = self._answer
        except Exception as error:
            error.add_note(f"in {self.node.name} at {self.kernel.now_us / 1e6:.6f} s")
            raise

    def _end_turn(self, outcome: Any) -> bool:
        """Take the state after a turn; return whether there is another turn."""
        if isinstance(outcome, Ended):
            self._end(outcome)
            return False
        self._state = outcome
        self._begin_turn()
        return True

    def _fail_turn(self, error: ZooKeeperError) -> None:
        """A turn raised an error: the next one begins with the same state."""
        self._write(EventKind.TURN_FAILED, {"error": str(error)})
        has_waited = self.kernel.now_us != self._turn_began_us
        self._failures = 0 if has_waited else self._failures + 1
        if self._failures > MOST_FAILURES_AT_ONCE:
            why = f"failed {self._failures} times at one moment, last with: {error}"
            raise ProgramLoops(self.node.name, why) from error
        self._begin_turn()

    def _outlives_faults(self, effect: Any) -> bool:
        """Let faults strike that wait for this request; return whether the process still runs."""
        if isinstance(effect, REQUESTS) and self.before is not None:
            for purpose in _purposes(effect):
                self.before(purpose)
            if self.node.is_paused or not self.node.runs_program:
                self._when_running(self._perform_and_go_on, effect)
                return False
        return True

    def _perform_and_go_on(self, effect: Any) -> None:
        if self._perform(effect):
            self._go_on(self._answer)

    def _perform(self, effect: Any) -> bool:
        """Begin what is answered later; return whether the answer is there already."""
        kind = type(effect)
        self._takes_event = kind is NextEvent
        event = self._later[kind](effect) if kind in self._later else self._operate(effect)
        if event is ANSWER_FOLLOWS:
            return False
        answer = None
        if event is not None:
            if event.callbacks is not None:
                event.callbacks.append(self._happened)
                return False
            answer = event.value
        if self.node.is_paused or not self.node.runs_program:
            self._when_running(self._answered, answer)
            return False
        self._answer = self._take() if self._takes_event else answer
        return True

    def _happened(self, event: Event) -> None:
        """What the program waits for has happened."""
        if self.node.is_paused or not self.node.runs_program:
            self._when_running(self._answered, event.value)
        else:
            self._answered(event.value)

    def _answered(self, answer: Any) -> None:
        # A notification is taken only now: a pause may have lain between the wake-up and this
        # point, and a new session may have emptied the inbox meanwhile.
        self._go_on(self._take() if self._takes_event else answer)

    def _when_running(self, call: Callable[[Any], None], argument: Any) -> None:
        """Call this now, or after a pause; never for a process whose program is over."""
        node = self.node
        if not node.runs_program:
            self._coroutine.close()
        elif node.is_paused:
            resumed: Any = node.until_resumed().callbacks
            resumed.append(lambda _: self._when_running(call, argument))
        else:
            call(argument)

    def _check_steps(self) -> None:
        """Raise ProgramLoops if the program continues without end at one moment."""
        if self._seen_us == self.kernel.now_us:
            reason = f"has gone on for {MOST_STEPS_AT_ONCE:,} steps at one moment"
            raise ProgramLoops(self.node.name, reason)
        self._steps, self._seen_us = 0, self.kernel.now_us

    # --- ZooKeeper ---------------------------------------------------------------------

    def _operate(self, effect: Any) -> Event | AnswerFollows:
        """Send an operation; return ANSWER_FOLLOWS, or an event if the client refuses it.

        Nearly all waits of a program are of this kind, so they need no event: the answer
        continues the program.
        """
        if not isinstance(effect, REQUESTS):
            raise NotAnEffect(self.node.name, effect)
        if self._is_idle and effect.purpose not in QUIET_PURPOSES:
            self._is_idle = False
            self._write(EventKind.WOKEN)
        node = self.node
        client = node.client
        assert client is not None, "a process that asks ZooKeeper has a client"
        described = described_operation(effect)
        self.kernel.write(
            node.name, EventKind.REQUEST, described, session=client.session, group=node.group
        )
        known = len(node.inbox)

        def answered(answer: Any, zxid: int) -> None:
            if node.inbox:
                node.inbox = without_superseded(node.inbox, effect, answer, known)
            self._note_answer(effect, described, answer, zxid)
            if self._is_sending:
                self._refusal = Event(self.kernel)
                self.kernel.settle(self._refusal, answer)
            elif node.is_paused or not node.runs_program:
                self._when_running(self._go_on, answer)
            else:
                self._go_on(answer)

        self._is_sending = True
        client.request(effect, answered)
        self._is_sending = False
        refusal, self._refusal = self._refusal, None
        return refusal or ANSWER_FOLLOWS

    def _operate_for(
        self, effect: Operation[Any] | Pipelined, reply: Callable[[Any], object]
    ) -> None:
        """Send an operation for a task, unless a fault before it ends the process."""
        if self.before is not None:
            for purpose in _purposes(effect):
                self.before(purpose)
        if not self.node.runs_program:
            return
        if self.node.is_paused:
            resumed: Any = self.node.until_resumed().callbacks
            resumed.append(lambda _: self._send_for(effect, reply))
            return
        self._send_for(effect, reply)

    def _send_for(
        self, effect: Operation[Any] | Pipelined, reply: Callable[[Any], object]
    ) -> None:
        described = described_operation(effect)
        self._write(EventKind.REQUEST, described)

        def answered(answer: Any, zxid: int) -> None:
            self._note_answer(effect, described, answer, zxid)
            reply(answer)

        self._client.request(effect, answered)

    def _note_answer(
        self,
        effect: Operation[Any] | Pipelined,
        described: Mapping[str, Any],
        answer: Any,
        zxid: int,
    ) -> None:
        node = self.node
        if not node.runs_program:
            return
        self.kernel.operations += len(effect.operations) if type(effect) is Pipelined else 1
        client = node.client
        assert client is not None, "a reply comes through a client"
        self.kernel.write(
            node.name,
            EventKind.RESPONSE,
            {
                "op": described["op"],
                "purpose": described["purpose"],
                "answer": described_answer(answer),
            },
            session=client.session,
            group=node.group,
            zxid=zxid,
        )
        if self.after is not None:
            for purpose in _purposes(effect):
                self.after(purpose)

    def _new_session(self, effect: NewSession) -> Event:
        self._busy()
        event = Event(self.kernel)
        self._client.new_session(event.succeed)
        return event

    def _connected(self, effect: Connected) -> Event:
        self._busy()
        event = Event(self.kernel)
        self._client.wait_connected(event.succeed)
        return event

    def _close_session(self, effect: CloseSession) -> Event:
        event = Event(self.kernel)
        self._client.close(event.succeed)
        return event

    @property
    def _client(self) -> Client:
        assert self.node.client is not None, "a process that has sessions has a client"
        return self.node.client

    # --- notifications and time --------------------------------------------------------

    def _next_event(self, effect: NextEvent) -> Event | AnswerFollows | None:
        """Wait for a notification or the timeout; `_take` takes the notification then."""
        node = self.node
        if effect.timeout_ms is not None and effect.timeout_ms < 0:
            raise ValueError(f"a program cannot wait for {effect.timeout_ms} ms")
        if node.inbox or effect.timeout_ms == 0:
            return None
        if not self._is_idle:
            self._is_idle = True
            self._write(EventKind.WAITING)
        # A wait needs no event: only the program waits, and it is woken once. What rings first,
        # a notification or the timeout, wakes it behind all other entries of its moment.
        self._waits += 1
        node.waiter = self._ring
        if effect.timeout_ms is not None:
            self.kernel.after(effect.timeout_ms * 1000, self._ring_at_timeout, self._waits)
        self._is_waiting = True
        return ANSWER_FOLLOWS

    def _ring(self) -> None:
        """Wake the program, which waits for a notification, unless it is being woken."""
        if self._is_waiting:
            self._is_waiting = False
            self.kernel.after(0, self._wake, None)

    def _ring_at_timeout(self, wait: int) -> None:
        if wait == self._waits:
            self._ring()

    def _wake(self, _: None) -> None:
        if self.node.is_paused or not self.node.runs_program:
            self._when_running(self._answered, None)
        else:
            self._go_on(self._take())

    def _take(self) -> Any:
        node = self.node
        node.waiter = None
        if not node.inbox:
            return None
        notification = node.inbox.popleft()
        if self._is_idle and not is_quiet(notification):
            self._busy()
        return notification

    def _busy(self) -> None:
        if self._is_idle:
            self._is_idle = False
            self._write(EventKind.WOKEN)

    def _sleep(self, effect: Sleep) -> Event:
        if effect.duration_ms < 0:
            raise ValueError(f"a program cannot sleep for {effect.duration_ms} ms")
        self._busy()
        self._write(EventKind.SLEEPING, {"ms": effect.duration_ms})
        event = Event(self.kernel)
        self.kernel.after(effect.duration_ms * 1000, event.succeed, None)
        return event

    # --- fetching ----------------------------------------------------------------------

    def _fetch_exactly(self, effect: FetchExactly) -> Event | None:
        if self.fetcher is None:
            return None
        quiet = self.fetcher.fetch_exactly(effect.fetches)
        if quiet is not None:
            self._busy()
        return quiet

    def _forget(self, effect: Forget) -> None:
        if self.fetcher is not None:
            self.fetcher.forget(effect.partitions)

    # --- the trace ---------------------------------------------------------------------

    def _emit(self, effect: Emit) -> None:
        if self._is_idle and effect.kind not in QUIET_KINDS:
            self._busy()
        self.kernel.write(
            self.node.name,
            effect.kind,
            dict(effect.detail),
            group=self.node.group,
            topic=effect.topic,
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
        self._write(EventKind.ENDED, {"why": ended.reason, "failed": ended.failed})
        if self.on_end is not None:
            self.on_end(ended)


def _purposes(effect: Operation[Any] | Pipelined) -> tuple[str, ...]:
    return effect.purposes if isinstance(effect, Pipelined) else (effect.purpose,)


MOST_FAILURES_AT_ONCE = 1_000
MOST_STEPS_AT_ONCE = 100_000
