"""A ZooKeeper in Python in a process of its own: one server or an ensemble.

    with ProcessEnsemble(servers=3, settings=EnsembleSettings(tick_ms=500)) as zookeeper:
        client = KazooClient(zookeeper.hosts)
        zookeeper.leader.kill()

All servers are in one process, which serves within a tenth of a second. It listens on the
loopback only, and ends with this process, even if this process is killed. To its users it is
what `real.zookeeper.ensemble` is for Apache's servers.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import IO, Any

import msgspec

from watchkeeper.model.ensemble.control import ControlError
from watchkeeper.model.ensemble.settings import EnsembleSettings
from watchkeeper.model.ensemble.words import VERSION
from watchkeeper.real.errors import EnvironmentProblem
from watchkeeper.real.ports import HOST, free_ports
from watchkeeper.real.python_zookeeper.orders import RECORD, STOP, Order, Request, Result
from watchkeeper.real.python_zookeeper.process_server import ProcessServer
from watchkeeper.real.python_zookeeper.write_record import WriteRow
from watchkeeper.real.zookeeper.session_times import SessionTime, agreed_session_times

MODULE = "watchkeeper.real.python_zookeeper"
LOGS = "version-2"
"""The folder of the transaction log in that of the data, as Apache's servers have it."""
TIMEOUT_S = 30.0
POLL_S = 0.02
STOP_TIMEOUT_S = 5.0

CountEffect = Callable[[str, int], object]
"""Counts an effect of a fault, in words."""


