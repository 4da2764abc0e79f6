"""A small deterministic world for the message path: a clock, processes, brokers, ZooKeeper.

It keeps the promises of `model.threads`, `model.calls` and `model.asks`, and no others. With
a seed the order in which threads run is drawn, one step at a time, so that another thread
may come in at every ask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from random import Random
from typing import Any

from model.answers import Fired, Note, SessionNote
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
    Partition,
    Sleep,
    Tell,
)
from model.calls import Call, CallFailure, Disconnected, HangUp, TimedOut, Unreachable
from model.clients.chunks import Handed
from model.clients.fetching import Fetching
from model.clients.places import Place
from model.errors import ConnectionLoss, Failure, SessionExpired, ZooKeeperError
from model.inbox import without_older_notes
from model.log.errors import LogError
from model.log.requests import MultiProduceRequest, ProduceRequest
from model.log.storage import StorageAsk
from model.operations import Create, Multi, Operation, Pipelined, SetData, ZooKeeper
from model.operations import Delete as DeleteZnode
from model.program import Ended, Program
from model.threads import Drain, Draw, Post, Posted, Put, Remind, Start, Take
from model.trace import Event
from model.zookeeper.machine import (
    Service,
    apply,
    close_session,
    drop_connection,
    open_session,
)
from tests.log_memory import MemoryStorage

NOWHERE = Partition("", "")
HOP_US = 500
"""What a message takes from one process to another."""


class Queue:
    """A queue between the threads of a process."""

    def __init__(self) -> None:
        self.items: deque[tuple[Any, int]] = deque()
        self.held = 0
        self.putters: deque[tuple[Thread, int, Put]] = deque()
        self.takers: deque[tuple[Thread, int]] = deque()


class Connection:
    """A connection of one thread to a broker."""

    def __init__(self, broker: Process) -> None:
        self.broker = broker
        self.is_broken = False
        self.was_swallowed = False
        """Whether something was written into it after it had died."""
        self.waiting: dict[int, tuple[Thread, int]] = {}
        self.number = 0


class Thread:
    """A coroutine at work; the innermost of those it waits for is last."""

    def __init__(self, name: str, process: Process, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.name = name
        self.process = process
        self.stack = [coroutine]
        self.waits = 0
        """Tells what it waits for now from what it waited for before."""
        self.is_over = False
        self.connections: dict[str, Connection] = {}


class Process:
    """A process: its threads, its queues, its inbox, its session."""

    def __init__(self, world: World, name: str, group: str = "") -> None:
        self.world = world
        self.name = name
        self.group = group
        self.is_alive = True
        self.is_paused = False
        self.threads: list[Thread] = []
        self.queues: dict[str, Queue] = {}
        self.posted: dict[str, Any] = {}
        self.inbox: deque[Note] = deque()
        self.hearer: tuple[Thread, int] | None = None
        self.session = 0
        self.is_connected = True
        self.fetching: Fetching | None = None
        self.storage = MemoryStorage()
        self.answer: Callable[[Any], Coroutine[Any, Any, Any]] | None = None
        """What it does with a request, if it is a broker."""
        self.connections: list[Connection] = []
        self.ended: Ended | None = None
        self.swallowed: list[Any] = []
        """Requests that were written to it when it was gone."""

    def start(self, coroutine: Coroutine[Any, Any, Any], name: str = "application") -> Thread:
        """Let a thread run."""
        thread = Thread(name, self, coroutine)
        self.threads.append(thread)
        self.world.resume(thread, None)
        return thread

    def run_program(self, program: Program) -> Thread:
        """Let a program run, turn after turn."""
        return self.start(self._turns(program), "program")

    async def _turns(self, program: Program) -> None:
        memory = program.first_memory
        while True:
            try:
                outcome = await program.turn(ZooKeeper(), program.me, memory)
            except ZooKeeperError as error:
                self.world.write(self.name, "turn fails", error=str(error))
                continue
            if isinstance(outcome, Ended):
                self.ended = outcome
                if self.fetching is not None:
                    self.fetching.end()
                return
            memory = outcome

    def queue(self, name: str) -> Queue:
        """A queue, by its name."""
        return self.queues.setdefault(name, Queue())


class Journal:
    """Writes into the trace what the fetching side of a process does."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def fetching(self, place: Place, does: str) -> None:
        self._write(place, "fetching", does=does, at=place.consumed, stream=place.stream)

    def fails(self, address: str, times: int) -> None:
        world = self.process.world
        world.write(self.process.name, "fetch fails", group=self.process.group, address=address)

    def reset(self, place: Place, offset: int, why: str) -> None:
        self._write(place, "offset reset", to=offset, why=why)

    def handed_on(self, place: Place, handed: Handed) -> None:
        lots = [handed.lot] if handed.lot is not None else []
        stream = int(place.queue.split()[1])
        self._write(place, "consumed", lots=lots, stream=stream)

    def _write(self, place: Place, kind: str, **detail: Any) -> None:
        process = self.process
        process.world.write(
            process.name, kind, group=process.group, partition=place.partition, **detail
        )


