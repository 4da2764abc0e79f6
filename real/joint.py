"""The driver of a program whose process has threads beside it (`model.threads`).

The program runs in a thread of Python's, and all the others on one event loop. The program
may ask what they may ask, and they may ask ZooKeeper: what they want of one another goes
through the queues of the two, like everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from model.asks import Tell
from model.describe import described_operation
from model.errors import Failure
from model.operations import Operation, Pipelined
from model.program import Program
from real.client import Client, Reply, Said
from real.diary import Writes
from real.driver import Driver, Fetching, Steps, zxid_of_writes
from real.loops import Loop
from real.threads import Threads


class Answered(NamedTuple):
    """An ask of the program's has been answered."""


class Raised(NamedTuple):
    """Instead of an answer: what is to be raised where it was awaited."""

    error: BaseException


class Wanted(NamedTuple):
    """A thread wants something of ZooKeeper, and whom to tell."""

    ask: Operation[Any] | Pipelined
    answer: Callable[[Any], object]


class _Sent(NamedTuple):
    """What a thread wanted has been sent."""

    wanted: Wanted
    tickets: tuple[int, ...]


class JointDriver(Driver):
    """One program at work, and the threads beside it."""

    def __init__(
        self,
        program: Program,
        diary: Writes,
        connect: Callable[[Callable[[Said], None]], Client],
        failed: Callable[[str, Exception], object],
        fetching: Fetching | None = None,
        steps: Steps | None = None,
        skew_ms: int = 0,
        where: Callable[[str], str] = str,
    ) -> None:
        """`failed` hears of a thread that has raised something, by its name.

        `where` says where the address of a broker is on this machine.
        """
        super().__init__(program, diary, connect, fetching, steps, skew_ms)
        self.threads = Threads(
            remind=self.queue.put, failed=failed, skew_ms=lambda: self.skew_ms, where=where
        )
        self.threads.operate = self._operate_for_thread
        self.threads.answer_too(Tell, self._tell_for_thread)
        self.loop = Loop(f"{diary.node} threads")
        """Where the threads are."""
        self._sent: list[_Sent] = []

    # --- from outside the loop ---------------------------------------------------------

    def start_thread(self, name: str, body: Coroutine[Any, Any, None]) -> None:
        """Start a thread of this process."""

        async def start() -> None:
            self.threads.start(name, body)

        self.loop.begin(start()).result()

    def run_thread(self, body: Coroutine[Any, Any, None]) -> None:
        """Run a thread, and come back when it is over."""
        self.loop.begin(self.threads.run(body, body)).result()

    def end_threads(self) -> None:
        """End every thread, wherever it is."""
        self.loop.begin(self.threads.end()).result()
        self.loop.close()

    # --- in the program's thread -------------------------------------------------------

    def _next_ask(self, coroutine: Any, answer: Any) -> Any:
        with self.threads.baton:
            if isinstance(answer, Raised):
                return coroutine.throw(answer.error)
            return coroutine.send(answer)

    def _operate(self, ask: Any) -> Any:
        """Whatever neither a driver knows nor ZooKeeper, the threads of this process may."""
        if isinstance(ask, Operation | Pipelined):
            return super()._operate(ask)
        answered = self.loop.begin(self.threads.answer(ask, self))
        answered.add_done_callback(lambda done: self.queue.put(Answered()))
        self._wait_for(answered.done)
        error = answered.exception()
        return answered.result() if error is None else Raised(error)

    def _hear(self, said: Any) -> None:
        if isinstance(said, Answered):
            return
        if isinstance(said, Wanted):
            self._send(said)
        else:
            super()._hear(said)
        if self._sent:
            self._answer_threads()

    def _send(self, wanted: Wanted) -> None:
        ask = wanted.ask
        described = described_operation(ask)
        self._write("asks", described)
        batch = ask.operations if isinstance(ask, Pipelined) else (ask,)
        tickets = self.client.submit(batch, self.life)
        if isinstance(tickets, Failure):
            self._note_answer(ask, described["op"], tickets, 0)
            wanted.answer(tickets)
        else:
            self._sent.append(_Sent(wanted, tuple(tickets)))

    def _answer_threads(self) -> None:
        """Answer those of whose requests every reply has come."""
        ready = [one for one in self._sent if all(map(self._replies.__contains__, one.tickets))]
        for one in ready:
            self._sent.remove(one)
            replies = [self._replies.pop(ticket) for ticket in one.tickets]
            self._answer_thread(one.wanted, replies)

    def _answer_thread(self, wanted: Wanted, replies: list[Reply]) -> None:
        ask = wanted.ask
        try:
            answer = self._answer_of(ask, [reply.answer for reply in replies])
        except Exception as error:
            wanted.answer(Raised(error))
            return
        batch = ask.operations if isinstance(ask, Pipelined) else (ask,)
        word = described_operation(ask)["op"]
        self._note_answer(ask, word, answer, zxid_of_writes(batch, replies))
        wanted.answer(answer)

    # --- in the loop -------------------------------------------------------------------

    async def _operate_for_thread(self, ask: Operation[Any] | Pipelined) -> Any:
        loop = asyncio.get_running_loop()
        answered = loop.create_future()

        def settle(answer: Any) -> None:
            if not answered.done():  # its thread may have been ended meanwhile
                answered.set_result(answer)

        self.queue.put(Wanted(ask, lambda answer: loop.call_soon_threadsafe(settle, answer)))
        answer = await answered
        if isinstance(answer, Raised):
            raise answer.error
        return answer

    def _tell_for_thread(self, ask: Tell) -> None:
        self.diary.write(ask.kind, dict(ask.detail), topic=ask.topic)
