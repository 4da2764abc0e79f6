"""A child process that cannot outlive this process.

Closing a pipe is the only event that a parent causes in every way of ending, SIGKILL
included. So the command does not run as a direct child: a watchdog (`watchdog.py`) starts it
and reads a pipe from this process. The end of that pipe is the end of the command.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from time import monotonic

from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.supervise import watchdog

SET_PARENT_DEATH_SIGNAL = 1
"""`PR_SET_PDEATHSIG` of Linux."""
TIMEOUT_S = 10.0
"""How long the watchdog may take to start a process or to send a signal."""


class ChildProcess:
    """A process, its watchdog, and the pipe whose end is the end of both."""

    def __init__(
        self, command: Sequence[str], *, output: Path, remove: Path | None = None
    ) -> None:
        """Start a command; if this process dies, the folder `remove` is deleted with it.

        Raises EnvironmentProblem if the watchdog cannot start it.
        """
        self.command = tuple(command)
        self._lock = RLock()
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, output, remove or "", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self.pid = int(self._read_line().removeprefix(b"pid "))
        except (ValueError, TimeoutError):
            self._release()
            output_text = self._watchdog.stderr.read().decode() if self._watchdog.stderr else ""
            raise EnvironmentProblem(
                f"{command[0]} should start under a watchdog, but did not "
                f"({output_text.strip().rpartition(chr(10))[2] or 'no output'}); "
                "look whether this machine has processes and memory left"
            ) from None
        finally:
            if self._watchdog.stderr is not None:
                self._watchdog.stderr.close()

    def _read_line(self) -> bytes:
        """The next line from the watchdog; empty if the watchdog has ended."""
        pipe = self._watchdog.stdout
        assert pipe is not None, "the guard was started with a pipe"
        line = b""
        ends = monotonic() + TIMEOUT_S
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([pipe], [], [], max(0.0, ends - monotonic()))
            if not ready:
                raise TimeoutError(f"the watchdog of {self.command[0]} does not answer")
            # Byte by byte: a larger read could consume the beginning of the next answer.
            byte = os.read(pipe.fileno(), 1)
            if not byte:
                return b""
            line += byte
        return line.strip()

    @property
    def is_running(self) -> bool:
        """Whether the process exists, stopped or not."""
        return self._watchdog.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code, or 128 plus the signal number; None while the process runs."""
        return self._watchdog.poll()

    def send(self, number: signal.Signals) -> bool:
        """Send a signal; return whether the process existed."""
        with self._lock:
            pipe = self._watchdog.stdin
            if pipe is None or pipe.closed or not self.is_running:
                return False
            try:
                os.write(pipe.fileno(), f"{number.name}\n".encode())
            except BrokenPipeError:
                return False
            return self._read_line() == b"sent"

    def wait(self, timeout_s: float = TIMEOUT_S) -> bool:
        """Wait until the process has ended; return whether it did so in time."""
        try:
            self._watchdog.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._release()
        return True

    def kill(self) -> None:
        """Kill the process with SIGKILL and wait until it has ended."""
        self.send(signal.SIGKILL)
        if not self.wait():
            os.kill(self.pid, signal.SIGKILL)
            self._release()

    def _release(self) -> None:
        """Close the pipes, which ends the watchdog and whatever it still runs."""
        with self._lock:
            for pipe in (self._watchdog.stdin, self._watchdog.stdout):
                if pipe is not None and not pipe.closed:
                    pipe.close()
            self._watchdog.wait(TIMEOUT_S)


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent dies, even while it is stopped.

    A stopped process cannot notice that its standard input was closed. On systems other than
    Linux such a process ends only after it is continued.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