class ProcessEnsemble:
    """The servers of one ZooKeeper, in a child process."""

    version = VERSION

    def __init__(
        self,
        servers: int = 1,
        *,
        settings: EnsembleSettings | None = None,
        name: str = "zookeeper",
        ports: tuple[int, ...] = (),
        data: Path | None = None,
        has_log: bool = False,
        has_record: bool = False,
        inside: Path | None = None,
        has_history: bool = False,
    ) -> None:
        """Prepare `servers` servers (an odd number) that are down.

        With `data` every write is durable in that folder, which is kept; with `has_log` alone
        in a temporary one `inside` another folder, which is removed at the end. If this process
        is killed, all of `inside` is removed.
        """
        if servers < 1 or servers % 2 == 0:
            raise ValueError(f"an ensemble has an odd number of servers, not {servers}")
        if ports and len(ports) != servers:
            raise ValueError(f"{servers} servers need {servers} ports, not {len(ports)}")
        self.settings = settings or EnsembleSettings()
        self._temporary: Path | None = None
        if data is None and has_log:
            data = self._temporary = Path(
                tempfile.mkdtemp(prefix="watchkeeper-zookeeper-", dir=inside)
            )
        self.data = data
        removed = inside or self._temporary
        self._order = Order(
            ports=ports or free_ports(servers),
            settings=self.settings,
            data=None if data is None else str(data),
            removed=None if removed is None else str(removed),
            has_record=has_record,
            has_history=has_history,
        )
        self._lock = RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self.servers = tuple(
            ProcessServer(self, number, f"{name}/{number}", f"{HOST}:{port}")
            for number, port in enumerate(self._order.ports, 1)
        )

    def __enter__(self) -> ProcessEnsemble:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- addresses and roles -------------------------------------------------------------

    @property
    def addresses(self) -> tuple[str, ...]:
        """The client address of each server."""
        return tuple(server.address for server in self.servers)

    @property
    def hosts(self) -> str:
        """All addresses as a ZooKeeper connection string."""
        return ",".join(self.addresses)

    @property
    def log_folder(self) -> Path:
        """The folder of the transaction log, which all servers share.

        Raises ValueError for an ensemble that keeps everything in memory.
        """
        if self.data is None:
            raise ValueError("this ZooKeeper keeps no log; start it with `data` or `has_log`")
        return self.data / LOGS

    @property
    def pid(self) -> int | None:
        """The id of the process; None while it does not run."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        """Whether the process exists."""
        return self._process is not None and self._process.poll() is None

    def server(self, name: str) -> ProcessServer:
        """Return the server with this name."""
        return next(server for server in self.servers if server.name == name)

    @property
    def leader(self) -> ProcessServer | None:
        """The server that leads now, or the only server; None if there is no leader."""
        for server, known in zip(self.servers, self.known_servers(), strict=True):
            if known["role"] in ("leader", "standalone") and known["state"] == "running":
                return server
        return None

    def wait_for_leader(self, timeout_s: float = TIMEOUT_S) -> ProcessServer:
        """Return the leader once there is one; raises EnvironmentProblem after `timeout_s`."""
        ends = monotonic() + timeout_s
        while (leader := self.leader) is None:
            if monotonic() > ends:
                states = ", ".join(f"{server.name} is {server.state}" for server in self.servers)
                raise EnvironmentProblem(
                    f"one of {self.hosts} should lead within {timeout_s:g} s, but none does "
                    f"({states}); start enough servers for a majority"
                )
            sleep(POLL_S)
        return leader

    @property
    def session_times(self) -> tuple[SessionTime, ...]:
        """When sessions began and ended, read from the transaction log."""
        return agreed_session_times([self.log_folder])

    def committed(self) -> list[WriteRow]:
        """What has been committed since the start, in order; empty without `has_record`."""
        rows: list[WriteRow] = self.do(RECORD, {})
        return rows

    # --- start and stop ------------------------------------------------------------------

    def start(self, *, timeout_s: float = TIMEOUT_S) -> None:
        """Start the process, or every server of it that is down; wait until all serve."""
        if self.is_running:
            self.do("start", {})
        else:
            self._start_process(timeout_s)
        for server in self.servers:
            server.wait_until_it_serves(timeout_s)

    def _start_process(self, timeout_s: float) -> None:
        order = msgspec.json.encode(self._order).decode()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it is open until `stop`
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE, order],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        try:
            self._result(timeout_s)
        except ControlError as error:
            self.stop()
            raise EnvironmentProblem(str(error)) from None
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process; remove the folder if it is temporary."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                _end(process)
            if self._errors is not None:
                self._errors.close()
                self._errors = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    # --- control -------------------------------------------------------------------------

    def do(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Carry out a verb of `control`; raises ControlError for what cannot be done."""
        with self._lock:
            process = self._process
            if process is None or process.stdin is None:
                raise RuntimeError("the ZooKeeper does not run; start it before it is used")
            with suppress(BrokenPipeError):  # the result says that the process has ended
                os.write(process.stdin.fileno(), _line(Request(verb, dict(arguments))))
            return self._result(TIMEOUT_S)

    def struck(self, verb: str, arguments: Mapping[str, Any]) -> dict[str, int]:
        """Inject a fault and return what it has struck at once."""
        effects: dict[str, int] = self.do("effects", {"fault": self.do(verb, arguments)})
        return effects

    def known_servers(self) -> list[dict[str, Any]]:
        """The number, state and role of each server; all are down while there is no process."""
        if not self.is_running:
            return [{"role": None, "state": "down"} for _ in self._order.ports]
        known: list[dict[str, Any]] = self.do("servers", {})
        return known

    def _result(self, timeout_s: float) -> Any:
        assert self._process is not None, "a process was started"
        assert self._process.stdout is not None, "it was started with a pipe"
        ready, _, _ = select.select([self._process.stdout], [], [], timeout_s)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            why = "ended" if ready else f"did not answer within {timeout_s:g} s"
            raise EnvironmentProblem(
                f"the process of the ZooKeeper at {self.hosts} {why}; "
                f"the last line of its errors: {self._last_line}"
            )
        result = msgspec.json.decode(line, type=Result)
        if result.error is not None:
            raise ControlError(result.error)
        return result.value

    @property
    def _last_line(self) -> str:
        if self._errors is None:
            return "(none)"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "(none)"

    # --- what passes between servers -----------------------------------------------------

    def cut(self, server: str, count_effect: CountEffect) -> Callable[[], None]:
        """Cut a server off from the others; returns the call that heals that."""
        return self._inject("cut", {"servers": [self.server(server).number]}, count_effect)

    def lag(self, server: str, by_s: float, count_effect: CountEffect) -> Callable[[], None]:
        """Let a server apply later what is committed; returns the call that ends that.

        A server that leads has applied everything; then nothing is counted.
        """
        arguments = {"server": self.server(server).number, "by_s": by_s}
        try:
            return self._inject("lag", arguments, count_effect)
        except ControlError:
            return lambda: None

    def _inject(
        self, verb: str, arguments: Mapping[str, Any], count_effect: CountEffect
    ) -> Callable[[], None]:
        fault = self.do(verb, arguments)
        counted: dict[str, int] = {}

        def count(effects: dict[str, int]) -> None:
            for effect, number in effects.items():
                if number > counted.get(effect, 0):
                    count_effect(effect, number - counted.get(effect, 0))
            counted.update(effects)

        count(self.do("effects", {"fault": fault}))
        return lambda: count(self.do("end", {"fault": fault}))


def _line(request: Request) -> bytes:
    return msgspec.json.encode(request) + b"\n"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and kill it if it does not end in time."""
    if process.stdin is not None:
        with suppress(BrokenPipeError):  # it has ended
            os.write(process.stdin.fileno(), _line(Request(STOP, {})))
        process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
