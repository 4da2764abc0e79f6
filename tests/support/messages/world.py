"""A small deterministic world for the message path: a clock, processes, brokers, ZooKeeper.

It has the guarantees of `model.actor.tasks`, `rpc` and `effects`, and no others. With a seed
the order of tasks is random, one step at a time, so that another task may run at every effect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from random import Random
from typing import Any

from tests.support.log.memory_storage import MemoryStorage
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
    Partition,
    Sleep,
)
from watchkeeper.model.actor.errors import ConnectionLoss, Failure, SessionExpired, ZooKeeperError
from watchkeeper.model.actor.events import Fired, Notification, SessionEvent
from watchkeeper.model.actor.inbox import without_superseded
from watchkeeper.model.actor.operations import (
    Create,
    Multi,
    Operation,
    Pipelined,
    SetData,
    ZooKeeper,
)
from watchkeeper.model.actor.operations import Delete as DeleteZnode
from watchkeeper.model.actor.program import Ended, Program
from watchkeeper.model.actor.rpc import (
    Call,
    CallFailure,
    Disconnected,
    HangUp,
    TimedOut,
    Unreachable,
)
from watchkeeper.model.actor.tasks import Drain, Draw, Post, Posted, Put, Remind, Start, Take
from watchkeeper.model.clients.consumer.chunks import Delivery
from watchkeeper.model.clients.consumer.fetcher import Fetcher
from watchkeeper.model.clients.consumer.positions import FetchPosition
from watchkeeper.model.log.format.errors import LogError
from watchkeeper.model.log.format.requests import MultiProduceRequest, ProduceRequest
from watchkeeper.model.log.storage import StorageEffect
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Event
from watchkeeper.model.zookeeper.standalone import (
    Server,
    apply,
    close_session,
    drop_connection,
    open_session,
)

NOWHERE = Partition("", "")
HOP_US = 500
"""The time of a message from one process to another."""


class Queue:
    """A queue between the tasks of a process."""

    def __init__(self) -> None:
        self.items: deque[tuple[Any, int]] = deque()
        self.held = 0
        self.putters: deque[tuple[Task, int, Put]] = deque()
        self.takers: deque[tuple[Task, int]] = deque()


class Connection:
    """A connection of one task to a broker."""

    def __init__(self, broker: Process) -> None:
        self.broker = broker
        self.is_broken = False
        self.was_swallowed = False
        """Whether something was written into it after it had died."""
        self.waiting: dict[int, tuple[Task, int]] = {}
        self.number = 0


class Task:
    """A running coroutine, and those that it awaits; the innermost is last."""

    def __init__(self, name: str, process: Process, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.name = name
        self.process = process
        self.stack = [coroutine]
        self.waits = 0
        """Distinguishes its present wait from earlier ones."""
        self.is_over = False
        self.connections: dict[str, Connection] = {}


class Process:
    """A process: its tasks, its queues, its inbox, its session."""

    def __init__(self, world: World, name: str, group: str = "") -> None:
        self.world = world
        self.name = name
        self.group = group
        self.is_alive = True
        self.is_paused = False
        self.tasks: list[Task] = []
        self.queues: dict[str, Queue] = {}
        self.posted: dict[str, Any] = {}
        self.inbox: deque[Notification] = deque()
        self.receiver: tuple[Task, int] | None = None
        self.session = 0
        self.is_connected = True
        self.fetcher: Fetcher | None = None
        self.storage = MemoryStorage()
        self.answer: Callable[[Any], Coroutine[Any, Any, Any]] | None = None
        """What it does with a request, if it is a broker."""
        self.connections: list[Connection] = []
        self.ended: Ended | None = None
        self.swallowed: list[Any] = []
        """Requests that were written to it when it was gone."""

    def start(self, coroutine: Coroutine[Any, Any, Any], name: str = "application") -> Task:
        """Start a task."""
        task = Task(name, self, coroutine)
        self.tasks.append(task)
        self.world.resume(task, None)
        return task

    def run_program(self, program: Program) -> Task:
        """Run a program, turn after turn."""
        return self.start(self._turns(program), "program")

    async def _turns(self, program: Program) -> None:
        state = program.initial_state
        while True:
            try:
                outcome = await program.turn(ZooKeeper(), program.me, state)
            except ZooKeeperError as error:
                self.world.write(self.name, EventKind.TURN_FAILED, error=str(error))
                continue
            if isinstance(outcome, Ended):
                self.ended = outcome
                if self.fetcher is not None:
                    self.fetcher.stop()
                return
            state = outcome

    def queue(self, name: str) -> Queue:
        """A queue, by its name."""
        return self.queues.setdefault(name, Queue())


class TraceWriter:
    """Writes the events of a process's fetcher to the trace."""

    def __init__(self, process: Process) -> None:
        self.process = process

    def on_fetching(self, position: FetchPosition, does: str) -> None:
        self._write(
            position,
            EventKind.FETCHING,
            does=does,
            at=position.consumed_offset,
            stream=position.stream,
        )

    def on_failure(self, address: str, times: int) -> None:
        world = self.process.world
        world.write(
            self.process.name, EventKind.FETCH_FAILED, group=self.process.group, address=address
        )

    def on_reset(self, position: FetchPosition, offset: int, why: str) -> None:
        self._write(position, EventKind.OFFSET_RESET, to=offset, why=why)

    def on_delivery(self, position: FetchPosition, handed: Delivery) -> None:
        ranges = [handed.message_range] if handed.message_range is not None else []
        stream = int(position.queue.split()[1])
        self._write(position, EventKind.CONSUMED, ranges=ranges, stream=stream)

    def _write(self, position: FetchPosition, kind: str, **detail: Any) -> None:
        process = self.process
        process.world.write(
            process.name, kind, group=process.group, partition=position.partition, **detail
        )


