"""The effects on files that a log yields, and the guarantees of the storage.

Every effect is a frozen value; awaiting it yields it to the driver, which answers. In `real/`
the answers come from files, fsync and sendfile, in `sim/` from a model of pagecache and disk.
Paths are `/`-separated and relative to the folder of one broker's logs.

Guarantees of a storage
  - `Append` returns the number of bytes written, which may be *fewer* than requested: the
    caller has to append the rest.
  - Appended bytes can be read at once, by any process, and survive the end of the process.
    Bytes appended before a completed `Flush` survive a crash of the host. Of later ones any
    part may survive, cut anywhere, even with blocks of zeros in it.
  - `CreateFile`, `Delete` and `Rename` survive a crash of the host once they are complete.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from watchkeeper.model.actor.operations import Effect
from watchkeeper.model.log.format.contents import Contents

T = TypeVar("T")


class StorageError(Exception):
    """The storage could not perform an operation."""

    meaning = "the storage failed"

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.path}: {self.meaning}" + (f" ({self.detail})" if self.detail else "")


class NoSuchFile(StorageError):
    """The file or folder does not exist."""

    meaning = "there is no such file"


class DiskFull(StorageError):
    """The disk is full."""

    meaning = "there is no room left on the disk"


class DiskFailed(StorageError):
    """The disk answered with an error."""

    meaning = "the disk failed"


class StorageFailure(Struct, frozen=True):
    """A failed operation as a value: the error class, the path and the detail."""

    kind: type[StorageError]
    path: str
    detail: str = ""

    def error(self) -> StorageError:
        """Return the exception of this failure."""
        return self.kind(self.path, self.detail)


UNKNOWN_SIZE = -1
"""An unknown size."""


class StorageEffect(Effect[T], frozen=True):
    """An operation on the storage; a `StorageFailure` is raised where it is awaited."""

    def __await__(self) -> Generator[Effect[Any], Any, T]:
        answer: Any = yield self
        if type(answer) is StorageFailure:
            raise answer.error()
        return answer  # type: ignore[no-any-return]


class File(NamedTuple):
    """A file or folder in the listing of its parent."""

    name: str
    size_bytes: int
    modified_ms: int
    is_folder: bool = False


class ListFolder(StorageEffect[tuple[File, ...]], frozen=True):
    """List a folder, in the order of names; raise `NoSuchFile` if it does not exist."""

    folder: str


class MakeFolder(StorageEffect[None], frozen=True):
    """Create a folder, unless it exists."""

    folder: str


class CreateFile(StorageEffect[None], frozen=True):
    """Create an empty file, and replace an existing one."""

    path: str


class Append(StorageEffect[int], frozen=True):
    """Write at the end of a file; return the number of bytes written, perhaps fewer."""

    path: str
    contents: Contents


class Read(StorageEffect[Contents], frozen=True):
    """Read up to `size_bytes` at a position; fewer only at the end of the file."""

    path: str
    at: int
    size_bytes: int


class Send(StorageEffect[int], frozen=True):
    """Send a part of a file to a connection without a copy; return the number of bytes sent.

    `to` is a connection of the driver.
    """

    path: str
    at: int
    size_bytes: int
    to: object


class Flush(StorageEffect[None], frozen=True):
    """Wait until all bytes appended to a file are on the disk."""

    path: str
    size_bytes: int = UNKNOWN_SIZE
    """The approximate number of bytes, if it is known."""


class Truncate(StorageEffect[None], frozen=True):
    """Truncate a file to a size, and wait until that is on the disk."""

    path: str
    size_bytes: int


class Delete(StorageEffect[None], frozen=True):
    """Delete a file, or a folder with its contents."""

    path: str


class Rename(StorageEffect[None], frozen=True):
    """Rename a file atomically; an existing file of the new name is replaced."""

    path: str
    to: str


class Touch(StorageEffect[None], frozen=True):
    """Set the modification time of a file; None: to now."""

    path: str
    modified_ms: int | None = None
