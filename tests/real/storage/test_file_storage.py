"""Real files: what is synced when, what the system's errors mean, and who holds files open."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from model.asks import Now, sleep
from model.log.log import Log, LogStopped
from model.log.settings import LogSettings
from model.log.storage import (
    Append,
    CreateFile,
    Delete,
    DiskFailed,
    DiskFull,
    Flush,
    Listed,
    MakeFolder,
    NoSuchFile,
    Read,
    Rename,
    Send,
    Touch,
    Truncate,
)
from real.storage import FileStorage
from tests.log_messages import FOLDER, TEST


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[FileStorage]:
    """The files of one folder, with a folder `a` and a file in it."""
    made = FileStorage(tmp_path / "root", open_at_most=3)
    for ask in (MakeFolder("a"), CreateFile("a/one")):
        assert made.answer(ask) is None
    yield made
    made.close()


def open_files() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


def names_open_below(root: str) -> set[str]:
    """The names of the files below a folder that this process has open."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            place = Path(os.readlink(f"/proc/self/fd/{number}"))
            if place.is_relative_to(root):
                found.add(place.name)
    return found


def opened(storage: FileStorage, **settings: Any) -> Log:
    """A log of these files."""
    storage.answer(MakeFolder(FOLDER))
    log, _ = storage.run(Log.open(FOLDER, LogSettings(**settings), was_clean=False))
    return log


# --- what is on the disk ---------------------------------------------------------------

SYNCED = [
    (Append("a/one", b"x"), set()),
    (Flush("a/one"), {"a/one"}),
    (Truncate("a/one", 0), {"a/one"}),
    (CreateFile("a/two"), {"a/two", "a"}),
    (CreateFile("a/one"), {"a/one", "a"}),
    (Delete("a/one"), {"a"}),
    (Delete("a"), {""}),
    (MakeFolder("b"), {""}),
    (MakeFolder("a"), {""}),
    (Rename("a/one", "a/two"), {"a"}),
    (Rename("a/one", "two"), {"a", ""}),
    (Listed("a"), {"a"}),
    (Read("a/one", 0, 1), set()),
    (Touch("a/one"), set()),
]


@pytest.mark.parametrize(("ask", "expected"), SYNCED, ids=[repr(ask) for ask, _ in SYNCED])
def test_what_is_promised_is_synced_before_it_is_answered(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch, ask: Any, expected: set[str]
) -> None:
    """The file where its bytes matter, its folder where a name does, and nothing else."""
    synced = set()
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        synced.add(str(place.relative_to(storage.root)).removeprefix("."))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    storage.answer(ask)

    assert synced == expected


