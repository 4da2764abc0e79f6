"""A storage in memory with exactly the guarantees of `model.log.storage`, and no others.

Bytes that were appended without a flush survive the end of the process, and a crash of the
host only in part. Appends can be short, effects can fail, and a coroutine can be abandoned in
the middle, as by a killed process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from watchkeeper.model.actor.effects import Now, Sleep
from watchkeeper.model.log.format.contents import Contents, size_of, slice_contents
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
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

T = TypeVar("T")

Tear = Callable[[str, bytes, int], bytes]
"""What a crash of the host leaves of unflushed bytes, by path, the bytes, and their position
in the file."""


class Killed(Exception):
    """The process has ended before the coroutine did."""


class Killable:
    """Drives coroutines, and can abandon them in the middle."""

    def answer(self, effect: Any) -> Any:
        """Answer an effect with a result or a `StorageFailure`."""
        raise NotImplementedError

    def run(self, coroutine: Coroutine[Any, Any, T], *, killed_after: int | None = None) -> T:
        """Drive a coroutine; raise `Killed` after `killed_after` answers."""
        answer: Any = None
        answered = 0
        while True:
            try:
                effect = coroutine.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
            if answered == killed_after:
                coroutine.close()
                raise Killed
            answer = self.answer(effect)
            answered += 1

    def until(self, coroutine: Coroutine[Any, Any, Any], kind: type[Any]) -> Any:
        """Drive a coroutine until it yields an effect of this kind; leave that unanswered."""
        effect = coroutine.send(None)
        while not isinstance(effect, kind):
            effect = coroutine.send(self.answer(effect))
        return effect


class MemoryFile:
    """A file: its contents, and how much of them is on the disk."""

    def __init__(self, modified_ms: int) -> None:
        self.contents: Contents = b""
        self.flushed_bytes = 0
        self.modified_ms = modified_ms


class MemoryStorage(Killable):
    """Files in memory, and a clock that only tests advance."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.now_ms = now_ms
        self.files: dict[str, MemoryFile] = {}
        self.folders = {""}
        self.shortened: deque[int | type[StorageError]] = deque()
        """For each of the next appends: the bytes that it accepts, or its error."""
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
            ListFolder: self._listed,
            MakeFolder: lambda effect: self.folders.add(effect.folder),
            CreateFile: self._create,
            Delete: self._delete,
            Rename: self._rename,
            Touch: self._touch,
            Now: lambda effect: self.now_ms,
            Sleep: lambda effect: None,
        }

    def answer(self, effect: Any) -> Any:
        """Answer an effect with a result or a `StorageFailure`."""
        self.asked.append(effect)
        if self.failing and type(effect) is self.failing[0][0]:
            return StorageFailure(self.failing.popleft()[1], effect.path, "on purpose")
        try:
            return self._answers[type(effect)](effect)
        except KeyError as error:
            return StorageFailure(NoSuchFile, str(error.args[0]))

    def put(self, path: str, contents: bytes) -> None:
        """Create a file with flushed contents, outside of any effect."""
        file = self.files[path] = MemoryFile(self.now_ms)
        file.contents = contents
        file.flushed_bytes = len(contents)

    def end_host(self, tear: Tear) -> None:
        """Crash the host: flushed bytes survive, and what `tear` leaves of the others."""
        for path, file in self.files.items():
            assert isinstance(file.contents, bytes), "what is torn has to be bytes"
            flushed = file.contents[: file.flushed_bytes]
            rest = file.contents[file.flushed_bytes :]
            file.contents = flushed + tear(path, rest, file.flushed_bytes)
            file.flushed_bytes = len(file.contents)

    # --- queries -----------------------------------------------------------------------

    def _append(self, effect: Append) -> int | StorageFailure:
        file = self.files[effect.path]
        largest = self.shortened.popleft() if self.shortened else size_of(effect.contents)
        if not isinstance(largest, int):
            return StorageFailure(largest, effect.path, "on purpose")
        taken: Any = slice_contents(effect.contents, 0, largest)
        file.contents = file.contents + taken if file.contents else taken
        file.modified_ms = self.now_ms
        return size_of(taken)

    def _read(self, effect: Read) -> Contents:
        return slice_contents(
            self.files[effect.path].contents, effect.at, effect.at + effect.size_bytes
        )

    def _send(self, effect: Send) -> int:
        assert isinstance(effect.to, bytearray)
        sent = self._read(Read(effect.path, effect.at, min(effect.size_bytes, self.sent_at_most)))
        assert isinstance(sent, bytes)
        effect.to.extend(sent)
        return len(sent)

    def _flush(self, effect: Flush) -> None:
        file = self.files[effect.path]
        file.flushed_bytes = size_of(file.contents)

    def _truncate(self, effect: Truncate) -> None:
        file = self.files[effect.path]
        file.contents = slice_contents(file.contents, 0, effect.size_bytes)
        file.flushed_bytes = min(file.flushed_bytes, effect.size_bytes)
        file.modified_ms = self.now_ms

    def _listed(self, effect: ListFolder) -> tuple[File, ...]:
        if effect.folder not in self.folders:
            raise KeyError(effect.folder)
        below = f"{effect.folder}/" if effect.folder else ""
        files = [
            File(path.removeprefix(below), size_of(file.contents), file.modified_ms)
            for path, file in self.files.items()
            if path.startswith(below) and "/" not in path.removeprefix(below)
        ]
        if not effect.folder:
            files += [File(name, 0, self.now_ms, True) for name in self.folders if name]
        return tuple(sorted(files))

    def _create(self, effect: CreateFile) -> None:
        if effect.path.rpartition("/")[0] not in self.folders:
            raise KeyError(effect.path)
        self.files[effect.path] = MemoryFile(self.now_ms)

    def _delete(self, effect: Delete) -> None:
        if effect.path not in self.folders:
            del self.files[effect.path]
            return
        self.folders.discard(effect.path)
        for path in [path for path in self.files if path.startswith(f"{effect.path}/")]:
            del self.files[path]

    def _rename(self, effect: Rename) -> None:
        self.files[effect.to] = self.files.pop(effect.path)

    def _touch(self, effect: Touch) -> None:
        at_ms = self.now_ms if effect.modified_ms is None else effect.modified_ms
        self.files[effect.path].modified_ms = at_ms
