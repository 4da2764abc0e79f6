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
    """A member in a process; its reports, and its end, are passed to `on_message`.

    The process is started in advance, since Python needs time to start, and waits for its job.
    A member with a `host` runs in the process of that one.
    """

    def __init__(
        self, errors: Path, on_message: OnMessage, host: MemberProcess | None = None
    ) -> None:
        self.job: Job | None = None
        self.on_message = on_message
        self.host = host or self
        """The first member of the process."""
        self.is_ready = Event()
        self.is_alive = True
        self.is_paused = False
        self.was_killed = False
        self.is_abandoned = False
        """Whether its program is over, and the process goes on with its client."""
        self.mates: dict[str, MemberProcess] = {}
        """Of a host: the members that share its process, by name, itself included."""
        self._lock: Lock = Lock() if host is None else host._lock
        self._process: subprocess.Popen[bytes] = (
            self._begin_process(errors) if host is None else host._process
        )
        if host is None:
            Thread(target=self._listen, daemon=True).start()

    def _begin_process(self, errors: Path) -> subprocess.Popen[bytes]:
        path = [str(HOME), *(place or os.getcwd() for place in sys.path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        with errors.open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "watchkeeper.real.member.main"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=environment,
            )

    def begin(self, job: Job) -> None:
        """Send the job."""
        self.job = job
        self.host.mates[job.node] = self
        if self.host is self:
            self._write_line(encoded(job))
        else:
            line = msgspec.json.encode({"job": encoded(job).decode().strip()})
            self._write_line(line + b"\n")

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
                self._receive(self.mates[message.pop("node")], message)
        self._process.wait()
        self.is_ready.set()
        running = [member for member in self.family if member.is_alive or member.was_killed]
        for member in self.family:
            member.is_alive = False
        for member in running if self.job is not None else ():
            member.on_message(member, {"gone": self._process.returncode})

    def _receive(self, member: MemberProcess, message: dict[str, Any]) -> None:
        """Pass a report on; the process of several members outlives the program of one."""
        member.on_message(member, message)
        if "ended" in message and member.job is not None and member.job.shares_process:
            member.is_alive = False
            member.on_message(member, {"gone": 0})

    @property
    def family(self) -> list[MemberProcess]:
        """The members of the process, this one included."""
        return list(self.host.mates.values()) or [self]

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
        return self._write_line(msgspec.json.encode({"node": self.node, **message}) + b"\n")

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
        for member in self.family:
            member.is_paused = True
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process."""
        if self.is_paused and any(member.is_alive for member in self.family):
            os.kill(self.pid, signal.SIGCONT)
        for member in self.family:
            member.is_paused = False

    def kill(self) -> bool:
        """Kill the process with SIGKILL; return whether it was running."""
        was_there = self.is_alive
        for member in self.family:
            member.was_killed = True
        self._process.kill()
        self._process.wait()
        for member in self.family:
            member.is_alive = False
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
