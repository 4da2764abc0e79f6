"""The threads of one live process: coroutines on one event loop, which share its memory.

What they may ask, and what a process promises to them, stands in `model.threads`. One loop
runs all of them, so each is alone from an answer to its next ask. A program that shares
their memory runs in a thread of Python's; it and the loop pass a *baton* to one another,
and only who has it goes on.

An answer that is there already is given on the spot. For any other the thread waits, and
the others go on meanwhile. So a coroutine goes on without the loop for as long as it need not
wait (`go_on`): most of what a broker does is done then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from random import SystemRandom
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import uuid4

from model.answers import Note
from model.asks import FreshId, Now, Sleep
from model.calls import Call, HangUp
from model.operations import Operation, Pipelined
from model.threads import Drain, Draw, Post, Posted, Put, Remind, Start, Take
from real.calling import Calls
from real.queues import Queue

T = TypeVar("T")

Later = Callable[[Any, object], Awaitable[Any]]
"""Answers an ask of a caller when the time has come."""


NOT_YET = object()
"""The answer on the spot of what cannot be answered there just now."""


class Done(NamedTuple, Generic[T]):
    """A coroutine that is over, and what it answers."""

    value: T


class Paused(NamedTuple, Generic[T]):
    """A coroutine that waits, and for what; `Threads.run` goes on with it."""

    body: Coroutine[Any, Any, T]
    answered: Awaitable[Any]


class NotAThreadsAsk(TypeError):
    """A thread awaited something that its process cannot answer."""

    def __init__(self, ask: object) -> None:
        super().__init__(
            f"a thread awaited {type(ask).__name__!r}; threads may await what model.threads, "
            "model.calls and model.asks provide, and what their process answers too"
        )


class Threads:
    """What the threads of one process share, and what answers them."""

    def __init__(
        self,
        *,
        remind: Callable[[Note], object],
        failed: Callable[[str, Exception], object],
        skew_ms: Callable[[], int] = lambda: 0,
        where: Callable[[str], str] = str,
    ) -> None:
        """`remind` takes a note to the process's inbox; `failed` hears what a thread raised.

        `where` says where an address is on this machine; empty if it is nowhere.
        """
        self.baton = Lock()
        """Whoever runs a coroutine of this process has it."""
        self.operate: Callable[[Any], Awaitable[Any]] | None = None
        """Sends an operation to ZooKeeper, where the process has a client."""
        self._calls = Calls(where)
        self._failed = failed
        self._queues: dict[str, Queue] = {}
        self._posted: dict[str, Any] = {}
        self._running: dict[asyncio.Task[None], Coroutine[Any, Any, None]] = {}
        bits = SystemRandom().getrandbits
        self._at_once: dict[type[Any], Callable[[Any], Any]] = {
            Now: lambda ask: time.time_ns() // 1_000_000 + skew_ms(),
            FreshId: lambda ask: uuid4().hex,
            Draw: lambda ask: bits(ask.bits),
            Put: self._put_at_once,
            Take: self._take_at_once,
            Drain: lambda ask: self._queue(ask.queue).drain(),
            Post: self._post,
            Posted: lambda ask: self._posted.get(ask.name),
            Remind: lambda ask: remind(ask.note),
            Start: lambda ask: self.start(ask.name, ask.thread()),
        }
        """Asks that are answered on the spot."""
        self._later: dict[type[Any], Later] = {
            Put: lambda ask, caller: self._queue(ask.queue).put(
                ask.item, ask.size, ask.bound, ask.timeout_ms
            ),
            Take: lambda ask, caller: self._queue(ask.queue).take(ask.timeout_ms),
            Sleep: lambda ask, caller: asyncio.sleep(ask.duration_ms / 1000),
            Call: lambda ask, caller: self._calls.call(caller, ask),
            HangUp: self._hang_up,
        }
        """Asks for whose answer the thread has to wait."""

    # --- what is answered --------------------------------------------------------------

    def answer_too(self, kind: type[Any], answer: Callable[[Any], Any]) -> None:
        """Answer another kind of ask on the spot; `NOT_YET` if that has to be done later."""
        self._at_once[kind] = answer

    def answer_later(self, kind: type[Any], answer: Later) -> None:
        """Answer another kind of ask when the time has come."""
        self._later[kind] = answer

    async def answer(self, ask: Any, caller: object) -> Any:
        """Answer one ask."""
        answer = self._answer_at_once(ask)
        return await self._answer_later(ask, caller) if answer is NOT_YET else answer

    def _answer_at_once(self, ask: Any) -> Any:
        at_once = self._at_once.get(type(ask))
        return NOT_YET if at_once is None else at_once(ask)

    def _answer_later(self, ask: Any, caller: object) -> Awaitable[Any]:
        later = self._later.get(type(ask))
        if later is not None:
            return later(ask, caller)
        if self.operate is not None and isinstance(ask, Operation | Pipelined):
            return self.operate(ask)
        raise NotAThreadsAsk(ask)

    def go_on(
        self,
        body: Coroutine[Any, Any, T],
        caller: object,
        answer: Any = None,
        error: Exception | None = None,
    ) -> Done[T] | Paused[T]:
        """Run a coroutine until it has to wait, from an answer or error on that it waited for.

        What it raises is raised, and then it is over.
        """
        while True:
            try:
                with self.baton:
                    ask = body.send(answer) if error is None else body.throw(error)
            except StopIteration as done:
                return Done(done.value)
            answer = error = None
            try:
                answer = self._answer_at_once(ask)
                if answer is NOT_YET:
                    return Paused(body, self._answer_later(ask, caller))
            except Exception as raised:
                error = raised

    async def run(
        self,
        body: Coroutine[Any, Any, T],
        caller: object,
        answered: Awaitable[Any] | None = None,
    ) -> T:
        """Run a coroutine to its end, in whatever task this is; what it raises is raised.

        `answered` is what it waits for already.
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

    # --- threads -----------------------------------------------------------------------

    def start(self, name: str, body: Coroutine[Any, Any, None]) -> None:
        """Start a thread; it runs when whoever starts it waits for something."""
        task = asyncio.get_running_loop().create_task(self._life(name, body), name=name)
        self._running[task] = body
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task).close()  # one that was ended before it ran is still open

    async def _life(self, name: str, body: Coroutine[Any, Any, None]) -> None:
        caller = asyncio.current_task()
        try:
            await self.run(body, caller)
        except Exception as error:
            self._failed(name, error)
        finally:
            self._calls.hang_up_all(caller)

    async def end(self) -> None:
        """End every thread, wherever it is."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    # --- what is asked -----------------------------------------------------------------

    def _queue(self, name: str) -> Queue:
        if name not in self._queues:
            self._queues[name] = Queue()
        return self._queues[name]

    def _put_at_once(self, ask: Put) -> Any:
        return self._queue(ask.queue).put_at_once(ask.item, ask.size, ask.bound) or NOT_YET

    def _take_at_once(self, ask: Take) -> Any:
        item = self._queue(ask.queue).take_at_once()
        return NOT_YET if item is None else item

    def _post(self, ask: Post) -> None:
        self._posted[ask.name] = ask.value

    async def _hang_up(self, ask: HangUp, caller: object) -> None:
        self._calls.hang_up(caller, ask.address)