class World:
    """Everything, and the clock."""

    def __init__(self, seed: int | None = None) -> None:
        self.now_us = 0
        self.order = None if seed is None else Random(seed)
        self.chance = Random(seed or 0)
        self.calendar: list[tuple[int, int, Callable[[], None]]] = []
        self.ready: list[tuple[Thread, Any]] = []
        self.processes: dict[str, Process] = {}
        self.listening: dict[str, Callable[[], Process | None]] = {}
        self.service = Service()
        self.sessions: dict[int, Process] = {}
        self.rows: list[Event] = []
        self.names = 0
        self.zookeeper_delays: dict[str, int] = {}
        """Process -> how much longer its next write takes, in microseconds."""
        self._numbers = 0

    # --- what happens ----------------------------------------------------------------------

    def process(self, name: str, group: str = "") -> Process:
        """A new process of this name, in place of any before it."""
        made = self.processes[name] = Process(self, name, group)
        return made

    def listen(self, address: str, process: Process) -> None:
        """From now on this process listens there."""
        self.listening[address] = lambda: process if process.is_alive else None

    def kill(self, process: Process) -> None:
        """End a process at once; its session lives on until it is expired."""
        process.is_alive = False
        for thread in process.threads:
            thread.is_over = True
            for coroutine in reversed(thread.stack):
                coroutine.close()
        if process.fetching is not None:
            process.fetching.end()
        for connection in process.connections:
            self.break_connection(connection)

    def break_connection(self, connection: Connection) -> None:
        """Whoever waits for a response learns that none comes."""
        connection.is_broken = True
        waiting, connection.waiting = connection.waiting, {}
        for thread, waits in waiting.values():
            self.answer_later(thread, waits, CallFailure(Disconnected, thread.name), HOP_US)

    def pause(self, process: Process) -> None:
        """Let a process stand still."""
        process.is_paused = True

    def unpause(self, process: Process) -> None:
        """Let it go on."""
        process.is_paused = False

    def expire(self, process: Process) -> None:
        """End the session of a process."""
        self._end_session(process, "session expired")
        process.inbox.append(SessionNote.EXPIRED)
        self._ring(process)

    # --- time ------------------------------------------------------------------------------

    def at(self, delay_us: int, call: Callable[[], None]) -> None:
        """Do something later."""
        self._numbers += 1
        heappush(self.calendar, (self.now_us + delay_us, self._numbers, call))

    def run(self, for_ms: int = 60_000) -> None:
        """Let everything happen for so long, or until nothing is to happen any more."""
        end_us = self.now_us + for_ms * 1000
        while True:
            while (movable := self._movable()) is not None:
                self._step(*self.ready.pop(movable))
            if not self.calendar or self.calendar[0][0] > end_us:
                break
            self.now_us = self.calendar[0][0]
            while self.calendar and self.calendar[0][0] == self.now_us:
                heappop(self.calendar)[2]()
        self.now_us = end_us

    def _movable(self) -> int | None:
        """Which of the threads that can go on is the next; None if there is none."""
        movable = [at for at, (one, _) in enumerate(self.ready) if not one.process.is_paused]
        if not movable:
            return None
        return movable[0] if self.order is None else self.order.choice(movable)

    def resume(self, thread: Thread, answer: Any) -> None:
        """A thread may go on with an answer."""
        thread.waits += 1
        if not thread.is_over:
            self.ready.append((thread, answer))

    def answer_later(self, thread: Thread, waits: int, answer: Any, delay_us: int) -> None:
        """Answer a thread later, if it still waits for that."""

        def answered() -> None:
            if thread.waits == waits:
                self.resume(thread, answer)

        self.at(delay_us, answered)

    def _step(self, thread: Thread, answer: Any) -> None:
        if thread.is_over:
            return
        try:
            ask: Any = thread.stack[-1].send(answer)
        except StopIteration as done:
            thread.stack.pop()
            if thread.stack:
                self.resume(thread, done.value)
            else:
                thread.is_over = True
            return
        kind = type(ask)
        if isinstance(ask, StorageAsk):
            self._answer_storage(thread, ask)
        elif isinstance(ask, Operation | Pipelined):
            self._operate(thread, ask)
        else:
            ANSWERS[kind](self, thread, ask)

    def _answer_storage(self, thread: Thread, ask: Any) -> None:
        storage = thread.process.storage
        storage.now_ms = self.now_us // 1000
        self.resume(thread, storage.answer(ask))

    # --- the trace -------------------------------------------------------------------------

    def write(
        self,
        node: str,
        kind: str,
        *,
        group: str = "",
        partition: Partition = NOWHERE,
        **detail: Any,
    ) -> None:
        """Write an event."""
        row = (self.now_us, node, kind, 0, group, *partition, 0, detail)
        self.rows.append(Event(len(self.rows), *row))

    # --- in the process --------------------------------------------------------------------

    def _sleep(self, thread: Thread, ask: Sleep) -> None:
        if ask.duration_ms:
            self.answer_later(thread, thread.waits, None, ask.duration_ms * 1000)
        elif self.order is None:
            self.resume(thread, None)
        else:  # others go first; how long that takes is theirs to say
            self.answer_later(thread, thread.waits, None, self.order.randrange(2000))

    def _now(self, thread: Thread, ask: Now) -> None:
        self.resume(thread, self.now_us // 1000)

    def _fresh_id(self, thread: Thread, ask: FreshId) -> None:
        self.names += 1
        self.resume(thread, f"{self.names:032x}")

    def _tell(self, thread: Thread, ask: Tell) -> None:
        process, detail = thread.process, dict(ask.detail)
        partition = Partition(ask.topic, detail.pop("partition", ""))
        self.write(process.name, ask.kind, group=process.group, partition=partition, **detail)
        self.resume(thread, None)

    def _draw(self, thread: Thread, ask: Draw) -> None:
        self.resume(thread, self.chance.getrandbits(ask.bits))

    def _start(self, thread: Thread, ask: Start) -> None:
        thread.process.start(ask.thread(), ask.name)
        self.resume(thread, None)

    def _post(self, thread: Thread, ask: Post) -> None:
        thread.process.posted[ask.name] = ask.value
        self.resume(thread, None)

    def _posted(self, thread: Thread, ask: Posted) -> None:
        self.resume(thread, thread.process.posted.get(ask.name))

    def _remind(self, thread: Thread, ask: Remind) -> None:
        thread.process.inbox.append(ask.note)
        self._ring(thread.process)
        self.resume(thread, None)

    # --- queues ----------------------------------------------------------------------------

    def _put(self, thread: Thread, ask: Put) -> None:
        queue = thread.process.queue(ask.queue)
        queue.putters.append((thread, thread.waits, ask))
        self._settle(queue)
        self._expire_wait(thread, ask.timeout_ms, queue.putters, False)

    def _take(self, thread: Thread, ask: Take) -> None:
        queue = thread.process.queue(ask.queue)
        queue.takers.append((thread, thread.waits))
        self._settle(queue)
        self._expire_wait(thread, ask.timeout_ms, queue.takers, None)

    def _drain(self, thread: Thread, ask: Drain) -> None:
        queue = thread.process.queue(ask.queue)
        taken = tuple(item for item, _ in queue.items)
        queue.items.clear()
        queue.held = 0
        self.resume(thread, taken)
        self._settle(queue)

    def _settle(self, queue: Queue) -> None:
        """Let in what there is room for, and out what somebody waits for."""
        while True:
            if queue.takers and queue.items:
                taker, _ = queue.takers.popleft()
                item, size = queue.items.popleft()
                queue.held -= size
                self.resume(taker, item)
            elif queue.putters and self._has_room(queue, queue.putters[0][2]):
                putter, _, ask = queue.putters.popleft()
                queue.items.append((ask.item, ask.size))
                queue.held += ask.size
                self.resume(putter, True)
            else:
                return

    def _has_room(self, queue: Queue, ask: Put) -> bool:
        return not queue.items or queue.held + ask.size <= ask.bound

    def _expire_wait(
        self, thread: Thread, timeout_ms: int | None, line: deque[Any], answer: Any
    ) -> None:
        """Give up waiting in a line when the time is up."""
        waits = thread.waits
        waiting = next((one for one in line if one[0] is thread and one[1] == waits), None)
        if waiting is None or timeout_ms is None:
            return

        def over() -> None:
            if thread.waits == waits:
                line.remove(waiting)
                self.resume(thread, answer)

        if timeout_ms == 0:
            over()
        else:
            self.at(timeout_ms * 1000, over)

    # --- calls -----------------------------------------------------------------------------

    def _call(self, thread: Thread, ask: Call) -> None:
        connection = thread.connections.get(ask.address)
        if connection is None:
            found = self.listening.get(ask.address, lambda: None)()
            if found is None:
                failure = CallFailure(Unreachable, ask.address)
                self.answer_later(thread, thread.waits, failure, 2 * HOP_US)
                return
            connection = thread.connections[ask.address] = Connection(found)
            found.connections.append(connection)
            found.start(self._serve(connection), f"serves {thread.process.name}")
        connection.number += 1
        number = connection.number
        if isinstance(ask.request, ProduceRequest | MultiProduceRequest):
            self._send_produce(thread, ask, connection, number)
        elif connection.is_broken:
            del thread.connections[ask.address]
            self.answer_later(
                thread, thread.waits, CallFailure(Disconnected, ask.address), HOP_US
            )
        else:
            self._send_question(thread, ask, connection, number)

    def _send_produce(
        self, thread: Thread, ask: Call, connection: Connection, number: int
    ) -> None:
        if not connection.is_broken:
            self._deliver(connection, number, ask.request)
        elif connection.was_swallowed:
            del thread.connections[ask.address]
            self.resume(thread, CallFailure(Disconnected, ask.address))
            return
        else:
            connection.was_swallowed = True
            connection.broker.swallowed.append(ask.request)
        self.resume(thread, None)

    def _send_question(
        self, thread: Thread, ask: Call, connection: Connection, number: int
    ) -> None:
        waits = thread.waits
        connection.waiting[number] = (thread, waits)
        self._deliver(connection, number, ask.request)

        def timed_out() -> None:
            if connection.waiting.pop(number, None) is not None:
                connection.is_broken = True
                thread.connections.pop(ask.address, None)
                self.resume(thread, CallFailure(TimedOut, ask.address))

        self.at(ask.timeout_ms * 1000, timed_out)

    def _deliver(self, connection: Connection, number: int, request: Any) -> None:
        """Carry a request to its broker; one that arrives at a dead one is gone."""

        def arrived() -> None:
            queue = connection.broker.queue(f"requests {id(connection)}")
            queue.items.append(((number, request), 1))
            self._settle(queue)

        self.at(HOP_US, arrived)

    async def _serve(self, connection: Connection) -> None:
        """What a broker does for one connection: one request after the other."""
        broker = connection.broker
        assert broker.answer is not None, "whoever listens answers"
        while not connection.is_broken:
            number, request = await Take(f"requests {id(connection)}")
            try:
                response = await broker.answer(request)
            except LogError as error:
                self.write(broker.name, "refuses", why=str(error))
                self.break_connection(connection)
                return
            waiting = connection.waiting.pop(number, None)
            if waiting is not None:
                self.answer_later(*waiting, response, HOP_US)

    def _hang_up(self, thread: Thread, ask: HangUp) -> None:
        thread.connections.pop(ask.address, None)
        self.resume(thread, None)

    # --- fetching --------------------------------------------------------------------------

    def _fetch_exactly(self, thread: Thread, ask: FetchExactly) -> None:
        fetching = thread.process.fetching
        assert fetching is not None, "whoever fetches has a fetching side"
        thread.stack.append(fetching.fetch_exactly(ask.fetches))
        self.resume(thread, None)

    def _known_positions(self, thread: Thread, ask: KnownPositions) -> None:
        fetching = thread.process.fetching
        self.resume(thread, fetching.known_positions() if fetching is not None else ())

    def _forget(self, thread: Thread, ask: Forget) -> None:
        if thread.process.fetching is not None:
            thread.process.fetching.forget(ask.partitions)
        self.resume(thread, None)

    # --- ZooKeeper -------------------------------------------------------------------------

    def _operate(self, thread: Thread, ask: Any) -> None:
        process, waits = thread.process, thread.waits
        known = len(process.inbox)
        delay_us = HOP_US + self.zookeeper_delays.pop(process.name, 0)

        def arrived() -> None:
            answer = self._applied(process, ask)
            process.inbox = without_older_notes(process.inbox, ask, answer, known)
            self.answer_later(thread, waits, answer, HOP_US)

        if not process.is_connected:
            failure = Failure(ConnectionLoss, getattr(ask, "path", ""), sent=False)
            self.resume(thread, failure)
        else:
            self.at(delay_us, arrived)

    def _applied(self, process: Process, ask: Any) -> Any:
        if process.session not in self.sessions:
            return Failure(SessionExpired)
        if isinstance(ask, Pipelined):
            return tuple(self._apply(process, one) for one in ask.operations)
        return self._apply(process, ask)

    def _apply(self, process: Process, operation: Any) -> Any:
        before = self.service
        done = apply(before, process.session, operation, now_ms=self.now_us // 1000)
        self.service = done.service
        if type(done.answer) is not Failure:
            self._write_applied(process, operation)
        self._notify(done.fired)
        return done.answer

    def _write_applied(self, process: Process, operation: Any) -> None:
        parts = operation.operations if isinstance(operation, Multi) else (operation,)
        words: dict[Any, str] = {Create: "created", SetData: "changed", DeleteZnode: "deleted"}
        did = [
            [words[type(one)], one.path, 0, (getattr(one, "data", None) or b"").decode()]
            for one in parts
            if type(one) in words
        ]
        if did:
            self.write(process.name, "applied", did=did, by=process.name)

    def _notify(self, fired: tuple[tuple[int, Fired], ...]) -> None:
        for session, note in fired:
            listener = self.sessions.get(session)
            if listener is not None and listener.is_alive:
                listener.inbox.append(note)
                self._ring(listener)

    def _new_session(self, thread: Thread, ask: NewSession) -> None:
        process = thread.process
        self._numbers += 1
        process.session = self._numbers
        self.sessions[process.session] = process
        self.service = open_session(self.service, process.session)
        kept = [one for one in process.inbox if not isinstance(one, Fired | SessionNote)]
        process.inbox = deque(kept)
        process.is_connected = True
        self.resume(thread, None)

    def _close_session(self, thread: Thread, ask: CloseSession) -> None:
        self._end_session(thread.process, "session closed")
        self.resume(thread, None)

    def _end_session(self, process: Process, kind: str) -> None:
        session = process.session
        ephemerals = [
            path for path, znode in self.service.tree.nodes.items() if znode.owner == session
        ]
        done = close_session(self.service, session)
        self.service = done.service
        del self.sessions[session]
        self.write(process.name, kind, did=[["deleted", path, session] for path in ephemerals])
        self._notify(done.fired)

    def disconnect(self, process: Process) -> None:
        """Break the connection of a process to ZooKeeper."""
        self.service = drop_connection(self.service, process.session)
        process.is_connected = False
        process.inbox.append(SessionNote.SUSPENDED)
        self._ring(process)

    def reconnect(self, process: Process) -> None:
        """The connection is back, with the same session and without watches."""
        process.is_connected = True
        process.inbox.append(SessionNote.CONNECTED)
        self._ring(process)

    def _connected(self, thread: Thread, ask: Connected) -> None:
        if thread.process.session not in self.sessions:
            self.resume(thread, Failure(SessionExpired))
        elif thread.process.is_connected:
            self.resume(thread, None)
        else:
            waits = thread.waits

            def look() -> None:
                if thread.waits == waits:
                    self._connected(thread, ask)

            self.at(1000, look)

    def _next_note(self, thread: Thread, ask: NextNote) -> None:
        process = thread.process
        if process.inbox or ask.timeout_ms == 0:
            self.resume(thread, process.inbox.popleft() if process.inbox else None)
            return
        process.hearer = (thread, thread.waits)
        if ask.timeout_ms is not None:
            self.answer_later(thread, thread.waits, None, ask.timeout_ms * 1000)

    def _ring(self, process: Process) -> None:
        """Wake whoever waits for a note."""
        if process.hearer is None:
            return
        (thread, waits), process.hearer = process.hearer, None
        if thread.waits == waits:
            self.resume(thread, process.inbox.popleft())


ANSWERS: dict[type[Any], Callable[[World, Thread, Any], None]] = {
    Sleep: World._sleep,
    Now: World._now,
    FreshId: World._fresh_id,
    Tell: World._tell,
    Draw: World._draw,
    Start: World._start,
    Post: World._post,
    Posted: World._posted,
    Remind: World._remind,
    Put: World._put,
    Take: World._take,
    Drain: World._drain,
    Call: World._call,
    HangUp: World._hang_up,
    FetchExactly: World._fetch_exactly,
    KnownPositions: World._known_positions,
    Forget: World._forget,
    NextNote: World._next_note,
    NewSession: World._new_session,
    CloseSession: World._close_session,
    Connected: World._connected,
}
