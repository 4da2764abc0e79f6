"""One real ZooKeeper server, as a process that can be killed, stopped and started again."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Literal

from real.guarded import GuardedProcess
from real.ports import HOST, check_free
from real.problems import EnvironmentProblem
from real.settings import Ports

State = Literal["running", "paused", "down"]
Role = Literal["leader", "follower", "standalone"]

PATIENCE_S = 30.0
"""How long a server may take until it serves."""
LOOK_S = 0.02
ANSWER_S = 1.0
"""How long a server may take for a four-letter word; a paused one takes for ever."""
FAREWELL_S = 3.0
LAST_LINES = 12


class Server:
    """A server, its folder, and its process if it has one."""

    def __init__(
        self,
        name: str,
        folder: Path,
        ports: Ports,
        command: list[str],
        *,
        remove: Path | None = None,
    ) -> None:
        """Make a server that is down; `remove` is a folder that must not outlive us."""
        self.name = name
        self.folder = folder
        self.ports = ports
        self.address = f"{HOST}:{ports.client}"
        self._command = command
        self._remove = remove
        self._lock = RLock()
        self._process: GuardedProcess | None = None
        self._is_paused = False

    def __repr__(self) -> str:
        return f"<{self.name} at {self.address}, {self.state}>"

    # --- what it is --------------------------------------------------------------------

    @property
    def state(self) -> State:
        """Whether its process runs, stands still, or is not there."""
        process = self._process
        if process is None or not process.is_running:
            return "down"
        return "paused" if self._is_paused else "running"

    @property
    def pid(self) -> int | None:
        """The number of its process."""
        return None if self._process is None or self.state == "down" else self._process.pid

    @property
    def role(self) -> Role | None:
        """What it is in its ensemble; None while it does not serve."""
        for line in self.ask("srvr").splitlines() if self.state == "running" else ():
            if line.startswith("Mode: "):
                mode = line.removeprefix("Mode: ").strip()
                return next((role for role in ROLES if role == mode), None)
        return None

    @property
    def log_folder(self) -> Path:
        """Where its transaction log stands."""
        return self.folder / "data" / "version-2"

    @property
    def last_words(self) -> str:
        """The last lines that it has written, but for the frames of Java's stacks."""
        output = self.folder / "output.log"
        lines = output.read_text(errors="replace").splitlines() if output.exists() else []
        told = [line for line in lines if not line.lstrip().startswith(("at ", "..."))]
        return "\n".join(told[-LAST_LINES:])

    def ask(self, word: str, patience_s: float = ANSWER_S) -> str:
        """What it answers to a four-letter word; nothing if it does not answer."""
        pieces = []
        try:
            with socket.create_connection((HOST, self.ports.client), patience_s) as line:
                line.settimeout(patience_s)
                line.sendall(word.encode())
                while piece := line.recv(65536):
                    pieces.append(piece)
        except OSError:
            return ""
        return b"".join(pieces).decode(errors="replace")

    # --- what can be done to it --------------------------------------------------------

    def start(self, *, patience_s: float | None = PATIENCE_S) -> None:
        """Start it and wait until it serves; with None, do not wait."""
        with self._lock:
            if self.state == "down":
                check_free(self.ports.by_use)
                self._is_paused = False
                self._process = GuardedProcess(
                    self._command, output=self.folder / "output.log", remove=self._remove
                )
        if patience_s is not None:
            self.wait_until_it_serves(patience_s)

    def wait_until_it_serves(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until it answers requests; EnvironmentProblem if it does not."""
        ends = monotonic() + patience_s
        while self.role is None:
            if self.state == "down":
                code = None if self._process is None else self._process.exit_code
                raise self._did_not_start(f"its process ended with exit code {code}")
            if monotonic() > ends:
                raise self._did_not_start(f"it did not within {patience_s:g} s")
            sleep(LOOK_S)

    def _did_not_start(self, why: str) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"{self.name} should serve at {self.address}, but {why}; read its last lines, "
            f"which end {self.folder / 'output.log'}:\n{self.last_words or '(none)'}"
        )

    def stop(self) -> bool:
        """End it in good order, or by force if it does not obey; whether it was there."""
        return self._end(lambda process: process.send(signal.SIGTERM))

    def kill(self) -> bool:
        """Kill it with SIGKILL and wait until it is gone; whether it was there."""
        return self._end(lambda process: False)

    def _end(self, ask: Callable[[GuardedProcess], bool]) -> bool:
        with self._lock:
            process = self._process
            if process is None:
                return False
            was_there = process.is_running
            if self._is_paused or not ask(process) or not process.wait(FAREWELL_S):
                process.kill()
            self._is_paused = False
            self._process = None
            return was_there

    def pause(self) -> bool:
        """Let it stand still, as a long garbage collection does; whether it ran."""
        with self._lock:
            if self._process is None or self.state != "running":
                return False
            self._is_paused = self._process.send(signal.SIGSTOP)
            return self._is_paused

    def resume(self) -> bool:
        """Let it go on; whether it stood still."""
        with self._lock:
            if self._process is None or self.state != "paused":
                return False
            self._is_paused = not self._process.send(signal.SIGCONT)
            return not self._is_paused

    def restart(self, *, patience_s: float | None = PATIENCE_S) -> None:
        """End it in good order and start it again with what it has on disk."""
        self.stop()
        self.start(patience_s=patience_s)


ROLES: tuple[Role, ...] = ("leader", "follower", "standalone")
