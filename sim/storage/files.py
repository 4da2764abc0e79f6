"""Files and folders, and what of their making and going is on the disk already.

A name that comes, changes or goes is on the disk when the journal says so. Until then it is
*pending*, and the end of the host undoes it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from watchkeeper.model.delivery.interval_set import IntervalSet
from watchkeeper.model.log.format.contents import Contents
from watchkeeper.model.log.storage import NoSuchFile, StorageError
from watchkeeper.sim.storage.allocator import Room
from watchkeeper.sim.storage.file_contents import Bytes, Holding
from watchkeeper.sim.storage.pagecache import CachedFile
from watchkeeper.sim.storage.readahead import Readahead

if TYPE_CHECKING:
    from watchkeeper.sim.storage.page_reads import Reading
    from watchkeeper.sim.storage.writeback import Writing

Undo = Callable[[], None]


class FileNode:
    """A file."""

    __slots__ = (
        *("cached", "cuts", "durable", "flushed_bytes", "holding", "modified_ms"),
        *("readahead", "readings", "room", "sworn_bytes", "writings"),
    )

    def __init__(self, cached: CachedFile, readahead_pages: int, now_ms: int) -> None:
        self.holding: Holding | None = None
        """None as long as nothing was written."""
        self.cached = cached
        self.readahead = Readahead(readahead_pages)
        self.room = Room()
        self.modified_ms = now_ms
        self.durable = IntervalSet()
        """The bytes that are on the disk."""
        self.flushed_bytes = 0
        """How long it was when it was flushed last."""
        self.sworn_bytes = 0
        """How long it is by what the journal says."""
        self.cuts = 0
        """How often it was cut: what was under way before is of another file's pages."""
        self.readings: list[Reading] = []
        self.writings: list[Writing] = []

    @property
    def size_bytes(self) -> int:
        """How long it is."""
        return self.holding.size_bytes if self.holding is not None else 0

    @property
    def unflushed_bytes(self) -> int:
        """How much was appended since it was flushed last."""
        return self.size_bytes - self.flushed_bytes

    def read(self, at: int, size_bytes: int) -> Contents:
        """What stands in it."""
        return self.holding.read(at, size_bytes) if self.holding is not None else b""

    def cut(self, size_bytes: int) -> None:
        """Forget what is behind."""
        if self.holding is not None:
            self.holding.cut(size_bytes)
        self.durable.remove(size_bytes, 1 << 62)
        self.flushed_bytes = min(self.flushed_bytes, size_bytes)
        self.sworn_bytes = min(self.sworn_bytes, size_bytes)
        self.cuts += 1

    def blank(self, begin: int, end: int) -> None:
        """Put zeros between two places."""
        holding = self.holding or Bytes()
        self.holding = holding
        holding.blank(begin, end)


class Tree:
    """The names of one file system."""

    def __init__(self) -> None:
        self.files: dict[str, FileNode] = {}
        self.folders: dict[str, None] = {"": None}
        self._pending: list[Undo] = []

    def file(self, path: str) -> FileNode:
        """The file of a name; NoSuchFile if there is none."""
        if path not in self.files:
            raise NoSuchFile(path)
        return self.files[path]

    def below(self, folder: str) -> list[str]:
        """The names of all files and folders below a folder."""
        prefix = f"{folder}/" if folder else ""
        return sorted(
            name
            for names in (self.files, self.folders)
            for name in names
            if name and name.startswith(prefix)
        )

    def children(self, folder: str) -> list[str]:
        """The names of what is in a folder, in order; NoSuchFile if there is no such folder."""
        if folder not in self.folders:
            raise NoSuchFile(folder)
        skip = len(folder) + 1 if folder else 0
        return [name for name in self.below(folder) if "/" not in name[skip:]]

    # --- changes -----------------------------------------------------------------------

    def make_folder(self, folder: str) -> None:
        """Make a folder and those it is in, as far as they are not there."""
        parts = folder.split("/")
        for number in range(1, len(parts) + 1):
            name = "/".join(parts[:number])
            if name in self.files:
                raise StorageError(name, "a file stands where a folder is to be made")
            if name not in self.folders:
                self.folders[name] = None
                self._pending.append(partial(self._forget_folder, name))

    def _forget_folder(self, folder: str) -> None:
        del self.folders[folder]

    def put(self, path: str, file: FileNode) -> FileNode | None:
        """Give a file a name; which file had it."""
        self._check_folder_of(path)
        if path in self.folders:
            raise StorageError(path, "a folder has this name")
        before = self.files.get(path)
        self.files[path] = file
        self._pending.append(lambda: self._restore(path, before))
        return before

    def remove(self, path: str) -> list[FileNode]:
        """Remove a file, or a folder and all that is in it; which files are gone."""
        if path in self.files:
            names = [path]
        elif path in self.folders and path:
            names = [path, *self.below(path)]
        else:
            raise NoSuchFile(path)
        files = {name: self.files.pop(name) for name in names if name in self.files}
        folders = [name for name in names if name in self.folders]
        for name in folders:
            del self.folders[name]

        def undo() -> None:
            self.files.update(files)
            self.folders.update(dict.fromkeys(folders))

        self._pending.append(undo)
        return list(files.values())

    def rename(self, path: str, to: str) -> FileNode | None:
        """Give a file another name; which file had it."""
        file = self.file(path)
        if path == to:
            return None
        before = self.put(to, file)
        self._pending.pop()
        del self.files[path]

        def undo() -> None:
            self._restore(to, before)
            self.files[path] = file

        self._pending.append(undo)
        return before

    def cut(self, file: FileNode, size_bytes: int) -> None:
        """Cut a file."""
        lost = file.read(size_bytes, 1 << 62)
        durable = file.durable.within(size_bytes, 1 << 62)
        flushed, sworn, cuts = file.flushed_bytes, file.sworn_bytes, file.cuts + 1
        file.cut(size_bytes)

        def undo() -> None:
            if file.holding is None or file.cuts != cuts:
                return
            file.holding.cut(size_bytes)
            file.holding.append(lost)
            file.durable.remove(size_bytes, 1 << 62)
            for begin, end in durable:
                file.durable.add(begin, end)
            file.flushed_bytes, file.sworn_bytes = flushed, sworn

        self._pending.append(undo)

    def _restore(self, path: str, before: FileNode | None) -> None:
        if before is None:
            del self.files[path]
        else:
            self.files[path] = before

    def _check_folder_of(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        if folder not in self.folders:
            raise NoSuchFile(folder, f"{path} was to be put there")

    # --- the journal -------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """How many changes are not on the disk."""
        return len(self._pending)

    def settle(self, changes: int) -> None:
        """The first so many changes are on the disk."""
        del self._pending[:changes]

    def undo(self) -> int:
        """Undo what is pending; how many changes."""
        undone = len(self._pending)
        for undo in reversed(self._pending):
            undo()
        self._pending.clear()
        return undone