class World:
    """All processes, the brokers, ZooKeeper, and the clock."""

    def __init__(self, seed: int | None = None) -> None:
        self.now_us = 0
        self.order = None if seed is None else Random(seed)
        self.chance = Random(seed or 0)
        self.calendar: list[tuple[int, int, Callable[[], None]]] = []
        self.ready: list[tuple[Task, Any]] = []
        self.processes: dict[str, Process] = {}
        self.listening: dict[str, Callable[[], Process | None]] = {}
        self.server = Server()
        self.sessions: dict[int, Process] = {}
        self.rows: list[Event] = []
        self.refusals: dict[tuple[str, str], Failure] = {}
        """Process and purpose -> the failure of its next request of that purpose."""
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
        """Make a process listen at an address."""
        self.listening[address] = lambda: process if process.is_alive else None

    def kill(self, process: Process) -> None:
        """Kill a process; its session survives until `expire`."""
        process.is_alive = False
        for task in process.tasks:
            task.is_over = True
            for coroutine in reversed(task.stack):
                coroutine.close()
        if process.fetcher is not None:
            process.fetcher.stop()
        for connection in process.connections:
            self.break_connection(connection)

    def break_connection(self, connection: Connection) -> None:
        """Break a connection: pending requests fail with `Disconnected`."""
        connection.is_broken = True
        waiting, connection.waiting = connection.waiting, {}
        for task, waits in waiting.values():
            self.answer_later(task, waits, CallFailure(Disconnected, task.name), HOP_US)

    def pause(self, process: Process) -> None:
        """Pause a process."""
        process.is_paused = True

    def unpause(self, process: Process) -> None:
        """Resume a paused process."""
        process.is_paused = False

    def expire(self, process: Process) -> None:
        """End the session of a process."""
        self._end_session(process, EventKind.SESSION_EXPIRED)
        process.inbox.append(SessionEvent.EXPIRED)
        self._ring(process)

    # --- time ------------------------------------------------------------------------------

    def at(self, delay_us: int, call: Callable[[], None]) -> None:
        """Schedule a call."""
        self._numbers += 1
        heappush(self.calendar, (self.now_us + delay_us, self._numbers, call))

    def run(self, for_ms: int = 60_000) -> None:
        """Run for this long, or until nothing is scheduled any more."""
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
        """Choose the next runnable task; None without one."""
        movable = [
            at for at, (waiting, _) in enumerate(self.ready) if not waiting.process.is_paused
        ]
        if not movable:
            return None
        return movable[0] if self.order is None else self.order.choice(movable)

    def resume(self, task: Task, answer: Any) -> None:
        """Make a task runnable, with an answer."""
        task.waits += 1
        if not task.is_over:
            self.ready.append((task, answer))

    def answer_later(self, task: Task, waits: int, answer: Any, delay_us: int) -> None:
        """Answer a task later, if it still waits for that."""

        def answered() -> None:
            if task.waits == waits:
                self.resume(task, answer)

        self.at(delay_us, answered)

    def _step(self, task: Task, answer: Any) -> None:
        if task.is_over:
            return
        try:
            effect: Any = task.stack[-1].send(answer)
        except StopIteration as done:
            task.stack.pop()
            if task.stack:
                self.resume(task, done.value)
            else:
                task.is_over = True
            return
        kind = type(effect)
        if isinstance(effect, StorageEffect):
            self._answer_storage(task, effect)
        elif isinstance(effect, Operation | Pipelined):
            self._operate(task, effect)
        else:
            ANSWERS[kind](self, task, effect)

    def _answer_storage(self, task: Task, effect: Any) -> None:
        storage = task.process.storage
        storage.now_ms = self.now_us // 1000
        self.resume(task, storage.answer(effect))

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

    def _sleep(self, task: Task, effect: Sleep) -> None:
        if effect.duration_ms:
            self.answer_later(task, task.waits, None, effect.duration_ms * 1000)
        elif self.order is None:
            self.resume(task, None)
        else:  # others go first; how long that takes is theirs to say
            self.answer_later(task, task.waits, None, self.order.randrange(2000))

    def _now(self, task: Task, effect: Now) -> None:
        self.resume(task, self.now_us // 1000)

    def _fresh_id(self, task: Task, effect: FreshId) -> None:
        self.names += 1
        self.resume(task, f"{self.names:032x}")

    def _emit(self, task: Task, effect: Emit) -> None:
        process, detail = task.process, dict(effect.detail)
        partition = Partition(effect.topic, detail.pop("partition", ""))
        self.write(process.name, effect.kind, group=process.group, partition=partition, **detail)
        self.resume(task, None)

    def _draw(self, task: Task, effect: Draw) -> None:
        self.resume(task, self.chance.getrandbits(effect.bits))

    def _start(self, task: Task, effect: Start) -> None:
        task.process.start(effect.thread(), effect.name)
        self.resume(task, None)

    def _post(self, task: Task, effect: Post) -> None:
        task.process.posted[effect.name] = effect.value
        self.resume(task, None)

    def _posted(self, task: Task, effect: Posted) -> None:
        self.resume(task, task.process.posted.get(effect.name))

    def _remind(self, task: Task, effect: Remind) -> None:
        task.process.inbox.append(effect.notification)
        self._ring(task.process)
        self.resume(task, None)

    # --- queues ----------------------------------------------------------------------------

    def _put(self, task: Task, effect: Put) -> None:
        queue = task.process.queue(effect.queue)
        queue.putters.append((task, task.waits, effect))
        self._match(queue)
        self._expire_wait(task, effect.timeout_ms, queue.putters, False)

    def _take(self, task: Task, effect: Take) -> None:
        queue = task.process.queue(effect.queue)
        queue.takers.append((task, task.waits))
        self._match(queue)
        self._expire_wait(task, effect.timeout_ms, queue.takers, None)

    def _drain(self, task: Task, effect: Drain) -> None:
        queue = task.process.queue(effect.queue)
        taken = tuple(item for item, _ in queue.items)
        queue.items.clear()
        queue.held = 0
        self.resume(task, taken)
        self._match(queue)

    def _match(self, queue: Queue) -> None:
        """Match takers with items, and putters with room."""
        while True:
            if queue.takers and queue.items:
                taker, _ = queue.takers.popleft()
                item, size = queue.items.popleft()
                queue.held -= size
                self.resume(taker, item)
            elif queue.putters and self._has_room(queue, queue.putters[0][2]):
                putter, _, effect = queue.putters.popleft()
                queue.items.append((effect.item, effect.size))
                queue.held += effect.size
                self.resume(putter, True)
            else:
                return

    def _has_room(self, queue: Queue, effect: Put) -> bool:
        return not queue.items or queue.held + effect.size <= effect.bound

    def _expire_wait(
        self, task: Task, timeout_ms: int | None, line: deque[Any], answer: Any
    ) -> None:
        """Give up waiting in a line when the time is up."""
        waits = task.waits
        waiting = next((pair for pair in line if pair[0] is task and pair[1] == waits), None)
        if waiting is None or timeout_ms is None:
            return

        def over() -> None:
            if task.waits == waits:
                line.remove(waiting)
                self.resume(task, answer)

        if timeout_ms == 0:
            over()
        else:
            self.at(timeout_ms * 1000, over)

    # --- calls -----------------------------------------------------------------------------

    def _call(self, task: Task, effect: Call) -> None:
        connection = task.connections.get(effect.address)
        if connection is None:
            found = self.listening.get(effect.address, lambda: None)()
            if found is None:
                failure = CallFailure(Unreachable, effect.address)
                self.answer_later(task, task.waits, failure, 2 * HOP_US)
                return
            connection = task.connections[effect.address] = Connection(found)
            found.connections.append(connection)
            found.start(self._serve(connection), f"serves {task.process.name}")
        connection.number += 1
        number = connection.number
        if isinstance(effect.request, ProduceRequest | MultiProduceRequest):
            self._send_produce(task, effect, connection, number)
        elif connection.is_broken:
            del task.connections[effect.address]
            self.answer_later(task, task.waits, CallFailure(Disconnected, effect.address), HOP_US)
        else:
            self._send_question(task, effect, connection, number)

    def _send_produce(
        self, task: Task, effect: Call, connection: Connection, number: int
    ) -> None:
        if not connection.is_broken:
            self._deliver(connection, number, effect.request)
        elif connection.was_swallowed:
            del task.connections[effect.address]
            self.resume(task, CallFailure(Disconnected, effect.address))
            return
        else:
            connection.was_swallowed = True
            connection.broker.swallowed.append(effect.request)
        self.resume(task, None)

    def _send_question(
        self, task: Task, effect: Call, connection: Connection, number: int
    ) -> None:
        waits = task.waits
        connection.waiting[number] = (task, waits)
        self._deliver(connection, number, effect.request)

        def timed_out() -> None:
            if connection.waiting.pop(number, None) is not None:
                connection.is_broken = True
                task.connections.pop(effect.address, None)
                self.resume(task, CallFailure(TimedOut, effect.address))

        self.at(effect.timeout_ms * 1000, timed_out)

    def _deliver(self, connection: Connection, number: int, request: Any) -> None:
        """Deliver a request to its broker; one that arrives at a dead broker is lost."""

        def arrived() -> None:
            queue = connection.broker.queue(f"requests {id(connection)}")
            queue.items.append(((number, request), 1))
            self._match(queue)

        self.at(HOP_US, arrived)

    async def _serve(self, connection: Connection) -> None:
        """Serve one connection: one request after the other."""
        broker = connection.broker
        assert broker.answer is not None, "a listening process answers"
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

    def _hang_up(self, task: Task, effect: HangUp) -> None:
        task.connections.pop(effect.address, None)
        self.resume(task, None)

    # --- fetching --------------------------------------------------------------------------

    def _fetch_exactly(self, task: Task, effect: FetchExactly) -> None:
        fetcher = task.process.fetcher
        assert fetcher is not None, "a process that fetches has a fetcher"
        task.stack.append(fetcher.fetch_exactly(effect.fetches))
        self.resume(task, None)

    def _known_positions(self, task: Task, effect: KnownPositions) -> None:
        fetcher = task.process.fetcher
        self.resume(task, fetcher.known_positions() if fetcher is not None else ())

    def _forget(self, task: Task, effect: Forget) -> None:
        if task.process.fetcher is not None:
            task.process.fetcher.forget(effect.partitions)
        self.resume(task, None)

    # --- ZooKeeper -------------------------------------------------------------------------

    def _operate(self, task: Task, effect: Any) -> None:
        process, waits = task.process, task.waits
        known = len(process.inbox)
        delay_us = HOP_US + self.zookeeper_delays.pop(process.name, 0)

        def arrived() -> None:
            answer = self._applied(process, effect)
            process.inbox = without_superseded(process.inbox, effect, answer, known)
            self.answer_later(task, waits, answer, HOP_US)

        refusal = self.refusals.pop((process.name, getattr(effect, "purpose", "")), None)
        if refusal is not None:
            self.answer_later(task, waits, refusal, HOP_US)
        elif not process.is_connected:
            failure = Failure(ConnectionLoss, getattr(effect, "path", ""), sent=False)
            self.resume(task, failure)
        else:
            self.at(delay_us, arrived)

    def _applied(self, process: Process, effect: Any) -> Any:
        if process.session not in self.sessions:
            return Failure(SessionExpired)
        if isinstance(effect, Pipelined):
            return tuple(self._apply(process, operation) for operation in effect.operations)
        return self._apply(process, effect)

    def _apply(self, process: Process, operation: Any) -> Any:
        before = self.server
        done = apply(before, process.session, operation, now_ms=self.now_us // 1000)
        self.server = done.server
        if type(done.answer) is not Failure:
            self._write_applied(process, operation)
        self._notify(done.fired)
        return done.answer

    def _write_applied(self, process: Process, operation: Any) -> None:
        parts = operation.operations if isinstance(operation, Multi) else (operation,)
        words: dict[Any, str] = {Create: "created", SetData: "changed", DeleteZnode: "deleted"}
        did = [
            [words[type(part)], part.path, 0, (getattr(part, "data", None) or b"").decode()]
            for part in parts
            if type(part) in words
        ]
        if did:
            self.write(process.name, EventKind.APPLIED, did=did, by=process.name)

    def _notify(self, fired: tuple[tuple[int, Fired], ...]) -> None:
        for session, notification in fired:
            listener = self.sessions.get(session)
            if listener is not None and listener.is_alive:
                listener.inbox.append(notification)
                self._ring(listener)

    def _new_session(self, task: Task, effect: NewSession) -> None:
        process = task.process
        self._numbers += 1
        process.session = self._numbers
        self.sessions[process.session] = process
        self.server = open_session(self.server, process.session)
        kept = [
            notification
            for notification in process.inbox
            if not isinstance(notification, Fired | SessionEvent)
        ]
        process.inbox = deque(kept)
        process.is_connected = True
        self.resume(task, None)

    def _close_session(self, task: Task, effect: CloseSession) -> None:
        self._end_session(task.process, EventKind.SESSION_CLOSED)
        self.resume(task, None)

    def _end_session(self, process: Process, kind: str) -> None:
        session = process.session
        ephemerals = [
            path for path, znode in self.server.tree.nodes.items() if znode.owner == session
        ]
        done = close_session(self.server, session)
        self.server = done.server
        del self.sessions[session]
        self.write(process.name, kind, did=[["deleted", path, session] for path in ephemerals])
        self._notify(done.fired)

    def disconnect(self, process: Process) -> None:
        """Break the connection of a process to ZooKeeper."""
        self.server = drop_connection(self.server, process.session)
        process.is_connected = False
        process.inbox.append(SessionEvent.SUSPENDED)
        self._ring(process)

    def reconnect(self, process: Process) -> None:
        """Restore the connection, with the same session and without watches."""
        process.is_connected = True
        process.inbox.append(SessionEvent.CONNECTED)
        self._ring(process)

    def _connected(self, task: Task, effect: Connected) -> None:
        if task.process.session not in self.sessions:
            self.resume(task, Failure(SessionExpired))
        elif task.process.is_connected:
            self.resume(task, None)
        else:
            waits = task.waits

            def look() -> None:
                if task.waits == waits:
                    self._connected(task, effect)

            self.at(1000, look)

    def _next_event(self, task: Task, effect: NextEvent) -> None:
        process = task.process
        if process.inbox or effect.timeout_ms == 0:
            self.resume(task, process.inbox.popleft() if process.inbox else None)
            return
        process.receiver = (task, task.waits)
        if effect.timeout_ms is not None:
            self.answer_later(task, task.waits, None, effect.timeout_ms * 1000)

    def _ring(self, process: Process) -> None:
        """Wake the task that waits for an event."""
        if process.receiver is None:
            return
        (task, waits), process.receiver = process.receiver, None
        if task.waits == waits:
            self.resume(task, process.inbox.popleft())


ANSWERS: dict[type[Any], Callable[[World, Task, Any], None]] = {
    Sleep: World._sleep,
    Now: World._now,
    FreshId: World._fresh_id,
    Emit: World._emit,
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
    NextEvent: World._next_event,
    NewSession: World._new_session,
    CloseSession: World._close_session,
    Connected: World._connected,
}
