"""Runs a program against a real ZooKeeper: takes its asks, and sends the answers back.

One thread runs the program. Everything else (kazoo's thread, the fetchers, whoever gives
orders) puts what it has to say into one queue, and this thread takes it out: replies
answer what was asked, notes go to the inbox, in the order in which they came.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Protocol
from uuid import uuid4

from model.answers import Fired, Note, Ordered, SessionNote, is_quiet
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
    Positions,
    Sleep,
    Tell,
)
from model.describe import described_answer, described_operation
from model.errors import Failure, SessionExpired, ZooKeeperError
from model.inbox import without_older_notes
from model.operations import WRITES, Operation, Pipelined, ZooKeeper
from model.program import Ended, Program
from real.client import Client, Reply, Said
from real.diary import Writes

ZOOKEEPER = ZooKeeper()
QUIET_PURPOSES = frozenset({"commit"})
"""What a member may ask for in the middle of its rest."""

NOTES = {
    "suspended": SessionNote.SUSPENDED,
    "connected": SessionNote.CONNECTED,
    "expired": SessionNote.EXPIRED,
}


class Fetching(Protocol):
    """What fetches for a program."""

    def fetch_exactly(self, fetches: Any, quiet: Callable[[], None]) -> bool:
        """Fetch these and no others; False when `quiet` will be called later."""

    def known_positions(self) -> Positions:
        """Where the member stands."""

    def forget(self, partitions: Any) -> None:
        """Forget where it stood."""

    def stop(self) -> None:
        """Fetch nothing any more."""


class Steps(Protocol):
    """Whoever wants to know of a program's steps, and may hold it up there."""

    def before(self, purpose: str) -> None:
        """The program is about to ask for this."""

    def after(self, purpose: str) -> None:
        """The answer has come, and the program has not seen it yet."""


class Quiet:
    """The fetchers that were to stop have fallen quiet."""


