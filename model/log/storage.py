"""What a log asks of the storage under it, as protocol code asks ZooKeeper.

Every class here is a frozen value; awaiting it yields it to the driver, which answers. In
`real/` these are files, fsync and sendfile; in `sim/` a model of pagecache and disk. Paths
are `/`-separated and relative to the folder of one broker's logs.

What a storage promises
  - `Append` answers how many bytes were written, which may be *fewer* than asked: whoever
    appends has to go on with the rest.
  - What was appended can be read at once, by any process, and survives the end of the
    process. Only what was appended before a `Flush` was answered survives the end of the
    host; of the rest a part may survive, cut anywhere, even with blocks of zeros in it.
  - `Create`, `Delete` and `Rename` survive the end of the host once they are answered.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from model.log.contents import Contents
from model.operations import Ask

T = TypeVar("T")


class StorageError(Exception):
    """The storage could not do what it was asked for."""

    meaning = "the storage failed"

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.path}: {self.meaning}" + (f" ({self.detail})" if self.detail else "")


class NoSuchFile(StorageError):
    """There is no such file or folder."""

    meaning = "there is no such file"


class DiskFull(StorageError):
    """There is no room left on the disk."""

    meaning = "there is no room left on the disk"


class DiskFailed(StorageError):
    """The disk answered with an error."""

    meaning = "the disk failed"


class StorageFailure(Struct, frozen=True):
    """A failed answer of a storage as a value: which error, and where."""

    kind: type[StorageError]
    path: str
    detail: str = ""

    def error(self) -> StorageError:
        """Make the exception that this failure stands for."""
        return self.kind(self.path, self.detail)


UNKNOWN = -1
"""A size that is not known."""


class StorageAsk(Ask[T], frozen=True):
    """Anything that is asked of a storage; a `StorageFailure` is raised where it was awaited."""

    def __await__(self) -> Generator[Ask[Any], Any, T]:
        answer: Any = yield self
        if type(answer) is StorageFailure:
            raise answer.error()
        return answer  # type: ignore[no-any-return]


class File(NamedTuple):
    """A file or folder as its folder lists it."""

    name: str
    size_bytes: int
    modified_ms: int
    is_folder: bool = False


class Listed(StorageAsk[tuple[File, ...]], frozen=True):
    """List a folder, in the order of names; `NoSuchFile` if there is none."""

    folder: str


class MakeFolder(StorageAsk[None], frozen=True):
    """Make a folder, if there is none yet."""

    folder: str


class CreateFile(StorageAsk[None], frozen=True):
    """Make an empty file; one of that name is replaced."""

    path: str


class Append(StorageAsk[int], frozen=True):
    """Write at the end of a file; answered with how many bytes were written, maybe fewer."""

    path: str
    contents: Contents


class Read(StorageAsk[Contents], frozen=True):
    """Read at most so many bytes; fewer only at the end of the file."""

    path: str
    at: int
    size_bytes: int


class Send(StorageAsk[int], frozen=True):
    """Hand a part of a file to a connection without copying it; answered with the size sent.

    `to` is whatever the driver calls a connection.
    """

    path: str
    at: int
    size_bytes: int
    to: object


class Flush(StorageAsk[None], frozen=True):
    """Wait until all that was appended to a file is on the disk itself."""

    path: str
    size_bytes: int = UNKNOWN
    """About how much that is, where it is known."""


class Truncate(StorageAsk[None], frozen=True):
    """Cut a file to a size, and wait until that is on the disk."""

    path: str
    size_bytes: int


class Delete(StorageAsk[None], frozen=True):
    """Delete a file, or a folder with all that is in it."""

    path: str


class Rename(StorageAsk[None], frozen=True):
    """Give a file another name in one step; a file that has it is replaced."""

    path: str
    to: str


class Touch(StorageAsk[None], frozen=True):
    """Set the time of a file's last change to now."""

    path: str
