"""A storage in memory that keeps exactly the promises of `model.log.storage`, and no others.

What was appended and not flushed survives the end of the process, and of the host only in
part. Appends can be cut short and asks can be made to fail; a coroutine can be left in the
middle, as a process leaves it that is killed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from model.asks import Now
from model.log.contents import Contents, part_of, size_of
from model.log.storage import (
    Append,
    CreateFile,
    Delete,
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

T = TypeVar("T")

Tear = Callable[[str, bytes, int], bytes]
"""What the end of the host leaves of what was not flushed: of which file, what it was, at
which place of the file it begins."""


class Killed(Exception):
    """The process has ended before the coroutine did."""


class Killable:
    """Drives coroutines, and can leave them in the middle."""

    def answer(self, ask: Any) -> Any:
        """Do what is asked, or say why it could not be done."""
        raise NotImplementedError

    def run(self, coroutine: Coroutine[Any, Any, T], *, killed_after: int | None = None) -> T:
        """Drive a coroutine; `Killed` if the process ends after so many answers before it."""
        answer: Any = None
        answered = 0
        while True:
            try:
                ask = coroutine.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            if answered == killed_after:
                coroutine.close()
                raise Killed
            answer = self.answer(ask)
            answered += 1

    def until(self, coroutine: Coroutine[Any, Any, Any], kind: type[Any]) -> Any:
        """Drive a coroutine until it asks something of this kind, which is not answered yet."""
        ask = coroutine.send(None)
        while not isinstance(ask, kind):
            ask = coroutine.send(self.answer(ask))
        return ask


class MemoryFile:
    """A file: what is in it, and how much of that is on the disk."""

    def __init__(self, modified_ms: int) -> None:
        self.contents: Contents = b""
        self.flushed_bytes = 0
        self.modified_ms = modified_ms


class MemoryStorage(Killable):
    """Files in memory, and a clock that stands still unless it is moved."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.now_ms = now_ms
        self.files: dict[str, MemoryFile] = {}
        self.folders = {""}
        self.shortened: deque[int | type[StorageError]] = deque()
        """How much each of the next appends takes at most, or how it fails."""
        self.sent_at_most = 10**9
        self.failing: deque[tuple[type[Any], type[StorageError]]] = deque()
        """Asks of which the next one fails, and how."""
        self.asked: list[Any] = []
        self._answers: dict[type[Any], Callable[[Any], Any]] = {
            Append: self._append,
            Read: self._read,
            Send: self._send,
            Flush: self._flush,
            Truncate: self._truncate,
            Listed: self._listed,
            MakeFolder: lambda ask: self.folders.add(ask.folder),
            CreateFile: self._create,
            Delete: self._delete,
            Rename: self._rename,
            Touch: self._touch,
            Now: lambda ask: self.now_ms,
        }

    def answer(self, ask: Any) -> Any:
        """Do what is asked, or say why it could not be done."""
        self.asked.append(ask)
        if self.failing and type(ask) is self.failing[0][0]:
            return StorageFailure(self.failing.popleft()[1], ask.path, "on purpose")
        try:
            return self._answers[type(ask)](ask)
        except KeyError as error:
            return StorageFailure(NoSuchFile, str(error.args[0]))

    def put(self, path: str, contents: bytes) -> None:
        """Let there be a file, as if somebody else had made it and flushed it."""
        file = self.files[path] = MemoryFile(self.now_ms)
        file.contents = contents
        file.flushed_bytes = len(contents)

    def end_host(self, tear: Tear) -> None:
        """The host ends: what was flushed stays, and what `tear` leaves of the rest."""
        for path, file in self.files.items():
            assert isinstance(file.contents, bytes), "what is torn has to be bytes"
            flushed = file.contents[: file.flushed_bytes]
            rest = file.contents[file.flushed_bytes :]
            file.contents = flushed + tear(path, rest, file.flushed_bytes)
            file.flushed_bytes = len(file.contents)

    # --- what is asked -----------------------------------------------------------------

    def _append(self, ask: Append) -> int | StorageFailure:
        file = self.files[ask.path]
        largest = self.shortened.popleft() if self.shortened else size_of(ask.contents)
        if not isinstance(largest, int):
            return StorageFailure(largest, ask.path, "on purpose")
        taken: Any = part_of(ask.contents, 0, largest)
        file.contents = file.contents + taken if file.contents else taken
        file.modified_ms = self.now_ms
        return size_of(taken)

    def _read(self, ask: Read) -> Contents:
        return part_of(self.files[ask.path].contents, ask.at, ask.at + ask.size_bytes)

    def _send(self, ask: Send) -> int:
        assert isinstance(ask.to, bytearray)
        sent = self._read(Read(ask.path, ask.at, min(ask.size_bytes, self.sent_at_most)))
        assert isinstance(sent, bytes)
        ask.to.extend(sent)
        return len(sent)

    def _flush(self, ask: Flush) -> None:
        file = self.files[ask.path]
        file.flushed_bytes = size_of(file.contents)

    def _truncate(self, ask: Truncate) -> None:
        file = self.files[ask.path]
        file.contents = part_of(file.contents, 0, ask.size_bytes)
        file.flushed_bytes = min(file.flushed_bytes, ask.size_bytes)
        file.modified_ms = self.now_ms

    def _listed(self, ask: Listed) -> tuple[File, ...]:
        if ask.folder not in self.folders:
            raise KeyError(ask.folder)
        below = f"{ask.folder}/" if ask.folder else ""
        files = [
            File(path.removeprefix(below), size_of(file.contents), file.modified_ms)
            for path, file in self.files.items()
            if path.startswith(below) and "/" not in path.removeprefix(below)
        ]
        if not ask.folder:
            files += [File(name, 0, self.now_ms, True) for name in self.folders if name]
        return tuple(sorted(files))

    def _create(self, ask: CreateFile) -> None:
        if ask.path.rpartition("/")[0] not in self.folders:
            raise KeyError(ask.path)
        self.files[ask.path] = MemoryFile(self.now_ms)

    def _delete(self, ask: Delete) -> None:
        if ask.path not in self.folders:
            del self.files[ask.path]
            return
        self.folders.discard(ask.path)
        for path in [path for path in self.files if path.startswith(f"{ask.path}/")]:
            del self.files[path]

    def _rename(self, ask: Rename) -> None:
        self.files[ask.to] = self.files.pop(ask.path)

    def _touch(self, ask: Touch) -> None:
        self.files[ask.path].modified_ms = self.now_ms
