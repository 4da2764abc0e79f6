"""The tasks of one process, beside its program: coroutines that share its state.

`watchkeeper.model.actor.tasks` has the effects that a task may use and what a process
guarantees. A task continues by a call: each effect is answered by calling the task with the
answer. While its process is paused it waits; when its process ends it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from watchkeeper.model.actor.effects import Emit, FreshId, Now, Sleep
from watchkeeper.model.actor.program_errors import NotAnEffect
from watchkeeper.model.actor.rpc import Call, HangUp
from watchkeeper.model.actor.tasks import (
    Compress,
    Decompress,
    Drain,
    Draw,
    Post,
    Posted,
    Put,
    Remind,
    Start,
    Take,
)
from watchkeeper.model.log.format.contents import size_of
from watchkeeper.model.plan.faults import STEPS_OF_TASKS
from watchkeeper.sim.disk.host_costs import Caller, Machine
from watchkeeper.sim.process.driver import REQUESTS
from watchkeeper.sim.process.process import Node
from watchkeeper.sim.process.queues import Queue, Reply
from watchkeeper.sim.process.rpc import Calls
from watchkeeper.sim.storage.host_effects import Receive, Transmit
from watchkeeper.sim.storage.storage import Storage

NS = 1_000_000_000
"""Nanoseconds in a second."""

Operate = Callable[[Any, Reply], None]


class Task(Caller):
    """One coroutine at work."""

    __slots__ = ("body", "name", "tasks")

    def __init__(self, tasks: Tasks, name: str, body: Any) -> None:
        super().__init__()
        self.tasks = tasks
        self.name = name
        self.body = body

    def go(self, answer: Any) -> None:
        """Go on with an answer."""
        node = self.tasks.node
        if not node.is_alive or self.tasks.is_over:
            self.body.close()
            return
        if node.is_paused:
            waiting: Any = node.until_resumed().callbacks
            waiting.append(lambda event: self.go(answer))
            return
        try:
            self.tasks.answer(self, self._next_effect(answer), self.go)
        except StopIteration:
            self.tasks.forget(self)
        except self.tasks.ends_process as error:
            assert self.tasks.failed is not None, "a process that may end so says how"
            self.tasks.failed(error)
        except Exception as error:
            now_s = self.tasks.kernel.now_us / 1e6
            error.add_note(f"in thread {self.name} of {node.name} at {now_s:.6f} s")
            raise

    def _next_effect(self, answer: Any) -> Any:
        """Return the next effect that cannot be answered at once."""
        send, at_once = self.body.send, self.tasks.at_once
        effect = send(answer)
        while type(effect) in at_once:
            effect = send(at_once[type(effect)](effect))
        return effect


class Tasks:
    """The tasks of one process, with their queues and the answers to their effects."""

    def __init__(self, node: Node, calls: Calls, storage: Storage | None = None) -> None:
        self.node = node
        self.kernel = node.kernel
        self.calls = calls
        self.storage = storage
        self.is_over = False
        self.ends_process: tuple[type[Exception], ...] = ()
        """What ends the process where a task raises it; anything else is a bug."""
        self.failed: Callable[[Exception], object] | None = None
        """Called with it."""
        self.running: dict[Task, None] = {}
        self._chance = self.kernel.streams(f"threads/{node.name}")
        self._queues: dict[str, Queue] = {}
        self._posted: dict[str, Any] = {}
        self.at_once: dict[type[Any], Callable[[Any], Any]] = {
            Now: lambda effect: node.clock_ms(),
            FreshId: lambda effect: self._chance.hexadecimal(32),
            Draw: lambda effect: self._chance.bits(effect.bits),
            Drain: lambda effect: self.queue(effect.queue).drain(),
            Post: self._post,
            Posted: lambda effect: self._posted.get(effect.name),
            Remind: lambda effect: node.deliver(effect.notification),
            Start: lambda effect: self.start(effect.name, effect.thread()),
            Emit: self._emit,
        }
        """Effects that are answered at once."""
        self._later: dict[type[Any], Callable[[Any, Reply], None]] = {
            Put: lambda effect, reply: self.queue(effect.queue).put(
                effect.item, effect.size, effect.bound, effect.timeout_ms, reply
            ),
            Take: lambda effect, reply: self.queue(effect.queue).take(effect.timeout_ms, reply),
            Sleep: lambda effect, reply: self.kernel.after(
                effect.duration_ms * 1000, reply, None
            ),
        }
        """Effects that are answered by a call, later."""
        self.operate: Operate | None = None
        """Sends an operation to ZooKeeper, where the process has a client."""
        self.reached: Callable[[str, str], object] | None = None
        """Called with the moment and the purpose of a step, where a fault waits for one."""

    @property
    def kinds(self) -> tuple[type[Any], ...]:
        """The kinds of effects that are answered later, for programs too."""
        return (*self._later, Call, HangUp, Compress, Decompress)

    def answer_too(self, kind: type[Any], answer: Callable[[Any], Any]) -> None:
        """Answer another kind of effect at once."""
        self.at_once[kind] = answer

    def start(self, name: str, body: Any) -> Task:
        """Start a task; it first runs when its starter waits for something."""
        task = Task(self, name, body)
        self.running[task] = None
        self.kernel.at(self.kernel.now_us, task.go, None)
        return task

    def forget(self, task: Task) -> None:
        """A task is over."""
        self.running.pop(task, None)
        self.calls.hang_up_all(task)

    def end(self) -> None:
        """The process is gone, and its tasks with it."""
        self.is_over = True
        for task in list(self.running):
            if not task.body.cr_running:  # a task that ends its own process cannot close itself
                task.body.close()
            self.calls.hang_up_all(task)
        self.running.clear()

    def queue(self, name: str) -> Queue:
        """The queue of this name."""
        if name not in self._queues:
            self._queues[name] = Queue(self.kernel)
        return self._queues[name]

    # --- effects -----------------------------------------------------------------------

    def answer(self, caller: Caller, effect: Any, reply: Reply) -> None:
        """Answer an effect by a call, later."""
        kind = type(effect)
        later = self._later.get(kind)
        if later is not None:
            later(effect, reply)
        elif kind is Call:
            self.calls.call(self.node, caller, effect, reply)
        elif kind is Compress:
            self._compress(caller, effect, reply)
        elif kind is Decompress:
            codec = self.kernel.profile.codec(effect.codec)
            cost_ns = effect.plain_bytes * NS // codec.decompress_bytes_per_s
            self._compute(caller, cost_ns, reply, None)
        elif kind is HangUp:
            self.calls.hang_up(caller, effect.address)
            self.kernel.at(self.kernel.now_us, reply, None)
        elif self.storage is not None and self.storage.knows(effect):
            self.storage.ask(caller, effect, reply)
        elif self.operate is not None and isinstance(effect, REQUESTS):
            self.operate(effect, reply)
        elif self.storage is not None and kind in (Receive, Transmit):
            self._move(self.storage.machine, caller, effect, reply)
        else:
            raise NotAnEffect(self.node.name, effect)

    def _compress(self, caller: Caller, effect: Compress, reply: Reply) -> None:
        codec = self.kernel.profile.codec(effect.codec)
        cost_ns = effect.plain_bytes * NS // codec.compress_bytes_per_s
        size_bytes = codec.compressed_bytes(effect.messages, effect.plain_bytes)
        self._compute(caller, cost_ns, reply, size_bytes)

    def _compute(self, caller: Caller, cost_ns: int, reply: Reply, answer: Any) -> None:
        """Keep a processor busy: one of the host, if the process has one, or its own."""
        if self.storage is None:
            self.kernel.after(cost_ns // 1000, reply, answer)
            return
        done_ns = self.storage.machine.compute(caller, cost_ns)
        self.kernel.at(max(done_ns // 1000, self.kernel.now_us), reply, answer)

    def _move(
        self, machine: Machine, caller: Caller, effect: Receive | Transmit, reply: Reply
    ) -> None:
        """Move data between the network and the memory of this process."""
        if isinstance(effect, Receive):
            machine.receive(caller, effect.size_bytes)
        else:
            machine.transmit(caller, size_of(effect.contents), effect.to)
        self.kernel.at(max(caller.ready_ns // 1000, self.kernel.now_us), reply, None)

    def _post(self, effect: Post) -> None:
        self._posted[effect.name] = effect.value

    def _emit(self, effect: Emit) -> None:
        node = self.node
        self.kernel.write(
            node.name, effect.kind, dict(effect.detail), group=node.group, topic=effect.topic
        )
        step = STEPS_OF_TASKS.get(effect.kind)
        if step is not None and self.reached is not None:
            # A task cannot end its own process: it strikes once this task waits.
            reached = self.reached
            self.kernel.after(0, lambda _: reached(*step), None)
