"""A member of a live run as the world sees it: a process and a channel to it."""

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

import watchkeeper
from watchkeeper.model.actor.events import Command
from watchkeeper.real.member.job import Job, encoded

HOME = Path(watchkeeper.__file__).resolve().parent.parent
"""The folder of this package: a member runs the same code as the process that starts it."""
OnMessage = Callable[["MemberProcess", dict[str, Any]], None]


class MemberProcess:
    """One process; its reports, and its end, are passed to `on_message`.

    It is started in advance, since Python needs time to start, and waits for its job.
    """

    def __init__(self, errors: Path, on_message: OnMessage) -> None:
        self.job: Job | None = None
        self.on_message = on_message
        self.is_ready = Event()
        self.is_alive = True
        self.is_paused = False
        self.was_killed = False
        self.is_abandoned = False
        """Whether its program is over, and the process goes on with its client."""
        self._lock = Lock()
        path = [str(HOME), *(place or os.getcwd() for place in sys.path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        with errors.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "watchkeeper.real.member.main"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=environment,
            )
        Thread(target=self._listen, daemon=True).start()

    def begin(self, job: Job) -> None:
        """Send the job."""
        self.job = job
        self._write_line(encoded(job))

    @property
    def node(self) -> str:
        """The name of the member."""
        assert self.job is not None, "a process has a name when it has a job"
        return self.job.node

    @property
    def group(self) -> str:
        """The group of the member."""
        return self.job.group if self.job is not None else ""

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stdout is not None, "it was started with a pipe"
        for line in self._process.stdout:
            message = msgspec.json.decode(line)
            if "ready" in message:
                self.is_ready.set()
            else:
                self.on_message(self, message)
        self._process.wait()
        self.is_alive = False
        self.is_ready.set()
        if self.job is not None:
            self.on_message(self, {"gone": self._process.returncode})

    def _write_line(self, line: bytes) -> bool:
        assert self._process.stdin is not None, "it was started with a pipe"
        try:
            with self._lock:
                self._process.stdin.write(line)
                self._process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def send(self, **message: Any) -> bool:
        """Send an order; return whether the process could receive it."""
        return self._write_line(msgspec.json.encode(message) + b"\n")

    def deliver(self, order: Command) -> bool:
        """Put an order into the program's inbox; False if no program reads it any more."""
        return not self.is_abandoned and self.send(
            order=order.kind.value, topic=order.topic, number=order.number, broker=order.broker
        )

    def abandon(self) -> bool:
        """End the program but not the process; return whether there was one."""
        if self.is_abandoned:
            return False
        self.is_abandoned = True
        return self.send(abandon=True)

    def go(self) -> None:
        """Permit the step that the process has reported."""
        self.send(go=True)

    def pause(self) -> None:
        """Stop the process with SIGSTOP."""
        self.is_paused = True
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process."""
        if self.is_paused and self.is_alive:
            os.kill(self.pid, signal.SIGCONT)
        self.is_paused = False

    def kill(self) -> bool:
        """Kill the process with SIGKILL; return whether it was running."""
        was_there = self.is_alive
        self.was_killed = True
        self._process.kill()
        self._process.wait()
        self.is_alive = False
        return was_there

    def close(self) -> None:
        """End the process and close its pipes."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
