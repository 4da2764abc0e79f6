"""Files on the disk of one host with its pagecache, and what can go wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from watchkeeper.model.log.format.contents import Contents, size_of
from watchkeeper.model.log.storage import DiskFull
from watchkeeper.sim.disk.disk import Counts, Disk, Store, Undo
from watchkeeper.sim.disk.host_costs import MachineProfile
from watchkeeper.sim.disk.models import Device
from watchkeeper.sim.disk.raid5 import Raid5
from watchkeeper.sim.engine.kernel import EPOCH_US, Kernel
from watchkeeper.sim.storage.allocator import Volume, rounded
from watchkeeper.sim.storage.file_contents import holding_for
from watchkeeper.sim.storage.files import FileNode, Tree
from watchkeeper.sim.storage.journal import Journal
from watchkeeper.sim.storage.page_reads import Reader
from watchkeeper.sim.storage.pagecache import PAGE_BYTES, PageCache
from watchkeeper.sim.storage.writeback import WriteBack

GRAINS = 1024
"""Into how many grains the memory is divided; see `watchkeeper.sim.storage.pagecache`."""

Step = Callable[[bool], None]
"""What goes on when something is there, or is not."""


def store_of(kernel: Kernel, device: Device, name: str) -> Store:
    """A disk of this kind, or an array."""
    return Raid5(kernel, device, name) if device.members > 1 else Disk(kernel, device, name)


class FileSystem:
    """The files of one host."""

    def __init__(self, kernel: Kernel, profile: MachineProfile, name: str) -> None:
        self.kernel = kernel
        self.profile = profile
        self.cache = self.empty_memory()
        self.store = store_of(kernel, profile.device, name)
        self.volume = Volume(profile.device.room_bytes)
        self.tree = Tree()
        self.journal = Journal(self.store, self.tree, profile.journal_bytes)
        self.reader = Reader(self.cache, self.store)
        self.writeback = WriteBack(kernel, profile, self.cache, self.store)
        self.chance = kernel.streams(f"storage/{name}/crash")
        self.clock_ms: Callable[[], int] = self._true_ms
        """The clock of the host; a wrong clock is set here."""
        self.unflushed_bytes = 0
        """What was appended to files and is not flushed: the end of the host may take it."""
        self.most_unflushed_bytes = 0
        """The most that this was since the last sample."""
        self._cutting: list[Counts] = []

    def empty_memory(self) -> PageCache:
        """A pagecache in which nothing is."""
        pages = max(self.profile.memory_bytes // PAGE_BYTES, 1)
        return PageCache(pages, grain_pages=max(pages // GRAINS, 1))

    def now_ms(self) -> int:
        """What the host's clock says."""
        return self.clock_ms()

    def _true_ms(self) -> int:
        return (EPOCH_US + self.kernel.now_us) // 1000

    # --- files -------------------------------------------------------------------------

    def new_file(self) -> FileNode:
        """A file that has no name yet."""
        pages = self.profile.readahead_bytes // PAGE_BYTES
        return FileNode(self.cache.open(), pages, self.now_ms())

    def put(self, path: str, file: FileNode) -> None:
        """Give a file a name; whatever had it is gone."""
        replaced = self.tree.put(path, file)
        if replaced is not None:
            self._bury(replaced)

    def rename(self, path: str, to: str) -> None:
        """Give a file another name; whatever had it is gone."""
        replaced = self.tree.rename(path, to)
        if replaced is not None:
            self._bury(replaced)

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and all that is in it."""
        for file in self.tree.remove(path):
            self._bury(file)

    def cut(self, file: FileNode, size_bytes: int) -> None:
        """Cut a file."""
        if size_bytes < file.size_bytes:
            before = file.unflushed_bytes
            self.tree.cut(file, size_bytes)
            self.unflushed_bytes += file.unflushed_bytes - before
            self._let_go(file, size_bytes)
            file.modified_ms = self.now_ms()

    def _bury(self, file: FileNode) -> None:
        file.cuts += 1
        self.unflushed_bytes -= file.unflushed_bytes
        self._let_go(file, 0)

    def _let_go(self, file: FileNode, size_bytes: int) -> None:
        """Give back memory and room behind so many bytes of a file."""
        self.cache.drop(file.cached, rounded(size_bytes) // PAGE_BYTES)
        if not file.cached.dirty:
            self.writeback.forget(file)
        self.volume.shrink(file.room, size_bytes)

    def preload(self, path: str, contents: Contents) -> FileNode:
        """Have a file that is on the disk and not in memory, as if from long ago."""
        assert not self.tree.pending, "what is on the disk from long ago is put there first"
        folder = path.rpartition("/")[0]
        if folder:
            self.tree.make_folder(folder)
        file = self.new_file()
        self.tree.put(path, file)
        self.tree.settle(self.tree.pending)
        size = size_of(contents)
        if self.volume.grow(file.room, size) < size:
            raise DiskFull(path, f"{size} bytes")
        file.holding = holding_for(contents)
        file.holding.append(contents)
        file.durable.add(0, size)
        file.flushed_bytes = file.sworn_bytes = size
        return file

    # --- writing -----------------------------------------------------------------------

    def append(self, file: FileNode, contents: Contents) -> None:
        """Have something at the end of a file."""
        if file.holding is None:
            file.holding = holding_for(contents)
        file.holding.append(contents)
        self.unflushed_bytes += size_of(contents)
        self.most_unflushed_bytes = max(self.most_unflushed_bytes, self.unflushed_bytes)

    def flushed(self, file: FileNode, size_bytes: int) -> None:
        """A file was flushed that was as long as this when that began."""
        before = file.unflushed_bytes
        file.flushed_bytes = max(file.flushed_bytes, size_bytes)
        file.sworn_bytes = max(file.sworn_bytes, size_bytes)
        self.unflushed_bytes += file.unflushed_bytes - before

    def allowed(self, file: FileNode, size_bytes: int) -> int:
        """How much of an append is written: what there is room for, and what faults let be."""
        at = file.size_bytes
        size = max(self.volume.grow(file.room, at + size_bytes) - at, 0)
        if self._cutting and size > 1:
            size = 1 + self.chance.below(size - 1)
            for effect in self._cutting:
                effect.add("writes cut short")
        return size

    def has_end(self, file: FileNode) -> bool:
        """Whether the page that an append would go on in is in memory, if there is one."""
        page, begun = divmod(file.size_bytes, PAGE_BYTES)
        return not begun or not self.cache.missing(file.cached, page, page + 1)

    def with_edges(self, file: FileNode, at: int, size_bytes: int, write: Step) -> None:
        """Go on when those pages are in memory of which only a part is to be written."""
        end = at + size_bytes
        edges = [at] if at % PAGE_BYTES else []
        if end % PAGE_BYTES and end < file.size_bytes:
            edges.append(end)
        for place in edges:
            page = place // PAGE_BYTES
            if self.cache.missing(file.cached, page, page + 1):
                here = partial(self._edge_here, file, at, size_bytes, write)
                self.reader.want(file, page * PAGE_BYTES, 1, here, is_for_write=True)
                return
        write(True)

    def _edge_here(
        self, file: FileNode, at: int, size_bytes: int, write: Step, is_good: bool
    ) -> None:
        if is_good:
            self.with_edges(file, at, size_bytes, write)
        else:
            write(False)

    def soil(self, file: FileNode, begin: int, end: int) -> int:
        """Have pages in memory, dirty; how many were not there before."""
        before = self.cache.pages + self.cache.evicted_pages
        self.cache.soil(file.cached, begin, end)
        file.modified_ms = self.now_ms()
        fresh = self.cache.pages + self.cache.evicted_pages - before
        self.writeback.soiled(file)
        return fresh

    # --- faults ------------------------------------------------------------------------

    def slow_down(self, times: int, effect: Counts) -> Undo:
        """Let the disk take so many times as long."""
        return self.store.slow_down(times, effect)

    def fill_up(self, effect: Counts, *, left_bytes: int = 0) -> Undo:
        """Leave no more room on the disk than so much."""
        return self.volume.fill_up(effect, left_bytes=left_bytes)

    def fail(
        self, effect: Counts, *, reads: bool = True, writes: bool = True, forgets: bool = False
    ) -> Undo:
        """Let the disk answer with errors; with `forgets`, pages it refuses count as written."""
        undoes = [self.store.fail(effect, reads=reads, writes=writes)]
        if forgets:
            undoes.append(self.writeback.forget_failures(effect))

        def undo() -> None:
            for step in undoes:
                step()

        return undo

    def tear(self, effect: Counts) -> Undo:
        """At the end of the host, let sectors of a write arrive in any order, or not."""
        return self.store.tear(effect)

    def cut_writes(self, effect: Counts) -> Undo:
        """Let appends write less than they should."""
        self._cutting.append(effect)
        return lambda: self._cutting.remove(effect)
