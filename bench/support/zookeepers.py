"""The ZooKeeper servers that benches hold against each other: Apache's, and this project's.

    with start("python", Wanted(servers=3, tick_ms=250)) as zookeeper:
        KazooClient(zookeeper.hosts)

Either runs in processes of its own, listens on the loopback, keeps its ports while one server
is down, and writes what it has to say into a file. Apache's server is configured as ours is by
default where the two differ (TTLs, four-letter words), so that only behaviour can differ.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from watchkeeper.real.ports import HOST, free_ports
from watchkeeper.real.zookeeper.ensemble import Ensemble
from watchkeeper.real.zookeeper.settings import Settings

Kind = Literal["java", "python"]
KINDS: tuple[Kind, ...] = ("java", "python")
Where = Kind | Literal["virtual"]
"""Where kazoo's suite runs: on servers with real sockets, or in worlds in virtual time."""
NAMES: dict[Where, str] = {"java": "Apache's", "python": "ours", "virtual": "in virtual time"}

CHILD = Path(__file__).with_name("zookeeper_child.py")
NEVER_MS = 2_000_000_000
"""A period that no bench lasts."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What servers a bench needs."""

    servers: int = 1
    tick_ms: int = 500
    min_session_ms: int | None = None
    max_session_ms: int | None = None
    container_check_ms: int = 60_000
    heap_mb: int = 512
    data: bool = False
    """Ours: durable in a folder instead of in memory. Apache's server is always durable."""
    syncs: bool = True
    """Apache's: flush the log to the disk before an answer."""
    properties: dict[str, str] = field(default_factory=dict)
    """Further lines of Apache's configuration."""
    read_only_mode: bool = False
    """Serve reads without a leader, to clients that accept that."""


class ZooKeeper(Protocol):
    """Servers that run."""

    kind: Kind
    addresses: tuple[str, ...]

    @property
    def hosts(self) -> str:
        """All addresses as a connection string."""

    @property
    def output(self) -> str:
        """What the servers have written."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that serve."""

    def kill(self, number: int) -> None:
        """End one server (from 0), as its machine would."""

    def restart(self, number: int) -> None:
        """Start a server that was ended, with its data."""

    def stop(self) -> None:
        """End all of it, and remove what it has written."""


@contextmanager
def start(kind: Kind, wanted: Wanted | None = None) -> Iterator[ZooKeeper]:
    """Servers that serve from here on, and end with the block."""
    zookeeper = begin(kind, wanted or Wanted())
    try:
        yield zookeeper
    finally:
        zookeeper.stop()


def begin(kind: Kind, wanted: Wanted, *, ports: tuple[int, ...] = ()) -> ZooKeeper:
    """Servers that serve; the caller ends them by `stop`."""
    return Apache(wanted) if kind == "java" else Ours(wanted, ports=ports)