class Driver:
    """One program at work."""

    def __init__(
        self,
        program: Program,
        diary: Writes,
        connect: Callable[[Callable[[Said], None]], Client],
        fetching: Fetching | None = None,
        steps: Steps | None = None,
        skew_ms: int = 0,
    ) -> None:
        self.program = program
        self.diary = diary
        self.queue: SimpleQueue[Any] = SimpleQueue()
        """What is said, in order: a Said, an Ordered, a Quiet."""
        self.client = connect(self.queue.put)
        self.fetching = fetching
        self.steps = steps
        self.skew_ms = skew_ms
        self.inbox: deque[Note] = deque()
        self.life = 0
        """The session that the program knows of."""
        self._replies: dict[int, Reply] = {}
        self._is_idle = False
        self._is_quiet = True
        self._asks: dict[type[Any], Callable[[Any], Any]] = {
            Now: lambda ask: time.time_ns() // 1_000_000 + self.skew_ms,
            FreshId: lambda ask: uuid4().hex,
            KnownPositions: self._known_positions,
            Forget: self._forget,
            Tell: self._tell,
            NextNote: self._next_note,
            Sleep: self._sleep,
            NewSession: self._new_session,
            CloseSession: self._close_session,
            Connected: self._connected,
            FetchExactly: self._fetch_exactly,
        }

    def run(self) -> Ended:
        """Take turn after turn until the program is over."""
        program = self.program
        memory = program.first_memory
        self.client.start()
        while True:
            coroutine: Any = program.turn(ZOOKEEPER, program.me, memory)
            try:
                outcome = self._turn(coroutine)
            except ZooKeeperError as error:
                self._turn_failed(error)
                continue
            if isinstance(outcome, Ended):
                self._end(outcome)
                return outcome
            memory = outcome

    def _turn(self, coroutine: Any) -> Any:
        answer: Any = None
        while True:
            try:
                ask = self._next_ask(coroutine, answer)
            except StopIteration as done:
                return done.value
            handler = self._asks.get(type(ask))
            answer = handler(ask) if handler is not None else self._operate(ask)

    def _next_ask(self, coroutine: Any, answer: Any) -> Any:
        return coroutine.send(answer)

    def _turn_failed(self, error: ZooKeeperError) -> None:
        self._write("turn fails", {"error": str(error)})

    def _end(self, ended: Ended) -> None:
        if self.fetching is not None:
            self.fetching.stop()
        self._write("ends", {"why": ended.reason, "failed": ended.failed})
        if self.client.state != "closed":
            self.client.close()

    # --- what comes in -----------------------------------------------------------------

    def _take_in(self, wait_s: float | None) -> bool:
        """Take one thing out of the queue; False when none came in time."""
        try:
            said = self.queue.get() if wait_s is None else self.queue.get(timeout=wait_s)
        except Empty:
            return False
        self._hear(said)
        return True

    def _hear(self, said: Any) -> None:
        if isinstance(said, Ordered):
            self._deliver(said, {"what": said.order.value, "topic": said.topic})
        elif isinstance(said, Quiet):
            self._is_quiet = True
        elif isinstance(said.what, Reply):
            self._replies[said.what.ticket] = said.what
        elif isinstance(said.what, Fired):
            detail = {"what": said.what.what.value, "path": said.what.path}
            if said.life == self.life:
                self._deliver(said.what, detail, said.at_ns)
        else:
            self._note_state(said)

    def _take_in_all(self) -> None:
        while not self.queue.empty():
            self._take_in(0)

    def _note_state(self, said: Said) -> None:
        is_new = said.what == "connected" and said.life != self.life
        detail = {"new": is_new} if said.what == "connected" else {}
        self._write(said.what, detail, said.at_ns)
        if not is_new:
            self._deliver(NOTES[said.what], {"what": said.what}, said.at_ns)

    def _deliver(self, note: Note, detail: dict[str, Any], at_ns: int | None = None) -> None:
        self.inbox.append(note)
        self._write("hears", detail, at_ns)

    def _wait_for(self, is_there: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Take in what comes until something is there, or the time is up."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not is_there():
            left = None if end is None else end - time.monotonic()
            if (left is not None and left <= 0) or not self._take_in(left):
                return is_there()
        return True

    # --- ZooKeeper ---------------------------------------------------------------------

    def _operate(self, ask: Any) -> Any:
        if not isinstance(ask, Operation | Pipelined):
            raise NotAnAsk(self.diary.node, ask)
        if self._is_idle and ask.purpose not in QUIET_PURPOSES:
            self._busy()
        self._step("before", ask)
        self._take_in_all()
        known = len(self.inbox)
        described = described_operation(ask)
        self._write("asks", described)
        batch = ask.operations if isinstance(ask, Pipelined) else (ask,)
        tickets = self.client.submit(batch, self.life)
        zxid = 0
        if isinstance(tickets, Failure):
            answer: Any = tickets
        else:
            self._wait_for(lambda: all(ticket in self._replies for ticket in tickets))
            replies = [self._replies.pop(ticket) for ticket in tickets]
            zxid = zxid_of_writes(batch, replies)
            answer = self._answer_of(ask, [reply.answer for reply in replies])
        self.inbox = without_older_notes(self.inbox, ask, answer, known)
        self._note_answer(ask, described["op"], answer, zxid)
        self._step("after", ask)
        return answer

    def _answer_of(self, ask: Operation[Any] | Pipelined, answers: list[Any]) -> Any:
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        if not isinstance(ask, Pipelined):
            return answers[0]
        for answer in answers:
            if isinstance(answer, Failure) and answer.ends_connection:
                return answer
        return tuple(answers)

    def _note_answer(self, ask: Any, word: str, answer: Any, zxid: int) -> None:
        detail = {"op": word, "for": ask.purpose, "answer": described_answer(answer)}
        self.diary.write("answers", detail, session=self.client.session, zxid=zxid)

    def _step(self, when: str, ask: Operation[Any] | Pipelined) -> None:
        if self.steps is not None:
            for purpose in ask.purposes if isinstance(ask, Pipelined) else (ask.purpose,):
                getattr(self.steps, when)(purpose)

    # --- sessions ----------------------------------------------------------------------

    def _new_session(self, ask: NewSession) -> None:
        self._busy()
        self._wait_for(lambda: self.client.state == "connected")
        self.life = self.client.life
        self._take_in_all()
        self.inbox = deque(note for note in self.inbox if isinstance(note, Ordered))

    def _connected(self, ask: Connected) -> Any:
        self._busy()
        self._wait_for(lambda: self.client.state != "suspended" or self.client.life != self.life)
        if self.client.life != self.life or self.client.state == "expired":
            return Failure(SessionExpired)
        return None

    def _close_session(self, ask: CloseSession) -> None:
        self.client.close()

    # --- notes and time ----------------------------------------------------------------

    def _next_note(self, ask: NextNote) -> Note | None:
        self._take_in_all()
        if not self.inbox and ask.timeout_ms != 0:
            if not self._is_idle:
                self._is_idle = True
                self._write("waits")
            timeout_s = None if ask.timeout_ms is None else ask.timeout_ms / 1000
            self._wait_for(self._need_not_wait, timeout_s)
        if not self.inbox:
            return None
        note = self.inbox.popleft()
        if not is_quiet(note):
            self._busy()
        return note

    def _need_not_wait(self) -> bool:
        return bool(self.inbox)

    def _busy(self) -> None:
        if self._is_idle:
            self._is_idle = False
            self._write("wakes")

    def _sleep(self, ask: Sleep) -> None:
        self._busy()
        self._write("sleeps", {"ms": ask.duration_ms})
        self._wait_for(lambda: False, ask.duration_ms / 1000)

    # --- fetching ----------------------------------------------------------------------

    def _fetch_exactly(self, ask: FetchExactly) -> None:
        if self.fetching is None:
            return
        self._is_quiet = False
        if self.fetching.fetch_exactly(ask.fetches, lambda: self.queue.put(Quiet())):
            self._is_quiet = True
            return
        self._busy()
        self._wait_for(lambda: self._is_quiet)

    def _known_positions(self, ask: KnownPositions) -> Positions:
        return self.fetching.known_positions() if self.fetching is not None else ()

    def _forget(self, ask: Forget) -> None:
        if self.fetching is not None:
            self.fetching.forget(ask.partitions)

    # --- the trace ---------------------------------------------------------------------

    def _tell(self, ask: Tell) -> None:
        self._busy()
        self.diary.write(ask.kind, dict(ask.detail), topic=ask.topic)

    def _write(self, kind: str, detail: Any = None, at_ns: int | None = None) -> None:
        self.diary.write(kind, detail or {}, session=self.client.session, at_ns=at_ns)


def zxid_of_writes(batch: tuple[Operation[Any], ...], replies: list[Reply]) -> int:
    """The zxid of the last write among these; 0 if there is none, since a read has none."""
    zxids = (reply.zxid for one, reply in zip(batch, replies, strict=True) if type(one) in WRITES)
    return max(zxids, default=0)


class NotAnAsk(TypeError):
    """A program awaited something that no world can answer."""

    def __init__(self, node: str, ask: object) -> None:
        super().__init__(
            f"{node} awaited {type(ask).__name__!r}, which is not an operation; protocol code "
            "may only await what model.operations and model.asks provide"
        )
