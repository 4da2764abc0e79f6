"""Answers what a log asks of its storage with the files of one folder.

Rules
  A file is opened for appending only, so that no read can move the place of the next
  write. What has to outlive the end of the host is synced before it is answered: the file
  for `Flush` and `Truncate`, its folder for whatever changes names, and for the first
  listing of it. (A process that was killed may have left a name there that is not on the
  disk yet, and whoever reads the listing relies on that name.)

How it is driven
  `run` drives a coroutine that asks a storage and the clock, in this thread, from one
  answer to the next. A server on asyncio does the same in a coroutine of its own:

  - `Append`, `Read`, `Listed`: call `answer` at once. They go to the pagecache; to hand
    them to a thread costs more than they do.
  - `Flush`, `Truncate`, `CreateFile`, `Delete`, `Rename`: in a thread (`real.disk_worker`). They
    wait for the disk, and other logs go on meanwhile.
  - `Send`: `with storage.sending(path, at, size_bytes) as descriptor`, and inside of it
    `loop.sock_sendfile` or `loop.sendfile` on `open(descriptor, "rb", closefd=False)`, with
    `fallback=False`: without the kernel's help they read wherever the descriptor stands, and
    others use it too. `answer` is for a socket that blocks, without a time limit.

  What befalls a connection is raised as it comes, and is no failure of the storage.

  Any number of threads may call `answer` at once. Nobody may append to one file from two
  of them: which of the two comes first would be left to chance.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from stat import S_ISDIR
from typing import Any, TypeVar

from model.asks import Now
from model.log.storage import (
    Append,
    CreateFile,
    Delete,
    DiskFailed,
    DiskFull,
    File,
    Flush,
    Listed,
    MakeFolder,
    NoSuchFile,
    Read,
    Rename,
    Send,
    StorageError,
    StorageFailure,
    Touch,
    Truncate,
)
from real.descriptors import Descriptors, Lease

T = TypeVar("T")

OPEN_AT_MOST = 256
"""How many files a storage keeps open, unless it is told otherwise."""

KIND_OF_ERRNO: dict[int, type[StorageError]] = {
    errno.ENOENT: NoSuchFile,
    errno.ENOTDIR: NoSuchFile,
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
}
"""What the system says -> what that means to a log; whatever else it says is `DiskFailed`."""

OF_FILES = (errno.ENOENT, errno.ENOTDIR, errno.EIO)
"""What the system says of a file that is sent; all else is about the connection."""

ONES_OWN = os.O_NOFOLLOW | os.O_CLOEXEC


class FileStorage:
    """The files below one folder, which is made if there is none."""

    def __init__(self, root: Path, *, open_at_most: int = OPEN_AT_MOST) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = os.path.realpath(root)
        self._files = Descriptors(self._opened, open_at_most)
        self._synced: set[str] = set()
        """Folders of which every name is on the disk."""
        self._answers: dict[type[Any], Callable[[Any], Any]] = {
            Append: self._append,
            Read: self._read,
            Flush: self._flush,
            Send: self._send,
            Listed: self._listed,
            MakeFolder: self._make_folder,
            CreateFile: self._create_file,
            Truncate: self._truncate,
            Delete: self._delete,
            Rename: self._rename,
            Touch: self._touch,
            Now: lambda ask: time.time_ns() // 1_000_000,
        }

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Drive a coroutine to its end; what it raises is raised here."""
        answer: Any = None
        while True:
            try:
                ask = coroutine.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            try:
                answer = self.answer(ask)
            except BaseException as error:
                coroutine.throw(error)
                raise

    def answer(self, ask: Any) -> Any:
        """Do what is asked, or say as a value why it could not be done."""
        handler = self._answers.get(type(ask))
        if handler is None:
            raise TypeError(
                f"a storage was asked for {type(ask).__name__}; it answers only what "
                "model.log.storage asks, and model.asks.Now"
            )
        try:
            return handler(ask)
        except OSError as error:
            if isinstance(ask, Send) and error.errno not in OF_FILES:
                raise
            kind = KIND_OF_ERRNO.get(error.errno or 0, DiskFailed)
            path = ask.folder if isinstance(ask, Listed | MakeFolder) else ask.path
            return StorageFailure(kind, path, error.strerror or str(error))

    def lease(self, path: str) -> Lease:
        """Have a file open for as long as a `with` lasts; OSError if it cannot be opened."""
        return self._files.lease(path)

    def sending(self, path: str, at: int, size_bytes: int) -> Lease:
        """Have a file open to send a part of it."""
        return self.lease(path)

    def close(self) -> None:
        """Close every file. Whatever is asked afterwards opens it again."""
        self._files.forget_all()

    # --- paths -------------------------------------------------------------------------

    def _place(self, path: str) -> str:
        """Where a file or folder is; ValueError if that is not below the root."""
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise ValueError(f"{path!r} is no path below {self.root}; expected names and slashes")
        place = os.path.join(self.root, *parts)
        folder = os.path.realpath(os.path.dirname(place))
        if os.path.commonpath((self.root, folder)) != self.root:
            raise ValueError(f"{path!r} leads to {folder} by a link, which is out of {self.root}")
        return place

    def _opened(self, path: str) -> int:
        return os.open(self._place(path), os.O_RDWR | os.O_APPEND | ONES_OWN)

    # --- contents ----------------------------------------------------------------------

    def _append(self, ask: Append) -> int:
        if not isinstance(ask.contents, bytes):
            raise TypeError(f"{ask.path}: files hold bytes; a series is for simulated storage")
        with self._files.lease(ask.path) as descriptor:
            return os.write(descriptor, ask.contents)

    def _read(self, ask: Read) -> bytes:
        """As many system calls as it takes: one of them may stop short of what is there."""
        parts: list[bytes] = []
        at, left = ask.at, ask.size_bytes
        with self._files.lease(ask.path) as descriptor:
            while left and (part := os.pread(descriptor, left, at)):
                parts.append(part)
                at += len(part)
                left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _send(self, ask: Send) -> int:
        to: Any = ask.to
        sent = 0
        with self._files.lease(ask.path) as descriptor:
            while left := ask.size_bytes - sent:
                count = os.sendfile(to.fileno(), descriptor, ask.at + sent, left)
                if not count:
                    break
                sent += count
        return sent

    def _flush(self, ask: Flush) -> None:
        with self._files.lease(ask.path) as descriptor:
            _sync(descriptor)

    def _truncate(self, ask: Truncate) -> None:
        with self._files.lease(ask.path) as descriptor:
            os.ftruncate(descriptor, ask.size_bytes)
            _sync(descriptor)

    # --- names -------------------------------------------------------------------------
    #
    # A descriptor is forgotten when its file has lost the name: before, another thread could
    # open that file once more, and everybody would go on writing to what is deleted.

    def _listed(self, ask: Listed) -> tuple[File, ...]:
        place = self._place(ask.folder) if ask.folder else self.root
        if place not in self._synced:
            _sync_folder(place)
            self._synced.add(place)
        with os.scandir(place) as entries:
            return tuple(sorted(file for entry in entries for file in _listed(entry)))

    def _make_folder(self, ask: MakeFolder) -> None:
        place = self._place(ask.folder)
        if not os.path.isdir(place):
            os.mkdir(place)
        _sync_folder(os.path.dirname(place))

    def _create_file(self, ask: CreateFile) -> None:
        place = self._place(ask.path)
        if os.path.lexists(place):
            os.unlink(place)
            self._files.forget(ask.path)
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | ONES_OWN, 0o644)
        try:
            _sync(descriptor)
        finally:
            os.close(descriptor)
        _sync_folder(os.path.dirname(place))

    def _delete(self, ask: Delete) -> None:
        place = self._place(ask.path)
        if os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place)
            self._files.forget_all(ask.path)
        else:
            os.unlink(place)
            self._files.forget(ask.path)
        _sync_folder(os.path.dirname(place))

    def _rename(self, ask: Rename) -> None:
        old, new = self._place(ask.path), self._place(ask.to)
        os.replace(old, new)
        self._files.forget(ask.path)
        self._files.forget(ask.to)
        for folder in {os.path.dirname(new), os.path.dirname(old)}:
            _sync_folder(folder)

    def _touch(self, ask: Touch) -> None:
        os.utime(self._place(ask.path), follow_symlinks=False)


def _listed(entry: os.DirEntry[str]) -> Iterator[File]:
    """A file as it is listed; nothing, if it is gone by now."""
    try:
        stat = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    is_folder = S_ISDIR(stat.st_mode)
    size_bytes = 0 if is_folder else stat.st_size
    yield File(entry.name, size_bytes, stat.st_mtime_ns // 1_000_000, is_folder)


def _sync_folder(place: str) -> None:
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    """Wait until a file is on the disk; macOS has another word for that than fsync."""
    if sys.platform == "darwin":
        from fcntl import F_FULLFSYNC, fcntl

        fcntl(descriptor, F_FULLFSYNC)
    else:
        os.fsync(descriptor)