class Apache:
    """Apache's servers."""

    kind: Kind = "java"

    def __init__(self, wanted: Wanted) -> None:
        settings = Settings(
            tick_ms=wanted.tick_ms,
            min_session_ms=wanted.min_session_ms,
            max_session_ms=wanted.max_session_ms,
            heap_mb=wanted.heap_mb,
            container_check_ms=wanted.container_check_ms,
            has_ttls=True,
        )
        self._ensemble = Ensemble(wanted.servers, settings=settings)
        self._options = ("-Dreadonlymode.enabled=true",) if wanted.read_only_mode else ()
        self._configure(wanted)
        with self._environment():
            self._ensemble.start()
        self.addresses = self._ensemble.addresses

    def _configure(self, wanted: Wanted) -> None:
        """Add lines to the files of the servers; the last one with a name counts."""
        lines = {
            "4lw.commands.whitelist": "*",
            "snapshot.trust.empty": "true",
            **({} if wanted.syncs else {"forceSync": "no"}),
            **wanted.properties,
        }
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        for server in self._ensemble.servers:
            file = server.folder / "zoo.cfg"
            file.write_text(file.read_text() + text)

    @contextmanager
    def _environment(self) -> Iterator[None]:
        """Options that no file can hold reach the servers by the environment."""
        before = os.environ.get("JDK_JAVA_OPTIONS")
        os.environ["JDK_JAVA_OPTIONS"] = " ".join(self._options)
        try:
            yield
        finally:
            if before is None:
                del os.environ["JDK_JAVA_OPTIONS"]
            else:
                os.environ["JDK_JAVA_OPTIONS"] = before

    @property
    def version(self) -> str:
        """The version of the server."""
        return self._ensemble.version

    @property
    def hosts(self) -> str:
        """All addresses as a connection string."""
        return ",".join(self.addresses)

    @property
    def output(self) -> str:
        """What the servers have logged."""
        files = [server.folder / "output.log" for server in self._ensemble.servers]
        return "".join(file.read_text(errors="replace") for file in files if file.exists())

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that serve."""
        pids = (server.pid for server in self._ensemble.servers)
        return tuple(pid for pid in pids if pid is not None)

    def kill(self, number: int) -> None:
        """End one server with SIGKILL."""
        self._ensemble.servers[number].kill()

    def restart(self, number: int) -> None:
        """Start it again, with its data."""
        with self._environment():
            self._ensemble.servers[number].start()

    def stop(self) -> None:
        """Kill every server and remove the folders."""
        self._ensemble.stop()


class Ours:
    """This project's servers, in a process of their own."""

    kind: Kind = "python"

    def __init__(self, wanted: Wanted, *, ports: tuple[int, ...] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="watchkeeper-bench-")
        folder = Path(self._folder.name)
        self._output = folder / "output.log"
        ports = ports or free_ports(wanted.servers)
        values = {
            **asdict(replace(wanted, properties={})),
            "ports": ports,
            "folder": str(folder / "data") if wanted.data else None,
        }
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(CHILD), json.dumps(values)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
            )
        line = self._answer()
        self.addresses = tuple(json.loads(line))

    def _answer(self) -> str:
        assert self._process.stdout is not None, "the process was started with a pipe"
        line = self._process.stdout.readline().decode()
        if not line:
            self._process.wait()
            raise RuntimeError(f"this project's server has ended; it wrote:\n{self.output}")
        return line

    def _order(self, *words: object) -> str:
        assert self._process.stdin is not None, "the process was started with a pipe"
        self._process.stdin.write((json.dumps(words) + "\n").encode())
        self._process.stdin.flush()
        return self._answer()

    @property
    def hosts(self) -> str:
        """All addresses as a connection string."""
        return ",".join(self.addresses)

    @property
    def output(self) -> str:
        """What the process has written: closed connections with their reasons, and errors."""
        return self._output.read_text(errors="replace")

    @property
    def pids(self) -> tuple[int, ...]:
        """The process that serves."""
        return (self._process.pid,)

    def kill(self, number: int) -> None:
        """End one of the servers."""
        self._order("kill", number)

    def restart(self, number: int) -> None:
        """Start it again."""
        self._order("start", number)

    def stop(self) -> None:
        """End the process and remove what it has written."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self._folder.cleanup()


def memory_kb(pids: tuple[int, ...]) -> int:
    """The resident memory of processes."""
    return _status_kb(pids, "VmRSS:")


def peak_kb(pids: tuple[int, ...]) -> int:
    """The most resident memory that processes have had."""
    return _status_kb(pids, "VmHWM:")


def _status_kb(pids: tuple[int, ...], name: str) -> int:
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name):
                total += int(line.split()[1])
    return total


def command_ready_s() -> float:
    """How long `watchkeeper zookeeper` takes from its start until it answers."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "watchkeeper", "zookeeper", "--port", str(port)]
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            try:
                with socket.create_connection((HOST, port), 5) as line:
                    line.sendall(b"ruok")
                    if line.recv(4) == b"imok":
                        return time.perf_counter() - begun
            except OSError:
                time.sleep(0.002)
        raise RuntimeError(f"watchkeeper zookeeper has ended with {process.returncode}")
    finally:
        process.terminate()
        process.wait()


def ready_s(kind: Kind, wanted: Wanted) -> float:
    """How long servers take from the start of their processes until they serve."""
    begun = time.perf_counter()
    with start(kind, wanted):
        return time.perf_counter() - begun
