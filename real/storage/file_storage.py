"""Performs the storage effects of a log with the files of one folder.

Rules
  A file is opened for appending only, so that no read can move the position of the next write.
  Whatever has to survive the end of the host is synced before the answer: the file for `Flush`
  and `Truncate`, the folder for every change of a name and for the first listing of a folder.
  (A killed process may have left a name that is not on the disk yet, and the reader of the
  listing relies on that name.)

How to drive it
  `run` drives a coroutine of storage effects in this thread. A server on asyncio drives it
  in a coroutine of its own:

  - `Append`, `Read`, `ListFolder`: call `answer` directly. They only touch the pagecache;
    passing them to a thread costs more than they do.
  - `Flush`, `Truncate`, `CreateFile`, `Delete`, `Rename`: in a thread
    (`watchkeeper.real.broker.disk_worker`). They wait for the disk while other logs continue.
  - `Send`: `with storage.sending(path, at, size_bytes) as descriptor`, and inside it
    `loop.sock_sendfile` or `loop.sendfile` on `open(descriptor, "rb", closefd=False)`, with
    `fallback=False`: the fallback reads at the descriptor's position, which is shared.
    `answer` is for a blocking socket without a timeout.

  Errors of a connection are raised; they are no failures of the storage.

  Any number of threads may call `answer`. Two threads must not append to the same file:
  the order of their appends would be undefined.
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

from watchkeeper.model.actor.effects import Now
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    DiskFailed,
    DiskFull,
    File,
    Flush,
    ListFolder,
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
from watchkeeper.real.storage.fd_cache import FdCache, Lease

T = TypeVar("T")

OPEN_AT_MOST = 256
"""The default number of files that a storage keeps open."""

KIND_OF_ERRNO: dict[int, type[StorageError]] = {
    errno.ENOENT: NoSuchFile,
    errno.ENOTDIR: NoSuchFile,
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
}
"""errno -> its meaning to a log; any other errno is `DiskFailed`."""

FILE_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.EIO)
"""The errnos of a sent file that are about the file; all others are about the connection."""

OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


class FileStorage:
    """The files below one folder, which is created if it does not exist."""

    def __init__(self, root: Path, *, open_at_most: int = OPEN_AT_MOST) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = os.path.realpath(root)
        self._files = FdCache(self._opened, open_at_most)
        self._synced: set[str] = set()
        """The folders whose names are all known to be on the disk."""
        self._answers: dict[type[Any], Callable[[Any], Any]] = {
            Append: self._append,
            Read: self._read,
            Flush: self._flush,
            Send: self._send,
            ListFolder: self._listed,
            MakeFolder: self._make_folder,
            CreateFile: self._create_file,
            Truncate: self._truncate,
            Delete: self._delete,
            Rename: self._rename,
            Touch: self._touch,
            Now: lambda effect: time.time_ns() // 1_000_000,
        }

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Drive a coroutine to its end and return its result; what it raises is raised here."""
        answer: Any = None
        while True:
            try:
                effect = coroutine.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            try:
                answer = self.answer(effect)
            except BaseException as error:
                coroutine.throw(error)
                raise

    def answer(self, effect: Any) -> Any:
        """Perform an effect; return its answer, or a StorageFailure."""
        handler = self._answers.get(type(effect))
        if handler is None:
            raise TypeError(
                f"a storage cannot perform {type(effect).__name__}; it performs the effects of "
                "watchkeeper.model.log.storage and watchkeeper.model.actor.effects.Now"
            )
        try:
            return handler(effect)
        except OSError as error:
            if isinstance(effect, Send) and error.errno not in FILE_ERRNOS:
                raise
            kind = KIND_OF_ERRNO.get(error.errno or 0, DiskFailed)
            path = effect.folder if isinstance(effect, ListFolder | MakeFolder) else effect.path
            return StorageFailure(kind, path, error.strerror or str(error))

    def lease(self, path: str) -> Lease:
        """Keep a file open during a `with`; raises OSError if it cannot be opened."""
        return self._files.lease(path)

    def sending(self, path: str, at: int, size_bytes: int) -> Lease:
        """Keep a file open while a part of it is sent."""
        return self.lease(path)

    def close(self) -> None:
        """Close every file; a later effect opens it again."""
        self._files.forget_all()

    # --- paths -------------------------------------------------------------------------

    def _place(self, path: str) -> str:
        """The path of a file or folder; raises ValueError if it is not below the root."""
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise ValueError(f"{path!r} is no path below {self.root}; expected names and slashes")
        place = os.path.join(self.root, *parts)
        folder = os.path.realpath(os.path.dirname(place))
        if os.path.commonpath((self.root, folder)) != self.root:
            raise ValueError(f"{path!r} leads to {folder} by a link, which is out of {self.root}")
        return place

    def _opened(self, path: str) -> int:
        return os.open(self._place(path), os.O_RDWR | os.O_APPEND | OPEN_FLAGS)

    # --- contents ----------------------------------------------------------------------

    def _append(self, effect: Append) -> int:
        if not isinstance(effect.contents, bytes):
            raise TypeError(f"{effect.path}: files hold bytes; a series is for simulated storage")
        with self._files.lease(effect.path) as descriptor:
            return os.write(descriptor, effect.contents)

    def _read(self, effect: Read) -> bytes:
        """Read with as many system calls as needed: a single one may return less."""
        parts: list[bytes] = []
        at, left = effect.at, effect.size_bytes
        with self._files.lease(effect.path) as descriptor:
            while left and (part := os.pread(descriptor, left, at)):
                parts.append(part)
                at += len(part)
                left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _send(self, effect: Send) -> int:
        to: Any = effect.to
        sent = 0
        with self._files.lease(effect.path) as descriptor:
            while left := effect.size_bytes - sent:
                count = os.sendfile(to.fileno(), descriptor, effect.at + sent, left)
                if not count:
                    break
                sent += count
        return sent

    def _flush(self, effect: Flush) -> None:
        with self._files.lease(effect.path) as descriptor:
            _sync(descriptor)

    def _truncate(self, effect: Truncate) -> None:
        with self._files.lease(effect.path) as descriptor:
            os.ftruncate(descriptor, effect.size_bytes)
            _sync(descriptor)

    # --- names -------------------------------------------------------------------------
    #
    # A descriptor is dropped after its file has lost the name, not before: another thread could
    # open the file again in between, and appends would go to a deleted file.

    def _listed(self, effect: ListFolder) -> tuple[File, ...]:
        place = self._place(effect.folder) if effect.folder else self.root
        if place not in self._synced:
            _sync_folder(place)
            self._synced.add(place)
        with os.scandir(place) as entries:
            return tuple(sorted(file for entry in entries for file in _listed(entry)))

    def _make_folder(self, effect: MakeFolder) -> None:
        place = self._place(effect.folder)
        if not os.path.isdir(place):
            os.mkdir(place)
        _sync_folder(os.path.dirname(place))

    def _create_file(self, effect: CreateFile) -> None:
        place = self._place(effect.path)
        if os.path.lexists(place):
            os.unlink(place)
            self._files.forget(effect.path)
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o644)
        try:
            _sync(descriptor)
        finally:
            os.close(descriptor)
        _sync_folder(os.path.dirname(place))

    def _delete(self, effect: Delete) -> None:
        place = self._place(effect.path)
        if os.path.isdir(place) and not os.path.islink(place):
            shutil.rmtree(place)
            self._files.forget_all(effect.path)
        else:
            os.unlink(place)
            self._files.forget(effect.path)
        _sync_folder(os.path.dirname(place))

    def _rename(self, effect: Rename) -> None:
        old, new = self._place(effect.path), self._place(effect.to)
        os.replace(old, new)
        self._files.forget(effect.path)
        self._files.forget(effect.to)
        for folder in {os.path.dirname(new), os.path.dirname(old)}:
            _sync_folder(folder)

    def _touch(self, effect: Touch) -> None:
        at_ms = effect.modified_ms
        at_ns = time.time_ns() if at_ms is None else at_ms * 1_000_000
        os.utime(self._place(effect.path), ns=(at_ns, at_ns), follow_symlinks=False)


def _listed(entry: os.DirEntry[str]) -> Iterator[File]:
    """The entry of a file; none if it was deleted meanwhile."""
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
    """Wait until a file is on the disk; on macOS that is F_FULLFSYNC, not fsync."""
    if sys.platform == "darwin":
        from fcntl import F_FULLFSYNC, fcntl

        fcntl(descriptor, F_FULLFSYNC)
    else:
        os.fsync(descriptor)
