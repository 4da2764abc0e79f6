"""What a program finds in its process: a job, a diary, a client, and a line to the world.

Orders come as lines on standard input, each a JSON object; what the process has to say goes
to standard output in the same way. The process ends when nobody is left to give orders.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec

from model.answers import Order, Ordered
from model.program import Program
from real.client import Client, Said
from real.cluster import ClusterFile
from real.diary import Diary
from real.directory import Directory
from real.driver import Driver
from real.job import Job
from real.joint import JointDriver

Heard = Callable[[dict[str, Any]], object]


def say(**message: Any) -> None:
    """Say something to whoever runs the world."""
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


class Channel:
    """The line to whoever runs the world."""

    def __init__(self, armed: tuple[tuple[str, str], ...]) -> None:
        self.armed = frozenset(armed)
        self.may_go = Event()
        self._heard: dict[str, Heard] = {"go": lambda message: self.may_go.set()}

    def before(self, purpose: str) -> None:
        """Report a step before it is taken, and wait for leave."""
        self._step("before", purpose)

    def after(self, purpose: str) -> None:
        """Report a step whose answer has come, and wait for leave."""
        self._step("after_reply", purpose)

    def _step(self, when: str, purpose: str) -> None:
        if (when, purpose) in self.armed:
            self.may_go.clear()
            say(step=when, purpose=purpose)
            self.may_go.wait()

    def on(self, word: str, call: Heard) -> None:
        """Do this with every order that has this word."""
        self._heard[word] = call

    def listen(self) -> None:
        """Take orders until there is nobody to give them, and then end at once."""
        for line in sys.stdin.buffer:
            message = msgspec.json.decode(line)
            self._heard[next(word for word in self._heard if word in message)](message)
        os._exit(0)


class Workplace:
    """What one process has."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.diary = Diary(Path(job.diary), job.node, job.group, job.begin_ns)
        self.cluster = ClusterFile(Path(job.cluster))
        self.channel = Channel(job.armed)
        self.client: Client | None = None

    @property
    def session(self) -> int:
        """The session that there is, or was last; 0 before the first."""
        return 0 if self.client is None else self.client.session

    def connect(self, hear: Callable[[Said], None]) -> Client:
        """Make the client of this process."""
        job = self.job
        self.client = Client(job.hosts, job.chroot, job.session_timeout_ms, hear, dict(job.kazoo))
        return self.client

    def joint_driver(
        self, program: Program, balancer: str, target: str | None = None
    ) -> JointDriver:
        """The driver of a program with threads beside it, which may send to another cluster."""
        others = () if target is None else (ClusterFile(Path(target)),)
        return JointDriver(
            program,
            self.diary,
            self.connect,
            self._thread_failed,
            steps=self.channel,
            skew_ms=self.job.skew_ms,
            where=Directory((self.cluster, *others), balancer).where,
        )

    def _thread_failed(self, name: str, error: Exception) -> None:
        """What a thread does not catch is a fault of the program: the process dies of it."""
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)

    def listen(self, driver: Driver) -> None:
        """Take orders from now on."""

        def order(message: dict[str, Any]) -> None:
            driver.queue.put(Ordered(Order(message.pop("order")), **message))

        def skew(message: dict[str, Any]) -> None:
            driver.skew_ms = message["skew_ms"]

        self.channel.on("order", order)
        self.channel.on("skew_ms", skew)
        Thread(target=self.channel.listen, daemon=True).start()
