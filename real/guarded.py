"""A process that cannot outlive this one."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from time import monotonic

from real import guard
from real.problems import EnvironmentProblem

PATIENCE_S = 10.0
"""How long a guard may take to start a process or to send a signal."""


class GuardedProcess:
    """A process, its guard, and the pipe whose end is the end of both."""

    def __init__(
        self, command: Sequence[str], *, output: Path, remove: Path | None = None
    ) -> None:
        """Start a command; `remove` is a folder that goes with it if this process dies."""
        self.command = tuple(command)
        self._lock = RLock()
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, output, remove or "", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self.pid = int(self._hear().removeprefix(b"pid "))
        except (ValueError, TimeoutError):
            self._release()
            said = self._guard.stderr.read().decode() if self._guard.stderr else ""
            raise EnvironmentProblem(
                f"{command[0]} should start under a guard, but did not "
                f"({said.strip().rpartition(chr(10))[2] or 'it said nothing'}); "
                "look whether this machine has processes and memory left"
            ) from None
        finally:
            if self._guard.stderr is not None:
                self._guard.stderr.close()

    def _hear(self) -> bytes:
        """The next line from the guard; empty if it has ended."""
        pipe = self._guard.stdout
        assert pipe is not None, "the guard was started with a pipe"
        line = b""
        ends = monotonic() + PATIENCE_S
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([pipe], [], [], max(0.0, ends - monotonic()))
            if not ready:
                raise TimeoutError(f"the guard of {self.command[0]} does not answer")
            piece = os.read(pipe.fileno(), 1)
            if not piece:
                return b""
            line += piece
        return line.strip()

    @property
    def is_running(self) -> bool:
        """Whether the process is there, stopped or not."""
        return self._guard.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended, 128 and the signal if by one; None while it runs."""
        return self._guard.poll()

    def send(self, what: signal.Signals) -> bool:
        """Send a signal; whether there was a process to send it to."""
        with self._lock:
            pipe = self._guard.stdin
            if pipe is None or pipe.closed or not self.is_running:
                return False
            try:
                os.write(pipe.fileno(), f"{what.name}\n".encode())
            except BrokenPipeError:
                return False
            return self._hear() == b"sent"

    def wait(self, patience_s: float = PATIENCE_S) -> bool:
        """Wait until the process has ended; whether it has."""
        try:
            self._guard.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        self._release()
        return True

    def kill(self) -> None:
        """Kill the process with SIGKILL and wait until it is gone."""
        self.send(signal.SIGKILL)
        if not self.wait():
            os.kill(self.pid, signal.SIGKILL)
            self._release()

    def _release(self) -> None:
        """Close the pipes, which ends whatever is left."""
        with self._lock:
            for pipe in (self._guard.stdin, self._guard.stdout):
                if pipe is not None and not pipe.closed:
                    pipe.close()
            self._guard.wait(PATIENCE_S)
