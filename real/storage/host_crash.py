"""Emulates the loss of a host: removes from files what was not synced.

The kernel keeps what a process has written, however the process ends; only the end of the host
loses unsynced data. So a `WatchedStorage` keeps a *sync log* beside the files: what has been
synced of each. `end_host` then removes from the files what has not:

  - of the bytes appended since the last sync a random part remains, cut anywhere, with some
    blocks replaced by zeros;
  - a name that was being created or removed when the process ended may exist or not. Before a
    file is deleted or replaced, a second link to it is kept.

A random generator decides what remains. `cut_back` is deterministic: of every file exactly the
synced part remains, and none of it in the pagecache.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, NamedTuple

from watchkeeper.model.log.storage import (
    CreateFile,
    Delete,
    Flush,
    Rename,
    StorageFailure,
    Truncate,
)
from watchkeeper.real.storage.file_storage import FileStorage
from watchkeeper.real.storage.pagecache import forget

BLOCK_BYTES = 512
"""The unit that a disk writes atomically."""
ZEROS = 0.2
"""The probability that an unsynced block is zeroed."""
LINES = "lines"
KEPT = "kept"
"""The contents of a sync log: its lines, and a link to the file that is losing its name."""


class WatchedStorage(FileStorage):
    """The files of one folder, with a sync log in another folder."""

    def __init__(self, root: Path, sync_log: Path) -> None:
        super().__init__(root)
        if not (sync_log / LINES).exists():
            sync_log.mkdir(parents=True, exist_ok=True)
            _write_sizes(root, sync_log)
        self._sync_log = sync_log
        self._naming = Lock()
        """Serializes changes of names: only one second link is kept at a time."""
        self._lines = os.open(sync_log / LINES, os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC)

    def answer(self, effect: Any) -> Any:
        """Perform an effect and record what is on the disk because of it."""
        if isinstance(effect, Flush | Truncate):
            return self._answer_sync(effect)
        if isinstance(effect, CreateFile | Delete | Rename):
            with self._naming:
                return self._answer_name(effect)
        return super().answer(effect)

    def close(self) -> None:
        """Close every file and the sync log."""
        super().close()
        os.close(self._lines)

    def _answer_sync(self, effect: Flush | Truncate) -> Any:
        place = Path(self.root) / effect.path
        before_bytes = place.stat().st_size if place.exists() else 0
        answer = super().answer(effect)
        if not isinstance(answer, StorageFailure):
            synced_bytes = effect.size_bytes if isinstance(effect, Truncate) else before_bytes
            self._record(effect, synced_bytes)
        return answer

    def _answer_name(self, effect: CreateFile | Delete | Rename) -> Any:
        name = effect.to if isinstance(effect, Rename) else effect.path
        place, kept = Path(self.root) / name, self._sync_log / KEPT
        kept.unlink(missing_ok=True)
        if place.is_file():
            os.link(place, kept)
        self._write({"path": name, "begun": type(effect).__name__})
        answer = super().answer(effect)
        if not isinstance(answer, StorageFailure):
            self._record_name(effect)
        return answer

    def _record(self, effect: Flush | Truncate, synced_bytes: int) -> None:
        """Record how much of a file is on the disk after an effect."""
        self._write({"path": effect.path, "synced": synced_bytes})

    def _record_name(self, effect: CreateFile | Delete | Rename) -> None:
        done = {"path": effect.path, "done": type(effect).__name__}
        self._write({**done, "to": effect.to} if isinstance(effect, Rename) else done)

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._lines, json.dumps(line).encode() + b"\n")


def end_host(root: Path, sync_log: Path, random: Random) -> int:
    """Lose unsynced data at random; return the number of bytes lost or zeroed."""
    synced, begun = _read(sync_log)
    if begun and random.random() < 0.5:
        _undo(root / begun, sync_log / KEPT)
    lost_bytes = sum(_tear(root / path, synced.get(path, 0), random) for path in _files(root))
    _write_sizes(root, sync_log)
    return lost_bytes


class Cut(NamedTuple):
    """The size of a file before and after a cut."""

    path: str
    before_bytes: int
    after_bytes: int


def cut_back(root: Path, sync_log: Path) -> tuple[Cut, ...]:
    """Cut every file to its synced part; return the cuts."""
    if not (sync_log / LINES).exists():
        return ()
    cuts = []
    for path, (before_bytes, after_bytes) in extents(root, sync_log).items():
        if after_bytes < before_bytes:
            os.truncate(root / path, after_bytes)
            cuts.append(Cut(path, before_bytes, after_bytes))
        _forget(root / path)
    _write_sizes(root, sync_log)
    return tuple(cuts)


def _forget(place: Path) -> None:
    """Drop the pages of a file from memory, as after a restart of the host."""
    with place.open("r+b") as file:
        forget(file.fileno())


class Extent(NamedTuple):
    """The size of a file, and the size of its synced part."""

    size_bytes: int
    synced_bytes: int


def extents(root: Path, sync_log: Path) -> dict[str, Extent]:
    """Path -> extent of every file."""
    synced, _ = _read(sync_log)
    sizes = {path: (root / path).stat().st_size for path in _files(root)}
    return {path: Extent(size, min(synced.get(path, 0), size)) for path, size in sizes.items()}


def _read(sync_log: Path) -> tuple[dict[str, int], str]:
    """The synced size of each file, and the name that was being changed, if any."""
    synced: dict[str, int] = {}
    begun = ""
    for text in (sync_log / LINES).read_bytes().splitlines():
        line = json.loads(text)
        path = line["path"]
        begun = path if "begun" in line else ""
        if "synced" in line:
            synced[path] = line["synced"]
        elif line.get("done") == CreateFile.__name__:
            synced[path] = 0
        elif line.get("done") == Rename.__name__:
            synced[line["to"]] = synced.pop(path, 0)
    return synced, begun


def _undo(place: Path, kept: Path) -> None:
    """Restore a file as it was before it was created, replaced or deleted."""
    place.unlink(missing_ok=True)
    if kept.exists():
        os.link(kept, place)


def _tear(place: Path, synced_bytes: int, random: Random) -> int:
    """Keep the synced part of a file and a random part of the rest."""
    size_bytes = place.stat().st_size
    if synced_bytes >= size_bytes:
        return 0
    left_bytes = random.randint(synced_bytes, size_bytes)
    lost_bytes = size_bytes - left_bytes
    os.truncate(place, left_bytes)
    with place.open("r+b") as file:
        for block in range(synced_bytes // BLOCK_BYTES * BLOCK_BYTES, left_bytes, BLOCK_BYTES):
            begin, end = max(block, synced_bytes), min(block + BLOCK_BYTES, left_bytes)
            if random.random() < ZEROS:
                file.seek(begin)
                file.write(bytes(end - begin))
                lost_bytes += end - begin
    return lost_bytes


def _files(root: Path) -> list[str]:
    """The files below a folder, in a deterministic order."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def _write_sizes(root: Path, sync_log: Path) -> None:
    """Start a sync log in which everything is synced."""
    sizes = [{"path": path, "synced": (root / path).stat().st_size} for path in _files(root)]
    (sync_log / LINES).write_text("".join(json.dumps(line) + "\n" for line in sizes))
