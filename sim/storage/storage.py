"""The storage of one host: the effects of `watchkeeper.model.log.storage`, on a simulated disk.

Effects come from a `Caller`, a thread that does one thing after the other; the answer comes by
a call. A write ends in memory. A read is answered from memory, or when the disk has brought
what is missing. `Send` hands pages to the network as they are; with `has_sendfile` off it does
what a program has to do then: read into its own memory and write from there.

A crash of a process is nothing to its storage. A crash of the host (`lose_power`) loses what
was not on the disk; what is on it follows from how far the disk had come with its writes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from watchkeeper.model.log.format.contents import size_of
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
    Read,
    Rename,
    Send,
    StorageError,
    StorageFailure,
    Touch,
    Truncate,
)
from watchkeeper.sim.disk.host_costs import Caller, Connection, Machine, MachineProfile
from watchkeeper.sim.engine.kernel import Kernel
from watchkeeper.sim.storage.crash import Lost, lose_power
from watchkeeper.sim.storage.file_contents import first_bytes
from watchkeeper.sim.storage.files import FileNode
from watchkeeper.sim.storage.filesystem import FileSystem
from watchkeeper.sim.storage.host_effects import Overwrite
from watchkeeper.sim.storage.pagecache import PAGE_BYTES, pages_of

Reply = Callable[[Any], object]


class Storage:
    """Files on the disk of one host, and its pagecache, for its callers."""

    def __init__(self, kernel: Kernel, profile: MachineProfile, name: str = "host") -> None:
        self.kernel = kernel
        self.profile = profile
        self.machine = Machine(kernel, profile)
        self.files = FileSystem(kernel, profile, name)
        self.has_sendfile = True
        self._lives = 0
        self._answers: dict[type[Any], Callable[[Caller, Any, Reply], None]] = {
            ListFolder: self._listed,
            MakeFolder: self._make_folder,
            CreateFile: self._create,
            Append: self._append,
            Overwrite: self._overwrite,
            Read: self._read,
            Send: self._send,
            Flush: self._flush,
            Truncate: self._truncate,
            Delete: self._delete,
            Rename: self._rename,
            Touch: self._touch,
        }

    # --- asking ------------------------------------------------------------------------

    def knows(self, effect: Any) -> bool:
        """Whether this is an effect of a storage."""
        return type(effect) in self._answers

    def ask(self, caller: Caller, effect: Any, reply: Reply) -> None:
        """Answer an effect by a call; a failure is a `StorageFailure`."""
        try:
            self._answers[type(effect)](caller, effect, reply)
        except StorageError as error:
            self.machine.call(caller)
            failure = StorageFailure(type(error), error.path, error.detail)
            self._reply(caller, reply, failure)

    def lose_power(self) -> tuple[Lost, ...]:
        """End the host and return what was lost; pending effects get no answer."""
        self._lives += 1
        return lose_power(self.files)

    def _reply(self, caller: Caller, reply: Reply, answer: Any) -> None:
        """Answer when the caller is done with its call."""
        at_us = max(caller.ready_ns // 1000, self.kernel.now_us)
        self.kernel.at(at_us, self._arrive, (self._lives, reply, answer))

    def _arrive(self, due: tuple[int, Reply, Any]) -> None:
        lives, reply, answer = due
        if lives == self._lives:
            reply(answer)

    def _failed(self, caller: Caller, path: str, detail: str, reply: Reply) -> None:
        self._reply(caller, reply, StorageFailure(DiskFailed, path, detail))

    # --- writing -----------------------------------------------------------------------

    def _append(self, caller: Caller, effect: Append, reply: Reply) -> None:
        files = self.files
        file = files.tree.file(effect.path)
        if files.writeback.is_open and files.has_end(file):
            self._append_here(caller, effect, file, reply, True)
            return
        here = partial(self._append_here, caller, effect, file, reply)
        files.writeback.admit(lambda: files.with_edges(file, file.size_bytes, 0, here))

    def _append_here(
        self, caller: Caller, effect: Append, file: FileNode, reply: Reply, is_good: bool
    ) -> None:
        """Append, with the last page in memory if only a part of it is there."""
        at, wanted = file.size_bytes, size_of(effect.contents)
        size = self.files.allowed(file, wanted) if is_good else 0
        if size or not wanted:
            contents = effect.contents if size == wanted else first_bytes(effect.contents, size)
            self.files.append(file, contents)
            self._write_into(caller, file, at, size)
            self._reply(caller, reply, size)
        else:
            self.machine.call(caller)
            kind = DiskFull if is_good else DiskFailed
            self._reply(caller, reply, StorageFailure(kind, effect.path))

    def _overwrite(self, caller: Caller, effect: Overwrite, reply: Reply) -> None:
        file = self.files.tree.file(effect.path)
        assert effect.at + effect.size_bytes <= file.size_bytes, "what is overwritten is there"

        def write(is_good: bool) -> None:
            if is_good:
                self._write_into(caller, file, effect.at, effect.size_bytes)
                self._reply(caller, reply, None)
            else:
                self._failed(caller, effect.path, "a read before a write", reply)

        def admitted() -> None:
            self.files.with_edges(file, effect.at, effect.size_bytes, write)

        self.files.writeback.admit(admitted)

    def _write_into(self, caller: Caller, file: FileNode, at: int, size_bytes: int) -> None:
        """Copy into memory, and have it dirty."""
        self.machine.calls += 1
        cost = self.profile.call_ns + self.profile.write_ns
        if size_bytes:
            fresh = self.files.soil(file, *pages_of(at, size_bytes))
            cost += fresh * self.profile.page_ns
        self.machine.copy(caller, size_bytes, cost)

    # --- reading -----------------------------------------------------------------------

    def _wanted(self, effect: Read | Send) -> tuple[FileNode, int]:
        """The file, and how much it has of what is wanted."""
        file = self.files.tree.file(effect.path)
        return file, max(min(effect.size_bytes, file.size_bytes - effect.at), 0)

    def _read(self, caller: Caller, effect: Read, reply: Reply) -> None:
        file, size = self._wanted(effect)
        contents = file.read(effect.at, size)
        self.machine.call(caller)
        if not size:
            self._reply(caller, reply, contents)
            return

        def here(is_good: bool) -> None:
            if is_good:
                self.machine.copy(caller, size)
                self._reply(caller, reply, contents)
            else:
                self._failed(caller, effect.path, "a read", reply)

        self.files.reader.want(file, effect.at, size, here)

    def _send(self, caller: Caller, effect: Send, reply: Reply) -> None:
        assert isinstance(effect.to, Connection), (
            "a simulated storage sends to its own connections"
        )
        file, size = self._wanted(effect)
        self.machine.call(caller)
        if not size:
            self._reply(caller, reply, 0)
            return

        def here(is_good: bool) -> None:
            if is_good:
                self._hand_over(caller, effect.to, size)
                self._reply(caller, reply, size)
            else:
                self._failed(caller, effect.path, "a read", reply)

        self.files.reader.want(file, effect.at, size, here)

    def _hand_over(self, caller: Caller, to: Any, size_bytes: int) -> None:
        """Give pages to the network: as they are, or by way of the program's own memory."""
        machine = self.machine
        if self.has_sendfile:
            pages = -(-size_bytes // PAGE_BYTES)
            ready = machine.compute(caller, pages * self.profile.page_ns)
            caller.ready_ns = to.send(ready, size_bytes)
        else:
            machine.copy(caller, size_bytes)
            machine.transmit(caller, size_bytes, to)

    # --- lasting -----------------------------------------------------------------------

    def _flush(self, caller: Caller, effect: Flush, reply: Reply) -> None:
        file = self.files.tree.file(effect.path)
        size, cuts = file.size_bytes, file.cuts
        self.machine.call(caller)

        def answer(is_good: bool) -> None:
            if is_good and cuts == file.cuts:
                self.files.flushed(file, size)
            if is_good:
                self._reply(caller, reply, None)
            else:
                self._failed(caller, effect.path, "a flush", reply)

        def written(is_good: bool) -> None:
            if not is_good:
                answer(False)
            elif file.sworn_bytes < size:
                self.files.journal.commit(answer)
            else:
                self.files.store.flush(answer)

        self.files.writeback.flush(file, written)

    def _commit(self, caller: Caller, path: str, reply: Reply) -> None:
        """Answer when what was done to names is on the disk."""
        self.machine.call(caller)

        def answer(is_good: bool) -> None:
            if is_good:
                self._reply(caller, reply, None)
            else:
                self._failed(caller, path, "the journal", reply)

        self.files.journal.commit(answer)

    def _truncate(self, caller: Caller, effect: Truncate, reply: Reply) -> None:
        self.files.cut(self.files.tree.file(effect.path), effect.size_bytes)
        self._commit(caller, effect.path, reply)

    def _delete(self, caller: Caller, effect: Delete, reply: Reply) -> None:
        self.files.remove(effect.path)
        self._commit(caller, effect.path, reply)

    def _rename(self, caller: Caller, effect: Rename, reply: Reply) -> None:
        self.files.rename(effect.path, effect.to)
        self._commit(caller, effect.path, reply)

    def _create(self, caller: Caller, effect: CreateFile, reply: Reply) -> None:
        self.files.put(effect.path, self.files.new_file())
        self._commit(caller, effect.path, reply)

    def _make_folder(self, caller: Caller, effect: MakeFolder, reply: Reply) -> None:
        self.files.tree.make_folder(effect.folder)
        self._commit(caller, effect.folder, reply)

    # --- names -------------------------------------------------------------------------

    def _listed(self, caller: Caller, effect: ListFolder, reply: Reply) -> None:
        names = self.files.tree.children(effect.folder)
        self.machine.call(caller, len(names) * self.profile.call_ns)
        self._reply(caller, reply, tuple(self._described(name) for name in names))

    def _described(self, path: str) -> File:
        name = path.rpartition("/")[2]
        file = self.files.tree.files.get(path)
        if file is None:
            return File(name, 0, 0, is_folder=True)
        return File(name, file.size_bytes, file.modified_ms)

    def _touch(self, caller: Caller, effect: Touch, reply: Reply) -> None:
        self.files.tree.file(effect.path).modified_ms = (
            self.files.now_ms() if effect.modified_ms is None else effect.modified_ms
        )
        self.machine.call(caller)
        self._reply(caller, reply, None)
