"""Synchronous calls from Python threads into clients whose tasks run on an event loop.

A method of a client is a coroutine. The calling thread runs it itself, holding the baton, up
to the next effect that has to wait; the loop performs the effect while the thread waits for
the answer. So a message that is already there costs no switch between threads. A caller that
is interrupted while it waits (Ctrl-C) can continue the same call later: nothing that was
under way is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from threading import Lock
from typing import Any, Generic, TypeVar

from watchkeeper.real.process.loop_thread import Loop
from watchkeeper.real.process.tasks import Tasks

T = TypeVar("T")


class Closed(RuntimeError):
    """The client is closed, or was closed during the call."""


class SyncCalls:
    """The calls into one client from outside the loop."""

    def __init__(self, name: str, tasks: Tasks, loop: Loop) -> None:
        self.name = name
        self.tasks = tasks
        self._loop = loop
        self._lock = Lock()
        self._futures: set[Future[Any]] = set()
        self._is_over = False
        self.closed = f"{name} is over"
        """The message of `Closed`."""

    def call(self, body: Coroutine[Any, Any, T], caller: object | None = None) -> T:
        """Run a coroutine to its end; if the caller is interrupted, the loop runs the rest.

        The connections that it opens belong to `caller`, or to this call only.
        """
        call = Call(self, body, caller)
        try:
            return call.go_on()
        except (Exception, GeneratorExit):
            raise
        except BaseException:
            call.detach()
            raise

    def ask(self, effect: object, caller: object) -> Future[Any]:
        """Perform an effect in the loop."""
        return self.begin(self.tasks.answer(effect, caller))

    def begin(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine in the loop; raises Closed if the client is closed."""
        with self._lock:
            if self._is_over:
                coroutine.close()
                raise Closed(self.closed)
            future = self._loop.begin(coroutine)
            self._futures.add(future)
        future.add_done_callback(self._forget)
        return future

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._futures.discard(future)

    def end(self, why: str = "") -> None:
        """Cancel the waits of all callers and refuse further calls; they raise Closed."""
        with self._lock:
            self._is_over = True
            if why:
                self.closed = f"{self.name} is over: {why}"
            futures = tuple(self._futures)
        for future in futures:
            future.cancel()


class Call(Generic[T]):
    """A coroutine that a Python thread runs except for what it waits for."""

    def __init__(
        self, callers: SyncCalls, body: Coroutine[Any, Any, T], caller: object | None = None
    ) -> None:
        self._callers = callers
        self._body = body
        self._caller = self if caller is None else caller
        self._pending: Future[Any] | None = None

    def go_on(self) -> T:
        """Run it to its end; after an interruption, from where it stopped."""
        while True:
            answer, error = self._answer()
            try:
                with self._callers.tasks.baton:
                    effect = self._body.send(answer) if error is None else self._body.throw(error)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            self._pending = self._ask(effect)

    def detach(self) -> None:
        """Let the loop run the rest; its result is dropped."""
        if self._pending is None:
            self._body.close()
        else:
            self._callers.begin(self._run_rest(self._pending))

    async def _run_rest(self, pending: Future[Any]) -> None:
        answered = asyncio.wrap_future(pending)
        await self._callers.tasks.run(self._body, self._caller, answered)

    def _answer(self) -> tuple[Any, Exception | None]:
        if self._pending is None:
            return None, None
        try:
            return self._pending.result(), None
        except CancelledError:
            self._body.close()
            raise Closed(self._callers.closed) from None
        except Exception as error:
            return None, error

    def _ask(self, effect: object) -> Future[Any]:
        try:
            return self._callers.ask(effect, self._caller)
        except Closed:
            self._body.close()
            raise
