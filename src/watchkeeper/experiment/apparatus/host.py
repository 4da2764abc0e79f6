"""A host of experiments: its storage, its processes, and their threads.

A thread runs a coroutine that asks for storage and for work, one thing after the other. All
threads of a process end with it, and stand still while it collects garbage.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from watchkeeper.model.actor.effects import Now
from watchkeeper.model.log.format.contents import size_of
from watchkeeper.sim.disk.host_costs import Caller, Connection, MachineProfile
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.engine.latency_profile import DEFAULT
from watchkeeper.sim.engine.random_streams import Streams
from watchkeeper.sim.storage.crash import Lost
from watchkeeper.sim.storage.host_effects import (
    Compute,
    Delivered,
    GiveLock,
    Idle,
    Receive,
    TakeLock,
    Transmit,
)
from watchkeeper.sim.storage.storage import Storage

Body = Coroutine[Any, Any, Any]


class Process:
    """Threads that share memory, and end together."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.is_alive = True
        self.stands_until_us = 0
        self.threads: list[Thread] = []

    def stand_still(self, duration_us: int) -> None:
        """Let no thread go on for so long."""
        self.stands_until_us = max(self.stands_until_us, self.kernel.now_us + duration_us)


class Thread(Caller):
    """A coroutine at work."""

    __slots__ = ("body", "host", "is_over", "process", "result")

    def __init__(self, host: Host, process: Process, body: Body) -> None:
        super().__init__()
        self.host = host
        self.process = process
        self.body = body
        self.is_over = False
        self.result: Any = None

    def resume(self, answer: Any) -> None:
        """Go on with an answer."""
        process, host = self.process, self.host
        if not process.is_alive or self.is_over:
            return
        if process.stands_until_us > host.kernel.now_us:
            host.kernel.at(process.stands_until_us, self.resume, answer)
            return
        try:
            effect = self.body.send(answer)
            while type(effect) is Now:
                effect = self.body.send(host.storage.files.now_ms())
        except StopIteration as done:
            self.is_over, self.result = True, done.value
            return
        host.ask(self, effect)


class Host:
    """One machine with what runs on it."""

    def __init__(self, kernel: Kernel, profile: MachineProfile, name: str = "host") -> None:
        self.kernel = kernel
        self.storage = Storage(kernel, profile, name)
        self.machine = self.storage.machine
        self.processes: list[Process] = []
        self._work: dict[type[Any], Callable[[Thread, Any], None]] = {
            Compute: lambda thread, effect: self._later(
                thread, self.machine.compute(thread, effect.cost_ns)
            ),
            Idle: self._idle,
            Receive: self._receive,
            Transmit: self._transmit,
            Delivered: self._delivered,
            TakeLock: self._take,
            GiveLock: self._give,
        }

    def process(self) -> Process:
        """Start a process."""
        process = Process(self.kernel)
        self.processes.append(process)
        return process

    def start(self, process: Process, body: Body) -> Thread:
        """Start a thread."""
        thread = Thread(self, process, body)
        process.threads.append(thread)
        self.kernel.at(self.kernel.now_us, thread.resume, None)
        return thread

    def kill(self, process: Process) -> None:
        """End a process; what it wrote stays in memory."""
        process.is_alive = False
        self.processes.remove(process)
        for thread in process.threads:
            thread.body.close()

    def lose_power(self) -> tuple[Lost, ...]:
        """End the host with all that runs there; what was lost."""
        for process in list(self.processes):
            self.kill(process)
        return self.storage.lose_power()

    def connection(self, *, takes_bytes_per_s: int | None = None) -> Connection:
        """A connection to another host."""
        return Connection(self.machine, takes_bytes_per_s=takes_bytes_per_s)

    # --- what threads ask --------------------------------------------------------------

    def ask(self, thread: Thread, effect: Any) -> None:
        """Do what a thread asks for, and let it go on."""
        work = self._work.get(type(effect))
        if work is not None:
            work(thread, effect)
        elif self.storage.knows(effect):
            self.storage.ask(thread, effect, thread.resume)
        else:
            raise TypeError(
                f"a thread of a host awaited {type(effect).__name__!r}; it may await what "
                "watchkeeper.model.log.storage and watchkeeper.sim.storage.host_effects have"
            )

    def _later(self, thread: Thread, ready_ns: int) -> None:
        thread.ready_ns = ready_ns
        self.kernel.at(max(ready_ns // 1000, self.kernel.now_us), thread.resume, None)

    def _idle(self, thread: Thread, effect: Idle) -> None:
        self._later(thread, self.machine.begin(thread) + effect.duration_us * 1000)

    def _receive(self, thread: Thread, effect: Receive) -> None:
        self.machine.receive(thread, effect.size_bytes)
        self._later(thread, thread.ready_ns)

    def _transmit(self, thread: Thread, effect: Transmit) -> None:
        self.machine.transmit(thread, size_of(effect.contents), effect.to)
        self._later(thread, thread.ready_ns)

    def _delivered(self, thread: Thread, effect: Delivered) -> None:
        self._later(thread, max(effect.by.arrives_us * 1000, self.machine.begin(thread)))

    def _take(self, thread: Thread, effect: TakeLock) -> None:
        if effect.lock.is_taken:
            effect.lock.waiting.append(thread)
        else:
            effect.lock.is_taken = True
            self._later(thread, self.machine.begin(thread))

    def _give(self, thread: Thread, effect: GiveLock) -> None:
        begin = self.machine.begin(thread)
        if effect.lock.waiting:
            self._later(effect.lock.waiting.popleft(), begin)
        else:
            effect.lock.is_taken = False
        self._later(thread, begin)


def new_host(profile: MachineProfile, seed: int = 0) -> Host:
    """A host in a world of its own."""
    return Host(Kernel(Streams(seed), DEFAULT), profile)


def run(host: Host, threads: Iterable[Thread]) -> list[Any]:
    """Run until these threads are over; what each of them returned."""
    waited = list(threads)
    kernel = host.kernel
    for thread in waited:
        while not thread.is_over:
            assert kernel._queue, "a thread waits for something that never comes"
            kernel.step()
    return [thread.result for thread in waited]
