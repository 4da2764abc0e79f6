"""One ZooKeeper server as a process that can be killed, paused and restarted."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Literal

from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.ports import HOST, check_free
from watchkeeper.real.supervise.child_process import ChildProcess
from watchkeeper.real.zookeeper.settings import Ports

State = Literal["running", "paused", "down"]
Role = Literal["leader", "follower", "standalone"]

TIMEOUT_S = 30.0
"""How long a server may take until it serves."""
POLL_S = 0.02
ANSWER_S = 1.0
"""Timeout of a four-letter word; a paused server never answers."""
STOP_TIMEOUT_S = 3.0
LAST_LINES = 12


class Server:
    """A server: its folder, its ports, and its process while it runs."""

    def __init__(
        self,
        name: str,
        folder: Path,
        ports: Ports,
        command: list[str],
        *,
        remove: Path | None = None,
    ) -> None:
        """Prepare a server; `remove` is a folder that must not outlive this process."""
        self.name = name
        self.folder = folder
        self.ports = ports
        self.address = f"{HOST}:{ports.client}"
        self._command = command
        self._remove = remove
        self._lock = RLock()
        self._process: ChildProcess | None = None
        self._is_paused = False

    def __repr__(self) -> str:
        return f"<{self.name} at {self.address}, {self.state}>"

    # --- state ---------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Whether the process runs, is paused, or does not exist."""
        process = self._process
        if process is None or not process.is_running:
            return "down"
        return "paused" if self._is_paused else "running"

    @property
    def pid(self) -> int | None:
        """The process id; None while the server is down."""
        return None if self._process is None or self.state == "down" else self._process.pid

    @property
    def role(self) -> Role | None:
        """The role in the ensemble; None while the server does not serve."""
        for line in self.four_letter_word("srvr").splitlines() if self.state == "running" else ():
            if line.startswith("Mode: "):
                mode = line.removeprefix("Mode: ").strip()
                return next((role for role in ROLES if role == mode), None)
        return None

    @property
    def log_folder(self) -> Path:
        """The folder of the transaction log."""
        return self.folder / "data" / "version-2"

    @property
    def last_lines(self) -> str:
        """The last lines of its output, without the frames of Java stack traces."""
        output = self.folder / "output.log"
        lines = output.read_text(errors="replace").splitlines() if output.exists() else []
        output_lines = [line for line in lines if not line.lstrip().startswith(("at ", "..."))]
        return "\n".join(output_lines[-LAST_LINES:])

    def four_letter_word(self, word: str, timeout_s: float = ANSWER_S) -> str:
        """The answer to a four-letter word; empty if there is none within `timeout_s`."""
        return ask_word(HOST, self.ports.client, word, timeout_s)

    # --- actions -------------------------------------------------------------------------

    def start(self, *, timeout_s: float | None = TIMEOUT_S) -> None:
        """Start the server and wait until it serves; with None, do not wait."""
        with self._lock:
            if self.state == "down":
                check_free(self.ports.by_use)
                self._is_paused = False
                self._process = ChildProcess(
                    self._command, output=self.folder / "output.log", remove=self._remove
                )
        if timeout_s is not None:
            self.wait_until_it_serves(timeout_s)

    def wait_until_it_serves(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the server answers requests; raises EnvironmentProblem after `timeout_s`."""
        ends = monotonic() + timeout_s
        while self.role is None:
            if self.state == "down":
                code = None if self._process is None else self._process.exit_code
                raise self._did_not_start(f"its process ended with exit code {code}")
            if monotonic() > ends:
                raise self._did_not_start(f"it did not within {timeout_s:g} s")
            sleep(POLL_S)

    def _did_not_start(self, why: str) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"{self.name} should serve at {self.address}, but {why}; read its last lines, "
            f"which end {self.folder / 'output.log'}:\n{self.last_lines or '(none)'}"
        )

    def stop(self) -> bool:
        """End the server with SIGTERM, and by force if that fails; return whether it existed."""
        return self._end(lambda process: process.send(signal.SIGTERM))

    def kill(self) -> bool:
        """Kill the server with SIGKILL and wait until it is gone; return whether it existed."""
        return self._end(lambda process: False)

    def _end(self, effect: Callable[[ChildProcess], bool]) -> bool:
        with self._lock:
            process = self._process
            if process is None:
                return False
            was_there = process.is_running
            if self._is_paused or not effect(process) or not process.wait(STOP_TIMEOUT_S):
                process.kill()
            self._is_paused = False
            self._process = None
            return was_there

    def pause(self) -> bool:
        """Send SIGSTOP, which acts like a long garbage collection; return whether it ran."""
        with self._lock:
            if self._process is None or self.state != "running":
                return False
            self._is_paused = self._process.send(signal.SIGSTOP)
            return self._is_paused

    def resume(self) -> bool:
        """Continue a paused process; return whether it was paused."""
        with self._lock:
            if self._process is None or self.state != "paused":
                return False
            self._is_paused = not self._process.send(signal.SIGCONT)
            return not self._is_paused

    def restart(self, *, timeout_s: float | None = TIMEOUT_S) -> None:
        """End the server and start it again with its data."""
        self.stop()
        self.start(timeout_s=timeout_s)


ROLES: tuple[Role, ...] = ("leader", "follower", "standalone")


def ask_word(host: str, port: int, word: str, timeout_s: float) -> str:
    """A server's answer to a four-letter word; empty if there is none within `timeout_s`."""
    pieces = []
    try:
        with socket.create_connection((host, port), timeout_s) as line:
            line.settimeout(timeout_s)
            line.sendall(word.encode())
            while data := line.recv(65536):
                pieces.append(data)
    except OSError:
        return ""
    return b"".join(pieces).decode(errors="replace")
