"""The threads of one process, beside its program: coroutines that share its memory.

What they may ask, and what a process promises to them, stands in `model.threads`. A thread
goes on by a call: whoever answers an ask calls it with the answer. While its process stands
still it waits; when its process is gone it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from model.asks import FreshId, Now, Sleep, Tell
from model.calls import Call, HangUp
from model.log.contents import size_of
from model.threads import Drain, Draw, Post, Posted, Put, Remind, Start, Take
from sim.calls import Calls
from sim.driver import REQUESTS
from sim.machine import Caller, Machine
from sim.mistakes import NotAnAsk
from sim.node import Node
from sim.queues import Queue, Reply
from sim.storage import Storage
from sim.work import Receive, Transmit

Operate = Callable[[Any, Reply], None]


class Thread(Caller):
    """One coroutine at work."""

    __slots__ = ("body", "name", "threads")

    def __init__(self, threads: Threads, name: str, body: Any) -> None:
        super().__init__()
        self.threads = threads
        self.name = name
        self.body = body

    def go(self, answer: Any) -> None:
        """Go on with an answer."""
        node = self.threads.node
        if not node.is_alive or self.threads.is_over:
            self.body.close()
            return
        if node.is_paused:
            waiting: Any = node.until_resumed().callbacks
            waiting.append(lambda event: self.go(answer))
            return
        try:
            self.threads.answer(self, self._next_ask(answer), self.go)
        except StopIteration:
            self.threads.forget(self)
        except Exception as error:
            now_s = self.threads.kernel.now_us / 1e6
            error.add_note(f"in thread {self.name} of {node.name} at {now_s:.6f} s")
            raise

    def _next_ask(self, answer: Any) -> Any:
        """The next ask that cannot be answered on the spot."""
        send, at_once = self.body.send, self.threads.at_once
        ask = send(answer)
        while type(ask) in at_once:
            ask = send(at_once[type(ask)](ask))
        return ask


class Threads:
    """Everything that the threads of one process share."""

    def __init__(self, node: Node, calls: Calls, storage: Storage | None = None) -> None:
        self.node = node
        self.kernel = node.kernel
        self.calls = calls
        self.storage = storage
        self.is_over = False
        self.running: dict[Thread, None] = {}
        self._chance = self.kernel.streams(f"threads/{node.name}")
        self._queues: dict[str, Queue] = {}
        self._posted: dict[str, Any] = {}
        self.at_once: dict[type[Any], Callable[[Any], Any]] = {
            Now: lambda ask: node.clock_ms(),
            FreshId: lambda ask: self._chance.hexadecimal(32),
            Draw: lambda ask: self._chance.bits(ask.bits),
            Drain: lambda ask: self.queue(ask.queue).drain(),
            Post: self._post,
            Posted: lambda ask: self._posted.get(ask.name),
            Remind: lambda ask: node.deliver(ask.note),
            Start: lambda ask: self.start(ask.name, ask.thread()),
            Tell: self._tell,
        }
        """Asks that are answered on the spot."""
        self._later: dict[type[Any], Callable[[Any, Reply], None]] = {
            Put: lambda ask, reply: self.queue(ask.queue).put(
                ask.item, ask.size, ask.bound, ask.timeout_ms, reply
            ),
            Take: lambda ask, reply: self.queue(ask.queue).take(ask.timeout_ms, reply),
            Sleep: lambda ask, reply: self.kernel.after(ask.duration_ms * 1000, reply, None),
        }
        """Asks that are answered by a call."""
        self.operate: Operate | None = None
        """Sends an operation to ZooKeeper, where the process has a client."""

    @property
    def kinds(self) -> tuple[type[Any], ...]:
        """The kinds of ask that are answered later, and that programs may ask as well."""
        return (*self._later, Call, HangUp)

    def answer_too(self, kind: type[Any], answer: Callable[[Any], Any]) -> None:
        """Answer another kind of ask on the spot."""
        self.at_once[kind] = answer

    def start(self, name: str, body: Any) -> Thread:
        """Start a thread; it runs when whoever starts it waits for something."""
        thread = Thread(self, name, body)
        self.running[thread] = None
        self.kernel.at(self.kernel.now_us, thread.go, None)
        return thread

    def forget(self, thread: Thread) -> None:
        """A thread is over."""
        self.running.pop(thread, None)
        self.calls.hang_up_all(thread)

    def end(self) -> None:
        """The process is gone, and its threads with it."""
        self.is_over = True
        for thread in list(self.running):
            if not thread.body.cr_running:  # whoever ends its own process goes no further
                thread.body.close()
            self.calls.hang_up_all(thread)
        self.running.clear()

    def queue(self, name: str) -> Queue:
        """The queue of this name."""
        if name not in self._queues:
            self._queues[name] = Queue(self.kernel)
        return self._queues[name]

    # --- what is asked -----------------------------------------------------------------

    def answer(self, caller: Caller, ask: Any, reply: Reply) -> None:
        """Answer an ask by a call, later."""
        kind = type(ask)
        later = self._later.get(kind)
        if later is not None:
            later(ask, reply)
        elif kind is Call:
            self.calls.call(self.node, caller, ask, reply)
        elif kind is HangUp:
            self.calls.hang_up(caller, ask.address)
            self.kernel.at(self.kernel.now_us, reply, None)
        elif self.storage is not None and self.storage.knows(ask):
            self.storage.ask(caller, ask, reply)
        elif self.operate is not None and isinstance(ask, REQUESTS):
            self.operate(ask, reply)
        elif self.storage is not None and kind in (Receive, Transmit):
            self._move(self.storage.machine, caller, ask, reply)
        else:
            raise NotAnAsk(self.node.name, ask)

    def _move(
        self, machine: Machine, caller: Caller, ask: Receive | Transmit, reply: Reply
    ) -> None:
        """Move data between the network and the memory of this process."""
        if isinstance(ask, Receive):
            machine.receive(caller, ask.size_bytes)
        else:
            machine.transmit(caller, size_of(ask.contents), ask.to)
        self.kernel.at(max(caller.ready_ns // 1000, self.kernel.now_us), reply, None)

    def _post(self, ask: Post) -> None:
        self._posted[ask.name] = ask.value

    def _tell(self, ask: Tell) -> None:
        node = self.node
        self.kernel.write(
            node.name, ask.kind, dict(ask.detail), group=node.group, topic=ask.topic
        )
