"""The operations on files that durability depends on.

A write is durable only after a sync of its file, and a file that was made, renamed or removed
only after a sync of its folder. `Disk` is the interface, so that a test can stop a machine at
any of these operations and lose what was not synced.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Protocol


class OpenFile(Protocol):
    """A file that is being written."""

    def write(self, data: bytes) -> None:
        """Append these bytes, all of them."""

    def sync(self) -> None:
        """Return when everything that was written is durable."""

    def close(self) -> None:
        """Write no more."""


class Disk(Protocol):
    """The operations on the files of one folder."""

    def names(self) -> list[str]:
        """The names of the files."""

    def read(self, name: str) -> bytes:
        """The contents of a file."""

    def make(self, name: str) -> OpenFile:
        """Make a file, or empty one; its name is durable after `sync_names`."""

    def cut(self, name: str, length: int) -> None:
        """Shorten a file, durably."""

    def rename(self, name: str, to: str) -> None:
        """Rename a file, in place of another one."""

    def remove(self, name: str) -> None:
        """Remove a file."""

    def sync_names(self) -> None:
        """Return when every name that was made, changed or removed is so durably."""

    def close(self) -> None:
        """Let others use the folder."""


class InUse(Exception):
    """Another process uses the folder."""


class FolderOnDisk:
    """The files of a folder of this machine, which no other process uses meanwhile."""

    def __init__(self, folder: Path) -> None:
        """Make and lock the folder; raises OSError or InUse."""
        _make(folder)
        self._folder = folder
        self._descriptor = os.open(folder, os.O_RDONLY)
        try:
            # The lock is on the folder itself: it ends with the process and leaves no file.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise InUse from None

    def names(self) -> list[str]:
        """The names of the files."""
        return os.listdir(self._folder)

    def read(self, name: str) -> bytes:
        """The contents of a file."""
        return (self._folder / name).read_bytes()

    def make(self, name: str) -> FileOnDisk:
        """Make a file, or empty one."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        return FileOnDisk(os.open(self._folder / name, flags, 0o644))

    def cut(self, name: str, length: int) -> None:
        """Shorten a file, durably."""
        descriptor = os.open(self._folder / name, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, length)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, name: str, to: str) -> None:
        """Rename a file, in place of another one."""
        os.replace(self._folder / name, self._folder / to)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.remove(self._folder / name)

    def sync_names(self) -> None:
        """Return when every name is durable."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Unlock the folder."""
        os.close(self._descriptor)


def _make(folder: Path) -> None:
    """Make a folder and those above it, durably."""
    if folder.is_dir():
        return
    if folder.exists():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    _make(folder.parent)
    folder.mkdir(exist_ok=True)
    descriptor = os.open(folder.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileOnDisk:
    """A file that is being written."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        """Append these bytes, all of them."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def sync(self) -> None:
        """Return when everything that was written is durable."""
        _sync_data(self._descriptor)

    def close(self) -> None:
        """Write no more."""
        os.close(self._descriptor)


_sync_data = getattr(os, "fdatasync", os.fsync)
"""Darwin has no fdatasync."""
