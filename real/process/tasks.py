"""The tasks of one live process: coroutines on one event loop that share its state.

`watchkeeper.model.actor.tasks` lists their effects and the guarantees of a process. One loop
runs all tasks, so a task is alone between an answer and its next effect. A program that
shares their state runs in a Python thread; it and the loop pass a lock, the *baton*, to
each other, and only the holder runs.

An answer that is available is given immediately. For any other the task waits, and the
others run meanwhile. So a coroutine runs without the loop as long as it need not wait
(`go_on`): most of the work of a broker is done that way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from random import SystemRandom
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import uuid4

from watchkeeper.model.actor.effects import FreshId, Now, Sleep
from watchkeeper.model.actor.events import Notification
from watchkeeper.model.actor.operations import Operation, Pipelined
from watchkeeper.model.actor.rpc import Call, HangUp
from watchkeeper.model.actor.tasks import Drain, Draw, Post, Posted, Put, Remind, Start, Take
from watchkeeper.real.net.rpc import Calls
from watchkeeper.real.process.queues import Queue

T = TypeVar("T")

Later = Callable[[Any, object], Awaitable[Any]]
"""Performs an effect of a caller whose answer has to be awaited."""


NOT_YET = object()
"""The immediate answer of an effect that cannot be answered immediately just now."""


class Done(NamedTuple, Generic[T]):
    """A coroutine that has ended, with its result."""

    value: T


class Paused(NamedTuple, Generic[T]):
    """A coroutine that waits, and what it waits for; `Tasks.run` resumes it."""

    body: Coroutine[Any, Any, T]
    answered: Awaitable[Any]


class NotATaskEffect(TypeError):
    """A task awaited something that its process cannot answer."""

    def __init__(self, effect: object) -> None:
        super().__init__(
            f"a task awaited {type(effect).__name__!r}; tasks may await what "
            "watchkeeper.model.actor.tasks, watchkeeper.model.actor.rpc and "
            "watchkeeper.model.actor.effects provide, and what their process adds"
        )


class Tasks:
    """The tasks of one process, and the handlers of their effects."""

    def __init__(
        self,
        *,
        remind: Callable[[Notification], object],
        failed: Callable[[str, Exception], object],
        skew_ms: Callable[[], int] = lambda: 0,
        where: Callable[[str], str] = str,
    ) -> None:
        """`remind` puts a notification into the inbox; `failed` gets what a task raised.

        `where` maps an address to the address on this machine, or to "" if there is none.
        """
        self.baton = Lock()
        """Held by the thread that runs a coroutine of this process."""
        self.operate: Callable[[Any], Awaitable[Any]] | None = None
        """Sends an operation to ZooKeeper, if the process has a client."""
        self._calls = Calls(where)
        self._failed = failed
        self._queues: dict[str, Queue] = {}
        self._posted: dict[str, Any] = {}
        self._running: dict[asyncio.Task[None], Coroutine[Any, Any, None]] = {}
        bits = SystemRandom().getrandbits
        self._at_once: dict[type[Any], Callable[[Any], Any]] = {
            Now: lambda effect: time.time_ns() // 1_000_000 + skew_ms(),
            FreshId: lambda effect: uuid4().hex,
            Draw: lambda effect: bits(effect.bits),
            Put: self._put_at_once,
            Take: self._take_at_once,
            Drain: lambda effect: self._queue(effect.queue).drain(),
            Post: self._post,
            Posted: lambda effect: self._posted.get(effect.name),
            Remind: lambda effect: remind(effect.notification),
            Start: lambda effect: self.start(effect.name, effect.thread()),
        }
        """Effects that are answered immediately."""
        self._later: dict[type[Any], Later] = {
            Put: lambda effect, caller: self._queue(effect.queue).put(
                effect.item, effect.size, effect.bound, effect.timeout_ms
            ),
            Take: lambda effect, caller: self._queue(effect.queue).take(effect.timeout_ms),
            Sleep: lambda effect, caller: asyncio.sleep(effect.duration_ms / 1000),
            Call: lambda effect, caller: self._calls.call(caller, effect),
            HangUp: self._hang_up,
        }
        """Effects whose answer the task has to wait for."""

    # --- effects ---------------------------------------------------------------------------

    def answer_immediately(self, kind: type[Any], answer: Callable[[Any], Any]) -> None:
        """Answer another kind of effect immediately; `NOT_YET` defers it to `answer_later`."""
        self._at_once[kind] = answer

    def answer_later(self, kind: type[Any], answer: Later) -> None:
        """Answer another kind of effect with an awaitable."""
        self._later[kind] = answer

    async def answer(self, effect: Any, caller: object) -> Any:
        """Perform one effect."""
        answer = self._answer_at_once(effect)
        return await self._answer_later(effect, caller) if answer is NOT_YET else answer

    def _answer_at_once(self, effect: Any) -> Any:
        at_once = self._at_once.get(type(effect))
        return NOT_YET if at_once is None else at_once(effect)

    def _answer_later(self, effect: Any, caller: object) -> Awaitable[Any]:
        later = self._later.get(type(effect))
        if later is not None:
            return later(effect, caller)
        if self.operate is not None and isinstance(effect, Operation | Pipelined):
            return self.operate(effect)
        raise NotATaskEffect(effect)

    def go_on(
        self,
        body: Coroutine[Any, Any, T],
        caller: object,
        answer: Any = None,
        error: Exception | None = None,
    ) -> Done[T] | Paused[T]:
        """Run a coroutine until it has to wait, starting with the answer or error it waited for.

        What it raises is raised here; then it is over.
        """
        while True:
            try:
                # The baton is released at each effect: the program's thread gets its
                # turn even while a coroutine never waits.
                with self.baton:
                    effect = body.send(answer) if error is None else body.throw(error)
            except StopIteration as done:
                return Done(done.value)
            answer = error = None
            try:
                answer = self._answer_at_once(effect)
                if answer is NOT_YET:
                    return Paused(body, self._answer_later(effect, caller))
            except Exception as raised:
                error = raised

    async def run(
        self,
        body: Coroutine[Any, Any, T],
        caller: object,
        answered: Awaitable[Any] | None = None,
    ) -> T:
        """Run a coroutine to its end in the current asyncio task; what it raises is raised.

        `answered` is what it already waits for.
        """
        answer: Any = None
        error: Exception | None = None
        try:
            while True:
                try:
                    if answered is not None:
                        answer, error = await answered, None
                except Exception as raised:
                    answer, error = None, raised
                step = self.go_on(body, caller, answer, error)
                if isinstance(step, Done):
                    value: T = step.value
                    return value
                answered = step.answered
        finally:
            body.close()

    # --- tasks -----------------------------------------------------------------------------

    def start(self, name: str, body: Coroutine[Any, Any, None]) -> None:
        """Start a task; it runs when the starting task waits."""
        task = asyncio.get_running_loop().create_task(self._life(name, body), name=name)
        self._running[task] = body
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task).close()  # a task cancelled before it ran is still open

    async def _life(self, name: str, body: Coroutine[Any, Any, None]) -> None:
        caller = asyncio.current_task()
        try:
            await self.run(body, caller)
        except Exception as error:
            self._failed(name, error)
        finally:
            self._calls.hang_up_all(caller)

    async def end(self) -> None:
        """Cancel every task."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    # --- handlers --------------------------------------------------------------------------

    def _queue(self, name: str) -> Queue:
        if name not in self._queues:
            self._queues[name] = Queue()
        return self._queues[name]

    def _put_at_once(self, effect: Put) -> Any:
        return (
            self._queue(effect.queue).put_at_once(effect.item, effect.size, effect.bound)
            or NOT_YET
        )

    def _take_at_once(self, effect: Take) -> Any:
        item = self._queue(effect.queue).take_at_once()
        return NOT_YET if item is None else item

    def _post(self, effect: Post) -> None:
        self._posted[effect.name] = effect.value

    async def _hang_up(self, effect: HangUp, caller: object) -> None:
        self._calls.hang_up(caller, effect.address)
