"""A member of a live run, seen from whoever runs the world: a process and a line to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import msgspec

from model.answers import Ordered
from real.job import Job, encoded

Hear = Callable[["MemberProcess", dict[str, Any]], None]
HOME = Path(__file__).resolve().parent.parent


class MemberProcess:
    """One process. What it says, and that it is gone, goes to `hear`.

    It is made ahead of time, since Python takes a while to start, and does nothing until
    it is given its job.
    """

    def __init__(self, errors: Path, hear: Hear) -> None:
        self.job: Job | None = None
        self.hear = hear
        self.is_ready = Event()
        self.is_alive = True
        self.is_paused = False
        self.was_killed = False
        self._lock = Lock()
        path = [str(HOME), *(place or os.getcwd() for place in sys.path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        with errors.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "real.member"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=environment,
            )
        Thread(target=self._listen, daemon=True).start()

    def begin(self, job: Job) -> None:
        """Give it its job."""
        self.job = job
        self._send(encoded(job))

    @property
    def node(self) -> str:
        """The name of the member that it is."""
        assert self.job is not None, "a process has a name when it has a job"
        return self.job.node

    @property
    def group(self) -> str:
        """The group of the member that it is."""
        return self.job.group if self.job is not None else ""

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stdout is not None, "it was started with a pipe"
        for line in self._process.stdout:
            message = msgspec.json.decode(line)
            if "ready" in message:
                self.is_ready.set()
            else:
                self.hear(self, message)
        self._process.wait()
        self.is_alive = False
        self.is_ready.set()
        if self.job is not None:
            self.hear(self, {"gone": self._process.returncode})

    def _send(self, line: bytes) -> bool:
        assert self._process.stdin is not None, "it was started with a pipe"
        try:
            with self._lock:
                self._process.stdin.write(line)
                self._process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def tell(self, **message: Any) -> bool:
        """Give it an order; whether there was anybody to hear it."""
        return self._send(msgspec.json.encode(message) + b"\n")

    def deliver(self, order: Ordered) -> bool:
        """Put an order into its inbox."""
        return self.tell(
            order=order.order.value, topic=order.topic, number=order.number, broker=order.broker
        )

    def go(self) -> None:
        """Let it take the step that it has reported."""
        self.tell(go=True)

    def pause(self) -> None:
        """Let it stand still."""
        self.is_paused = True
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        if self.is_paused and self.is_alive:
            os.kill(self.pid, signal.SIGCONT)
        self.is_paused = False

    def kill(self) -> bool:
        """Kill it with SIGKILL; whether it was there."""
        was_there = self.is_alive
        self.was_killed = True
        self._process.kill()
        self._process.wait()
        self.is_alive = False
        return was_there

    def close(self) -> None:
        """Let nothing of it be left."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
