"""Calls from threads of Python's into the clients of a process, whose threads are on a loop.

A client's method is a coroutine. Whoever calls runs it in his own thread, with the baton, as
far as it asks nothing; what it asks is answered in the loop, and he waits for the answer. So
a message that is there already costs no change of threads, and one who is interrupted while
he waits (Ctrl-C) can go on with the same call: nothing that was on its way is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from threading import Lock
from typing import Any, Generic, TypeVar

from real.loops import Loop
from real.threads import Threads

T = TypeVar("T")


class Over(RuntimeError):
    """What was called is over, or ends while somebody waits in it."""


class Callers:
    """Everybody who calls from outside of the loop."""

    def __init__(self, name: str, threads: Threads, loop: Loop) -> None:
        self.name = name
        self.threads = threads
        self._loop = loop
        self._lock = Lock()
        self._waited_for: set[Future[Any]] = set()
        self._is_over = False

    def call(self, body: Coroutine[Any, Any, T], caller: object | None = None) -> T:
        """Run a coroutine to its end; whoever is interrupted leaves the rest of it to the loop.

        The connections it makes belong to the `caller`; to nobody else, if none is named.
        """
        call = Call(self, body, caller)
        try:
            return call.go_on()
        except (Exception, GeneratorExit):
            raise
        except BaseException:
            call.leave()
            raise

    def ask(self, ask: object, caller: object) -> Future[Any]:
        """Have something answered in the loop."""
        return self.begin(self.threads.answer(ask, caller))

    def begin(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run this in the loop; `Over` if that has ended."""
        with self._lock:
            if self._is_over:
                coroutine.close()
                raise Over(f"{self.name} is over")
            future = self._loop.begin(coroutine)
            self._waited_for.add(future)
        future.add_done_callback(self._forget)
        return future

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._waited_for.discard(future)

    def end(self) -> None:
        """Let nobody wait any longer, and take no more calls."""
        with self._lock:
            self._is_over = True
            waited_for = tuple(self._waited_for)
        for future in waited_for:
            future.cancel()


class Call(Generic[T]):
    """A coroutine that a thread of Python's runs, but for what it waits for."""

    def __init__(
        self, callers: Callers, body: Coroutine[Any, Any, T], caller: object | None = None
    ) -> None:
        self._callers = callers
        self._body = body
        self._caller = self if caller is None else caller
        self._waits_for: Future[Any] | None = None

    def go_on(self) -> T:
        """Run it to its end; after an interruption, from where it stood."""
        while True:
            answer, error = self._answer()
            try:
                with self._callers.threads.baton:
                    ask = self._body.send(answer) if error is None else self._body.throw(error)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            self._waits_for = self._ask(ask)

    def leave(self) -> None:
        """Have the rest of it done in the loop; nobody hears how it ends."""
        if self._waits_for is None:
            self._body.close()
        else:
            self._callers.begin(self._rest(self._waits_for))

    async def _rest(self, waits_for: Future[Any]) -> None:
        answered = asyncio.wrap_future(waits_for)
        await self._callers.threads.run(self._body, self._caller, answered)

    def _answer(self) -> tuple[Any, Exception | None]:
        if self._waits_for is None:
            return None, None
        try:
            return self._waits_for.result(), None
        except CancelledError:
            self._body.close()
            raise Over(f"{self._callers.name} is over") from None
        except Exception as error:
            return None, error

    def _ask(self, ask: object) -> Future[Any]:
        try:
            return self._callers.ask(ask, self._caller)
        except Over:
            self._body.close()
            raise
