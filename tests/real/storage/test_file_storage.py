"""Real files: when they are synced, what errors mean, and how many are open."""

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

from tests.support.log.messages import FOLDER, TEST
from tests.support.patience import PATIENCE_S
from watchkeeper.model.actor.effects import Now, sleep
from watchkeeper.model.log.log import Log, LogStopped
from watchkeeper.model.log.settings import LogSettings
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    DiskFailed,
    DiskFull,
    Flush,
    ListFolder,
    MakeFolder,
    NoSuchFile,
    Read,
    Rename,
    Send,
    Touch,
    Truncate,
)
from watchkeeper.real.storage.file_storage import FileStorage


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[FileStorage]:
    """The files of one folder, with a subfolder `a` and a file in it."""
    made = FileStorage(tmp_path / "root", open_at_most=3)
    for effect in (MakeFolder("a"), CreateFile("a/one")):
        assert made.answer(effect) is None
    yield made
    made.close()


def open_files() -> int:
    """The number of open files of this process."""
    return len(os.listdir("/proc/self/fd"))


def names_open_below(root: str) -> set[str]:
    """The names of the open files of this process below a folder."""
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
    (ListFolder("a"), {"a"}),
    (Read("a/one", 0, 1), set()),
    (Touch("a/one"), set()),
]


@pytest.mark.parametrize(
    ("effect", "expected"), SYNCED, ids=[repr(effect) for effect, _ in SYNCED]
)
def test_durable_effects_are_synced_before_the_answer(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch, effect: Any, expected: set[str]
) -> None:
    """The file for its bytes, its folder for a name, and nothing else."""
    synced = set()
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        synced.add(str(place.relative_to(storage.root)).removeprefix("."))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    storage.answer(effect)

    assert synced == expected


def test_a_folder_is_synced_at_its_first_listing(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The previous process may have been killed while it created a name there."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    for _ in range(3):
        storage.answer(ListFolder("a"))

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
    """By its meaning to a log, with the system's own text."""

    def failing(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", failing)
    failure = storage.answer(Append("a/one", b"x"))

    assert (failure.kind, failure.path) == (kind, "a/one")
    assert os.strerror(number) in str(failure.error())


def test_a_short_write_is_answered_as_such(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the log continues with the rest."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))

    assert storage.answer(Append("a/one", b"12345")) == 3
    log = opened(storage, flush_messages=1)
    storage.run(log.append(TEST * 2))
    assert storage.run(log.read(0, 100)) == TEST * 2


def test_a_series_is_not_for_files(storage: FileStorage) -> None:
    """It could not be read again."""
    with pytest.raises(TypeError, match="files hold bytes"):
        storage.answer(Append("a/one", ()))


def test_an_unknown_effect_is_refused(storage: FileStorage) -> None:
    """The error names the effect."""

    async def asks_for_more() -> None:
        await sleep(1)

    with pytest.raises(TypeError, match="cannot perform Sleep"):
        storage.run(asks_for_more())


def test_the_clock_is_the_clock_of_file_times(storage: FileStorage) -> None:
    """Retention compares the two."""
    before = storage.answer(Now())
    storage.answer(Touch("a/one"))

    (file,) = storage.answer(ListFolder("a"))
    assert before - 20 <= file.modified_ms <= storage.answer(Now()) + 20


def test_an_interrupted_write_stops_the_log(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is raised where the answer was awaited, so that the log notices."""
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
    """Only a bug could cause it, and the root itself is never deleted."""
    with pytest.raises(ValueError, match="is no path below"):
        storage.answer(kind(path))


def test_no_link_leads_out_of_the_root(storage: FileStorage, tmp_path: Path) -> None:
    """Neither in place of a folder nor in place of a file."""
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


def test_the_number_of_open_files_is_bounded(storage: FileStorage) -> None:
    """The most recently used; the others are opened again when they are needed."""
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


def test_the_least_recently_used_file_is_evicted(storage: FileStorage) -> None:
    """Not the one that was opened first."""
    for name in "1234":
        storage.answer(CreateFile(f"a/{name}"))
    for name in "12314":
        storage.answer(Append(f"a/{name}", b"x"))

    assert names_open_below(storage.root) == {"1", "3", "4"}


def test_a_file_stays_open_during_a_lease(storage: FileStorage) -> None:
    """Deleted, replaced or evicted: a lease belongs to the file for which it was taken."""
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
    """Each writes its own files, all read all, and few may be open."""
    wrong: list[Any] = []

    def work(number: int) -> None:
        path = f"a/{number}"
        storage.answer(CreateFile(path))
        for turn in range(150):
            storage.answer(Append(path, bytes([number]) * 10))
            if turn % 50 == 0:
                storage.answer(Flush(path))
            data = storage.answer(Read(f"a/{(number + 1) % 6}", 0, 10**6))
            if isinstance(data, bytes) and set(data) - {(number + 1) % 6}:
                wrong.append(data)
        if storage.answer(Read(path, 0, 10**6)) != bytes([number]) * 1500:
            wrong.append(path)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert wrong == []


# --- sending ---------------------------------------------------------------------------


def test_a_view_is_sent_from_the_file_to_a_socket(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel: this process does not read a single byte."""
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
    receiver.join(PATIENCE_S)
    there.close()

    assert bytes(received) == TEST * 4999


def test_a_broken_connection_is_no_disk_failure(storage: FileStorage) -> None:
    """It is raised unchanged, and the log continues."""
    log = opened(storage, flush_messages=1)
    storage.run(log.append(TEST))
    here, there = socket.socketpair()
    there.close()

    with here, pytest.raises(ConnectionError):
        storage.run(log.send(log.view(0, 14), here))

    assert not log.stopped
    assert storage.answer(Send("a/one", 0, 0, here)) == 0
    with socket.socket() as connection:
        assert storage.answer(Send("a/none", 0, 5, connection)).kind is NoSuchFile


# --- asyncio ---------------------------------------------------------------------------

IN_A_THREAD = (Flush, Truncate, CreateFile, Delete, Rename)


async def driven(storage: FileStorage, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Drive a coroutine on an event loop, as described in `file_storage`."""
    loop = asyncio.get_running_loop()
    answer: Any = None
    while True:
        try:
            effect = coroutine.send(answer)
        except StopIteration as done:
            return done.value
        if isinstance(effect, IN_A_THREAD):
            answer = await asyncio.to_thread(storage.answer, effect)
        elif isinstance(effect, Send):
            with (
                storage.lease(effect.path) as descriptor,
                open(descriptor, "rb", closefd=False) as file,
            ):
                answer = await loop.sock_sendfile(
                    effect.to, file, effect.at, effect.size_bytes, fallback=False
                )
        else:
            answer = storage.answer(effect)


def test_a_server_on_asyncio_drives_a_log(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are served during a flush; the loop sends a view to a socket."""
    log = opened(storage, flush_messages=10**9)
    begun, may_end = threading.Event(), threading.Event()
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        begun.set()
        assert may_end.wait(PATIENCE_S)
        fsync(descriptor)

    async def serve() -> bytes:
        await driven(storage, log.append(TEST * 3))
        flushing = asyncio.create_task(driven(storage, log.flush()))
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        await driven(storage, log.append(TEST))
        assert log.high_watermark == 0
        may_end.set()
        await flushing
        here, there = socket.socketpair()
        here.setblocking(False)
        with here, there:
            await driven(storage, log.send(log.view(0, 10**6), here))
            return there.recv(2**16)

    monkeypatch.setattr(os, "fsync", slow)
    assert asyncio.run(serve()) == TEST * 3
