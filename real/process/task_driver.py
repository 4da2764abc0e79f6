"""The driver of a program whose process has tasks beside it (`watchkeeper.model.actor.tasks`).

The program runs in a Python thread, all tasks run on one event loop. The program may use
task effects and tasks may use ZooKeeper; both directions go through the two event queues. A
task's operation is sent by the program's thread, which owns the client, in the program's
session; a task effect of the program is performed on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from watchkeeper.model.actor.effects import Emit
from watchkeeper.model.actor.errors import Failure
from watchkeeper.model.actor.operations import Operation, Pipelined
from watchkeeper.model.actor.program import Program
from watchkeeper.model.plan.faults import STEPS_OF_TASKS
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.text import described_operation
from watchkeeper.real.client.client import Client, ClientEvent, Reply
from watchkeeper.real.process.driver import Driver, Fetching, StepHooks, zxid_of_writes
from watchkeeper.real.process.loop_thread import Loop
from watchkeeper.real.process.tasks import Tasks
from watchkeeper.real.trace.writer import EventSink


class EffectAnswered(NamedTuple):
    """An effect of the program has been answered; wakes up the program's thread."""


class Raised(NamedTuple):
    """In place of an answer: the exception to raise where it was awaited."""

    error: BaseException


class TaskRequest(NamedTuple):
    """An operation that a task sends to ZooKeeper, and the receiver of its answer."""

    effect: Operation[Any] | Pipelined
    answer: Callable[[Any], object]


class _Sent(NamedTuple):
    """An operation of a task whose replies are outstanding."""

    request: TaskRequest
    tickets: tuple[int, ...]
    is_answered: Callable[[], bool]


class TaskDriver(Driver):
    """Runs one program and the tasks beside it."""

    def __init__(
        self,
        program: Program,
        writer: EventSink,
        connect: Callable[[Callable[[ClientEvent], None]], Client],
        failed: Callable[[str, Exception], object],
        fetching: Fetching | None = None,
        steps: StepHooks | None = None,
        skew_ms: int = 0,
        where: Callable[[str], str] = str,
    ) -> None:
        """`failed` is called with the name of a task that raised, and its exception.

        `where` maps the address of a broker to the address on this machine.
        """
        super().__init__(program, writer, connect, fetching, steps, skew_ms)
        self.tasks = Tasks(
            remind=self.queue.put, failed=failed, skew_ms=lambda: self.skew_ms, where=where
        )
        self.tasks.operate = self.operate_for_task
        self.tasks.answer_immediately(Emit, self._emit_for_task)
        self.loop = Loop(f"{writer.node} tasks")
        """The loop of the tasks."""
        self._sent: list[_Sent] = []
        self._have_tasks_ended = False

    # --- from outside the loop ---------------------------------------------------------

    def start_task(self, name: str, body: Coroutine[Any, Any, None]) -> None:
        """Start a task of this process."""

        async def start() -> None:
            self.tasks.start(name, body)

        self.loop.begin(start()).result()

    def run_task(self, body: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as a task and return when it is over."""
        self.loop.begin(self.tasks.run(body, body)).result()

    def end_tasks(self) -> None:
        """Cancel every task, unless they have ended."""
        if not self._have_tasks_ended:
            self._have_tasks_ended = True
            self.loop.begin(self.tasks.end()).result()
            self.loop.close()

    def _stop_work(self) -> None:
        super()._stop_work()
        self.end_tasks()

    # --- in the program's thread -------------------------------------------------------

    def _next_effect(self, coroutine: Any, answer: Any) -> Any:
        with self.tasks.baton:
            if isinstance(answer, Raised):
                return coroutine.throw(answer.error)
            return coroutine.send(answer)

    def _operate(self, effect: Any) -> Any:
        """Effects that the driver does not know are task effects, performed on the loop."""
        if isinstance(effect, Operation | Pipelined):
            return super()._operate(effect)
        answered = self.loop.begin(self.tasks.answer(effect, self))
        answered.add_done_callback(lambda done: self.queue.put(EffectAnswered()))
        self._wait_for(answered.done)
        error = answered.exception()
        return answered.result() if error is None else Raised(error)

    def _dispatch(self, event: Any) -> None:
        if isinstance(event, EffectAnswered):
            return
        if isinstance(event, TaskRequest):
            self._send(event)
        else:
            super()._dispatch(event)
        if self._sent:
            self._answer_tasks()

    def _send(self, request: TaskRequest) -> None:
        effect = request.effect
        self._step("before", effect)
        described = described_operation(effect)
        self._write(EventKind.REQUEST, described)
        batch = effect.operations if isinstance(effect, Pipelined) else (effect,)
        tickets = self.client.submit(batch, self.generation)
        if isinstance(tickets, Failure):
            self._write_answer(effect, described["op"], tickets, 0)
            request.answer(tickets)
        else:
            self._sent.append(_Sent(request, tuple(tickets), self._all_answered(tickets)))

    def _answer_tasks(self) -> None:
        """Answer the tasks whose replies have all arrived."""
        ready = [sent for sent in self._sent if sent.is_answered()]
        for sent in ready:
            self._sent.remove(sent)
            replies = [self._replies.pop(ticket) for ticket in sent.tickets]
            self._answer_task(sent.request, replies)

    def _answer_task(self, request: TaskRequest, replies: list[Reply]) -> None:
        effect = request.effect
        try:
            answer = self._answer_of(effect, [reply.answer for reply in replies])
        except Exception as error:
            request.answer(Raised(error))
            return
        batch = effect.operations if isinstance(effect, Pipelined) else (effect,)
        word = described_operation(effect)["op"]
        self._write_answer(effect, word, answer, zxid_of_writes(batch, replies))
        self._step("after", effect)
        request.answer(answer)

    # --- in the loop -------------------------------------------------------------------

    async def operate_for_task(self, effect: Operation[Any] | Pipelined) -> Any:
        """Send an operation in the session of the program; may be awaited on any event loop."""
        loop = asyncio.get_running_loop()
        answered = loop.create_future()

        def settle(answer: Any) -> None:
            if not answered.done():  # its task may have been cancelled meanwhile
                answered.set_result(answer)

        self.queue.put(
            TaskRequest(effect, lambda answer: loop.call_soon_threadsafe(settle, answer))
        )
        answer = await answered
        if isinstance(answer, Raised):
            raise answer.error
        return answer

    def _emit_for_task(self, effect: Emit) -> None:
        self.writer.write(effect.kind, dict(effect.detail), topic=effect.topic)
        step = STEPS_OF_TASKS.get(effect.kind)
        if step is not None and self.steps is not None:
            moment, purpose = step
            reached = self.steps.before if moment == "before" else self.steps.after
            reached(purpose)
