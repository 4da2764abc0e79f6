"""What `storage.py` appends to and fetches from: real, and simulated.

A subject has two sides with the same methods. `own_ns` is what the program itself spends on
each append or fetch: it is measured with a storage that does nothing, and with one of files
that has next to nothing to do; the simulated side is charged with it. A broker is another
subject: its own work is that of a request.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from watchkeeper.experiment.apparatus.host import Host
from watchkeeper.model.actor.effects import Now
from watchkeeper.model.log.format.contents import Contents, Series, size_of, whole_series
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.log.log import Log
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Flush,
    ListFolder,
    MakeFolder,
    Read,
    Send,
)
from watchkeeper.real.calibration.loopback import copy, send, sink
from watchkeeper.real.storage.file_storage import FileStorage
from watchkeeper.sim.disk.host_costs import Connection
from watchkeeper.sim.storage.host_effects import Compute, Transmit

FOLDER = "clicks-0"
ENTRY_BYTES = 1024
NEVER = 10**9
TURNS = 300
SETTINGS = LogSettings(flush_messages=NEVER)


def message_set(size_bytes: int) -> bytes:
    """Messages that take so many bytes together."""
    payload = os.urandom(ENTRY_BYTES - 10)
    return encode([Message.of(payload)] * (size_bytes // ENTRY_BYTES))


class Real(Protocol):
    """The real side."""

    def append(self, data: bytes) -> None:
        """Put a message set at the end."""

    def flush(self) -> None:
        """Have it on the disk."""

    def send(self, at: int, size_bytes: int, to: socket.socket) -> int:
        """Send a part by sendfile; how much was sent."""

    def copy(self, at: int, size_bytes: int, to: socket.socket) -> int:
        """Send a part by reading and writing."""

    def cool_down(self) -> None:
        """Have nothing of it in memory."""

    def close(self) -> None:
        """Be gone."""


class Simulated(Protocol):
    """The simulated side."""

    async def open(self) -> None:
        """Begin."""

    async def append(self, size_bytes: int) -> None:
        """Put a message set at the end."""

    async def flush(self) -> None:
        """Have it on the disk."""

    async def send(self, at: int, size_bytes: int, to: Connection) -> None:
        """Send a part by sendfile."""

    async def copy(self, at: int, size_bytes: int, to: Connection) -> None:
        """Send a part by reading and writing."""


# --- plain files -----------------------------------------------------------------------


class PlainFile:
    """A file, by the system calls that a log makes."""

    def __init__(self, folder: Path) -> None:
        self.file, name = tempfile.mkstemp(dir=folder, prefix=".watchkeeper-bench-")
        os.unlink(name)

    def append(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.file, data) :]

    def flush(self) -> None:
        os.fsync(self.file)

    def send(self, at: int, size_bytes: int, to: socket.socket) -> int:
        return send(to, self.file, at, size_bytes)

    def copy(self, at: int, size_bytes: int, to: socket.socket) -> int:
        return copy(to, self.file, at, size_bytes)

    def cool_down(self) -> None:
        os.fsync(self.file)
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        os.close(self.file)


class SimulatedFile:
    """The same, asked of a simulated host; what it does itself is in its system calls."""

    def __init__(self, host: Host, own_ns: int) -> None:
        assert own_ns == 0, "a plain file does nothing itself"

    async def open(self) -> None:
        await CreateFile("log")

    async def append(self, size_bytes: int) -> None:
        await Append("log", series(size_bytes))

    async def flush(self) -> None:
        await Flush("log")

    async def send(self, at: int, size_bytes: int, to: Connection) -> None:
        await Send("log", at, size_bytes, to)

    async def copy(self, at: int, size_bytes: int, to: Connection) -> None:
        await Transmit(await Read("log", at, size_bytes), to)


def series(size_bytes: int) -> Contents:
    """Messages that take so many bytes together, as a series."""
    return whole_series(Series("producer", 0, size_bytes // ENTRY_BYTES, ENTRY_BYTES - 10))


# --- logs ------------------------------------------------------------------------------


class RealLog:
    """A log over files."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=folder, prefix=".watchkeeper-bench-"))
        self.storage = FileStorage(self.folder)
        self.log = self.storage.run(opened())

    def append(self, data: bytes) -> None:
        self.storage.run(self.log.append(data))

    def flush(self) -> None:
        self.storage.run(self.log.flush())

    def send(self, at: int, size_bytes: int, to: socket.socket) -> int:
        view = self.log.view(at, size_bytes)
        self.storage.run(self.log.send(view, to))
        return view.size_bytes

    def copy(self, at: int, size_bytes: int, to: socket.socket) -> int:
        data = self.storage.run(self.log.read(at, size_bytes))
        assert isinstance(data, bytes), "files hold bytes"
        to.sendall(data)
        return len(data)

    def cool_down(self) -> None:
        self.flush()
        for segment in self.log.segments.view:
            with self.storage.lease(segment.path) as file:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        self.storage.close()
        shutil.rmtree(self.folder)


