"""What a member has: its job, its trace writer, its client, and a channel to the world.

Orders are JSON lines on the standard input of its process, and reports are JSON lines on the
standard output; each names the member, since several may run in one process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock
from typing import Any, NoReturn

import msgspec

from watchkeeper.model.actor.events import Command, CommandKind
from watchkeeper.model.actor.program import Program
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.real.client.client import Client, ClientEvent
from watchkeeper.real.member.address_map import AddressMap
from watchkeeper.real.member.data_plane_file import DataPlaneFile
from watchkeeper.real.member.job import Job
from watchkeeper.real.process.driver import Driver
from watchkeeper.real.process.task_driver import TaskDriver
from watchkeeper.real.trace.writer import TraceWriter

OrderHandler = Callable[[dict[str, Any]], object]


_WRITING = Lock()


def report(**message: Any) -> None:
    """Send a report to the process that runs the world."""
    with _WRITING:
        sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
        sys.stdout.buffer.flush()


class Channel:
    """The channel of a member to the process that runs the world."""

    def __init__(self, node: str, armed: tuple[tuple[str, str], ...]) -> None:
        self.node = node
        self.armed = frozenset(armed)
        self.may_go = Event()
        self.is_ready = Event()
        """Whether there is a handler for every order."""
        self._handlers: dict[str, OrderHandler] = {"go": lambda message: self.may_go.set()}

    def before(self, purpose: str) -> None:
        """Report a step before it is taken, and wait for permission."""
        self._step("before", purpose)

    def after(self, purpose: str) -> None:
        """Report a step whose answer has arrived, and wait for permission."""
        self._step("after_reply", purpose)

    def _step(self, when: str, purpose: str) -> None:
        if (when, purpose) in self.armed:
            self.may_go.clear()
            report(node=self.node, step=when, purpose=purpose)
            self.may_go.wait()

    def on(self, word: str, call: OrderHandler) -> None:
        """Call this for every order that has this key."""
        self._handlers[word] = call

    def handle(self, message: dict[str, Any]) -> None:
        """Handle an order, as soon as the member is ready for it."""
        self.is_ready.wait()
        self._handlers[next(word for word in self._handlers if word in message)](message)


class MemberContext:
    """The resources of one member."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.writer = TraceWriter(Path(job.trace_file), job.node, job.group, job.begin_ns)
        self.cluster = DataPlaneFile(Path(job.cluster))
        self.channel = Channel(job.node, job.armed)
        self.client: Client | None = None
        self.ends_process: tuple[type[Exception], ...] = ()
        """What ends a broker's process where a task raises it; anything else is a bug."""

    @property
    def session(self) -> int:
        """The current session or the last one; 0 before the first."""
        return 0 if self.client is None else self.client.session

    def report(self, **message: Any) -> None:
        """Send a report of this member to the process that runs the world."""
        report(node=self.job.node, **message)

    def connect(self, on_event: Callable[[ClientEvent], None]) -> Client:
        """Create the client of this process."""
        job = self.job
        self.client = Client(
            job.hosts,
            job.chroot,
            job.session_timeout_ms,
            on_event,
            dict(job.kazoo),
            resends_watches=job.resends_watches,
            waits_for_program=True,
        )
        return self.client

    def task_driver(
        self, program: Program, balancer: str, target: str | None = None
    ) -> TaskDriver:
        """The driver of a program with tasks beside it, which may send to a `target` cluster."""
        return TaskDriver(
            program,
            self.writer,
            self.connect,
            self.task_failed,
            steps=self.channel,
            skew_ms=self.job.skew_ms,
            where=self.address_map(balancer, target).where,
        )

    def address_map(self, balancer: str, target: str | None = None) -> AddressMap:
        """Where the brokers of its cluster listen, and those of a `target` cluster."""
        others = () if target is None else (DataPlaneFile(Path(target)),)
        return AddressMap((self.cluster, *others), balancer, self.job.node)

    def task_failed(self, name: str, error: Exception) -> None:
        """An uncaught exception of a task is a bug of the program: the process ends."""
        if isinstance(error, self.ends_process):
            self.fail_broker(error)
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)

    def fail_broker(self, error: Exception) -> NoReturn:
        """A broker cannot go on: it says why, and ends."""
        self.writer.write(EventKind.BROKER_FAILED, {"why": str(error)})
        self.report(fails=str(error))
        os._exit(1)

    def listen(self, driver: Driver, change: Callable[[Command], object] | None = None) -> None:
        """Handle orders from now on; `change` carries them out beside the program."""

        def order(message: dict[str, Any]) -> None:
            command = Command(CommandKind(message.pop("order")), **message)
            if change is not None:
                change(command)
            driver.queue.put(command)

        def skew(message: dict[str, Any]) -> None:
            driver.skew_ms = message["skew_ms"]

        self.channel.on("abandon", lambda message: driver.abandon())
        self.channel.on("order", order)
        self.channel.on("skew_ms", skew)
        self.channel.is_ready.set()