def test_a_folder_is_synced_when_it_is_listed_first(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process before this one may have been killed while it made a name there."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    for _ in range(3):
        storage.answer(Listed("a"))

    assert len(synced) == 1


# --- what the system says --------------------------------------------------------------

SAID = [
    (errno.ENOSPC, DiskFull),
    (errno.EDQUOT, DiskFull),
    (errno.EIO, DiskFailed),
    (errno.EROFS, DiskFailed),
    (errno.EMFILE, DiskFailed),
    (errno.ENOENT, NoSuchFile),
]


@pytest.mark.parametrize(("number", "kind"), SAID)
def test_an_error_of_the_system_is_an_error_of_the_storage(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    """By what it means to a log, with the system's own words."""

    def failing(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", failing)
    failure = storage.answer(Append("a/one", b"x"))

    assert (failure.kind, failure.path) == (kind, "a/one")
    assert os.strerror(number) in str(failure.error())


def test_a_short_write_is_answered_as_such(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the log goes on with the rest."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))

    assert storage.answer(Append("a/one", b"12345")) == 3
    log = opened(storage, flush_messages=1)
    storage.run(log.append(TEST * 2))
    assert storage.run(log.read(0, 100)) == TEST * 2


def test_a_series_is_not_for_files(storage: FileStorage) -> None:
    """Nobody could read it again."""
    with pytest.raises(TypeError, match="files hold bytes"):
        storage.answer(Append("a/one", ()))


def test_what_is_no_ask_of_a_storage_is_refused(storage: FileStorage) -> None:
    """With what it was."""

    async def asks_for_more() -> None:
        await sleep(1)

    with pytest.raises(TypeError, match="asked for Sleep"):
        storage.run(asks_for_more())


def test_the_clock_is_that_of_files(storage: FileStorage) -> None:
    """Retention compares the two."""
    before = storage.answer(Now())
    storage.answer(Touch("a/one"))

    (file,) = storage.answer(Listed("a"))
    assert before - 20 <= file.modified_ms <= storage.answer(Now()) + 20


def test_what_interrupts_a_write_stops_the_log(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is raised where the answer was awaited, so that the log knows."""
    log = opened(storage)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            storage.run(log.append(TEST))

    with pytest.raises(LogStopped, match="KeyboardInterrupt"):
        storage.run(log.append(TEST))


# --- below the root --------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["", "..", "../x", "a/../../x", "/etc/passwd", "a//one", "a/./one", "a/one/", "a\0"]
)
@pytest.mark.parametrize("kind", [CreateFile, Delete, lambda path: Append(path, b"x")])
def test_no_path_leads_out_of_the_root(
    storage: FileStorage, path: str, kind: Callable[[str], Any]
) -> None:
    """Only a bug could ask for it, and the root itself is never deleted."""
    with pytest.raises(ValueError, match="is no path below"):
        storage.answer(kind(path))


def test_no_link_leads_out_of_the_root(storage: FileStorage, tmp_path: Path) -> None:
    """Neither one in place of a folder nor one in place of a file."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"secret")
    os.symlink(outside, Path(storage.root) / "link")
    os.symlink(outside / "file", Path(storage.root) / "a" / "link")

    with pytest.raises(ValueError, match=r"leads to .*outside by a link"):
        storage.answer(Read("link/file", 0, 9))
    assert storage.answer(Read("a/link", 0, 9)).kind is DiskFailed
    assert storage.answer(CreateFile("a/link")) is None
    assert storage.answer(Delete("link")) is None
    assert (outside / "file").read_bytes() == b"secret"


# --- open files ------------------------------------------------------------------------


def test_so_many_files_are_open_and_no_more(storage: FileStorage) -> None:
    """Those used last; the others are opened again when they are needed."""
    before = open_files()
    for number in range(20):
        storage.answer(CreateFile(f"a/{number}"))
        storage.answer(Append(f"a/{number}", str(number).encode()))

    assert open_files() - before == 3
    assert [storage.answer(Read(f"a/{n}", 0, 9)) for n in range(20)] == [
        str(n).encode() for n in range(20)
    ]
    storage.close()
    assert open_files() == before


def test_the_file_that_was_not_used_for_longest_makes_room(storage: FileStorage) -> None:
    """Not the one that was opened first."""
    for name in "1234":
        storage.answer(CreateFile(f"a/{name}"))
    for name in "12314":
        storage.answer(Append(f"a/{name}", b"x"))

    assert names_open_below(storage.root) == {"1", "3", "4"}


def test_a_file_stays_open_as_long_as_somebody_works_with_it(storage: FileStorage) -> None:
    """Deleted, replaced or pushed out: the lease is for the file that it was taken for."""
    storage.answer(Append("a/one", b"old"))
    before = open_files()

    with storage.lease("a/one") as descriptor:
        storage.answer(CreateFile("a/one"))
        storage.answer(Append("a/one", b"new"))
        for number in range(10):
            storage.answer(CreateFile(f"a/{number}"))
            storage.answer(Append(f"a/{number}", b"x"))
        storage.answer(Delete("a"))
        storage.close()
        assert os.pread(descriptor, 9, 0) == b"old"

    assert open_files() == before - 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_threads_share_files(storage: FileStorage) -> None:
    """Each writes files of its own, all read all, and few may be open."""
    wrong: list[Any] = []

    def work(number: int) -> None:
        path = f"a/{number}"
        storage.answer(CreateFile(path))
        for turn in range(150):
            storage.answer(Append(path, bytes([number]) * 10))
            if turn % 50 == 0:
                storage.answer(Flush(path))
            other = storage.answer(Read(f"a/{(number + 1) % 6}", 0, 10**6))
            if isinstance(other, bytes) and set(other) - {(number + 1) % 6}:
                wrong.append(other)
        if storage.answer(Read(path, 0, 10**6)) != bytes([number]) * 1500:
            wrong.append(path)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


# --- sending ---------------------------------------------------------------------------


def test_a_view_is_sent_from_the_file_to_a_socket(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel: not one byte is read by this process."""
    log = opened(storage, flush_messages=1)
    storage.run(log.append(TEST * 5000))
    here, there = socket.socketpair()
    received = bytearray()

    def receive() -> None:
        while part := there.recv(2**16):
            received.extend(part)

    receiver = threading.Thread(target=receive)
    receiver.start()
    monkeypatch.delattr(os, "pread")
    storage.run(log.send(log.view(14, 10**6), here))
    here.close()
    receiver.join()
    there.close()

    assert bytes(received) == TEST * 4999


def test_a_broken_connection_is_not_the_fault_of_the_disk(storage: FileStorage) -> None:
    """It is raised as what it is, and the log goes on."""
    log = opened(storage, flush_messages=1)
    storage.run(log.append(TEST))
    here, there = socket.socketpair()
    there.close()

    with here, pytest.raises(ConnectionError):
        storage.run(log.send(log.view(0, 14), here))

    assert not log.stopped
    assert storage.answer(Send("a/one", 0, 0, here)) == 0
    with socket.socket() as other:
        assert storage.answer(Send("a/none", 0, 5, other)).kind is NoSuchFile


# --- asyncio ---------------------------------------------------------------------------

IN_A_THREAD = (Flush, Truncate, CreateFile, Delete, Rename)


async def driven(storage: FileStorage, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Drive a coroutine on an event loop, as `real.storage` says."""
    loop = asyncio.get_running_loop()
    answer: Any = None
    while True:
        try:
            ask = coroutine.send(answer)
        except StopIteration as done:
            return done.value
        if isinstance(ask, IN_A_THREAD):
            answer = await asyncio.to_thread(storage.answer, ask)
        elif isinstance(ask, Send):
            with (
                storage.lease(ask.path) as descriptor,
                open(descriptor, "rb", closefd=False) as file,
            ):
                answer = await loop.sock_sendfile(
                    ask.to, file, ask.at, ask.size_bytes, fallback=False
                )
        else:
            answer = storage.answer(ask)


def test_a_server_on_asyncio_drives_a_log(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the disk is waited for, others are served; a view goes to a socket by the loop."""
    log = opened(storage, flush_messages=10**9)
    begun, may_end = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        begun.set()
        assert may_end.wait(10)
        fsync(descriptor)

    async def serve() -> bytes:
        await driven(storage, log.append(TEST * 3))
        flushing = asyncio.create_task(driven(storage, log.flush()))
        assert await asyncio.to_thread(begun.wait, 10)
        await driven(storage, log.append(TEST))
        assert log.readable_end == 0
        may_end.set()
        await flushing
        here, there = socket.socketpair()
        here.setblocking(False)
        with here, there:
            await driven(storage, log.send(log.view(0, 10**6), here))
            return there.recv(2**16)

    monkeypatch.setattr(os, "fsync", slow)
    assert asyncio.run(serve()) == TEST * 3