async def opened() -> Log:
    """A log that nothing was appended to."""
    await MakeFolder(FOLDER)
    log, _ = await Log.open(FOLDER, SETTINGS, was_clean=False)
    return log


class SimulatedLog:
    """The same log over simulated storage, charged with its own work."""

    def __init__(self, host: Host, own_ns: int) -> None:
        self.own_ns = own_ns
        self.log: Log | None = None

    async def open(self) -> None:
        self.log = await opened()

    @property
    def _log(self) -> Log:
        assert self.log is not None, "it was opened"
        return self.log

    async def append(self, size_bytes: int) -> None:
        await Compute(self.own_ns)
        await self._log.append(series(size_bytes))

    async def flush(self) -> None:
        await self._log.flush()

    async def send(self, at: int, size_bytes: int, to: Connection) -> None:
        await Compute(self.own_ns)
        await self._log.send(self._log.view(at, size_bytes), to)

    async def copy(self, at: int, size_bytes: int, to: Connection) -> None:
        await Compute(self.own_ns)
        await Transmit(await self._log.read(at, size_bytes), to)


class NoStorage:
    """A storage that does nothing, so that whatever takes time is the program's own work."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.answers: dict[type[Any], Callable[[Any], Any]] = {
            Append: lambda effect: size_of(effect.contents),
            Flush: lambda effect: None,
            Now: lambda effect: 0,
            Send: lambda effect: effect.size_bytes,
            Read: lambda effect: b"",
            ListFolder: lambda effect: (),
            MakeFolder: lambda effect: None,
            CreateFile: lambda effect: None,
        }

    def run(self, body: Any) -> Any:
        """Drive a coroutine to its end."""
        answer: Any = None
        while True:
            try:
                effect = body.send(answer)
            except StopIteration as done:
                return done.value
            answer = self.answers[type(effect)](effect)


def log_append_ns(size_bytes: int) -> int:
    """What a log itself spends on appending a set: checking its messages, mostly."""
    storage, data = NoStorage(), message_set(size_bytes)
    log = storage.run(opened())
    turns = max(4 * 1024 * 1024 // size_bytes, 8)
    checking = mean_ns(turns, lambda: storage.run(log.append(data)))
    with files() as (storage_of_files, path, file):
        asking = mean_ns(TURNS, lambda: storage_of_files.answer(Append(path, b"")))
        return checking + max(asking - mean_ns(TURNS, lambda: os.write(file, b"")), 0)


def log_fetch_ns(size_bytes: int) -> int:
    """What a log itself spends on a fetch: finding it, and giving it to the socket."""
    storage = NoStorage()
    log = storage.run(opened())
    storage.run(log.append(message_set(size_bytes)))
    storage.run(log.flush())
    finding = mean_ns(TURNS, lambda: storage.run(log.send(log.view(0, size_bytes), None)))
    with files() as (storage_of_files, path, file), sink() as to:
        storage_of_files.answer(Append(path, b"1"))
        giving = mean_ns(TURNS, lambda: storage_of_files.answer(Send(path, 0, 1, to)))
        return finding + max(giving - mean_ns(TURNS, lambda: send(to, file, 0, 1)), 0)


def mean_ns(turns: int, do: Callable[[], object]) -> int:
    """How long something takes on average."""
    begin = time.perf_counter_ns()
    for _ in range(turns):
        do()
    return (time.perf_counter_ns() - begin) // turns


@contextmanager
def files() -> Iterator[tuple[FileStorage, str, int]]:
    """A storage of files with one file in it, and that file."""
    with tempfile.TemporaryDirectory() as folder:
        storage = FileStorage(Path(folder))
        storage.answer(CreateFile("log"))
        with storage.lease("log") as file:
            yield storage, "log", file
        storage.close()


def nothing(size_bytes: int) -> int:
    """A plain file does nothing itself."""
    return 0


@dataclass(frozen=True, slots=True)
class Subject:
    """Both sides, and how to measure what the program itself does."""

    real: Callable[[Path], Real]
    simulated: Callable[[Host, int], Simulated]
    append_ns: Callable[[int], int]
    fetch_ns: Callable[[int], int]


SUBJECTS = {
    "files": Subject(PlainFile, SimulatedFile, nothing, nothing),
    "log": Subject(RealLog, SimulatedLog, log_append_ns, log_fetch_ns),
}
