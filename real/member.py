"""A member of a live run: one process, one program.

    python -m real.member

Its orders come as lines on standard input, the first of them a pickled `Job`; what it has
to say goes to standard output. It ends when its program is over, when it is told to, or
when whoever started it is gone, which closes its standard input.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec

from model.answers import Order, Ordered
from model.program import Program
from real.client import Client, Said
from real.cluster import ClusterFile
from real.diary import Diary
from real.driver import Driver
from real.fetching import Fetcher
from real.parent import end_with_parent
from real.serving import DataServer


@dataclass(frozen=True)
class Job:
    """What a member's process is to do."""

    node: str
    group: str
    program: Program
    hosts: str
    chroot: str
    session_timeout_ms: int
    diary: str
    cluster: str
    begin_ns: int
    about: dict[str, Any]
    fetch_every_s: float = 0
    """0 for whoever fetches nothing."""
    ends_on_error: bool = False
    port: int = 0
    """Where a broker listens; 0 for whoever serves nothing."""
    armed: tuple[tuple[str, str], ...] = ()
    """(before or after, purpose) of the steps at which to report and wait."""
    skew_ms: int = 0
    kazoo: tuple[tuple[str, Any], ...] = ()
    """What kazoo needs to be let in."""


def encoded(job: Job) -> bytes:
    """A job as a line."""
    return base64.b64encode(pickle.dumps(job)) + b"\n"


def say(**message: Any) -> None:
    """Say something to whoever runs the world."""
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


class Channel:
    """The line to whoever runs the world."""

    def __init__(self, job: Job) -> None:
        self.armed = frozenset(job.armed)
        self.may_go = Event()

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

    def listen(self, deliver: Callable[[Ordered], None], driver: Driver) -> None:
        """Take orders until there is nobody to give them, and then end at once."""
        for line in sys.stdin.buffer:
            message = msgspec.json.decode(line)
            if "go" in message:
                self.may_go.set()
            elif "skew_ms" in message:
                driver.skew_ms = message["skew_ms"]
            else:
                order = Order(message.pop("order"))
                deliver(Ordered(order, **message))
        os._exit(0)


def main() -> None:
    """Say that the imports are done, read the job, and do it."""
    end_with_parent()
    say(ready=os.getpid())
    job: Job = pickle.loads(base64.b64decode(sys.stdin.buffer.readline()))
    diary = Diary(Path(job.diary), job.node, job.group, job.begin_ns)
    cluster = ClusterFile(Path(job.cluster))
    channel = Channel(job)
    clients: list[Client] = []

    def connect(hear: Callable[[Said], None]) -> Client:
        clients.append(
            Client(job.hosts, job.chroot, job.session_timeout_ms, hear, dict(job.kazoo))
        )
        return clients[0]

    fetcher = None
    if job.fetch_every_s:
        fetcher = Fetcher(
            diary,
            cluster,
            job.fetch_every_s,
            lambda: clients[0].session if clients else 0,
            ends_on_error=job.ends_on_error,
        )
    if job.port:
        DataServer(job.port, job.node, cluster, diary.t_us)
    driver = Driver(job.program, diary, connect, fetcher, channel, job.skew_ms)
    Thread(target=channel.listen, args=(driver.queue.put, driver), daemon=True).start()
    ended = driver.run()
    say(ended=ended.reason, failed=ended.failed, slowest_us=clients[0].slowest_ns // 1000)
    os._exit(0)


if __name__ == "__main__":
    main()
